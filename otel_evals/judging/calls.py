"""One answer from one judge model: attempts, waiting, time limits and the breaker, in one place.

Models make single attempts; nothing else in the package retries. Every wait and every call ends by the
session's deadline, also if a model never returns or ignores being cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from otel_evals.judging.breaker import Breaker
from otel_evals.judging.complaints import Complaints
from otel_evals.judging.limits import CallLimiter
from otel_evals.judging.models.protocol import ChatReply, ChatRequest, JudgeModel, ModelError
from otel_evals.judging.session_limit import SessionLimit
from otel_evals.judging.transcript import estimate_tokens

__all__ = ["Caller", "Postponed", "Spent"]

logger = logging.getLogger(__name__)

_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_UNLIMITED = 1_000_000
_SHORT_WAIT_S = 2.0
"""A longer pause that a provider asks for is not spent in the judge's place, where one can do without."""


class Postponed(Exception):
    """The provider wants a pause; the session waits for it in the queue. Nothing has been answered yet."""

    def __init__(self, wait_s: float, *, calls: int, errors: tuple[str, ...]) -> None:
        super().__init__(f"postponed for {wait_s:.1f} s")
        self.wait_s = wait_s
        self.calls = calls
        """Made so far."""
        self.errors = errors
        """`error.type` of each of them."""


@dataclass
class Spent:
    """What judging one session has taken so far."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = 0.0
    """None as soon as one reply's price is unknown."""
    errors: list[str] = field(default_factory=list)
    answers: int = 0
    postponable: bool = False
    """As long as nothing is answered, a long pause may be spent in the queue."""
    earlier_attempts: int = 0
    """Made before a postponement, at the question that is asked next."""
    in_flight: int = 0
    """Tokens that calls under way may take."""
    estimated: int = 0
    """Tokens of answers whose provider reports none."""

    @property
    def tokens(self) -> int:
        """To and from all models, with what calls under way may still take."""
        return self.input_tokens + self.output_tokens + self.estimated + self.in_flight

    @property
    def usd_per_token(self) -> float | None:
        """On the average so far; None: unknown."""
        known = self.input_tokens + self.output_tokens
        return self.cost_usd / known if known and self.cost_usd is not None else None

    @contextmanager
    def taking(self, tokens: int) -> Iterator[None]:
        """Within the block a call is under way that may take so many tokens."""
        self.in_flight += tokens
        try:
            yield
        finally:
            self.in_flight -= tokens

    def add(self, reply: ChatReply) -> None:
        self.answers += 1
        self.calls += reply.calls
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens
        self.cached_tokens += reply.cached_tokens
        known = self.cost_usd is not None and reply.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (reply.cost_usd or 0.0) if known else None


class Caller:
    """Asks one model. Used from one event loop."""

    def __init__(
        self,
        model: JudgeModel,
        *,
        attempts: int,
        timeout_s: float,
        limiter: CallLimiter | None = None,
        session_limit: SessionLimit | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self.model = model
        self.breaker = Breaker(model.name, clock)
        self._complaints = Complaints(logger)
        self._attempts = attempts
        self._timeout_s = timeout_s
        self._session_limit = session_limit or SessionLimit()
        self._limiter = limiter or CallLimiter(_UNLIMITED, clock=clock, sleep=sleep)
        self._clock = clock
        self._sleep = sleep
        self._rng = rng or random.Random()

    async def ask(self, request: ChatRequest, deadline: float, spent: Spent) -> ChatReply:
        """One answer, by `deadline` (the clock's seconds).

        Raises:
            ModelError: the last attempt's error, `expired` when the deadline has passed, `breaker_open`, or
                `session_limit` when the call would exceed what a session may take.
            Postponed: where `spent` allows it, instead of waiting long for the provider.
        """
        prompt = sum(estimate_tokens(message["content"]) for message in request.messages)
        room = self._session_limit.room(spent, prompt, request.max_tokens)
        if not room:
            spent.errors.append("session_limit")
            raise ModelError("session_limit", retryable=False, calls=0)
        with spent.taking(prompt + room):
            reply = await self._tried(replace(request, max_tokens=room), prompt, deadline, spent)
        if not reply.input_tokens + reply.output_tokens:
            spent.estimated += prompt + estimate_tokens(reply.text)
        return reply

    async def _tried(self, request: ChatRequest, prompt: int, deadline: float, spent: Spent) -> ChatReply:
        cause: ModelError | None = None
        before, spent.earlier_attempts = min(spent.earlier_attempts, self._attempts - 1), 0
        for attempt in range(1 + before, self._attempts + 1):
            try:
                return await self._attempt(request, prompt, deadline, spent)
            except ModelError as error:
                if error.error_type == "breaker_open" and cause is not None:
                    raise cause from None  # it opened on what befell this very request: that is the reason
                cause = error
                spent.calls += error.calls
                spent.errors.append(error.error_type)
                wait = self._wait_s(attempt, error)
                last = attempt == self._attempts or not error.retryable
                if last or self._clock() + wait >= deadline:
                    raise
            self._postpone(wait, deadline, spent)
            await self._sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _attempt(self, request: ChatRequest, prompt: int, deadline: float, spent: Spent) -> ChatReply:
        left = deadline - self._clock()
        if left <= 0:
            raise ModelError("expired", retryable=False, calls=0)
        self._postpone(self._limiter.held_s, deadline, spent)
        limited = self._limited(request, prompt, deadline)
        # The call itself ends by the deadline; the wait for leave needs watching only where there is one.
        reply = await (limited if self._limiter.at_once else _within(limited, left, "expired"))
        spent.add(reply)
        return reply

    def _postpone(self, wait_s: float, deadline: float, spent: Spent) -> None:
        """Give up the place for a long wait that ends in time."""
        if spent.postponable and not spent.answers and wait_s > _SHORT_WAIT_S and self._clock() + wait_s < deadline:
            raise Postponed(wait_s, calls=spent.calls, errors=tuple(spent.errors))

    async def _limited(self, request: ChatRequest, estimate: int, deadline: float) -> ChatReply:
        """One call, when the limits allow it and unless the breaker forbids it by then."""
        async with self._limiter.call(estimate) as permit:
            limit = min(self._timeout_s, deadline - self._clock())
            if limit <= 0:
                raise ModelError("expired", retryable=False, calls=0)
            if not self.breaker.allows():
                raise ModelError("breaker_open", retryable=False, calls=0)
            reply = await self._counted(replace(request, timeout_s=limit), limit)
            permit.tokens = reply.input_tokens + reply.output_tokens or estimate
            return reply

    async def _counted(self, request: ChatRequest, limit: float) -> ChatReply:
        """One call whose outcome the breaker learns of."""
        try:
            reply = await _within(self._complete(request), limit, "timeout")
        except ModelError as error:
            self.breaker.failed(error.error_type)
            if error.retry_after_s:
                self._limiter.hold(error.retry_after_s)
            raise
        except BaseException:  # cancelled: the outcome of a probe stays open
            self.breaker.abandoned()
            raise
        self.breaker.succeeded()
        return reply

    async def _complete(self, request: ChatRequest) -> ChatReply:
        try:
            return await self.model.complete(request)
        except ModelError:
            raise
        except Exception as error:  # models may be anybody's code; their message may hold keys or prompts
            self._complaints.warn("judge %s raised %s", self.model.name, type(error).__name__)
            raise ModelError("unexpected", retryable=False) from None

    def _wait_s(self, attempt: int, error: ModelError) -> float:
        """Full jitter over a doubling range, never earlier than the provider asked for."""
        ceiling = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (attempt - 1))
        return max(self._rng.uniform(0.0, ceiling), error.retry_after_s or 0.0)


async def _within(work: Awaitable[ChatReply], limit_s: float, error_type: str) -> ChatReply:
    """Like `asyncio.wait_for`, but does not wait for work that ignores its cancellation.

    Raises:
        ModelError: `error_type`, when the time is over.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task.cancelled():  # by the client library, not by us
        raise ModelError("unexpected", retryable=False)
    if task.done():
        return task.result()
    task.add_done_callback(_collect)
    task.cancel()
    raise ModelError(error_type, retryable=error_type == "timeout")


def _collect(task: asyncio.Future[ChatReply]) -> None:
    """Takes the late outcome of abandoned work, so that the loop does not report it as never retrieved."""
    if not task.cancelled():
        task.exception()
