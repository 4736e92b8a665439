"""The token bucket: how many evaluations may start now, given how many started before."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TokenBucket"]

BURST_SHARE = 0.1
"""Part of a minute's evaluations that may start at once."""


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A bucket that fills evenly up to its capacity; starting something takes one token out.

    It holds no state: the level and its time live with whoever shares the bucket.
    """

    rate: float
    """Tokens per second."""
    capacity: float
    """Tokens that can be saved up: the largest burst, at least 1."""

    @classmethod
    def per_minute(cls, limit: float) -> TokenBucket:
        """At most `limit` + 1 tokens in any 60 seconds, wherever they begin.

        In 60 s a bucket gives out what it had saved and what came in, so burst and inflow have to share the limit.
        Full use of the limit is 1 − `BURST_SHARE` for large limits.
        """
        capacity = max(1.0, limit * BURST_SHARE)
        return cls(rate=(limit - capacity + 1.0) / 60.0 if limit > 1 else limit / 60.0, capacity=capacity)

    def level(self, level: float, elapsed_s: float) -> float:
        """The level after some time; a clock that was set back fills nothing."""
        return min(self.capacity, level + max(0.0, elapsed_s) * self.rate)
