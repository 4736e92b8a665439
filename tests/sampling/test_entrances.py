"""A rate means the same, and is refused for the same reasons, by whichever way it comes in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from otel_evals.sampling.remote import read_strategies
from otel_evals.sampling.rules import Rule
from otel_evals.sampling.sampler import Sampler
from otel_evals.settings import Settings, SettingsError, load_settings

Entrance = Callable[[Any, pytest.MonkeyPatch, Path], float]


def by_argument(value: Any, patch: pytest.MonkeyPatch, folder: Path) -> float:
    return load_settings(rate=value).rate


def by_environment(value: Any, patch: pytest.MonkeyPatch, folder: Path) -> float:
    patch.setenv("OTEL_EVALS_RATE", str(value))
    return load_settings().rate


def by_environment_per_evaluator(value: Any, patch: pytest.MonkeyPatch, folder: Path) -> float:
    patch.setenv("OTEL_EVALS_RATES", f"failure_rate={value}")
    return load_settings().rate_of("failure_rate")


def by_rule_in_the_environment(value: Any, patch: pytest.MonkeyPatch, folder: Path) -> float:
    written = {"nan": ".nan", "inf": ".inf", "": "''"}.get(str(value), str(value))
    patch.setenv("OTEL_EVALS_RULES", f"[{{name: a, rate: {written}}}]")
    rate = load_settings().rules[0].rate
    assert rate is not None
    return rate


def by_file(value: Any, patch: pytest.MonkeyPatch, folder: Path) -> float:
    path = folder / "settings.yaml"
    path.write_text(f"rate: {({'nan': '.nan', 'inf': '.inf'}).get(str(value), value)}\n")
    patch.setenv("OTEL_EVALS_CONFIG", str(path))
    return load_settings().rate


def by_set_rate(value: Any, patch: pytest.MonkeyPatch, folder: Path) -> float:
    sampler = Sampler(Settings())
    sampler.set_rate(value)
    return sampler.rates()["default", "failure_rate"]


def by_rule(value: Any, patch: pytest.MonkeyPatch, folder: Path) -> float:
    rate = Rule(name="a", rate=value).rate
    assert rate is not None
    return rate


def by_remote_answer(value: Any, patch: pytest.MonkeyPatch, folder: Path) -> float:
    strategy = {"operation": "x", "probabilisticSampling": {"samplingRate": value}}
    return read_strategies({"operationSampling": {"perOperationStrategies": [strategy]}}).operations["x"]


ENTRANCES = (
    by_argument,
    by_environment,
    by_environment_per_evaluator,
    by_rule_in_the_environment,
    by_file,
    by_set_rate,
    by_rule,
    by_remote_answer,
)


@pytest.fixture(params=ENTRANCES, ids=lambda entrance: entrance.__name__)
def entrance(request: pytest.FixtureRequest) -> Entrance:
    chosen: Entrance = request.param
    return chosen


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 0.25, 1e-9])
def test_rates_are_taken(entrance: Entrance, value: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert entrance(value, monkeypatch, tmp_path) == value


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "often", ""])
def test_what_is_none_is_refused(
    entrance: Entrance, value: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises((SettingsError, ValueError)):
        entrance(value, monkeypatch, tmp_path)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_the_refusal_names_the_value_and_the_remedy(
    entrance: Entrance, value: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises((SettingsError, ValueError)) as refused:
        entrance(value, monkeypatch, tmp_path)
    assert f"{value} is no rate" in str(refused.value)
    assert "from 0 (judge none) to 1 (judge all)" in str(refused.value)


def test_without_any_rate_a_tenth_is_judged() -> None:
    assert Sampler(Settings()).rates()["default", "failure_rate"] == 0.1


@pytest.mark.parametrize("name", [n for n in Settings.model_fields if n.startswith("budget_") and n != "budget_file"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "lots"])
def test_a_budget_is_a_number_above_0(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"OTEL_EVALS_{name.upper()}", value)
    with pytest.raises(SettingsError, match=name):
        load_settings()
