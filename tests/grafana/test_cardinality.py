"""No number of sessions makes more series: they are bounded by evaluators, labels, agents and rules."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from otel_evals import Settings, attach
from otel_evals.pipeline import Pipeline
from otel_evals.sampling.rules import Match, Rule
from otel_evals.sessions.model import Session
from otel_evals.simulation.planner import plan_sessions
from otel_evals.simulation.player import play
from otel_evals.telemetry.emitter import Emitter

SESSIONS = 10_000
AGENTS, EVALUATORS, LABELS, RULES, DECISIONS, SIGNALS = 3, 3, 6, 2, 9, 8
PER_EVALUATION = AGENTS * EVALUATORS * LABELS
BOUNDS = {
    "gen_ai.evaluation.score": PER_EVALUATION,
    "otel_evals.evaluations": PER_EVALUATION * RULES,
    "otel_evals.evaluations.weight": PER_EVALUATION * RULES,
    "otel_evals.evaluations.weight_squared": PER_EVALUATION * RULES,
    "otel_evals.sessions": AGENTS * (RULES + 1) * DECISIONS,
    "otel_evals.sessions.completed": AGENTS,
    "otel_evals.signals": AGENTS * SIGNALS,
    "otel_evals.judge.cost": 1,
    "otel_evals.judge.duration": 2**EVALUATORS,  # one prompt for each set of evaluators that is asked together
}
"""Metric to the most series it may have with one judge; the other metrics know neither sessions nor evaluations."""


class Completed:
    """Stands in for the assembler: the sessions are there already."""

    late_spans = 0

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = sessions

    def poll(self, now_ns: int, open_traces: Collection[int]) -> Iterator[Session]:
        yield from self._sessions


@pytest.fixture(scope="module")
def examples() -> list[Session]:
    """Sixty sessions as the pipeline reads them from real spans."""
    tracers = TracerProvider(shutdown_on_exit=False)
    sessions: list[Session] = []
    handle = attach(
        tracers,
        settings=Settings(rate=1.0, idle_timeout=3600),
        on_decision=lambda session, decision, rule: sessions.append(session),
    )
    play(plan_sessions(60, seed=3), tracers.get_tracer("test"), 1e6, wait_until=lambda real_s: None)
    handle.force_flush(30_000, complete=True)
    handle.shutdown()
    return sessions


def another(session: Session, number: int) -> Session:
    """The same conversation of another user, in traces of its own."""
    turns = tuple(
        turn.model_copy(update={"trace_id": f"{number + 1:032x}", "root_span_id": f"{number * 100 + index + 1:016x}"})
        for index, turn in enumerate(session.turns)
    )
    changed = {"session_id": f"s-{number}", "conversation_id": f"s-{number}", "user_id": f"u-{number}", "turns": turns}
    return session.model_copy(update=changed)


@pytest.mark.slow
def test_ten_thousand_sessions_make_no_more_series_than_there_are_kinds_of_results(examples: list[Session]) -> None:
    reader = InMemoryMetricReader()
    settings = Settings(
        rate=0.5,
        rules=(Rule(name="failed_tools", match=Match(min_failed_tools=1), rate=1.0),),
        queue_capacity=SESSIONS,
    )
    emitter = Emitter(tracer_provider=TracerProvider(shutdown_on_exit=False), meter_provider=MeterProvider([reader]))
    pipeline = Pipeline(settings, emitter=emitter)
    sessions = [another(examples[number % len(examples)], number) for number in range(SESSIONS)]
    pipeline.assembler = Completed(sessions)  # type: ignore[assignment]

    for _ in pipeline.complete(0):
        pass
    asyncio.run(pipeline.judge_all())

    points = collected(reader)
    assert pipeline.ledger.completed == SESSIONS
    assert pipeline.ledger.decisions()["judged"] > SESSIONS / 2
    series = {name: len(found) for name, found in points.items()}
    assert set(BOUNDS) <= set(series)
    assert {name: number for name, number in series.items() if number > BOUNDS.get(name, 0)} == {}
    values = {str(value) for found in points.values() for attributes in found for value in attributes.values()}
    assert len(values) < 60, "a value for each session, user or trace would be thousands"


def collected(reader: InMemoryMetricReader) -> dict[str, list[dict[str, Any]]]:
    """Metric to the attributes of each of its series."""
    data = reader.get_metrics_data()
    return {
        metric.name: [dict(point.attributes or {}) for point in metric.data.data_points]
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if list(metric.data.data_points)
    }
