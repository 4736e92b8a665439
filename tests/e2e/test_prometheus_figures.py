"""What the recording rules show is what follows from the raw evaluations: the demo, collector, Prometheus, its rules."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from otel_evals.sampling.estimate import Estimate, weighted_rate
from tests.components.collector import CONFIG_FOLDER, Collector
from tests.components.prometheus import Prometheus

pytestmark = [pytest.mark.components, pytest.mark.slow]

FIGURES = {
    "ratio": lambda estimate: estimate.value,
    "lower": lambda estimate: estimate.low,
    "upper": lambda estimate: estimate.high,
    "effective_n": lambda estimate: estimate.effective_n,
}


def test_rates_and_intervals_in_prometheus_follow_from_the_raw_evaluations(
    collector: Collector, start_prometheus: Callable[..., Prometheus]
) -> None:
    rules = sorted((CONFIG_FOLDER / "prometheus" / "rules").glob("*.yaml"))
    prometheus = start_prometheus([collector.prometheus_target], rule_files=rules)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    arguments = ["--sessions=150", "--rate=0.5", "--speed=2000"]
    demo = "from otel_evals.cli import main; main()"
    subprocess.run(
        [sys.executable, "-c", demo, "demo", *arguments, f"--otlp={collector.http_endpoint}"],
        # One export at the end: Prometheus extrapolates between samples, and here it shall have nothing to guess.
        env={**environment, "OTEL_METRIC_EXPORT_INTERVAL": "3600000"},
        check=True,
        timeout=150,
        stdout=subprocess.DEVNULL,
    )
    expected = estimates(collector.log_records())

    # All of the counters come with one scrape, all of the figures with the round of rules after it.
    prometheus.wait_for(lambda p: len(p.query('otel_evals:failures:upper{window="1h"}')) == len(expected))

    assert len(expected) == 9, "three agents, three evaluators"
    for name, figure in FIGURES.items():
        shown = {
            (series["metric"]["gen_ai_agent_name"], series["metric"]["gen_ai_evaluation_name"]): float(
                series["value"][1]
            )
            for series in prometheus.query(f'otel_evals:failures:{name}{{window="1h"}}')
        }
        assert shown == pytest.approx({key: figure(estimate) for key, estimate in expected.items()}, abs=1e-6), name


def estimates(records: list[dict[str, Any]]) -> dict[tuple[str, str], Estimate]:
    """The failure rate per agent and evaluator, from the evaluation events."""
    judged: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    for record in records:
        event = {entry["key"]: next(iter(entry["value"].values())) for entry in record["attributes"]}
        if record.get("eventName") != "gen_ai.evaluation.result" or not event["otel_evals.applicable"]:
            continue
        if "gen_ai.evaluation.score.value" in event and int(event["otel_evals.session.generation"]) == 1:
            key = event["gen_ai.agent.name"], event["gen_ai.evaluation.name"]
            judged[key].append((float(event["otel_evals.sampling.weight"]), not event["otel_evals.passed"]))
    return {
        key: weighted_rate([weight for weight, _ in sessions], [failed for _, failed in sessions])
        for key, sessions in judged.items()
    }
