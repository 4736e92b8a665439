"""AgentOps: what a span is, and inputs and outputs of decorated functions."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="agentops",
    kinds={
        "agentops.span.kind": {
            "llm": "model",
            "agent": "agent",
            "tool": "tool",
            "session": "chain",
            "workflow": "chain",
            "task": "chain",
            "operation": "chain",
            "guardrail": "other",
        }
    },
    blob_in=("agentops.entity.input",),
    blob_out=("agentops.entity.output",),
    tags=("agentops.tags",),
)
