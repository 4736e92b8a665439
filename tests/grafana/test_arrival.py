"""Metrics as they arrive in Prometheus: names, units, buckets, and either temporality."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider

from otel_evals.evaluation import Evaluation, JudgedSession, Judgement
from otel_evals.telemetry.emitter import Emitter
from otel_evals.telemetry.instruments import SCORE_BUCKETS
from tests.agents import a_session
from tests.components.collector import Collector
from tests.grafana.asking import ask_label_values
from tests.grafana.filled import Filled

pytestmark = [pytest.mark.components, pytest.mark.slow, pytest.mark.timeout(300)]

OPERATIONS = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
NEVER_HERE = {"otel_evals_sessions_evictions_total"}
"""Documented, but nothing was evicted in the run."""


@pytest.mark.xdist_group("filled")
def test_the_documented_names_are_those_that_arrive(filled: Filled) -> None:
    arrived = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for name in ask_label_values(filled.prometheus, 'label_values({__name__=~"otel_evals_.+|gen_ai_.+"}, __name__)')
    }
    [table] = re.findall(r"\n## Metrics as they arrive\n(.*?)\n## ", OPERATIONS, re.DOTALL)
    documented = set(re.findall(r"\| `((?:otel_evals|gen_ai)_\w+)` \|", table))

    assert arrived == documented - NEVER_HERE


@pytest.mark.xdist_group("filled")
def test_every_score_of_the_evaluators_has_a_bucket_of_its_own(filled: Filled) -> None:
    bounds = ask_label_values(filled.prometheus, "label_values(gen_ai_evaluation_score_bucket, le)")
    scores = {
        e.score for judged in filled.judged.values() for j in judged for e in j.evaluations if e.score is not None
    }

    assert {float(bound) for bound in bounds} == {*SCORE_BUCKETS, float("inf")}
    assert scores <= set(SCORE_BUCKETS)


@pytest.mark.parametrize("temporality", [AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA])
def test_counters_add_up_whatever_the_temporality_of_the_app(
    start_collector: Callable[..., Collector], temporality: AggregationTemporality
) -> None:
    collector = start_collector()
    exporter = OTLPMetricExporter(
        f"{collector.http_endpoint}/v1/metrics",
        preferred_temporality={Counter: temporality, Histogram: temporality},
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    meters = MeterProvider([reader], shutdown_on_exit=False)
    emitter = Emitter(tracer_provider=TracerProvider(shutdown_on_exit=False), meter_provider=meters)

    for number in (1, 2, 3):
        emitter.judged(judged(f"s-{number}"), started_ns=1, ended_ns=2)
        meters.force_flush()
        collector.wait_for(lambda c, number=number: shown(c, "otel_evals_evaluations_total") == number)

    assert shown(collector, "otel_evals_evaluations_weight_total") == 12
    assert shown(collector, "otel_evals_evaluations_weight_squared_total") == 48
    assert shown(collector, "gen_ai_evaluation_score_count") == 3
    assert shown(collector, "otel_evals_judge_cost_USD_total") == pytest.approx(0.75)
    meters.shutdown()


def judged(session_id: str) -> JudgedSession:
    evaluation = Evaluation(
        evaluator="failure_rate",
        evaluator_version="1",
        outcome="scored",
        score=0.4,
        label="stall",
        passed=False,
        probability=0.25,
    )
    judgement = Judgement(model="judge-1", cost_usd=0.25, duration_s=1.0)
    return JudgedSession(session=a_session(session_id), evaluations=(evaluation,), judgement=judgement)


def shown(collector: Collector, metric: str) -> float:
    """Sum over the series of a metric, as Prometheus would scrape them."""
    found = re.findall(rf"^{metric}\{{.*?\}} (\S+)", collector.scrape(), re.MULTILINE)
    return sum(float(value) for value in found)
