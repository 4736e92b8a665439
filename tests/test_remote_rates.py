"""The standard server for remote sampling serves evaluation rates, and an edited file while everything runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.components.jaeger import Jaeger

pytestmark = pytest.mark.components


def rates_of(answer: dict[str, Any]) -> dict[str, float]:
    strategies = answer["operationSampling"]["perOperationStrategies"]
    return {each["operation"]: each["probabilisticSampling"]["samplingRate"] for each in strategies}


def test_a_service_gets_its_rate_and_those_of_its_evaluators(start_jaeger: Callable[..., Jaeger]) -> None:
    answer = start_jaeger().sampling("travel-agent")

    assert answer["operationSampling"]["defaultSamplingProbability"] == 0.2
    assert rates_of(answer) == {"failure_rate": 0.5, "failure_communication": 1.0}


def test_a_service_without_an_entry_gets_the_default_rate(start_jaeger: Callable[..., Jaeger]) -> None:
    answer = start_jaeger().sampling("another-service")

    assert answer["probabilisticSampling"]["samplingRate"] == 0.1


def test_an_edited_rate_is_served_within_seconds(start_jaeger: Callable[..., Jaeger], tmp_path: Path) -> None:
    def strategies(rate: float) -> str:
        operation = {"operation": "failure_rate", "type": "probabilistic", "param": rate}
        service = {"service": "app", "type": "probabilistic", "param": 1.0, "operation_strategies": [operation]}
        return json.dumps({"service_strategies": [service]})

    rates = tmp_path / "rates.json"
    rates.write_text(strategies(0.25))
    jaeger = start_jaeger(rates)
    assert rates_of(jaeger.sampling("app")) == {"failure_rate": 0.25}

    rates.write_text(strategies(0.75))

    deadline = time.monotonic() + 10
    while rates_of(jaeger.sampling("app")) != {"failure_rate": 0.75}:
        assert time.monotonic() < deadline, "the edited file was not read within ten seconds"
        time.sleep(0.1)
