"""OpenInference (Arize Phoenix): flat indexed messages, `input.value`/`output.value`, `openinference.span.kind`."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="openinference",
    kinds={
        "openinference.span.kind": {
            "llm": "model",
            "agent": "agent",
            "chain": "chain",
            "tool": "tool",
            "guardrail": "other",
            "evaluator": "other",
            "retriever": "other",
            "reranker": "other",
            "embedding": "other",
            "prompt": "other",
            "unknown": "chain",
        }
    },
    implies={"llm.model_name": "model"},
    indexed_in=("llm.input_messages.",),
    indexed_out=("llm.output_messages.",),
    messages_in=("llm.input_messages",),
    messages_out=("llm.output_messages",),
    blob_in=("input.value",),
    blob_out=("output.value",),
    system=("llm.system_prompt",),
    agent=("agent.name", "graph.node.name"),
    model=("llm.model_name",),
    tool_name=("tool.name", "tool_call.function.name"),
    tool_id=("tool.id", "tool_call.id"),
    tool_arguments=("tool_call.function.arguments",),
    input_tokens=("llm.token_count.prompt",),
    output_tokens=("llm.token_count.completion",),
    cached_tokens=("llm.token_count.prompt_details.cache_read",),
    user_id=("user.id",),
    tags=("tag.tags",),
)
