"""Lilypad: functions with their arguments and what they returned."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="lilypad",
    implies={"lilypad.type": "chain"},
    blob_in=("lilypad.trace.arg_values",),
    blob_out=("lilypad.trace.output",),
)
