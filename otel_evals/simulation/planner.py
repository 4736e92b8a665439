"""Decides a simulation in advance: who asks what and when, which tool fails and what the agent does then."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from otel_evals.simulation import texts
from otel_evals.simulation.model import (
    Behaviour,
    Fault,
    PlannedCall,
    PlannedSession,
    PlannedTurn,
)
from otel_evals.simulation.texts import AgentTexts, Task

__all__ = ["ARRIVAL_GAP_S", "plan_sessions"]

ARRIVAL_GAP_S = 5.0
"""Mean simulated seconds between the begins of two sessions."""
FAULT_SHARE = 0.3
"""Share of sessions in which one tool call meets a fault."""
STALL_SHARE = 0.04
"""Share of sessions without a fault in which the agent stalls all the same."""

_FAULTS: dict[Fault, float] = {
    "timeout": 5,
    "network_error": 4,
    "execution_error": 4,
    "validation_error": 3,
    "truncated": 1,
    "missing": 2,
    "corrupted": 1,
}
# What an agent does after a fault depends on its model: the small one invents and stalls more often.
_BEHAVIOURS: dict[str, dict[Behaviour, float]] = {
    "simulated-large": {
        "honest": 32,
        "alternative": 38,
        "stall": 6,
        "fabricated": 6,
        "mixed": 8,
        "recovered": 10,
    },
    "simulated-small": {
        "honest": 24,
        "alternative": 16,
        "stall": 20,
        "fabricated": 24,
        "mixed": 10,
        "recovered": 6,
    },
}
_ERRORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "timeout": ("TimeoutError", ("{tool} timed out after 30 s", "no answer from {tool} within 30 s")),
    "network_error": (
        "ConnectionError",
        ("{tool}: connection reset by peer", "{tool}: name resolution failed", "{tool}: connection refused"),
    ),
    "execution_error": (
        "RuntimeError",
        ("{tool}: upstream answered 503", "{tool}: internal error, reference {number}"),
    ),
    "validation_error": (
        "ValueError",
        ("{tool}: field '{field}' has the wrong format", "{tool}: '{field}' is not an allowed value"),
    ),
}


def plan_sessions(count: int, seed: int) -> list[PlannedSession]:
    """Plan sessions that start one after the other and overlap. The same arguments give the same plan.

    Args:
        count: number of sessions, at least 1.
        seed: any integer.
    """
    arrivals = random.Random(f"arrivals/{seed}")
    start_s = 0.0
    sessions = []
    for number in range(count):
        # Each session draws from its own stream: a larger count leaves the first ones as they were.
        sessions.append(_plan_session(number, seed, start_s, random.Random(f"session/{seed}/{number}")))
        start_s += arrivals.expovariate(1 / ARRIVAL_GAP_S)
    return sessions


def _plan_session(number: int, seed: int, start_s: float, rng: random.Random) -> PlannedSession:
    agent = rng.choice(texts.AGENTS)
    model = rng.choice(tuple(_BEHAVIOURS))
    fault = _draw(_FAULTS, rng) if rng.random() < FAULT_SHARE else None
    behaviour: Behaviour | None = None
    if fault:
        behaviour = _draw(_BEHAVIOURS[model], rng)
    elif rng.random() < STALL_SHARE:
        behaviour = "stall"
    clock = _Clock(start_s, rng)
    return PlannedSession(
        session_id=f"sim-{seed}-{number:05d}-{rng.getrandbits(32):08x}",
        agent=agent.name,
        model=model,
        instructions=agent.instructions,
        turns=tuple(_plan_turns(agent, fault, behaviour, clock, rng)),
        fault=fault,
        behaviour=behaviour,
    )


class _Clock:
    """Hands out turns one after the other, with time to think between them."""

    def __init__(self, start_s: float, rng: random.Random) -> None:
        self._now_s = start_s
        self._rng = rng

    def turn(self, user: str, calls: tuple[PlannedCall, ...], answer: str) -> PlannedTurn:
        turn = PlannedTurn(user, calls, answer, start_s=self._now_s, chat_s=self._rng.uniform(0.6, 3.0))
        self._now_s += turn.duration_s + self._rng.uniform(6, 60)
        return turn


def _plan_turns(
    agent: AgentTexts,
    fault: Fault | None,
    behaviour: Behaviour | None,
    clock: _Clock,
    rng: random.Random,
) -> Iterator[PlannedTurn]:
    tasks = rng.sample(agent.tasks, k=rng.choice((1, 1, 2, 2, 3)))
    hard = rng.randrange(len(tasks)) if behaviour else None
    mood: tuple[str, ...] = texts.THANKS
    for index, task in enumerate(tasks):
        if index != hard:
            yield _good_turn(task, clock, rng)
        elif behaviour:
            turns = _faulty_turns(task, fault, behaviour, clock, rng) if fault else _idle_turns(task, clock, rng)
            yield from turns
            mood = _mood_after(behaviour)
    if rng.random() < 0.75:
        yield _last_turn(mood, clock, rng)


def _good_turn(task: Task, clock: _Clock, rng: random.Random) -> PlannedTurn:
    slots, result = task.slots(rng), task.result(rng)
    return clock.turn(
        _question(task, slots, rng),
        (_good_call(task, slots, result, rng),),
        _report(task, slots, result, rng),
    )


def _faulty_turns(
    task: Task, fault: Fault, behaviour: Behaviour, clock: _Clock, rng: random.Random
) -> Iterator[PlannedTurn]:
    slots, result = task.slots(rng), task.result(rng)
    question = _question(task, slots, rng)
    call = _faulty_call(task, slots, result, fault, rng)
    if behaviour == "recovered":
        again = _good_call(task, slots, result, rng)
        yield clock.turn(question, (call, again), _report(task, slots, result, rng))
    elif behaviour == "fabricated":
        yield clock.turn(question, (call,), _report(task, slots, task.result(rng), rng))
    elif behaviour in ("stall", "mixed"):
        yield clock.turn(question, (call,), rng.choice(texts.STALL))
        insist = rng.choice(texts.INSIST).format(question=question)
        second = rng.choice(texts.STALL) if behaviour == "stall" else _admit(texts.HONEST, task, fault, slots, rng)
        yield clock.turn(insist, (), second)
    else:
        templates = texts.HONEST if behaviour == "honest" else texts.ALTERNATIVE
        yield clock.turn(question, (call,), _admit(templates, task, fault, slots, rng))


def _idle_turns(task: Task, clock: _Clock, rng: random.Random) -> Iterator[PlannedTurn]:
    """The agent never calls the tool and says nothing of use."""
    question = _question(task, task.slots(rng), rng)
    first, second = rng.sample(texts.STALL, k=2)
    yield clock.turn(question, (), first)
    yield clock.turn(rng.choice(texts.INSIST).format(question=question), (), second)


def _last_turn(mood: tuple[str, ...], clock: _Clock, rng: random.Random) -> PlannedTurn:
    pleased = mood in (texts.THANKS, texts.ACCEPTS)
    return clock.turn(rng.choice(mood), (), rng.choice(texts.FAREWELL if pleased else texts.CONDOLENCE))


def _mood_after(behaviour: Behaviour) -> tuple[str, ...]:
    if behaviour in ("recovered", "fabricated"):
        return texts.THANKS  # nobody notices an invention at once
    if behaviour == "alternative":
        return texts.ACCEPTS
    return texts.RESIGNED if behaviour == "honest" else texts.ANNOYED


def _question(task: Task, slots: dict[str, Any], rng: random.Random) -> str:
    return rng.choice(task.questions).format(**slots)


def _report(task: Task, slots: dict[str, Any], result: dict[str, Any], rng: random.Random) -> str:
    return rng.choice(task.answers).format(**slots, **result)


def _admit(templates: tuple[str, ...], task: Task, fault: Fault, slots: dict[str, Any], rng: random.Random) -> str:
    return rng.choice(templates).format(
        topic=task.topic,
        trouble=rng.choice(texts.TROUBLE[fault]),
        alternative=rng.choice(task.alternatives).format(**slots),
    )


def _good_call(task: Task, slots: dict[str, Any], result: dict[str, Any], rng: random.Random) -> PlannedCall:
    return PlannedCall(task.tool, slots, result, duration_s=rng.uniform(0.1, 2.5))


def _faulty_call(
    task: Task, slots: dict[str, Any], result: dict[str, Any], fault: Fault, rng: random.Random
) -> PlannedCall:
    if fault not in _ERRORS:
        return PlannedCall(task.tool, slots, _spoil(result, fault, rng), duration_s=rng.uniform(0.1, 2.5))
    error_type, messages = _ERRORS[fault]
    message = rng.choice(messages).format(
        tool=task.tool, field=rng.choice(sorted(slots)), number=rng.randint(1000, 9999)
    )
    duration_s = 30.0 if fault == "timeout" else rng.uniform(0.05, 4.0)
    return PlannedCall(task.tool, slots, None, duration_s, error_type, message)


def _spoil(result: dict[str, Any], fault: Fault, rng: random.Random) -> dict[str, Any]:
    """The result with some of its fields cut, absent, or impossible."""
    hit = set(rng.sample(sorted(result), k=rng.randint(1, len(result))))
    if fault == "missing":
        return {key: value for key, value in result.items() if key not in hit}
    if fault == "truncated":
        return {key: str(value)[: len(str(value)) // 2] if key in hit else value for key, value in result.items()}
    return {key: str(value).encode().hex() if key in hit else value for key, value in result.items()}


def _draw(weights: dict[Any, float], rng: random.Random) -> Any:
    return rng.choices(tuple(weights), weights=tuple(weights.values()))[0]
