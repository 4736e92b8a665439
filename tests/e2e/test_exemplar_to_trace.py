"""From a raised rate to the very conversation: Prometheus exemplar, trace id, judged session in the trace store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.components.collector import Collector
from tests.components.jaeger import Jaeger
from tests.components.prometheus import Prometheus

pytestmark = pytest.mark.components

CONVERSATIONS = 4


def test_an_exemplar_of_a_score_leads_to_the_judged_session_in_the_trace_store(
    start_collector: Callable[..., Collector],
    start_jaeger: Callable[..., Jaeger],
    start_prometheus: Callable[..., Prometheus],
) -> None:
    jaeger = start_jaeger()
    collector = start_collector(
        ["otelcol.yaml", "with-grafana-stack.yaml"], environment={"COLLECTOR_JAEGER": jaeger.otlp_endpoint}
    )
    prometheus = start_prometheus([collector.prometheus_target])
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "OPENAI_"))}
    subprocess.run(
        [sys.executable, "-m", "examples.travel_agent.app", "--conversations", str(CONVERSATIONS), "--faults", "0.5"],
        env={**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.http_endpoint, "OTEL_EVALS_RATE": "1.0"},
        check=True,
        timeout=120,
    )

    prometheus.wait_for(lambda p: bool(p.exemplars("gen_ai_evaluation_score_bucket")))
    found = prometheus.exemplars("gen_ai_evaluation_score_bucket")
    trace_id = found[0]["exemplars"][0]["labels"]["trace_id"]

    spans = {span["spanId"]: span for span in jaeger.wait_for_spans(trace_id, "evaluate session")}
    [judged] = [span for span in spans.values() if span["name"] == "evaluate session"]
    turn = spans[judged["parentSpanId"]]  # ended, so exported, before the session was judged
    session = attributes_of(judged)["otel_evals.session.id"]
    assert attributes_of(turn)["gen_ai.conversation.id"] == session
    evaluator = found[0]["seriesLabels"]["gen_ai_evaluation_name"]
    assert float(attributes_of(judged)[f"otel_evals.{evaluator}.score"]) == float(found[0]["exemplars"][0]["value"])


def attributes_of(span: dict[str, Any]) -> dict[str, Any]:
    return {entry["key"]: next(iter(entry["value"].values())) for entry in span.get("attributes", ())}
