"""Exemplars survive the whole way: SDK, OTLP, collector, scrape, Prometheus."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider

from tests.components.collector import Collector
from tests.components.prometheus import Prometheus

pytestmark = pytest.mark.components


@pytest.mark.parametrize("instrument", ["histogram", "counter"])
def test_prometheus_stores_the_trace_id_of_a_measurement(
    collector: Collector, start_prometheus: Callable[..., Prometheus], instrument: str
) -> None:
    prometheus = start_prometheus([collector.prometheus_target])
    exporter = OTLPMetricExporter(f"{collector.http_endpoint}/v1/metrics")
    meters = MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)])
    meter = meters.get_meter("otel_evals")

    with TracerProvider().get_tracer("test").start_as_current_span("judged") as span:
        if instrument == "histogram":
            meter.create_histogram("gen_ai.evaluation.score", unit="1").record(0.5)
        else:
            meter.create_counter("otel_evals.evaluations", unit="{evaluation}").add(1)
    meters.force_flush()

    selector = {"histogram": "gen_ai_evaluation_score_bucket", "counter": "otel_evals_evaluations_total"}[instrument]
    prometheus.wait_for(lambda p: bool(p.exemplars(selector)))
    [series] = prometheus.exemplars(selector)
    trace_id = f"{span.get_span_context().trace_id:032x}"
    assert [exemplar["labels"]["trace_id"] for exemplar in series["exemplars"]] == [trace_id]
    meters.shutdown()
