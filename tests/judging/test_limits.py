"""Limits on judge calls, with a clock that only moves when somebody sleeps."""

from __future__ import annotations

import asyncio
import heapq
import itertools

import pytest

from otel_evals.judging.limits import CallLimiter


class FakeTime:
    """Seconds that pass only by `sleep`; sleepers wake in order, once every other task has come to rest."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._order = itertools.count()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        entry = (self.now + seconds, next(self._order), woken)
        heapq.heappush(self._sleepers, entry)
        try:
            await woken.wait()
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)
                heapq.heapify(self._sleepers)

    async def run(self, *tasks: asyncio.Task[None]) -> None:
        """Let time pass until the tasks are done."""
        while not all(task.done() for task in tasks):
            await self.settle()
            if self._sleepers:
                wake_at, _, woken = heapq.heappop(self._sleepers)
                self.now = wake_at
                woken.set()

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def limiter(time: FakeTime, concurrency: int = 100, **limits: float | None) -> CallLimiter:
    return CallLimiter(concurrency, clock=time.clock, sleep=time.sleep, **limits)


async def starts(
    time: FakeTime, limit: CallLimiter, calls: int, *, tokens: int = 0, used: int | None = None
) -> list[float]:
    """When each of so many calls, all wanted at once, began."""
    begun: list[float] = []

    async def call() -> None:
        async with limit.call(tokens) as permit:
            begun.append(time.now)
            if used is not None:
                permit.tokens = used

    await time.run(*(asyncio.create_task(call()) for _ in range(calls)))
    return begun


async def test_without_limits_all_calls_begin_at_once(time: FakeTime) -> None:
    assert await starts(time, limiter(time), 50) == [0.0] * 50


async def test_no_more_calls_are_open_than_the_concurrency(time: FakeTime) -> None:
    limit = limiter(time, concurrency=3)
    open_now, most = 0, 0

    async def call() -> None:
        nonlocal open_now, most
        async with limit.call():
            open_now += 1
            most = max(most, open_now)
            await time.sleep(1)
            open_now -= 1

    await time.run(*(asyncio.create_task(call()) for _ in range(10)))
    assert (most, time.now) == (3, 4.0)


async def test_requests_begin_at_the_rate_per_minute_after_a_burst(time: FakeTime) -> None:
    begun = await starts(time, limiter(time, requests_per_minute=60), 13)
    assert begun == pytest.approx([0.0] * 10 + [1.0, 2.0, 3.0])


async def test_in_one_minute_no_more_begin_than_burst_and_rate_allow(time: FakeTime) -> None:
    begun = await starts(time, limiter(time, requests_per_minute=120), 300)
    assert len([moment for moment in begun if moment < 60]) <= 120 + 20


async def test_a_rate_below_one_burst_still_lets_one_call_begin(time: FakeTime) -> None:
    assert await starts(time, limiter(time, requests_per_minute=1), 2) == pytest.approx([0.0, 60.0])


async def test_tokens_begin_at_the_rate_per_minute(time: FakeTime) -> None:
    begun = await starts(time, limiter(time, tokens_per_minute=6000), 4, tokens=3000)
    assert begun == pytest.approx([0.0, 0.0, 30.0, 60.0])


async def test_unused_tokens_are_given_back(time: FakeTime) -> None:
    limit = limiter(time, tokens_per_minute=6000)
    assert await starts(time, limit, 2, tokens=3000, used=0) == [0.0, 0.0]
    assert await starts(time, limit, 2, tokens=3000, used=0) == [0.0, 0.0]


async def test_tokens_used_beyond_the_estimate_delay_later_calls(time: FakeTime) -> None:
    limit = limiter(time, tokens_per_minute=6000)
    await starts(time, limit, 1, tokens=1000, used=9000)
    assert await starts(time, limit, 1, tokens=1000) == pytest.approx([40.0])


async def test_a_call_larger_than_a_minutes_tokens_begins_alone(time: FakeTime) -> None:
    begun = await starts(time, limiter(time, tokens_per_minute=1000), 2, tokens=50_000)
    assert begun[0] == 0.0
    assert begun[1] >= 60.0


async def test_a_hold_delays_every_call(time: FakeTime) -> None:
    limit = limiter(time)
    limit.hold(7)
    assert await starts(time, limit, 3) == [7.0] * 3


async def test_a_shorter_hold_does_not_shorten_a_longer_one(time: FakeTime) -> None:
    limit = limiter(time)
    limit.hold(7)
    limit.hold(1)
    assert await starts(time, limit, 1) == [7.0]


async def test_a_call_cancelled_while_it_waits_gives_its_turn_back(time: FakeTime) -> None:
    limit = limiter(time, requests_per_minute=1)
    await starts(time, limit, 1)

    async def call() -> None:
        async with limit.call():
            pass

    waiting = asyncio.create_task(call())
    await time.settle()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await starts(time, limit, 1) == pytest.approx([60.0])


async def test_a_failed_call_frees_its_slot(time: FakeTime) -> None:
    limit = limiter(time, concurrency=1)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            async with limit.call():
                raise RuntimeError
    assert await starts(time, limit, 1) == [0.0]


@pytest.mark.parametrize("limits", [{"requests_per_minute": 0}, {"tokens_per_minute": -1}])
def test_a_limit_that_allows_nothing_is_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give a number above 0"):
        CallLimiter(1, **limits)


def test_a_concurrency_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="concurrency=0: give at least 1"):
        CallLimiter(0)
