"""OpenLLMetry (Traceloop): entity input and output on wrappers, indexed prompts on older model spans."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="openllmetry",
    kinds={
        "traceloop.span.kind": {
            "workflow": "chain",
            "task": "chain",
            "agent": "agent",
            "tool": "tool",
            "session": "chain",
        },
        "llm.request.type": {"chat": "model", "completion": "model", "embedding": "other", "rerank": "other"},
    },
    implies={"gen_ai.prompt.0.role": "model", "gen_ai.prompt.0.content": "model"},
    indexed_in=("gen_ai.prompt.", "llm.prompts."),
    indexed_out=("gen_ai.completion.", "llm.completions."),
    blob_in=("traceloop.entity.input",),
    blob_out=("traceloop.entity.output",),
    model=("llm.response.model_name", "llm.request.model_name"),
    tool_arguments=("tool.arguments",),
    tool_id=("tool.call_id",),
    input_tokens=("llm.usage.prompt_tokens",),
    output_tokens=("llm.usage.completion_tokens",),
    user_id=("traceloop.association.properties.user_id",),
)
