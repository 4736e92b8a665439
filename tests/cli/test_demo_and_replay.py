"""The demo through a real collector, and what the collector wrote, replayed: both come to the same scores."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_evals.cli.demo import IDLE_S
from otel_evals.simulation.planner import plan_sessions
from tests.cli.command import otel_evals
from tests.components.collector import Collector

SESSIONS = 30
SPEED = 300
"""Recorded times are compressed by this."""


def names(spans: list[dict[str, Any]]) -> list[str]:
    return [span["name"] for span in spans]


def live_labels(collector: Collector) -> dict[tuple[str, str], str]:
    """(session, evaluator) to label, from the evaluation events that the collector received."""
    found = {}
    for record in collector.log_records():
        told = {item["key"]: next(iter(item["value"].values()), None) for item in record["attributes"]}
        if "gen_ai.evaluation.name" in told:
            key = (told["otel_evals.session.id"], told["gen_ai.evaluation.name"])
            found[key] = told["gen_ai.evaluation.score.label"]
    return found


@pytest.mark.components
def test_replay_of_what_the_collector_wrote_gives_the_scores_of_the_demo(collector: Collector) -> None:
    otel_evals("demo", "--sessions", SESSIONS, "--speed", SPEED, "--otlp", collector.http_endpoint)
    collector.wait_for(
        lambda c: names(c.spans()).count("evaluate session") == SESSIONS and len(live_labels(c)) == 3 * SESSIONS
    )
    done = otel_evals("replay", collector.file("traces"), "--json", "--idle-timeout", IDLE_S / SPEED)
    *rows, _ = map(json.loads, done.stdout.splitlines())
    replayed = {(row["session_id"], e["evaluator"]): e["label"] for row in rows for e in row["evaluations"]}
    assert {row["session_id"] for row in rows} == {s.session_id for s in plan_sessions(SESSIONS, seed=7)}
    assert replayed == live_labels(collector)
