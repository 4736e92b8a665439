"""LangSmith's OpenTelemetry export: whole run input and output in `gen_ai.prompt` and `gen_ai.completion`."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="langsmith",
    kinds={
        "langsmith.span.kind": {
            "llm": "model",
            "chain": "chain",
            "agent": "agent",
            "tool": "tool",
            "retriever": "other",
            "embedding": "other",
            "prompt": "other",
            "parser": "other",
        }
    },
    blob_in=("gen_ai.prompt", "inputs"),
    blob_out=("gen_ai.completion", "outputs"),
    user_id=("langsmith.metadata.user_id",),
    tags=("langsmith.span.tags", "langsmith.trace.tags"),
    agent=("langsmith.metadata.lc_agent_name",),
)
