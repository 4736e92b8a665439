"""How much judging one session may take: a call that would take more is not made, others get no more room than is left.

Tokens of prompts are estimated, so the limit is kept to the precision of the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from otel_evals.judging.models.price import Price

__all__ = ["SessionLimit"]

_LEAST_OUTPUT = 64
"""Tokens; no answer fits into less."""


class Account(Protocol):
    """What is read of what a session has taken so far."""

    @property
    def tokens(self) -> int:
        """To and from all models, with what calls under way may still take."""
        ...

    @property
    def answers(self) -> int: ...

    @property
    def cost_usd(self) -> float | None:
        """None: unknown."""
        ...

    @property
    def usd_per_token(self) -> float | None:
        """What a token has cost so far, on the average; None: unknown."""
        ...


@dataclass(frozen=True, slots=True)
class SessionLimit:
    """Limits of one session over all its calls, models and repairs."""

    tokens: int | None = None
    """To and from all models; None: no limit."""
    usd: float | None = None
    """None: no limit. Where no price is known, a session gets one answer and no second."""
    price: Price = field(default_factory=Price)
    """USD per million tokens, as far as configured."""

    def room(self, spent: Account, input_tokens: int, max_tokens: int) -> int:
        """Output tokens that one more call may use, at most `max_tokens`; 0: the call would take too much."""
        room = max_tokens
        if self.tokens is not None:
            room = min(room, self.tokens - spent.tokens - input_tokens)
        if self.usd is not None:
            room = min(room, self._affordable(self.usd, spent, input_tokens, max_tokens))
        return room if room >= min(_LEAST_OUTPUT, max_tokens) else 0

    def _affordable(self, usd: float, spent: Account, input_tokens: int, max_tokens: int) -> int:
        """Output tokens that are left for the money."""
        into, out = self.price.input, self.price.output
        if into is None or out is None:
            rate = spent.usd_per_token
            into = out = None if rate is None else rate * 1e6
        if into is None or out is None or spent.cost_usd is None:
            return 0 if spent.answers else max_tokens
        left = usd - spent.cost_usd - input_tokens * into / 1e6
        if left < 0:
            return 0
        return max_tokens if out == 0 else int(left / out * 1e6)
