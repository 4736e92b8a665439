"""The taps: a span processor and a log-record processor that copy what matters into a bounded buffer.

Their hooks run inside the application's own calls, so they take no lock, call nothing foreign, never wait and never
raise; all else happens in the runtime's thread.
"""

from __future__ import annotations

from os import getpid
from typing import Any
from weakref import ref

from opentelemetry._logs import LoggerProvider
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk._logs import LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import TracerProvider

from otel_evals.buffer import WEIGH_MASK
from otel_evals.dialects.markers import MARKER_KEYS, is_genai_log
from otel_evals.pipeline import DecisionCallback, RedactorLike, ResultCallback
from otel_evals.runtime import Runtime, runtime_for
from otel_evals.settings import Settings
from otel_evals.spans.sdk import attributes_of, size_of, snapshot_log, snapshot_span
from otel_evals.suppression import is_internal
from otel_evals.telemetry.names import INTERNAL, SCOPE

__all__ = ["EvaluationLogProcessor", "EvaluationSpanProcessor"]

# SpanContext is a tuple: its fields by index cost a fraction of its properties.
_SPAN_ID, _REMOTE = 1, 2


class EvaluationSpanProcessor(SpanProcessor):
    """Scores the agent sessions that pass through a tracer provider.

    `provider.add_span_processor(EvaluationSpanProcessor())` is all that is needed; `otel_evals.attach` adds the log
    records too, where many instrumentations put the conversation. Made twice for the same providers, the second one
    shares the first one's runtime: spans are judged once.

    Args:
        settings: Default: `Settings()`, that is environment and file.
        tracer_provider: Where the evaluation spans go. Default: the global one.
        logger_provider: Where the evaluation events go. Default: the global one.
        meter_provider: Where the metrics go. Default: the global one.
        model: A judge model object instead of the one that the settings name.
        redactor: Every text goes through this callable before the judge sees it, after the patterns of the settings;
            or a `Redactor` instead of those. What it raises leaves the session unjudged.
        on_result: Called with each `JudgedSession`, on the judge thread.
        on_decision: Called with each completed session, its decision and sampling rule; a session that could
            not be picked from its first span on arrives without its texts.

    Raises:
        SettingsError: a setting was refused.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        model: object | None = None,
        redactor: RedactorLike | None = None,
        on_result: ResultCallback | None = None,
        on_decision: DecisionCallback | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        self.runtime = runtime or runtime_for(
            settings,
            tracer_provider=tracer_provider,
            logger_provider=logger_provider,
            meter_provider=meter_provider,
            model=model,
            redactor=redactor,
            on_result=on_result,
            on_decision=on_decision,
        )
        self._buffer = self.runtime.buffer
        settings = self.runtime.settings
        further = {*settings.session_keys, *settings.goal_attributes, *settings.marker_attributes}
        self._no_marker_in = (MARKER_KEYS | further).isdisjoint

    # The two hooks below run for every span of the process: attributes are read past their properties, and what
    # most spans need comes first. `python -m benchmarks.hot_path` shows what it costs.

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        try:
            parent: Any = span._parent
            if parent is None or parent[_REMOTE]:
                self._root_started(span)
        except Exception:  # a hook must never raise into the application
            self._buffer.dropped_error += 1

    def on_end(self, span: ReadableSpan) -> None:
        buffer = self._buffer
        try:
            try:
                attributes: Any = span._attributes._dict  # type: ignore[union-attr]
            except AttributeError:
                attributes = attributes_of(span)
            if self._no_marker_in(attributes):
                buffer.ignored += 1
            elif INTERNAL in attributes or is_internal():
                buffer.internal += 1
            else:
                items = buffer.items
                if len(items) >= buffer.limit:
                    buffer.refuse()
                    return
                items.append(snapshot_span(span, attributes))
                context: Any = span._context
                if not context[_SPAN_ID] & WEIGH_MASK or not buffer.mean_size:
                    buffer.weigh(size_of(attributes))
        except Exception:  # a hook must never raise into the application
            buffer.dropped_error += 1

    def _root_started(self, span: Span) -> None:
        buffer = self._buffer
        if buffer.pid != getpid():
            # uwsgi forks without running the hooks of os.register_at_fork. What a child does begins with a local
            # root, so this is the place to notice.
            self.runtime.after_fork()
        if not buffer.closed:
            buffer.roots.append(ref(span))

    def shutdown(self) -> None:
        """Complete and judge what is open, then stop. Nothing is accepted afterwards."""
        self.runtime.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Take in all ended spans and judge the sessions that are complete. Open sessions stay open.

        Returns:
            False if time ran out.
        """
        return self.runtime.force_flush(timeout_millis)


class EvaluationLogProcessor(LogRecordProcessor):
    """Feeds GenAI log records into the same runtime: many instrumentations keep all content there."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._buffer = runtime.buffer

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        buffer = self._buffer
        try:
            log: Any = log_record.log_record
            if not is_genai_log(log.event_name, log.attributes or {}):
                return
            scope = log_record.instrumentation_scope
            if is_internal() or (scope is not None and scope.name == SCOPE):
                return
            snapshot = snapshot_log(log_record)
            buffer.put(snapshot)
            buffer.weigh(size_of({"body": log.body, **(log.attributes or {})}))
        except Exception:  # a hook must never raise into the application
            buffer.dropped_error += 1

    def shutdown(self) -> None:
        """The span processor's shutdown ends the runtime; log records after it are not accepted."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True
