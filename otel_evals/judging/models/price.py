"""What a call costs: the configured price, else the provider's figure, else unknown (never 0 for unknown)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from otel_evals.judging.models.protocol import ChatReply

__all__ = ["Price"]


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; None: not configured."""

    input: float | None = None
    output: float | None = None

    def applied_to(self, reply: ChatReply) -> ChatReply:
        """The reply with its cost in USD; without a price or without usage its own figure stays."""
        if self.input is None or self.output is None or not (reply.input_tokens or reply.output_tokens):
            return reply
        cost = (reply.input_tokens * self.input + reply.output_tokens * self.output) / 1e6
        return dataclasses.replace(reply, cost_usd=cost)
