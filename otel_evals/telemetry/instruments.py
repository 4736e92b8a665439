"""The metric instruments, made once per meter provider.

Observable ones read plain numbers from whatever `Gauges` source is set; instruments cannot be unregistered, so a
later attachment to the same provider takes the instruments over by setting itself as their source.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from otel_evals.telemetry import names

__all__ = ["Gauges", "Instruments", "instruments_of"]

# Boundaries at the score values of the built-in evaluators, so that every label has its own bucket.
SCORE_BUCKETS = (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0)
SECONDS_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)


class Gauges(Protocol):
    """Current figures of a running pipeline; read at every collection, so each must be cheap."""

    def open_sessions(self) -> int: ...
    def buffered_bytes(self) -> int: ...
    def queue_size(self) -> int: ...
    def queue_capacity(self) -> int: ...
    def queue_oldest_age(self) -> float:
        """Seconds; 0 for an empty queue."""
        ...

    def span_counts(self) -> Mapping[tuple[str, str], int]:
        """(outcome, reason or "") to number of spans."""
        ...

    def evictions(self) -> Mapping[str, int]: ...
    def sampling_rates(self) -> Mapping[tuple[str, str], float]:
        """(rule, evaluator) to current rate."""
        ...


class Instruments:
    """Synchronous instruments as attributes; observable ones read from the source set last."""

    def __init__(self, provider: MeterProvider, version: str) -> None:
        self._source: weakref.ReferenceType[Gauges] | None = None
        meter = provider.get_meter(names.SCOPE, version)
        counter, histogram = meter.create_counter, meter.create_histogram
        self.score = histogram(
            names.M_SCORE,
            unit="1",
            description="Scores of applicable evaluations",
            explicit_bucket_boundaries_advisory=SCORE_BUCKETS,
        )
        self.evaluations = counter(names.M_EVALUATIONS, unit="{evaluation}", description="Evaluations by outcome")
        self.weight = counter(
            names.M_WEIGHT, unit="{session}", description="Sum of the sampling weights of evaluations"
        )
        self.weight_squared = counter(
            names.M_WEIGHT_SQUARED,
            unit="{session}",
            description="Sum of the squared sampling weights of evaluations",
        )
        self.sessions = counter(names.M_SESSIONS, unit="{session}", description="Completed sessions by decision")
        self.completed = counter(names.M_SESSIONS_COMPLETED, unit="{session}", description="Completed sessions")
        self.signals = counter(names.M_SIGNALS, unit="{session}", description="Sessions with deterministic evidence")
        self.judge_duration = histogram(
            names.M_JUDGE_DURATION,
            unit="s",
            description="Time from taking a session to its verdict",
            explicit_bucket_boundaries_advisory=SECONDS_BUCKETS,
        )
        self.judge_tokens = counter(names.M_JUDGE_TOKENS, unit="{token}", description="Tokens used by judges")
        self.judge_cost = counter(
            names.M_JUDGE_COST,
            unit="USD",
            description="Known cost of judge calls; unknown prices add nothing",
        )
        self.judge_errors = counter(names.M_JUDGE_ERRORS, unit="{error}", description="Failed judge calls")

        def gauge(name: str, unit: str, text: str, read: str) -> None:
            def callback(_: CallbackOptions) -> Iterable[Observation]:
                source = self._gauges()
                return () if source is None else (Observation(getattr(source, read)()),)

            meter.create_observable_gauge(name, callbacks=[callback], unit=unit, description=text)

        gauge(names.M_SESSIONS_OPEN, "{session}", "Sessions still being assembled", "open_sessions")
        gauge(names.M_SESSIONS_BUFFERED, "By", "Content held for open sessions", "buffered_bytes")
        gauge(names.M_QUEUE_SIZE, "{session}", "Sessions waiting for a judge", "queue_size")
        gauge(names.M_QUEUE_CAPACITY, "{session}", "Sessions that may wait for a judge", "queue_capacity")
        gauge(names.M_QUEUE_OLDEST_AGE, "s", "Age of the longest waiting session", "queue_oldest_age")
        meter.create_observable_counter(
            names.M_SPANS, callbacks=[self._spans], unit="{span}", description="Spans seen, by outcome"
        )
        meter.create_observable_counter(
            names.M_EVICTIONS,
            callbacks=[self._evictions],
            unit="{session}",
            description="Sessions completed by a cap instead of idle time, by reason",
        )
        meter.create_observable_gauge(
            names.M_SAMPLING_RATE, callbacks=[self._rates], unit="1", description="Current sampling rate"
        )

    def observe(self, source: Gauges) -> None:
        """Read the observable instruments from `source` (held weakly) from now on."""
        self._source = weakref.ref(source)

    def _gauges(self) -> Gauges | None:
        return self._source() if self._source is not None else None

    def _spans(self, _: CallbackOptions) -> Iterable[Observation]:
        source = self._gauges()
        for (outcome, reason), number in (source.span_counts() if source else {}).items():
            attributes = {names.OUTCOME: outcome}
            if reason:
                attributes[names.ERROR_TYPE] = reason
            yield Observation(number, attributes)

    def _evictions(self, _: CallbackOptions) -> Iterable[Observation]:
        source = self._gauges()
        for reason, number in (source.evictions() if source else {}).items():
            yield Observation(number, {names.ERROR_TYPE: reason})

    def _rates(self, _: CallbackOptions) -> Iterable[Observation]:
        source = self._gauges()
        for (rule, evaluator), rate in (source.sampling_rates() if source else {}).items():
            yield Observation(rate, {names.SAMPLING_RULE: rule, names.GEN_AI_EVALUATION_NAME: evaluator})


_instruments: weakref.WeakKeyDictionary[Any, Instruments] = weakref.WeakKeyDictionary()


def instruments_of(provider: MeterProvider, version: str) -> Instruments:
    """The instruments of a meter provider, made on first use."""
    found = _instruments.get(provider)
    if found is None:
        found = _instruments[provider] = Instruments(provider, version)
    return found
