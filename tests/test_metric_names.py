"""Our instruments, as Prometheus gets to see them from the real collector."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, ObservableCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from otel_evals.telemetry import names
from otel_evals.telemetry.instruments import Instruments, instruments_of
from tests.components.collector import CONFIG_FOLDER, Collector

pytestmark = pytest.mark.components

DELTA = dict.fromkeys((Counter, Histogram, ObservableCounter), AggregationTemporality.DELTA)


class EveryGauge:
    """A pipeline of which every figure is known."""

    def open_sessions(self) -> int:
        return 1

    def buffered_bytes(self) -> int:
        return 2

    def queue_size(self) -> int:
        return 3

    def queue_capacity(self) -> int:
        return 4

    def queue_oldest_age(self) -> float:
        return 5.0

    def span_counts(self) -> Mapping[tuple[str, str], int]:
        return {("accepted", ""): 6}

    def evictions(self) -> Mapping[str, int]:
        return {"age": 7}

    def sampling_rates(self) -> Mapping[tuple[str, str], float]:
        return {("default", "failure_rate"): 0.5}


def meters_to(collector: Collector, temporality: dict[type, AggregationTemporality] | None = None) -> MeterProvider:
    exporter = OTLPMetricExporter(f"{collector.http_endpoint}/v1/metrics", preferred_temporality=temporality)
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    resource = Resource({"service.name": "travel-agent", "service.instance.id": "pod-1"})
    return MeterProvider([reader], resource=resource)


def record_everything(instruments: Instruments) -> None:
    recorded: dict[str, Any] = {name: value for name, value in vars(instruments).items() if not name.startswith("_")}
    for instrument in recorded.values():
        if hasattr(instrument, "record"):
            instrument.record(0.5)
        else:
            instrument.add(1)


def scraped(collector: Collector, metric: str) -> dict[str, float]:
    """Value per series of a metric; a series is named as in the scrape."""
    lines = [line.partition(" # ")[0] for line in collector.scrape().splitlines() if line.startswith(metric + "{")]
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}


def test_the_readme_names_exactly_the_metrics_that_prometheus_sees(collector: Collector) -> None:
    meters, gauges = meters_to(collector), EveryGauge()
    instruments = instruments_of(meters, "1")
    instruments.observe(gauges)
    record_everything(instruments)
    meters.force_flush()
    collector.wait_for(lambda c: "otel_evals_spans_total" in c.scrape())

    seen = set(re.findall(r"^((?:gen_ai|otel_evals)_\w+?)(?:_bucket|_sum|_count)?\{", collector.scrape(), re.MULTILINE))

    table = (CONFIG_FOLDER / "README.md").read_text().partition("## Names in Prometheus")[2].partition("\n## ")[0]
    written = set(re.findall(r"`((?:gen_ai|otel_evals)_\w+?)(?:_bucket)?`", table))
    assert seen == written
    meters.shutdown()


def test_every_metric_that_a_rule_reads_exists(collector: Collector) -> None:
    meters, gauges = meters_to(collector), EveryGauge()
    instruments = instruments_of(meters, "1")
    instruments.observe(gauges)
    record_everything(instruments)
    meters.force_flush()
    collector.wait_for(lambda c: "otel_evals_spans_total" in c.scrape())
    exposed = set(re.findall(r"^(\w+)\{", collector.scrape(), re.MULTILINE))

    rules = "".join(path.read_text() for path in (CONFIG_FOLDER / "prometheus" / "rules").glob("*.yaml"))
    expressions = re.sub(r"^\s*(#|runbook:|description:).*$", "", rules, flags=re.MULTILINE)
    read = set(
        re.findall(r"\b((?:gen_ai_evaluation_score|otel_evals)_\w+(?:_total|_seconds|_capacity|_count))\b", expressions)
    )

    assert read
    assert read <= exposed
    meters.shutdown()


def test_job_and_instance_are_the_service_and_its_instance(collector: Collector) -> None:
    meters = meters_to(collector)
    instruments_of(meters, "1").evaluations.add(1, {names.OUTCOME: "passed"})
    meters.force_flush()

    collector.wait_for(lambda c: bool(scraped(c, "otel_evals_evaluations_total")))
    [series] = scraped(collector, "otel_evals_evaluations_total")
    assert 'job="travel-agent"' in series
    assert 'instance="pod-1"' in series
    meters.shutdown()


@pytest.mark.parametrize("temporality", [None, DELTA], ids=["cumulative", "delta"])
def test_counters_add_up_whatever_the_temporality(
    collector: Collector, temporality: dict[type, AggregationTemporality] | None
) -> None:
    meters = meters_to(collector, temporality)
    counter = instruments_of(meters, "1").evaluations

    for _ in range(3):
        counter.add(2)
        meters.force_flush()

    collector.wait_for(lambda c: list(scraped(c, "otel_evals_evaluations_total").values()) == [6.0])
    [used] = {m["sum"]["aggregationTemporality"] for m in collector.metrics() if m["name"] == names.M_EVALUATIONS}
    assert used == (1 if temporality else 2)
    meters.shutdown()
