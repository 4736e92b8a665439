"""Makes tools fail on purpose: by seeded probability, or by a script for each tool.

Four faults replace the call (timeout, network, execution, validation error) and three spoil its result
(truncated, missing, corrupted fields). The same seed, conversation and tool always meet the same fault,
whatever runs beside.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

__all__ = ["ERRORS", "FAULTS", "SPOILERS", "Fault", "FaultInjector"]

Fault: TypeAlias = Literal[
    "timeout", "network_error", "execution_error", "validation_error", "truncated", "missing", "corrupted"
]
Result: TypeAlias = dict[str, Any]


def _timeout(tool: str) -> Exception:
    return TimeoutError(f"{tool} timed out after 30 s")


def _network_error(tool: str) -> Exception:
    return ConnectionError(f"{tool}: connection reset by peer")


def _execution_error(tool: str) -> Exception:
    return RuntimeError(f"{tool}: backend answered 503 Service Unavailable")


def _validation_error(tool: str) -> Exception:
    return ValueError(f"{tool}: the request was refused, a field has the wrong format")


def _truncated(value: Any, rng: random.Random) -> Any:
    """Text and lists lose their second half."""
    return value[: len(value) // 2] if isinstance(value, (str, list)) else value


def _corrupted(value: Any, rng: random.Random) -> Any:
    """Numbers become impossible, text becomes mojibake."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return -value * rng.randint(90, 990)
    if isinstance(value, str):
        return value.encode().hex()[: max(4, len(value))]
    if isinstance(value, list):
        return [_corrupted(item, rng) for item in value]
    if isinstance(value, dict):
        return {key: _corrupted(item, rng) for key, item in value.items()}
    return value


def _drop_fields(result: Result, rng: random.Random) -> Result:
    """Half of the fields are null, at least one."""
    lost = set(rng.sample(sorted(result), k=max(1, len(result) // 2)))
    return {key: None if key in lost else value for key, value in result.items()}


ERRORS: Mapping[Fault, Callable[[str], Exception]] = {
    "timeout": _timeout,
    "network_error": _network_error,
    "execution_error": _execution_error,
    "validation_error": _validation_error,
}
SPOILERS: Mapping[Fault, Callable[[Result, random.Random], Result]] = {
    "truncated": lambda result, rng: {key: _truncated(value, rng) for key, value in result.items()},
    "missing": _drop_fields,
    "corrupted": lambda result, rng: {key: _corrupted(value, rng) for key, value in result.items()},
}
FAULTS: tuple[Fault, ...] = (*ERRORS, *SPOILERS)


class FaultInjector:
    """Stands between the agent and its tools.

    Args:
        probability: share of tool calls that meet a fault, 0 to 1.
        seed: the same seed gives the same faults.
        script: for each tool the fault of its first, second, … call in a conversation (`None`: no fault).
            Calls beyond the script succeed; tools without a script follow `probability`.
        kinds: the faults to draw from.

    Raises:
        ValueError: for a probability outside 0 to 1 or a fault that does not exist.
    """

    def __init__(
        self,
        probability: float = 0.0,
        seed: int = 0,
        script: Mapping[str, Sequence[Fault | None]] | None = None,
        kinds: Sequence[Fault] = FAULTS,
    ) -> None:
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability={probability!r}: give a number from 0 (no faults) to 1 (only faults)")
        scripted = [fault for faults in (script or {}).values() for fault in faults if fault]
        if unknown := sorted({*kinds, *scripted} - set(FAULTS)):
            raise ValueError(f"unknown fault {unknown[0]!r}: choose from {', '.join(FAULTS)}")
        self._probability = probability
        self._seed = seed
        self._script = dict(script or {})
        self._kinds = tuple(kinds)
        self._calls: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.injected: list[tuple[str, str, Fault]] = []
        """(conversation, tool, fault), in the order of the calls."""

    async def call(
        self, conversation: str, tool: str, function: Callable[..., Awaitable[Result]], **arguments: Any
    ) -> Result:
        """The result of the tool, spoiled or not.

        Raises:
            TimeoutError, ConnectionError, RuntimeError, ValueError: the injected error, or the tool's own.
        """
        turn = self._calls[conversation, tool]
        self._calls[conversation, tool] += 1
        rng = random.Random(f"{self._seed}/{conversation}/{tool}/{turn}")
        fault = self._pick(tool, turn, rng)
        if fault:
            self.injected.append((conversation, tool, fault))
        if fault is not None and fault in ERRORS:
            raise ERRORS[fault](tool)
        result = await function(**arguments)
        return SPOILERS[fault](result, rng) if fault else result

    def _pick(self, tool: str, turn: int, rng: random.Random) -> Fault | None:
        if tool in self._script:
            faults = self._script[tool]
            return faults[turn] if turn < len(faults) else None
        return rng.choice(self._kinds) if rng.random() < self._probability else None
