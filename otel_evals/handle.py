"""`attach()`: one call that taps spans and log records, and the handle to steer what it started."""

from __future__ import annotations

from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LoggerProvider, get_logger_provider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from otel_evals.pipeline import DecisionCallback, RedactorLike, ResultCallback
from otel_evals.processor import EvaluationLogProcessor, EvaluationSpanProcessor
from otel_evals.runtime import Runtime
from otel_evals.settings import Settings, SettingsError

__all__ = ["EvaluationHandle", "attach"]


class EvaluationHandle:
    """Steers a running attachment."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def settings(self) -> Settings:
        return self._runtime.settings

    def set_rate(self, rate: float, evaluator: str | None = None, rule: str | None = None) -> None:
        """Judge this share of the sessions that complete from now on.

        Args:
            rate: 0 (none) to 1 (all).
            evaluator: Only for this evaluator. Default: for all.
            rule: Only for the sessions of this sampling rule. Default: for all.

        Raises:
            ValueError: the rate is out of bounds, or the evaluator or rule unknown; the old rates stay.
        """
        self._runtime.sampler.set_rate(rate, evaluator=evaluator, rule=rule)

    def pause(self) -> None:
        """Judge nothing until `resume()`; sessions that complete meanwhile are counted as paused."""
        self._runtime.sampler.pause()

    def resume(self) -> None:
        self._runtime.sampler.resume()

    def reload(self) -> bool:
        """Take sampling rates and rules anew from the file in `OTEL_EVALS_CONFIG`; it is also watched for changes.

        For services: `signal.signal(signal.SIGHUP, lambda *_: handle.reload())`.

        Returns:
            Whether sampling changed.
        """
        return self._runtime.reload()

    def end_session(self, session_id: str) -> None:
        """The conversation is over: judge it without waiting for the idle time."""
        self._runtime.end_session(session_id)

    def stats(self) -> dict[str, Any]:
        """Current figures: spans, sessions, decisions, queue, judge tokens and cost, rates."""
        return self._runtime.stats()

    def force_flush(self, timeout_millis: int = 30_000, *, complete: bool = False) -> bool:
        """Take in all ended spans and judge the completed sessions; with `complete` also the open ones.

        Returns:
            False if time ran out.
        """
        return self._runtime.force_flush(timeout_millis, complete=complete)

    def shutdown(self, timeout_millis: int = 30_000) -> None:
        """Complete and judge what is open, emit it, and stop.

        Call it before `provider.shutdown()`: scores need the exporters alive.
        """
        self._runtime.shutdown(timeout_millis)


def attach(
    tracer_provider: TracerProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    settings: Settings | None = None,
    *,
    model: object | None = None,
    redactor: RedactorLike | None = None,
    on_result: ResultCallback | None = None,
    on_decision: DecisionCallback | None = None,
) -> EvaluationHandle:
    """Score the agent sessions of this process. Calling it again returns the same attachment.

    Args:
        tracer_provider: The provider to tap, and to emit evaluation spans through. Default: the global one.
        logger_provider: Likewise for log records and evaluation events.
        meter_provider: Where the metrics go. Default: the global one.
        settings: Default: `Settings()`, that is environment and file.
        model: A judge model object instead of the one that the settings name: a `JudgeModel`, or any object with
            `async chat_complete(messages, temperature)` and `get_model_name()`.
        redactor: Every text goes through this callable before the judge sees it, after the patterns of the settings;
            or a `Redactor` instead of those. What it raises leaves the session unjudged.
        on_result: Called with each `JudgedSession`, on the judge thread.
        on_decision: Called with each completed session, its decision and sampling rule; a session that could
            not be picked from its first span on arrives without its texts.

    Raises:
        SettingsError: a setting was refused, or there is no SDK tracer provider to tap.
    """
    provider: Any = tracer_provider or trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        raise SettingsError(
            f"tracer_provider={type(provider).__name__}: not an SDK tracer provider; call "
            "opentelemetry.trace.set_tracer_provider(TracerProvider()) first, or pass tracer_provider"
        )
    processor = _attached(provider)
    if processor is None:
        processor = EvaluationSpanProcessor(
            settings,
            tracer_provider=tracer_provider,
            logger_provider=logger_provider,
            meter_provider=meter_provider,
            model=model,
            redactor=redactor,
            on_result=on_result,
            on_decision=on_decision,
        )
        provider.add_span_processor(processor)
    else:
        processor.runtime.warn_of_change(settings, redactor)
    _tap_logs(logger_provider or get_logger_provider(), processor.runtime)
    return EvaluationHandle(processor.runtime)


def _attached(provider: Any) -> EvaluationSpanProcessor | None:
    """Our processor on this provider, if it has a live one."""
    active = getattr(provider, "_active_span_processor", None)
    for processor in getattr(active, "_span_processors", ()):
        if isinstance(processor, EvaluationSpanProcessor) and not processor.runtime.closed:
            return processor
    return None


def _tap_logs(provider: Any, runtime: Runtime) -> None:
    """Add the log processor once; providers without an SDK have nothing to tap."""
    if hasattr(provider, "add_log_record_processor") and runtime.tap_logs(provider):
        provider.add_log_record_processor(EvaluationLogProcessor(runtime))
