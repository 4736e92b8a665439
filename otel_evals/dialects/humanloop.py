"""Humanloop: logs of prompts, flows and tools, each a file of its own."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="humanloop",
    implies={"humanloop.file.type": "chain"},
    blob_out=("humanloop.log.output",),
    tool_name=("humanloop.file.function.name",),
)
