"""Braintrust: JSON in attributes of its own around OpenTelemetry spans."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="braintrust",
    kinds={
        "braintrust.span_attributes": {
            "llm": "model",
            "task": "chain",
            "function": "chain",
            "tool": "tool",
            "eval": "other",
            "score": "other",
        }
    },
    blob_in=("braintrust.input_json", "braintrust.input"),
    blob_out=("braintrust.output_json", "braintrust.output"),
    usage=("braintrust.metrics",),
    tags=("braintrust.tags",),
)
