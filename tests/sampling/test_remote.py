"""Rates from a standard remote sampling endpoint: one of our own that misbehaves, and the real Jaeger."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from otel_evals.sampling.remote import RemoteRates, read_strategies
from otel_evals.sampling.rules import Match, Rule
from otel_evals.sampling.sampler import Sampler
from otel_evals.settings import Settings
from tests.components.jaeger import Jaeger

EVALUATORS = Settings().evaluators


def answer(default: float | None = None, **operations: Any) -> dict[str, Any]:
    strategies = [
        {"operation": name.replace("__", "/"), "probabilisticSampling": {"samplingRate": rate}}
        for name, rate in operations.items()
    ]
    sampling: dict[str, Any] = {"perOperationStrategies": strategies}
    if default is not None:
        sampling["defaultSamplingProbability"] = default
    return {
        "strategyType": "PROBABILISTIC",
        "probabilisticSampling": {"samplingRate": 0.001},
        "operationSampling": sampling,
    }


class Endpoint:
    """A sampling endpoint whose next answer the test sets."""

    def __init__(self) -> None:
        self.body: Any = {}
        self.status = 200
        self.etag: str | None = None
        self.requests: list[web.Request] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        headers = {"ETag": self.etag} if self.etag else {}
        if self.etag and request.headers.get("If-None-Match") == self.etag:
            return web.Response(status=304, headers=headers)
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return web.Response(status=self.status, text=text, content_type="application/json", headers=headers)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()
    application = web.Application()
    application.router.add_get("/api/sampling", made.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/api/sampling"
    yield made
    await runner.cleanup()


@pytest.fixture
def sampler() -> Sampler:
    return Sampler(Settings(rate=0.25), (Rule(name="vip", match=(Match(tag=("vip",)),), rate=1.0),))


@pytest.fixture
def remote(endpoint: Endpoint, sampler: Sampler) -> RemoteRates:
    return RemoteRates(sampler, endpoint.url, "travel-agent")


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(1500):
        if condition():
            return
        await asyncio.sleep(0.02)
    pytest.fail("did not happen within 30 s")


async def test_it_asks_for_the_service_by_name(endpoint: Endpoint, remote: RemoteRates) -> None:
    await remote.poll()
    assert endpoint.requests[0].query["service"] == "travel-agent"


async def test_an_operation_is_an_evaluator_or_a_rule_and_an_evaluator(
    endpoint: Endpoint, remote: RemoteRates, sampler: Sampler
) -> None:
    endpoint.body = answer(failure_rate=0.5, vip__failure_rate=0.75)
    assert await remote.poll()
    assert sampler.rates()["default", "failure_rate"] == 0.5
    assert sampler.rates()["vip", "failure_rate"] == 0.75
    assert sampler.rates()["default", "goal_achievement"] == 0.25


async def test_the_default_is_for_the_evaluators_that_are_not_named(
    endpoint: Endpoint, remote: RemoteRates, sampler: Sampler
) -> None:
    endpoint.body = answer(default=0.1, failure_rate=0.5)
    await remote.poll()
    assert sampler.rates()["default", "goal_achievement"] == 0.1
    assert sampler.rates()["default", "failure_rate"] == 0.5


@pytest.mark.parametrize("operations", [{}, {"GET /": 0.5, "vip__typo": 0.5, "typo__failure_rate": 0.5}])
async def test_a_service_that_is_meant_for_traces_alone_changes_nothing(
    endpoint: Endpoint, remote: RemoteRates, sampler: Sampler, operations: dict[str, float]
) -> None:
    before = sampler.rates()
    endpoint.body = answer(default=0.001, **operations)
    assert not await remote.poll()
    assert sampler.rates() == before


async def test_the_kill_switch_is_an_operation(endpoint: Endpoint, remote: RemoteRates, sampler: Sampler) -> None:
    endpoint.body = answer(pause=1)
    await remote.poll()
    assert sampler.paused
    endpoint.body = answer(pause=0)
    await remote.poll()
    assert not sampler.paused


async def test_a_rate_set_by_hand_holds_until_the_answer_changes(
    endpoint: Endpoint, remote: RemoteRates, sampler: Sampler
) -> None:
    endpoint.body = answer(failure_rate=0.5)
    await remote.poll()
    sampler.set_rate(0.9)
    assert not await remote.poll()
    assert set(sampler.rates().values()) == {0.9}


async def test_an_answer_that_did_not_change_is_not_sent_again(endpoint: Endpoint, remote: RemoteRates) -> None:
    endpoint.body, endpoint.etag = answer(failure_rate=0.5), '"v1"'
    assert await remote.poll()
    assert not await remote.poll()
    assert endpoint.requests[1].headers["If-None-Match"] == '"v1"'


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (answer(failure_rate=1.5), "operation 'failure_rate': 1.5 is no rate"),
        (answer(failure_rate=-0.1), "-0.1 is no rate"),
        (answer(failure_rate="0.5"), "'0.5' is no rate"),
        (answer(failure_rate=None), "None is no rate"),
        (answer(failure_rate=float("nan")), "nan is no rate"),
        (answer(default=2, failure_rate=0.5), "2 is no rate"),
        ({"operationSampling": {"perOperationStrategies": [{"operation": "failure_rate"}]}}, "no probabilisticSampling"),
        ({"operationSampling": {"perOperationStrategies": "x"}}, "not of the standard form"),
        ({"operationSampling": []}, None),
        ({"operationSampling": "x"}, "not of the standard form"),
        ([], "no JSON object"),
        ("<html>", "Expecting value"),
        ("x" * (2**20 + 1), "longer than"),
    ],
)  # fmt: skip
async def test_a_wrong_answer_is_refused_whole_with_the_reason(
    endpoint: Endpoint,
    remote: RemoteRates,
    sampler: Sampler,
    caplog: pytest.LogCaptureFixture,
    body: Any,
    reason: str | None,
) -> None:
    before = sampler.rates()
    endpoint.body = body
    with caplog.at_level(logging.WARNING):
        assert not await remote.poll()
    assert (reason or "") in caplog.text
    assert sampler.rates() == before


@pytest.mark.parametrize("rate", [0, 1, 0.5])
async def test_the_bounds_are_taken(endpoint: Endpoint, remote: RemoteRates, sampler: Sampler, rate: float) -> None:
    endpoint.body = answer(default=rate, failure_rate=rate)
    await remote.poll()
    assert set(sampler.rates().values()) == {rate}


def test_protobufs_json_leaves_out_zeros() -> None:
    body = {"operationSampling": {"perOperationStrategies": [{"operation": "x", "probabilisticSampling": {}}]}}
    assert read_strategies(body).operations == {"x": 0.0}


async def test_the_last_good_rates_hold_while_it_cannot_be_reached_and_that_is_said_once(
    endpoint: Endpoint, remote: RemoteRates, sampler: Sampler, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.body = answer(default=0.5, failure_rate=0.5)
    await remote.poll()
    endpoint.status = 503
    with caplog.at_level(logging.INFO):
        await remote.poll()
        await remote.poll()
        assert len([record for record in caplog.records if record.name.startswith("otel_evals")]) == 1
        endpoint.status = 200
        await remote.poll()
    assert "again" in caplog.text
    assert set(sampler.rates().values()) == {0.5}


async def test_nobody_listening_raises_nothing(sampler: Sampler, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert not await RemoteRates(sampler, "http://127.0.0.1:1/api/sampling", "s").poll()
    assert "the last ones stay" in caplog.text


async def test_run_asks_again_and_again_until_cancelled(endpoint: Endpoint, sampler: Sampler) -> None:
    task = asyncio.create_task(RemoteRates(sampler, endpoint.url, "s", interval_s=0.01).run())
    await eventually(lambda: len(endpoint.requests) >= 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_password_in_the_address_is_not_logged(
    endpoint: Endpoint, sampler: Sampler, caplog: pytest.LogCaptureFixture
) -> None:
    remote = RemoteRates(sampler, endpoint.url.replace("//", "//user:tulip@"), "s")
    with caplog.at_level(logging.INFO, logger="otel_evals"):
        endpoint.body = answer(failure_rate=0.5)
        await remote.poll()
        endpoint.status = 503
        await remote.poll()
    assert sum(record.name.startswith("otel_evals") for record in caplog.records) == 2
    assert "tulip" not in caplog.text


@pytest.mark.components
async def test_the_real_jaeger_moves_the_rates_when_its_file_is_edited(
    start_jaeger: Callable[..., Jaeger], tmp_path: Path, sampler: Sampler
) -> None:
    rates = tmp_path / "rates.json"

    def write(failure_rate: float, vip: float) -> None:
        operations = {"failure_rate": failure_rate, "vip/failure_rate": vip}
        strategies = [{"operation": name, "type": "probabilistic", "param": rate} for name, rate in operations.items()]
        service = {"service": "travel-agent", "type": "probabilistic", "param": 0.3, "operation_strategies": strategies}
        draft = tmp_path / "draft.json"
        draft.write_text(json.dumps({"service_strategies": [service]}))
        os.replace(draft, rates)

    write(0.5, 1)
    jaeger = start_jaeger(rates)
    remote = RemoteRates(sampler, jaeger.sampling_url, "travel-agent", interval_s=0.1)
    assert await remote.poll()
    assert sampler.rates()["default", "failure_rate"] == 0.5
    assert sampler.rates()["default", "goal_achievement"] == 0.3
    write(0, 0.75)
    asking = asyncio.create_task(remote.run())
    await eventually(lambda: sampler.rates()["vip", "failure_rate"] == 0.75)
    asking.cancel()
    assert sampler.rates()["default", "failure_rate"] == 0.0


@pytest.mark.components
async def test_the_real_jaeger_says_nothing_to_us_about_a_service_it_does_not_know(
    start_jaeger: Callable[..., Jaeger], sampler: Sampler
) -> None:
    before = sampler.rates()
    assert not await RemoteRates(sampler, start_jaeger().sampling_url, "unknown").poll()
    assert sampler.rates() == before
