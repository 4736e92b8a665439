"""Scores on the spans themselves, for stores that search one span at a time: an exporter that holds roots back.

The SDK forbids to change an ended span, so the local root of an agent's trace waits here for its session's scores and
leaves as a copy with them. Opt in, behind a `BatchSpanProcessor`:

    exporter = EnrichingExporter(OTLPSpanExporter())
    provider.add_span_processor(BatchSpanProcessor(exporter))
    attach(provider, on_result=exporter.on_result, on_decision=exporter.on_decision)

What it costs: the root of an agent's trace reaches the store when its session is judged (idle time and judge), or
after `hold_seconds`; until then the store shows the trace without its root. Held roots take memory (as large as the
spans are, at most `max_spans`), and are lost if the process is killed, as spans in any batch are. On the batch
processor's thread it takes about 7 µs for each span; the application's threads and the judge never wait for an
export. `provider.force_flush()` does not reach exporters, so it does not release what is held: call the exporter's own
`force_flush` for that.
"""

from __future__ import annotations

import copy
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from otel_evals.dialects.markers import keeps
from otel_evals.evaluation import Decision, JudgedSession
from otel_evals.sessions.model import Session
from otel_evals.suppression import internal_work
from otel_evals.telemetry import names

__all__ = ["HOLD_SECONDS", "MAX_SPANS", "EnrichingExporter"]

logger = logging.getLogger(__name__)

HOLD_SECONDS = 420.0
"""A turn, the default idle time of five minutes and a judge fit into it."""
MAX_SPANS = 2048

Scores = Mapping[str, Any]
NO_SCORES: Scores = {}
"""The session was decided on without scores: its roots need not wait."""


@dataclass
class _Held:
    """The local roots of one trace."""

    deadline: float
    spans: list[ReadableSpan] = field(default_factory=list)


class EnrichingExporter(SpanExporter):
    """Wraps an exporter; every span is handed to it exactly once, and to no two calls at once.

    Args:
        exporter: Where the spans go.
        hold_seconds: Longest time to hold a root back.
        max_spans: Most roots held; beyond it the oldest leaves without scores.

    Raises:
        ValueError: `hold_seconds` or `max_spans` is not positive.
    """

    def __init__(
        self, exporter: SpanExporter, *, hold_seconds: float = HOLD_SECONDS, max_spans: int = MAX_SPANS
    ) -> None:
        if hold_seconds <= 0:
            raise ValueError(f"hold_seconds={hold_seconds}: give the seconds to wait for scores, above 0")
        if max_spans < 1:
            raise ValueError(f"max_spans={max_spans}: give the number of roots that may wait, at least 1")
        self._exporter = exporter
        self._hold_s = hold_seconds
        self._max_spans = max_spans
        self._reset()
        weak = weakref.WeakMethod(self._reset)

        def in_child() -> None:
            if reset := weak():
                reset()

        os.register_at_fork(after_in_child=in_child)

    def _reset(self) -> None:
        """Hold nothing: at first, and in a forked child, whose parent exports what it held."""
        # None of these locks is taken by a hook: `export` runs on the batch processor's thread, results on the judge's.
        self._changed = threading.Condition(threading.Lock())
        self._exporting = threading.Lock()  # exporters need not bear two calls at once
        self._held: OrderedDict[int, _Held] = OrderedDict()
        """Trace id to its roots, first deadline first."""
        self._held_spans = 0
        self._agents: OrderedDict[int, None] = OrderedDict()
        """Traces with a span of an agent, whose root has yet to end."""
        self._decided: OrderedDict[int, Scores] = OrderedDict()
        """Traces whose sessions are decided on: their roots may still come."""
        self._ready: list[ReadableSpan] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    # --- what the batch processor calls -----------------------------------------------------------------------

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hold back the local roots of agents' traces, pass the rest on."""
        with self._changed:
            if self._closed:
                leaving = list(spans)
            else:
                for span in spans:
                    self._note(span)
                leaving = [now for span in spans if (now := self._let_pass(span)) is not None]
                leaving += self._take_ready()
                leaving += self._overflow()
                if self._held:
                    self._watch()
        return self._pass_on(leaving)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Release all that is held, then flush the wrapped exporter.

        Returns:
            False if that exporter did not finish in time.
        """
        self._release_all()
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self) -> None:
        """Release all that is held, then shut the wrapped exporter down."""
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)
        self._release_all()
        self._exporter.shutdown()

    # --- what the judge thread calls --------------------------------------------------------------------------

    def on_result(self, result: JudgedSession) -> None:
        """Release the root of the session's last turn, with its scores. Never waits for an export."""
        traces = _traces(result.session)
        if traces:
            self._decide({traces[-1]: _scores(result)})

    def on_decision(self, session: Session, decision: Decision, rule: str) -> None:
        """Release what else is held of a session that is decided on: no scores will come for it."""
        self._decide(dict.fromkeys(_traces(session), NO_SCORES))

    def _decide(self, scores: Mapping[int, Scores]) -> None:
        with self._changed:
            for trace, attributes in scores.items():
                # The decision follows the result, and must not take its scores away.
                known = self._decided.setdefault(trace, attributes) if attributes is NO_SCORES else attributes
                _remember(self._decided, trace, known, self._max_spans)
                self._ready += [_enriched(span, known) for span in self._take(trace)]
            if self._ready:
                self._changed.notify()

    # --- holding and releasing; all below runs with `_changed` held, but for the last three methods -------------------

    def _note(self, span: ReadableSpan) -> None:
        attributes = span.attributes or {}
        if span.context is not None and keeps(attributes) and names.INTERNAL not in attributes:
            _remember(self._agents, span.context.trace_id, None, self._max_spans)

    def _let_pass(self, span: ReadableSpan) -> ReadableSpan | None:
        """The span as it may leave now; None: it is held back."""
        context = span.context
        if context is None or not _is_local_root(span) or names.INTERNAL in (span.attributes or {}):
            return span
        if (scores := self._decided.get(context.trace_id)) is not None:
            return _enriched(span, scores)
        if context.trace_id not in self._agents:
            return span
        held = self._held.setdefault(context.trace_id, _Held(time.monotonic() + self._hold_s))
        held.spans.append(span)
        self._held_spans += 1
        return None

    def _take(self, trace: int) -> list[ReadableSpan]:
        held = self._held.pop(trace, None)
        if held is None:
            return []
        self._held_spans -= len(held.spans)
        return held.spans

    def _overflow(self) -> list[ReadableSpan]:
        leaving: list[ReadableSpan] = []
        while self._held_spans > self._max_spans:
            leaving += self._take(next(iter(self._held)))
        return leaving

    def _take_ready(self) -> list[ReadableSpan]:
        ready, self._ready = self._ready, []
        return ready

    def _take_due(self, now: float) -> list[ReadableSpan]:
        due: list[ReadableSpan] = []
        while self._held and (trace := next(iter(self._held))) is not None and self._held[trace].deadline <= now:
            due += self._take(trace)
        return due

    def _wait(self) -> None:
        """Until something is ready or due; all waiting releases the lock."""
        if not self._ready and not self._closed:
            first = next(iter(self._held.values()), None)
            self._changed.wait(None if first is None else max(0.0, first.deadline - time.monotonic()))

    def _watch(self) -> None:
        """See to it that the deadlines of what is held are kept."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._release, name="otel-evals-enrichment", daemon=True)
            self._thread.start()
        else:
            self._changed.notify()  # it may wait without a deadline, since nothing was held

    def _release(self) -> None:
        """The thread that exports what became ready or due while no batch came."""
        with internal_work():
            while True:
                with self._changed:
                    self._wait()
                    if self._closed:
                        return
                    leaving = self._take_ready() + self._take_due(time.monotonic())
                try:
                    self._pass_on(leaving)
                except Exception as error:  # foreign code; the thread outlives it, as the batch processor's does
                    logger.warning("otel-evals: could not export held spans (%s)", type(error).__name__)

    def _release_all(self) -> None:
        with self._changed:
            leaving = self._take_ready()
            for trace in list(self._held):
                leaving += self._take(trace)
        self._pass_on(leaving)

    def _pass_on(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if not spans:
            return SpanExportResult.SUCCESS
        with self._exporting:
            return self._exporter.export(spans)


def _is_local_root(span: ReadableSpan) -> bool:
    return span.parent is None or span.parent.is_remote


def _traces(session: Session) -> list[int]:
    """The traces of the session's turns, in order."""
    return [int(turn.trace_id, 16) for turn in session.turns if turn.trace_id]


def _scores(result: JudgedSession) -> Scores:
    scores: dict[str, Any] = {names.SESSION_ID: result.session.session_id}
    for evaluation in result.evaluations:
        fields = {"score": evaluation.score, "label": evaluation.label, "passed": evaluation.passed}
        for name, value in fields.items():
            if value is not None:
                scores[names.evaluator_attribute(evaluation.evaluator, name)] = value
    return scores


def _enriched(span: ReadableSpan, scores: Scores) -> ReadableSpan:
    """A copy with the scores beside the span's own attributes; the span itself, if there are none."""
    if not scores:
        return span
    # Without a limit: the scores must not push out attributes of the application.
    attributes = BoundedAttributes(attributes={**(span.attributes or {}), **scores})
    attributes.dropped = span.dropped_attributes
    enriched = copy.copy(span)
    enriched._attributes = attributes
    return enriched


def _remember(known: OrderedDict[int, Any], trace: int, value: Any, most: int) -> None:
    known[trace] = value
    known.move_to_end(trace)
    while len(known) > most:
        known.popitem(last=False)
