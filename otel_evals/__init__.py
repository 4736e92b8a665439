"""Online evaluation of AI agents on OpenTelemetry.

Attach `EvaluationSpanProcessor` to a tracer provider (or call `attach()`), and completed agent sessions come back
scored: as spans, events and metrics, through the exporters you already have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otel_evals.version import __version__

if TYPE_CHECKING:
    from otel_evals.evaluation import Evaluation, Evidence, JudgedSession, Judgement
    from otel_evals.handle import EvaluationHandle, attach
    from otel_evals.judging.redact import Redactor
    from otel_evals.processor import EvaluationLogProcessor, EvaluationSpanProcessor
    from otel_evals.sessions.model import Session, ToolCall, ToolFailure, Turn
    from otel_evals.settings import Settings, SettingsError

# Loaded on first use: `import otel_evals` in an application costs next to nothing.
_HOMES = {
    "attach": "otel_evals.handle",
    "EvaluationHandle": "otel_evals.handle",
    "EvaluationLogProcessor": "otel_evals.processor",
    "EvaluationSpanProcessor": "otel_evals.processor",
    "Evaluation": "otel_evals.evaluation",
    "Evidence": "otel_evals.evaluation",
    "JudgedSession": "otel_evals.evaluation",
    "Judgement": "otel_evals.evaluation",
    "Redactor": "otel_evals.judging.redact",
    "Session": "otel_evals.sessions.model",
    "ToolCall": "otel_evals.sessions.model",
    "ToolFailure": "otel_evals.sessions.model",
    "Turn": "otel_evals.sessions.model",
    "Settings": "otel_evals.settings",
    "SettingsError": "otel_evals.settings",
}

__all__ = [
    "Evaluation",
    "EvaluationHandle",
    "EvaluationLogProcessor",
    "EvaluationSpanProcessor",
    "Evidence",
    "JudgedSession",
    "Judgement",
    "Redactor",
    "Session",
    "Settings",
    "SettingsError",
    "ToolCall",
    "ToolFailure",
    "Turn",
    "__version__",
    "attach",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
