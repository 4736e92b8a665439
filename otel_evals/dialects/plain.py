"""Names without a prefix, as instrumentations of one's own and VoltAgent choose them."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="plain",
    weak=True,
    kinds={
        "span.type": {
            "llm": "model",
            "generation": "model",
            "agent": "agent",
            "chain": "chain",
            "workflow": "chain",
            "task": "chain",
            "tool": "tool",
            "memory": "other",
            "retriever": "other",
            "embedding": "other",
        },
        "span_type": {
            "llm": "model",
            "flow": "chain",
            "function": "chain",
            "tool": "tool",
            "retrieval": "other",
            "embedding": "other",
        },
        "entity.type": {"agent": "agent", "workflow": "chain"},
    },
    messages_in=("messages", "agent.messages"),
    blob_in=("input",),
    blob_out=("output",),
    system=("agent.instructions", "system_prompt"),
    agent=("entity.name",),
    model=("ai.model.name",),
    tool_id=("tool.call.id", "tool_call_id"),
    tool_arguments=("tool.arguments", "tool.input"),
    tool_result=("tool.result", "tool.output"),
    input_tokens=("usage.prompt_tokens", "usage.input_tokens"),
    output_tokens=("usage.completion_tokens", "usage.output_tokens"),
    cached_tokens=("usage.cached_tokens",),
)
