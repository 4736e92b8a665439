"""MLflow tracing: every `mlflow.*` value is JSON, strings carry quotes."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="mlflow",
    kinds={
        "mlflow.spanType": {
            "chat_model": "model",
            "llm": "model",
            "agent": "agent",
            "chain": "chain",
            "workflow": "chain",
            "task": "chain",
            "tool": "tool",
            "unknown": "chain",
            "retriever": "other",
            "embedding": "other",
            "reranker": "other",
            "parser": "other",
            "memory": "other",
            "guardrail": "other",
            "evaluator": "other",
        }
    },
    blob_in=("mlflow.spanInputs",),
    blob_out=("mlflow.spanOutputs",),
    model=("mlflow.llm.model",),
    usage=("mlflow.chat.tokenUsage",),
    user_id=("mlflow.trace.user",),
)
