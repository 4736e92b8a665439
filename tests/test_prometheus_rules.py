"""Prometheus accepts the rules, they fire when they should, and they compute what `otel_evals` computes."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import pytest
import yaml

from otel_evals.sampling.estimate import weighted_rate
from tests.components.collector import CONFIG_FOLDER

pytestmark = pytest.mark.components

PROMETHEUS = CONFIG_FOLDER / "prometheus"


def promtool(binaries: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binaries / "promtool", *arguments], capture_output=True, text=True, check=False)


def test_prometheus_accepts_the_configuration_with_its_rules(prometheus_binaries: Path) -> None:
    checked = promtool(prometheus_binaries, "check", "config", "--lint-fatal", PROMETHEUS / "prometheus.yaml")

    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("file", sorted(path.name for path in (PROMETHEUS / "tests").glob("*.yaml")))
def test_the_rules_fire_and_stay_silent_as_their_unit_tests_say(prometheus_binaries: Path, file: str) -> None:
    tested = promtool(prometheus_binaries, "test", "rules", PROMETHEUS / "tests" / file)

    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_committed_recording_rules_are_what_their_builder_writes() -> None:
    built = runpy.run_path(str(PROMETHEUS / "build_rules.py"))["render"]()

    assert (PROMETHEUS / "rules" / "recording.yaml").read_text() == built


def test_every_alert_says_what_to_do_and_is_tested() -> None:
    groups = yaml.safe_load((PROMETHEUS / "rules" / "alerts.yaml").read_text())["groups"]
    alerts = [rule for group in groups for rule in group["rules"]]
    tests = "".join(path.read_text() for path in (PROMETHEUS / "tests").glob("*.yaml"))

    assert alerts
    for alert in alerts:
        assert set(alert["annotations"]) == {"summary", "description", "runbook"}
        assert alert["labels"]["severity"] in {"page", "ticket", "info"}
        assert f'"{alert["alert"]}"' in tests


STRATA = {"errors": (1.0, 40, 8), "default": (10.0, 12, 3)}
"""Sampling rule to weight, judged sessions, and failed ones among them."""


def test_the_rules_give_the_rate_and_interval_that_python_gives(prometheus_binaries: Path, tmp_path: Path) -> None:
    weights = [weight for weight, judged, _ in STRATA.values() for _ in range(judged)]
    hits = [index < failed for _, judged, failed in STRATA.values() for index in range(judged)]
    expected = weighted_rate(weights, hits)
    # The counters stand still after they appeared, so that Prometheus has nothing to extrapolate.
    series = {}
    for rule, (weight, judged, failed) in STRATA.items():
        for outcome, number in (("failed", failed), ("passed", judged - failed)):
            labels = (
                '{job="travel", gen_ai_evaluation_name="failure_rate", otel_evals_session_generation="first",'
                f' otel_evals_sampling_rule="{rule}", otel_evals_outcome="{outcome}"}}'
            )
            series[f"otel_evals_evaluations_total{labels}"] = f"{number}x30"
            series[f"otel_evals_evaluations_weight_total{labels}"] = f"{number * weight}x30"
            series[f"otel_evals_evaluations_weight_squared_total{labels}"] = f"{number * weight**2}x30"
    results = {
        "otel_evals:failures:ratio": expected.value,
        "otel_evals:failures:lower": expected.low,
        "otel_evals:failures:upper": expected.high,
        "otel_evals:failures:effective_n": expected.effective_n,
    }
    test = {
        "rule_files": [str(PROMETHEUS / "rules" / "recording.yaml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": f'abs({name}{{window="1h"}} - {value!r}) < bool 1e-9',
                        "eval_time": "20m",
                        "exp_samples": [
                            {
                                "labels": '{job="travel", gen_ai_evaluation_name="failure_rate", window="1h"}',
                                "value": 1,
                            }
                        ],
                    }
                    for name, value in results.items()
                ],
            }
        ],
    }
    file = tmp_path / "estimate.yaml"
    file.write_text(yaml.safe_dump(test))

    tested = promtool(prometheus_binaries, "test", "rules", file)

    assert tested.returncode == 0, tested.stdout + tested.stderr
