"""Attempts, waiting, time limits: on a fake clock, and with models that never return on a real one."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from otel_evals.judging.calls import Caller, Spent
from otel_evals.judging.models.protocol import ChatReply, ChatRequest, ModelError
from tests.judging.scripted import FAILED, FakeClock, ScriptedModel, judge_with, reply, task

REQUEST = ChatRequest(
    messages=(), schema={}, schema_name="x", max_tokens=10, timeout_s=1.0, session=FAILED, evaluators=()
)
OK = ChatReply(text="{}", cost_usd=0.0)
BUSY = ModelError("rate_limited", retryable=True)


def caller(model, clock, *, attempts=3, timeout_s=5.0, seed=1):
    return Caller(
        model, attempts=attempts, timeout_s=timeout_s, clock=clock, sleep=clock.sleep, rng=random.Random(seed)
    )


async def test_waits_grow_and_are_jittered_over_the_whole_range():
    first_waits, second_waits = [], []
    for seed in range(200):
        clock = FakeClock()
        await caller(ScriptedModel(BUSY, BUSY, OK), clock, seed=seed).ask(REQUEST, clock.now + 1e6, Spent())
        first_waits.append(clock.slept[0])
        second_waits.append(clock.slept[1])
    assert min(first_waits) < 0.1 < 0.9 < max(first_waits) <= 1.0
    assert 1.5 < max(second_waits) <= 2.0


async def test_retry_after_is_the_least_that_is_waited():
    clock = FakeClock()
    busy = ModelError("rate_limited", retryable=True, retry_after_s=17.0)
    await caller(ScriptedModel(busy, OK), clock).ask(REQUEST, clock.now + 100, Spent())
    assert clock.slept == [17.0]


async def test_a_retry_after_beyond_the_deadline_is_not_waited_for():
    clock = FakeClock()
    busy = ModelError("rate_limited", retryable=True, retry_after_s=60.0)
    with pytest.raises(ModelError, match="rate_limited"):
        await caller(ScriptedModel(busy, OK), clock).ask(REQUEST, clock.now + 30, Spent())
    assert clock.slept == []


async def test_nothing_is_asked_after_the_deadline():
    clock, model = FakeClock(), ScriptedModel(OK)
    with pytest.raises(ModelError, match="expired"):
        await caller(model, clock).ask(REQUEST, clock.now - 1, Spent())
    assert model.requests == []


async def test_a_call_gets_no_more_time_than_the_deadline_leaves():
    clock, model = FakeClock(), ScriptedModel(OK)
    await caller(model, clock, timeout_s=60).ask(REQUEST, clock.now + 7, Spent())
    assert model.requests[0].timeout_s == 7


async def test_failed_and_answered_calls_are_both_counted():
    clock, spent = FakeClock(), Spent()
    await caller(ScriptedModel(BUSY, ModelError("server_error", retryable=True, calls=2), OK), clock).ask(
        REQUEST, clock.now + 100, spent
    )
    assert (spent.calls, spent.errors) == (4, ["rate_limited", "server_error"])


class Hanging:
    """Never returns."""

    name = "hanging"

    async def complete(self, request):
        await asyncio.Event().wait()

    async def close(self): ...


class Stubborn(Hanging):
    """Never returns and ignores being cancelled, as some client libraries do."""

    async def complete(self, request):
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            try:
                await asyncio.sleep(until - time.monotonic())
            except asyncio.CancelledError:
                continue
        return OK


@pytest.mark.parametrize("model", [Hanging(), Stubborn()])
async def test_a_model_that_never_returns_is_given_up_at_the_timeout(model):
    stuck = Caller(model, attempts=1, timeout_s=0.05)
    started = time.monotonic()
    with pytest.raises(ModelError, match="timeout"):
        await stuck.ask(REQUEST, time.monotonic() + 10, Spent())
    assert time.monotonic() - started < 1.0


async def test_cancelling_the_judging_cancels_the_call():
    model = Hanging()
    running = asyncio.ensure_future(
        Caller(model, attempts=1, timeout_s=60).ask(REQUEST, time.monotonic() + 60, Spent())
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


async def test_the_deadline_counts_from_when_the_session_was_enqueued():
    clock, model = FakeClock(), ScriptedModel(reply())
    judge = judge_with(model, clock, judge_deadline=100)
    judge._now_ns = lambda: 1_000 * 10**9
    late = await judge.judge(task(enqueued_ns=899 * 10**9))
    assert {e.error_type for e in late.evaluations} == {"expired"}
    in_time = await judge.judge(task(enqueued_ns=998 * 10**9))
    assert {e.outcome for e in in_time.evaluations} == {"scored"}


async def test_all_waits_together_end_by_the_deadline():
    clock = FakeClock()
    model = ScriptedModel(ModelError("unavailable", retryable=True, retry_after_s=30))
    result = await judge_with(model, clock, judge_deadline=100, judge_attempts=10).judge(task())
    assert sum(clock.slept) <= 100
    assert {e.error_type for e in result.evaluations} == {"unavailable"}


async def test_many_sessions_are_judged_at_once():
    gate = asyncio.Event()

    async def later(request):
        await gate.wait()
        return reply()(request)

    judge = judge_with(ScriptedModel(later))
    running = [asyncio.ensure_future(judge.judge(task())) for _ in range(50)]
    await asyncio.sleep(0.01)
    gate.set()
    done = await asyncio.gather(*running)
    assert all(e.outcome == "scored" for result in done for e in result.evaluations)


async def test_no_more_calls_are_open_at_once_than_configured():
    open_now, most = 0, 0

    async def step(request):
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.001)
        open_now -= 1
        return reply()(request)

    judge = judge_with(ScriptedModel(step), judge_concurrency=3)
    await asyncio.gather(*(judge.judge(task()) for _ in range(20)))
    assert most == 3


async def test_requests_per_minute_are_kept():
    clock = FakeClock()
    judge = judge_with(ScriptedModel(), clock, judge_requests_per_minute=60, judge_deadline=1e4)
    for _ in range(40):
        await judge.judge(task())
    assert 28 <= sum(clock.slept) <= 40


async def test_waiting_for_leave_to_call_ends_at_the_deadline():
    judge = judge_with(ScriptedModel(), judge_requests_per_minute=1, judge_deadline=60)
    results = [await judge.judge(task()) for _ in range(3)]
    assert [{e.error_type for e in r.evaluations} for r in results] == [{None}, {"expired"}, {"expired"}]


async def test_a_pause_that_the_provider_asks_for_holds_all_calls():
    clock = FakeClock()
    busy = ModelError("rate_limited", retryable=False, retry_after_s=20)
    judge = judge_with(ScriptedModel(busy, reply()), clock)
    await judge.judge(task())
    await judge.judge(task())
    assert clock.slept == [20]


async def test_a_client_that_cancels_itself_is_an_outcome_and_no_cancellation_of_ours():
    def step(request):
        raise asyncio.CancelledError

    result = await judge_with(ScriptedModel(step)).judge(task())
    assert {e.error_type for e in result.evaluations} == {"unexpected"}


async def test_when_the_breaker_opens_on_a_request_its_own_error_is_the_reason():
    model = ScriptedModel(ModelError("unavailable", retryable=True))
    result = await judge_with(model, judge_attempts=9, judge_deadline=1e4).judge(task())
    assert {e.error_type for e in result.evaluations} == {"unavailable"}
    assert len(model.requests) == 5
