"""Firebase Genkit: actions with input and output as JSON."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="genkit",
    kinds={
        "genkit:metadata:subtype": {
            "model": "model",
            "background-model": "model",
            "agent": "agent",
            "tool": "tool",
            "tool.v2": "tool",
            "flow": "chain",
            "prompt": "chain",
            "executable-prompt": "chain",
            "embedder": "other",
            "retriever": "other",
            "indexer": "other",
            "reranker": "other",
            "evaluator": "other",
        },
        "genkit:type": {
            "action": "chain",
            "flow": "chain",
            "flowstep": "chain",
            "util": "chain",
            "helper": "chain",
        },
    },
    blob_in=("genkit:input",),
    blob_out=("genkit:output",),
    model=("genkit:name",),
)
