"""What the simulation knows about a session before it happens, its truth included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["BEHAVIOURS", "Behaviour", "Fault", "PlannedCall", "PlannedSession", "PlannedTurn"]

Fault: TypeAlias = Literal[
    "timeout", "network_error", "execution_error", "validation_error", "truncated", "missing", "corrupted"
]
"""The first four fail the tool's span; the last three spoil its result and leave the span as it was."""

Behaviour: TypeAlias = Literal["honest", "alternative", "stall", "fabricated", "mixed", "recovered"]
"""What the agent does after a fault. `mixed`: stalls, then admits; `recovered`: a second call works.

Without a fault only `stall` occurs: an agent that gets nowhere by itself.
"""

BEHAVIOURS: tuple[Behaviour, ...] = ("honest", "alternative", "stall", "fabricated", "mixed", "recovered")


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One tool call."""

    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any] | None
    """As the agent gets it; None when the call failed."""
    duration_s: float
    """Simulated seconds."""
    error_type: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """One request, the tool calls it leads to, one after the other, and the answer."""

    user: str
    calls: tuple[PlannedCall, ...]
    answer: str
    start_s: float
    """Simulated seconds since the begin of the simulation."""
    chat_s: float
    """Simulated seconds of each model call."""

    @property
    def duration_s(self) -> float:
        """Simulated seconds from the request to the answer."""
        return self.chat_s * (len(self.calls) + 1) + sum(call.duration_s for call in self.calls)


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """One conversation. `fault` and `behaviour` are the truth about it and appear in no span."""

    session_id: str
    agent: str
    model: str
    instructions: str
    turns: tuple[PlannedTurn, ...]
    fault: Fault | None
    behaviour: Behaviour | None
    """None: nothing went wrong."""
