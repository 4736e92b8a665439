"""The travel agent in a process of its own, busy all the time, while somebody moves its sampling rate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.otlp_sink import OtlpSink, otlp_sink
from tests.components.jaeger import Jaeger

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CONVERSATIONS = 250
EVALUATORS = ("failure_rate", "goal_achievement", "failure_communication")


class Evaluated(NamedTuple):
    """One evaluation span."""

    start_s: float
    probability: float


@pytest.fixture
def sink() -> Iterator[OtlpSink]:
    with otlp_sink() as made:
        yield made


def run(sink: OtlpSink, move: Callable[[], None], **environment: str) -> float:
    """Run the agent, move the rate as soon as a session was judged at the first; the time of the move."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_"))}
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_SERVICE_NAME": "travel-agent",
        "OTEL_EVALS_RATE": "0.1",
        "OTEL_EVALS_GRACE": "0.2",
    }
    command = [sys.executable, "-m", "examples.travel_agent.app", "--conversations", str(CONVERSATIONS)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**inherited, **settings, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        sink.wait_for(lambda: bool(evaluated(sink)), 120)
        move()
        moved_s = time.time()
        _, errors = process.communicate(timeout=150)
        assert process.returncode == 0, errors.decode()
    finally:
        process.kill()
    return moved_s


def evaluated(sink: OtlpSink) -> list[Evaluated]:
    found = []
    for span in list(sink.spans):
        attributes = {entry.key: entry.value for entry in span.attributes}
        if probability := attributes.get("otel_evals.sampling.probability"):
            found.append(Evaluated(span.start_time_unix_nano / 1e9, probability.double_value))
    return found


def decisions(sink: OtlpSink) -> int:
    """Sum of the ledger at the last export."""
    last = [metric for metric in sink.metrics if metric.name == "otel_evals.sessions"][-1]
    return sum(point.as_int or int(point.as_double) for point in last.sum.data_points)


def check(sink: OtlpSink, moved_s: float, within_s: float) -> None:
    early = [one.probability for one in evaluated(sink) if one.start_s < moved_s]
    late = [one.probability for one in evaluated(sink) if one.start_s > moved_s + within_s]
    assert set(early) == {0.1}
    assert len(late) > 20
    assert set(late) == {0.5}
    assert decisions(sink) == CONVERSATIONS


def test_by_file(sink: OtlpSink, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("rate: 0.1\n")

    def move() -> None:
        draft = tmp_path / "draft.yaml"
        draft.write_text("rate: 0.5\n")
        os.replace(draft, path)

    # The file is looked at every 0.1 s; the rest is for a busy machine.
    check(sink, run(sink, move, OTEL_EVALS_CONFIG=str(path)), within_s=1.0)


@pytest.mark.components
def test_by_the_real_jaegers_remote_sampling(
    sink: OtlpSink, tmp_path: Path, start_jaeger: Callable[..., Jaeger]
) -> None:
    path = tmp_path / "rates.json"

    def serve(rate: float) -> None:
        operations: list[dict[str, Any]] = [
            {"operation": name, "type": "probabilistic", "param": rate} for name in EVALUATORS
        ]
        service = {
            "service": "travel-agent",
            "type": "probabilistic",
            "param": rate,
            "operation_strategies": operations,
        }
        draft = tmp_path / "draft.json"
        draft.write_text(json.dumps({"service_strategies": [service]}))
        os.replace(draft, path)

    serve(0.1)
    url = start_jaeger(path).sampling_url
    moved_s = run(
        sink,
        lambda: serve(0.5),
        OTEL_EVALS_REMOTE_SAMPLING_URL=url,
        OTEL_EVALS_REMOTE_SAMPLING_INTERVAL="0.5",
    )
    # Jaeger reads its file every second, we ask it every half second; the rest is for a busy machine.
    check(sink, moved_s, within_s=2.5)
