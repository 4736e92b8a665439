"""A judge model that answers by script, without a network: for everything above the HTTP layer."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from otel_evals.evaluation import JudgeTask
from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.models.protocol import ChatReply, ChatRequest, ModelError
from otel_evals.judging.plan import Judge
from otel_evals.sessions.model import Session
from otel_evals.settings import EVALUATOR_NAMES, Settings
from tests.evaluators.conversations import failed_call, session, turn, worked_call

__all__ = [
    "FAILED",
    "PLAIN",
    "FakeClock",
    "ScriptedModel",
    "answers",
    "canary_of",
    "judge_with",
    "reply",
    "task",
]

Step: TypeAlias = "ChatReply | ModelError | Callable[[ChatRequest], Any]"

_CANARY = re.compile(r'"canary" (?:with the value|is) "(\w+)"')

PLAIN = session(turn("Find me a flight.", "UA 1234 at 08:05.", worked_call()), turn("Thanks!", "You're welcome."))
"""No tool failed: failure communication needs no judge."""

FAILED = session(
    turn("Find me a flight.", "Sorry, the search timed out. I can look at trains instead.", failed_call()),
    turn("That does not help.", "I understand."),
)
"""A tool failed: all three evaluators need a judge."""


def canary_of(request: ChatRequest) -> str:
    """The canary that the request asks for last."""
    return _CANARY.findall("\n".join(m["content"] for m in request.messages))[-1]


_ANSWERS: dict[str, dict[str, Any]] = {
    "failure_rate": {
        "turns": [{"turn": 0, "quote": "the search timed out", "label": "alternative_proposed"}],
        "reasoning": "It said so.",
        "label": "alternative_proposed",
        "confidence": 0.9,
    },
    "goal_achievement": {
        "goal": "A flight",
        "positive_signals": [],
        "negative_signals": [{"turn": 1, "quote": "That does not help."}],
        "unmet_requests": ["a flight"],
        "reasoning": "No flight was found.",
        "label": "minor",
        "confidence": 0.8,
    },
    "failure_communication": {
        "failures": [
            {
                "failure": 1,
                "turn": 0,
                "quote": "the search timed out",
                "told": "explained",
                "cause": True,
                "next_step": "specific",
                "flaw": "none",
            }
        ],
        "reasoning": "It said what failed and why.",
        "label": "Excellent",
        "confidence": 0.9,
    },
}
"""A right answer to FAILED."""


def answers(names: Iterable[str] = EVALUATOR_NAMES, **overrides: dict[str, Any]) -> dict[str, Any]:
    """A right answer to FAILED for these evaluators; overrides replace single fields."""
    return {name: {**_ANSWERS[name], **overrides.get(name, {})} for name in names}


def reply(value: Any = None, **fields: Any) -> Callable[[ChatRequest], ChatReply]:
    """A step that answers with a right answer, or with this object, with the canary it was asked for."""

    def step(request: ChatRequest) -> ChatReply:
        body = {"canary": canary_of(request), **(answers(request.evaluators) if value is None else value)}
        return ChatReply(
            **{"text": json.dumps(body), "finish_reason": "stop", "input_tokens": 100, "output_tokens": 20, **fields}
        )

    return step


class ScriptedModel:
    """Plays its steps in order, the last one for ever. A step is a reply, an error, or a function of the request."""

    name = "scripted"

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps) or [reply()]
        self.requests: list[ChatRequest] = []
        self.closed = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if callable(step) and not isinstance(step, ModelError):
            step = step(request)
        if hasattr(step, "__await__"):
            step = await step
        if isinstance(step, BaseException):
            raise step
        return step

    async def close(self) -> None:
        self.closed = True


class FakeClock:
    """Seconds that pass only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def judge_with(model: Any, clock: FakeClock | None = None, **settings: Any) -> Judge:
    """A judge of the three evaluators that waits on a fake clock."""
    clock = clock or FakeClock()
    chosen = Settings(**{"model": "rules", "judge_timeout": 5.0, **settings})
    evaluators = create_evaluators(EVALUATOR_NAMES)
    return Judge(model, evaluators, chosen, clock=clock, sleep=clock.sleep, rng=random.Random(1))


def task(judged: Session = FAILED, *names: str, **fields: Any) -> JudgeTask:
    return JudgeTask(session=judged, probabilities=dict.fromkeys(names or EVALUATOR_NAMES, 0.25), **fields)
