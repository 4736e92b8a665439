"""Langfuse SDK: observations with input, output, type and level."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="langfuse",
    kinds={
        "langfuse.observation.type": {
            "generation": "model",
            "agent": "agent",
            "chain": "chain",
            "span": "chain",
            "tool": "tool",
            "event": "other",
            "embedding": "other",
            "retriever": "other",
            "evaluator": "other",
            "guardrail": "other",
        }
    },
    blob_in=("langfuse.observation.input", "langfuse.trace.input"),
    blob_out=("langfuse.observation.output", "langfuse.trace.output"),
    model=("langfuse.observation.model.name",),
    usage=("langfuse.observation.usage_details",),
    user_id=("langfuse.user.id", "langfuse.trace.user_id", "langfuse.observation.metadata.langfuse_user_id"),
    tags=("langfuse.trace.tags", "langfuse.observation.metadata.langfuse_tags"),
)
