"""A circuit breaker per judge model: a dead or refused provider is left alone instead of being asked per
session.

A quota, key or model that is refused will be refused again for long, so it opens at once; an unavailable
provider opens it after a few failures in a row, shortly. Then one probe decides.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["Breaker"]

logger = logging.getLogger(__name__)

_LASTING = frozenset({"quota", "auth", "not_found"})
_PASSING = frozenset({"unavailable", "timeout", "server_error", "rate_limited", "refused"})
_FAILURES_IN_A_ROW = 5
_LONG_S = 300.0
_SHORT_S = 15.0
_LONGEST_S = 3600.0


class Breaker:
    """Used from one event loop only, so it needs no lock."""

    def __init__(self, model: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._clock = clock
        self._failures = 0
        self._opened = 0
        """How often it opened without a success in between: each time doubles the pause."""
        self._open_until: float | None = None
        self._probing = False
        self.reason: str | None = None
        """`error.type` that opened it; None while closed."""

    def allows(self) -> bool:
        """Whether a call may be made now. After the pause exactly one probe may, until its outcome is known."""
        if self._open_until is None:
            return True
        if self._clock() < self._open_until or self._probing:
            return False
        self._probing = True
        return True

    def succeeded(self) -> None:
        """A call was answered."""
        if self._open_until is not None:
            logger.info("judge %s answers again", self._model)
        self._failures = self._opened = 0
        self._open_until, self.reason, self._probing = None, None, False

    def failed(self, error_type: str) -> None:
        """A call failed. Errors that say nothing about the provider (a bad request) only end a probe."""
        was_probe, self._probing = self._probing, False
        if error_type in _LASTING:
            self._open(error_type, _LONG_S)
        elif error_type in _PASSING:
            self._failures += 1
            if was_probe or self._failures >= _FAILURES_IN_A_ROW:
                self._open(error_type, _SHORT_S)
        elif was_probe:
            self.succeeded()

    def abandoned(self) -> None:
        """A permitted call was never made or was cancelled: the next caller may probe."""
        self._probing = False

    def _open(self, error_type: str, pause_s: float) -> None:
        now = self._clock()
        if self._open_until is not None and now < self._open_until:
            return  # calls that were under way when it opened
        pause_s = min(_LONGEST_S, pause_s * 2**self._opened)
        if self.reason != error_type:  # one line per cause, however often the probe fails
            logger.warning(
                "judge %s: %s; sessions count as unscorable until it answers again (next try in %.0f s)",
                self._model,
                error_type,
                pause_s,
            )
        self._opened = min(self._opened + 1, 16)
        self._open_until, self.reason = now + pause_s, error_type
