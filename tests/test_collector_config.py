"""Every configuration in `collector-config/` is accepted by the real collector, and does what its README says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

from tests.components.collector import CONFIG_FOLDER, Collector

pytestmark = pytest.mark.components

CONFIGURATIONS = [
    ["otelcol.yaml"],
    ["otelcol.yaml", "with-backend.yaml"],
    ["otelcol.yaml", "with-debug.yaml"],
    ["otelcol.yaml", "with-grafana-stack.yaml"],
    ["otelcol.yaml", "with-privacy.yaml"],
    ["otelcol-gateway.yaml"],
]


def send_span(exporter: SpanExporter, name: str) -> trace.SpanContext:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span(name) as span:
        pass
    provider.shutdown()
    return span.get_span_context()


@pytest.mark.parametrize("files", CONFIGURATIONS, ids="+".join)
def test_the_collector_accepts_the_configuration(collector_binary: Path, files: list[str], tmp_path: Path) -> None:
    command = [collector_binary, "validate", *(f"--config={CONFIG_FOLDER / name}" for name in files)]

    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_every_configuration_is_validated() -> None:
    present = {path.name for pattern in ("otelcol*.yaml", "with-*.yaml") for path in CONFIG_FOLDER.glob(pattern)}

    assert present == {name for files in CONFIGURATIONS for name in files}


def test_the_collector_refuses_a_broken_configuration(collector_binary: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        (CONFIG_FOLDER / "otelcol.yaml").read_text().replace("exporters: [file/traces]", "exporters: [no]")
    )

    checked = subprocess.run([collector_binary, "validate", f"--config={broken}"], capture_output=True, check=False)

    assert checked.returncode != 0


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_span_reaches_the_traces_file(collector: Collector, protocol: str) -> None:
    exporter: SpanExporter
    if protocol == "grpc":
        exporter = GrpcSpanExporter(collector.grpc_endpoint, insecure=True)
    else:
        exporter = HttpSpanExporter(f"{collector.http_endpoint}/v1/traces")

    sent = send_span(exporter, "hello")

    collector.wait_for(lambda c: bool(c.spans()))
    assert [(span["name"], span["traceId"]) for span in collector.spans()] == [("hello", f"{sent.trace_id:032x}")]


def test_stopping_the_collector_writes_what_it_still_held(start_collector: Callable[..., Collector]) -> None:
    collector = start_collector(overrides=["processors::batch::timeout=1h"])
    send_span(HttpSpanExporter(f"{collector.http_endpoint}/v1/traces"), "held")
    assert collector.spans() == []

    collector.stop()

    assert [span["name"] for span in collector.spans()] == ["held"]


def test_prometheus_gets_the_metrics_with_exemplars(collector: Collector) -> None:
    exporter = OTLPMetricExporter(f"{collector.http_endpoint}/v1/metrics")
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    meters = MeterProvider([reader])
    score = meters.get_meter("otel_evals").create_histogram("gen_ai.evaluation.score", unit="1")

    with TracerProvider().get_tracer("test").start_as_current_span("judged") as span:
        score.record(0.5, {"gen_ai.evaluation.name": "failure_rate"})
    meters.force_flush()

    collector.wait_for(lambda c: "gen_ai_evaluation_score" in c.scrape())
    buckets = [line for line in collector.scrape().splitlines() if line.startswith("gen_ai_evaluation_score_bucket")]
    trace_id = f"{span.get_span_context().trace_id:032x}"
    assert len([line for line in buckets if f'trace_id="{trace_id}"' in line]) == 1
    assert all('gen_ai_evaluation_name="failure_rate"' in line for line in buckets)
    meters.shutdown()


def test_the_collector_listens_on_loopback_unless_told_otherwise() -> None:
    defaults = re.findall(r"\$\{env:\w*ENDPOINT:-(.+?)\}", (CONFIG_FOLDER / "otelcol.yaml").read_text())

    assert len(defaults) == 4
    assert {endpoint.rpartition(":")[0] for endpoint in defaults} == {"127.0.0.1"}


def test_all_collector_modules_are_of_the_release_that_the_build_names() -> None:
    recipe = yaml.safe_load((CONFIG_FOLDER / "builder.yaml").read_text())
    release = f"v{recipe['dist']['version']}"
    kinds = ("receivers", "processors", "exporters", "connectors", "extensions")

    assert {module["gomod"].split()[1] for kind in kinds for module in recipe[kind]} == {release}
