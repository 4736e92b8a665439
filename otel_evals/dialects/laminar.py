"""Laminar: spans of its own around OpenTelemetry GenAI ones."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="laminar",
    kinds={
        "lmnr.span.type": {
            "llm": "model",
            "tool": "tool",
            "default": "chain",
            "executor": "chain",
            "evaluator": "other",
            "evaluation": "other",
        }
    },
    implies={"lmnr.span.path": "chain"},
    blob_in=("lmnr.span.input",),
    blob_out=("lmnr.span.output",),
    user_id=("lmnr.association.properties.user_id",),
    tags=("lmnr.association.properties.tags",),
)
