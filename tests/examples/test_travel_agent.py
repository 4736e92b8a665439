"""The travel agent in a process of its own, as the README tells people to run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.otlp_sink import OtlpSink, otlp_sink

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"^(trip-\S+)  failure_rate=(\S+)  goal_achievement=(\S+)  failure_communication=(\S+)$", re.M)


def run(*arguments: str, **environment: str) -> str:
    """Standard output of the app; fails with its standard error."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_"))}
    done = subprocess.run(
        [sys.executable, "-m", "examples.travel_agent.app", *arguments],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def labels(output: str) -> dict[str, tuple[str, ...]]:
    """Conversation id to its three labels."""
    return {match[0]: match[1:] for match in LINE.findall(output)}


@pytest.fixture(scope="module")
def exported() -> tuple[str, OtlpSink]:
    """Output and telemetry of six conversations."""
    with otlp_sink() as sink:
        return run("--conversations", "6", "--faults", "0.5", OTEL_EXPORTER_OTLP_ENDPOINT=sink.url), sink


def test_every_conversation_is_scored_once(exported: tuple[str, OtlpSink]) -> None:
    output, _ = exported
    assert Counter(match[0] for match in LINE.findall(output)) == {f"trip-7-{n:04d}": 1 for n in range(1, 7)}


def test_without_key_collector_or_faults_everybody_passes() -> None:
    output = run("--conversations", "5", "--faults", "0")
    assert output.endswith("5 conversations, 0 faults injected\n")
    assert {found[0] for found in labels(output).values()} == {"not_applicable"}
    assert {found[2] for found in labels(output).values()} == {"Acceptable"}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("scripted-fabricated", {"hallucination"}),
        ("scripted-honest", {"honest_fallback", "alternative_proposed"}),
    ],
)
def test_the_labels_follow_the_agents_behaviour(model: str, expected: set[str]) -> None:
    output = run("--conversations", "4", "--faults", "1", "--fault", "timeout", OPENAI_MODEL=model)
    assert len(labels(output)) == 4
    assert {found[0] for found in labels(output).values()} <= expected


def test_the_rate_of_the_environment_is_obeyed() -> None:
    output = run("--conversations", "3", OTEL_EVALS_RATE="0")
    assert labels(output) == {}


def test_with_an_endpoint_each_evaluation_arrives_in_the_trace_of_its_last_turn(
    exported: tuple[str, OtlpSink],
) -> None:
    _, sink = exported
    evaluations = [span for span in sink.spans if span.name == "evaluate session"]
    roots = {span.span_id: span for span in sink.spans if span.name == "invoke_agent travel-agent"}
    assert len(evaluations) == 6
    for span in evaluations:
        assert roots[span.parent_span_id].trace_id == span.trace_id
    events = [record for record in sink.logs if record.event_name == "gen_ai.evaluation.result"]
    assert len(events) == 18
    assert {record.trace_id for record in events} == {span.trace_id for span in evaluations}
    assert "gen_ai.evaluation.score" in {metric.name for metric in sink.metrics}
