"""The gateway keeps judged and failing traces whole, a share of the rest, and every evaluation span."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, Tracer, set_span_in_context

from tests.components.collector import Collector
from tests.components.jaeger import Jaeger

pytestmark = pytest.mark.components

DECISION_WAIT = 1.5
"""Seconds; the gateway looks at what is due once a second."""

TO_FILES = """
exporters:
  file/kept:
    path: ${env:COLLECTOR_OUTPUT}/traces.jsonl
    create_directory: true
    flush_interval: 50ms
service:
  pipelines:
    traces: {exporters: [file/kept]}
    traces/evaluations: {exporters: [file/kept]}
"""


@pytest.fixture
def gateway(start_collector: Callable[..., Collector], tmp_path: Path) -> Collector:
    """A gateway with a short wait and no baseline, so that only the policies for judged and failed traces keep any."""
    files = tmp_path / "to-files.yaml"
    files.write_text(TO_FILES)
    environment = {"COLLECTOR_DECISION_WAIT": f"{DECISION_WAIT}s", "COLLECTOR_KEEP_BASELINE": "0"}
    return start_collector(["otelcol-gateway.yaml", files], environment=environment)


@contextmanager
def tracer_to(endpoint: str) -> Iterator[Tracer]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    try:
        yield provider.get_tracer("app")
    finally:
        provider.shutdown()


def send_turn(tracer: Tracer, name: str, *, failed: bool = False) -> SpanContext:
    """A turn of two spans."""
    with tracer.start_as_current_span(name) as root, tracer.start_as_current_span(f"{name} tool") as tool:
        if failed:
            tool.set_status(Status(StatusCode.ERROR))
    return root.get_span_context()


def send_score(tracer: Tracer, turn: SpanContext, attributes: Mapping[str, str | bool | float]) -> None:
    """The evaluation span of a session that ended with `turn`."""
    context = set_span_in_context(NonRecordingSpan(turn))
    ours = {"otel_evals.internal": True, "otel_evals.session.id": "s-1", **attributes}
    tracer.start_span("evaluate session", context=context, attributes=ours).end()


def names_of(gateway: Collector, turn: SpanContext) -> list[str]:
    trace_id = f"{turn.trace_id:032x}"
    return sorted(span["name"] for span in gateway.spans() if span["traceId"] == trace_id)


def test_a_judged_trace_is_kept_whole_and_its_evaluation_span_comes_once(gateway: Collector) -> None:
    with tracer_to(gateway.http_endpoint) as tracer:
        judged = send_turn(tracer, "judged")
        send_score(tracer, judged, {"otel_evals.failure_rate.passed": True})

    gateway.wait_for(lambda g: len(g.spans()) >= 3)
    gateway.stop()
    assert names_of(gateway, judged) == ["evaluate session", "judged", "judged tool"]


def test_a_trace_that_is_neither_judged_nor_failed_follows_the_baseline(gateway: Collector) -> None:
    with tracer_to(gateway.http_endpoint) as tracer:
        plain = send_turn(tracer, "plain")
        failed = send_turn(tracer, "failed", failed=True)

    gateway.wait_for(lambda g: len(g.spans()) >= 2)
    gateway.stop()
    assert names_of(gateway, failed) == ["failed", "failed tool"]
    assert names_of(gateway, plain) == []


def test_a_share_of_zero_of_the_judged_still_keeps_a_failed_session(
    start_collector: Callable[..., Collector], tmp_path: Path
) -> None:
    files = tmp_path / "to-files.yaml"
    files.write_text(TO_FILES)
    environment = {"COLLECTOR_DECISION_WAIT": "1s", "COLLECTOR_KEEP_BASELINE": "0", "COLLECTOR_KEEP_JUDGED": "0"}
    gateway = start_collector(["otelcol-gateway.yaml", files], environment=environment)
    with tracer_to(gateway.http_endpoint) as tracer:
        good, bad = send_turn(tracer, "good"), send_turn(tracer, "bad")
        send_score(tracer, good, {"otel_evals.goal_achievement.passed": True})
        send_score(tracer, bad, {"otel_evals.goal_achievement.passed": False})

    gateway.wait_for(lambda g: len(g.spans()) >= 4)
    gateway.stop()
    assert names_of(gateway, bad) == ["bad", "bad tool", "evaluate session"]
    assert names_of(gateway, good) == ["evaluate session"]


def test_a_score_that_comes_after_the_decision_is_kept_although_its_trace_is_not(gateway: Collector) -> None:
    with tracer_to(gateway.http_endpoint) as tracer:
        late = send_turn(tracer, "late")
        witness = send_turn(tracer, "witness", failed=True)
        # Sent later, the witness is decided in the same round as `late` or after it.
        gateway.wait_for(lambda g: names_of(g, witness) != [])
        send_score(tracer, late, {"otel_evals.failure_rate.passed": False})

    gateway.wait_for(lambda g: "evaluate session" in names_of(g, late))
    gateway.stop()
    assert names_of(gateway, late) == ["evaluate session"]


def test_the_store_behind_the_gateway_shows_the_score_in_the_judged_trace(
    start_collector: Callable[..., Collector], start_jaeger: Callable[..., Jaeger]
) -> None:
    jaeger = start_jaeger()
    environment = {"COLLECTOR_DECISION_WAIT": "1s", "COLLECTOR_BACKEND": jaeger.otlp_endpoint}
    gateway = start_collector(["otelcol-gateway.yaml"], environment=environment)
    with tracer_to(gateway.http_endpoint) as tracer:
        turn = send_turn(tracer, "judged")
        send_score(tracer, turn, {"otel_evals.failure_rate.passed": True})

    spans = {
        span["name"]: span for span in jaeger.wait_for_spans(f"{turn.trace_id:032x}", "evaluate session", "judged")
    }

    assert spans["evaluate session"]["parentSpanId"] == spans["judged"]["spanId"]
