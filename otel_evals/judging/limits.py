"""How fast the judge may be called: calls at once, requests per minute, tokens per minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

__all__ = ["CallLimiter", "Permit"]

BURST_SECONDS = 10.0
"""So many seconds' worth of requests may start at once; providers count over windows shorter than their minute."""


class _Bucket:
    """A token bucket that may go into debt: whoever overdraws it waits until the debt is paid (GCRA).

    Callers are served in the order in which they reserve, without a lock and without waking each other.
    """

    def __init__(self, per_minute: float, capacity: float, now_s: float) -> None:
        self._per_second = per_minute / 60
        self._capacity = capacity
        self._level = capacity
        self._updated_s = now_s

    def reserve(self, amount: float, now_s: float) -> float:
        """Take the amount; seconds to wait before using it."""
        self._refill(now_s)
        self._level -= min(amount, self._capacity)  # what is larger than the bucket would never fit
        return max(0.0, -self._level / self._per_second)

    def give_back(self, amount: float, now_s: float) -> None:
        """Return what was not used; negative: take more."""
        self._refill(now_s)
        self._level = min(self._capacity, self._level + amount)

    def reserved(self, amount: float) -> float:
        """What a reservation of this amount took."""
        return min(amount, self._capacity)

    def _refill(self, now_s: float) -> None:
        self._level = min(self._capacity, self._level + (now_s - self._updated_s) * self._per_second)
        self._updated_s = now_s


class Permit:
    """Leave for one call."""

    def __init__(self, estimated_tokens: int) -> None:
        self.tokens = estimated_tokens
        """Set it to the tokens that the call really took; the difference is settled when the call is over."""


class CallLimiter:
    """Limits the calls to one judge model. For one event loop."""

    def __init__(
        self,
        concurrency: int,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """
        Args:
            concurrency: calls that may be open at once, at least 1.
            requests_per_minute: None: no limit.
            tokens_per_minute: input and output together; None: no limit.
            clock: monotonic seconds.
            sleep: waits for seconds.

        Raises:
            ValueError: with the bound.
        """
        if concurrency < 1:
            raise ValueError(f"concurrency={concurrency}: give at least 1")
        for name, limit in (("requests_per_minute", requests_per_minute), ("tokens_per_minute", tokens_per_minute)):
            if limit is not None and not limit > 0:
                raise ValueError(f"{name}={limit}: give a number above 0, or None for no limit")
        now_s = clock()
        self._slots = asyncio.Semaphore(concurrency)
        self._clock = clock
        self._sleep = sleep
        self._requests: _Bucket | None = None
        self._tokens: _Bucket | None = None
        if requests_per_minute is not None:
            burst = max(1.0, requests_per_minute * BURST_SECONDS / 60)
            self._requests = _Bucket(requests_per_minute, burst, now_s)
        if tokens_per_minute is not None:
            self._tokens = _Bucket(tokens_per_minute, tokens_per_minute, now_s)
        self._held_until_s = now_s

    def hold(self, seconds: float) -> None:
        """Start no call for so long: the provider has asked for a pause, which concerns every call."""
        self._held_until_s = max(self._held_until_s, self._clock() + seconds)

    @property
    def held_s(self) -> float:
        """Seconds for which no call starts because the provider asked for a pause."""
        return max(0.0, self._held_until_s - self._clock())

    @property
    def at_once(self) -> bool:
        """A call would certainly not have to wait."""
        return not self._slots.locked() and self._requests is None and self._tokens is None and not self.held_s

    @asynccontextmanager
    async def call(self, estimated_tokens: int = 0) -> AsyncIterator[Permit]:
        """Wait for leave, hold it for the block, then settle the tokens.

        A call that is cancelled while it waits gives back all that it had reserved.
        """
        async with self._slots:
            permit = Permit(estimated_tokens)
            delay_s = self._reserve(estimated_tokens)
            try:
                await self._wait(delay_s)
            except BaseException:
                self._give_back(1, self._reserved_tokens(estimated_tokens))
                raise
            try:
                yield permit
            finally:
                self._give_back(0, self._reserved_tokens(estimated_tokens) - permit.tokens)

    async def _wait(self, delay_s: float) -> None:
        if delay_s > 0:
            await self._sleep(delay_s)
        while (held_s := self.held_s) > 0:
            await self._sleep(held_s)

    def _reserve(self, tokens: int) -> float:
        now_s = self._clock()
        waits = [0.0]
        if self._requests is not None:
            waits.append(self._requests.reserve(1, now_s))
        if self._tokens is not None:
            waits.append(self._tokens.reserve(tokens, now_s))
        return max(waits)

    def _reserved_tokens(self, tokens: int) -> float:
        return self._tokens.reserved(tokens) if self._tokens is not None else tokens

    def _give_back(self, requests: int, tokens: float) -> None:
        now_s = self._clock()
        if self._requests is not None:
            self._requests.give_back(requests, now_s)
        if self._tokens is not None:
            self._tokens.give_back(tokens, now_s)
