"""The main job, end to end: an instrumented agent in its own process, a real collector, a second process that reads.

The agent's spans and our scores arrive by the same exporters, and the scores are found where a person would look:
in the judged trace, below the turn's root.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.components.collector import Collector

pytestmark = pytest.mark.components

CONVERSATIONS = 6
EVALUATORS = {"failure_rate", "goal_achievement", "failure_communication"}


@pytest.fixture
def scored(collector: Collector) -> Collector:
    """A collector that has received a run of the travel agent."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "OPENAI_"))}
    subprocess.run(
        [sys.executable, "-m", "examples.travel_agent.app", "--conversations", str(CONVERSATIONS), "--faults", "0.5"],
        env={**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.http_endpoint, "OTEL_EVALS_RATE": "1.0"},
        check=True,
        timeout=120,
    )
    collector.wait_for(lambda c: len(evaluation_spans(c)) == CONVERSATIONS and bool(c.metrics()))
    collector.wait_for(lambda c: len(evaluation_events(c)) == CONVERSATIONS * len(EVALUATORS))
    return collector


def evaluation_spans(collector: Collector) -> list[dict[str, Any]]:
    return [span for span in collector.spans() if span["name"] == "evaluate session"]


def evaluation_events(collector: Collector) -> list[dict[str, Any]]:
    return [record for record in collector.log_records() if record.get("eventName") == "gen_ai.evaluation.result"]


def attributes_of(item: dict[str, Any]) -> dict[str, Any]:
    return {entry["key"]: next(iter(entry["value"].values())) for entry in item.get("attributes", ())}


def test_scores_arrive_in_the_judged_traces(scored: Collector) -> None:
    spans = {span["spanId"]: span for span in scored.spans()}
    agent_roots = [span for span in scored.spans() if not span.get("parentSpanId")]
    judged = evaluation_spans(scored)
    assert {attributes_of(span)["otel_evals.session.id"] for span in judged} == {
        attributes_of(root)["gen_ai.conversation.id"] for root in agent_roots
    }
    for span in judged:
        session = attributes_of(span)["otel_evals.session.id"]
        turns = [root for root in agent_roots if attributes_of(root)["gen_ai.conversation.id"] == session]
        last = max(turns, key=lambda root: int(root["startTimeUnixNano"]))
        assert spans[span["parentSpanId"]]["spanId"] == last["spanId"]
        assert span["traceId"] == last["traceId"]
        linked = {(link["traceId"], link["spanId"]) for link in span.get("links", ())}
        assert linked == {(root["traceId"], root["spanId"]) for root in turns if root is not last}

    # One event per evaluator, in the same context.
    for span in judged:
        events = [event for event in evaluation_events(scored) if event["traceId"] == span["traceId"]]
        assert sorted(attributes_of(event)["gen_ai.evaluation.name"] for event in events) == sorted(EVALUATORS)
        assert {event["spanId"] for event in events} == {span["parentSpanId"]}

    # Metric points whose exemplars lead to a judged trace.
    points = [
        point
        for metric in scored.metrics()
        if metric["name"] in ("gen_ai.evaluation.score", "otel_evals.evaluations")
        for point in (metric.get("histogram") or metric.get("sum"))["dataPoints"]
    ]
    exemplars = [exemplar for point in points for exemplar in point.get("exemplars", ())]
    assert exemplars
    assert {exemplar["traceId"] for exemplar in exemplars} <= {span["traceId"] for span in judged}

    # What a scrape would show a person in Grafana.
    assert "otel_evals_evaluations_total{" in scored.scrape()
