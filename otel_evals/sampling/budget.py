"""Keeps judging within a budget: thins rates smoothly before it runs out, and stops hard when it has.

Thinning lowers the probability of each session by a factor that is known when the session is decided, so rates stay
unbiased. The hard stop is for what thinning could not foresee; sessions refused by it are counted `over_budget`.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable

from otel_evals.sampling.account import Account, Cost, Limits, Standing
from otel_evals.sampling.bucket import TokenBucket
from otel_evals.sampling.thinning import Demand, thin
from otel_evals.settings import Settings, SettingsError

__all__ = ["Budget", "budget_of", "require_price"]

logger = logging.getLogger(__name__)

REFRESH_S = 1.0
"""How often factors are computed anew."""
HEADROOM = 0.95
"""Part of the sustainable pace that thinning aims at, so that the hard stop stays the exception."""
MARGIN = 1.25
"""Reserved for a judgement: so much more than the dearest one so far, up to the bound."""
JUDGE_CALLS = 2
"""Answers asked of a judge for one session at most: the first and one repair."""
INSTRUCTION_TOKENS = 4_000
"""Rubrics and answer format, roughly and generously."""
LEARNING = 0.05
"""Weight of the newest judgement in the mean cost."""


class Budget:
    """One budget: factors for the sampler, and places for the sessions it picked."""

    def __init__(
        self,
        limits: Limits,
        bound: Cost,
        path: str | None = None,
        lease_s: float = 600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A budget of this process, or with a path one shared by all processes of the host that name that file.

        Args:
            limits: the budget.
            bound: the most that one judgement can take (transcript, instructions and answer, twice).
            path: SQLite file on a local disk.
            lease_s: seconds after which a judgement that never ended counts as lost; more than its deadline.
            clock: epoch seconds.

        Raises:
            SettingsError: the file cannot be opened.
        """
        self._limits = limits
        self._bound = bound
        self._clock = clock
        try:
            self._account = Account(limits, path or ":memory:", lease_s, clock)
        except sqlite3.Error as error:
            raise SettingsError(
                f"budget file {path}: {error}; give a path in a directory that can be written"
            ) from None
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._demand = Demand(started=clock())
        self._priority: dict[str, int] = {}
        self._factors: dict[str, float] = {}
        self._refreshed = float("-inf")
        self._mean = bound
        self._dearest = Cost()
        self._complained = float("-inf")

    def factor(self, rule: str, priority: int, expected: float) -> float:
        """What to multiply the rates of this session's stratum with, 0 to 1.

        Args:
            rule: the stratum.
            priority: strata with lower priority are thinned first.
            expected: the highest rate of the stratum, that is the probability to judge the session at all.
        """
        now = self._clock()
        with self._lock():
            self._priority[rule] = priority
            self._demand.add(rule, expected, now)
            if now - self._refreshed >= REFRESH_S or now < self._refreshed or rule not in self._factors:
                self._refresh(now)
            return self._factors[rule]

    def admit(self, key: str) -> bool:
        """A place for a session that was picked; to be settled or released under the same key."""
        try:
            return self._account.reserve(key, self._need())
        except sqlite3.Error as error:
            self._complain(error)
            return False

    def settle(self, key: str, tokens: float, usd: float | None) -> None:
        """The session was judged, or judging failed, at this price; an unknown one counts as nothing."""
        cost = Cost(tokens, usd or 0.0)
        with self._lock():
            self._mean = Cost(*(old + LEARNING * (new - old) for old, new in zip(self._mean, cost, strict=True)))
            if self._dearest == Cost():
                self._mean = cost
            self._dearest = Cost(*map(max, self._dearest, cost))
        try:
            self._account.settle(key, cost)
        except sqlite3.Error as error:
            self._complain(error)

    def release(self, key: str) -> None:
        """The session will not be judged after all."""
        try:
            self._account.release(key)
        except sqlite3.Error as error:
            self._complain(error)

    def factors(self) -> dict[str, float]:
        """The present factor of each stratum seen so far."""
        with self._lock():
            return dict(self._factors)

    def close(self) -> None:
        """Free what is still reserved."""
        try:
            self._account.close()
        except sqlite3.Error as error:
            self._complain(error)

    def _lock(self) -> threading.Lock:
        if os.getpid() != self._pid:
            # A forked child may have inherited the lock as taken, by a thread that does not exist in it.
            self._pid, self._mutex = os.getpid(), threading.Lock()
        return self._mutex

    def _refresh(self, now: float) -> None:
        try:
            pace = self._pace(self._account.standing(), now)
        except sqlite3.Error as error:
            self._complain(error)
            pace = 0.0
        self._factors = thin(self._demand.rates(now), self._priority, HEADROOM * pace)
        self._refreshed = now

    def _pace(self, standing: Standing, now: float) -> float:
        """Evaluations per second that this process can keep up until the windows end."""
        paces = [float("inf")]
        if (per_minute := self._limits.evaluations_per_minute) is not None:
            paces.append(TokenBucket.per_minute(per_minute).rate)
        for (resource, window), left in standing.left.items():
            price = self._mean.tokens if resource == "tokens" else self._mean.usd
            if price > 0:
                remaining_s = max(1.0, window - now % window)
                paces.append(max(0.0, left) / price / remaining_s)
        return min(paces) / max(1, standing.processes)

    def _need(self) -> Cost:
        with self._lock():
            if self._dearest == Cost():
                return self._bound
            dearest = self._dearest
        return Cost(*(min(most, MARGIN * seen) for most, seen in zip(self._bound, dearest, strict=True)))

    def _complain(self, error: sqlite3.Error) -> None:
        now = self._clock()
        if now - self._complained >= 60.0:
            self._complained = now
            logger.warning("otel-evals: budget cannot be read or written, judging stops meanwhile (%s)", error)


def budget_of(
    settings: Settings,
    input_price: float | None = None,
    output_price: float | None = None,
    clock: Callable[[], float] = time.time,
) -> Budget | None:
    """The budget that the settings ask for, or None when they set no limit.

    Args:
        settings: limits, file, and what one judgement can take.
        input_price: USD per million tokens of the judge model, where known; 0 for a free one. None: unknown.
        output_price: the same for what it writes.
        clock: epoch seconds.

    Raises:
        SettingsError: a limit in USD and an unknown price, or a file that cannot be opened.
    """
    limits = Limits(*(getattr(settings, f"budget_{name}") for name in Limits._fields))
    if not limits.any:
        return None
    require_price(limits, settings.model, input_price is not None and output_price is not None)
    read = JUDGE_CALLS * (settings.transcript_tokens + INSTRUCTION_TOKENS)
    written = JUDGE_CALLS * settings.judge_max_tokens
    usd = (read * (input_price or 0.0) + written * (output_price or 0.0)) / 1e6
    lease_s = settings.judge_deadline + 60.0
    return Budget(limits, Cost(read + written, usd), settings.budget_file, lease_s, clock)


def require_price(limits: Limits, model: str, price_known: bool) -> None:
    """Refuse to start with a limit in USD for a judge whose price nobody knows.

    Raises:
        SettingsError: with the remedies.
    """
    if limits.money and not price_known:
        raise SettingsError(
            f"a budget in USD is set, but the price of judge model {model!r} is unknown: set input_price and"
            " output_price (USD per million tokens), or limit tokens_per_hour or tokens_per_day instead"
        )
