"""How the questions are put: all at once, one by one, to a cheap model first, or to a jury.

Every plan ends in the same pure score functions; a plan only decides which model answers which questions in
which calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from otel_evals.evaluation import Evaluation
from otel_evals.evaluators.protocol import Evaluator
from otel_evals.judging.asking import Asked, Asker
from otel_evals.judging.calls import Spent
from otel_evals.judging.jury import verdict
from otel_evals.sessions.model import Session

__all__ = ["Escalate", "Jury", "Plan", "Separate", "Single", "doubts"]

Evaluators = Mapping[str, Evaluator]


class Plan(Protocol):
    """One way to have questions answered."""

    @property
    def name(self) -> str:
        """As in `otel_evals.judge.plan`."""
        ...

    @property
    def askers(self) -> Sequence[Asker]:
        """One per model."""
        ...

    @property
    def model(self) -> str:
        """As in `otel_evals.judge.model`."""
        ...

    @property
    def sequential(self) -> bool:
        """One call after the other: a session that waits before its first answer loses nothing."""
        ...

    async def ask(self, evaluators: Evaluators, session: Session, spent: Spent, deadline: float) -> Asked:
        """Evaluations of a redacted session by `deadline` (the clock's seconds)."""
        ...


class Single:
    """One call answers all questions."""

    name = "single"
    sequential = True

    def __init__(self, asker: Asker) -> None:
        self.askers = (asker,)
        self.model = asker.caller.model.name

    async def ask(self, evaluators: Evaluators, session: Session, spent: Spent, deadline: float) -> Asked:
        return await self.askers[0].ask(evaluators, session, spent, deadline)


class Separate:
    """One call per question, at the same time. Dearer; for models that lose their way in a combined question."""

    name = "separate"
    sequential = False

    def __init__(self, asker: Asker) -> None:
        self.askers = (asker,)
        self.model = asker.caller.model.name

    async def ask(self, evaluators: Evaluators, session: Session, spent: Spent, deadline: float) -> Asked:
        (asker,) = self.askers
        parts = await asyncio.gather(
            *(asker.ask({name: evaluator}, session, spent, deadline) for name, evaluator in evaluators.items())
        )
        return _joined(parts)


class Escalate:
    """The cheap model answers all; what is bad or doubtful goes to the stronger one."""

    name = "escalate"
    sequential = True

    def __init__(self, cheap: Asker, strong: Asker, below: float) -> None:
        """A plan over two models.

        Args:
            cheap: Asked first.
            strong: Asked what the first one's answer leaves in doubt.
            below: Confidence, 0 to 1, under which an answer is in doubt.
        """
        self.askers = (cheap, strong)
        self.model = f"{cheap.caller.model.name}+{strong.caller.model.name}"
        self._below = below

    async def ask(self, evaluators: Evaluators, session: Session, spent: Spent, deadline: float) -> Asked:
        cheap, strong = self.askers
        first = await cheap.ask(evaluators, session, spent, deadline)
        why = {name: doubts(first.evaluations[name], self._below) for name in evaluators}
        doubtful = {name: evaluators[name] for name in evaluators if why[name]}
        if not doubtful:
            return first
        second = await strong.ask(doubtful, session, spent, deadline)
        decided = dict(first.evaluations)
        for name, evaluation in second.evaluations.items():
            before = first.evaluations[name]
            if evaluation.outcome == "unscorable" and before.outcome != "unscorable":
                decided[name] = _noted(before, escalation_error=evaluation.error_type)
            else:
                decided[name] = _noted(evaluation, escalated_for=list(why[name]), first_label=before.label)
        return Asked(decided, first.truncated or second.truncated)


class Jury:
    """Several models answer independently; the majority decides."""

    name = "jury"
    sequential = False

    def __init__(self, askers: Sequence[Asker]) -> None:
        self.askers = tuple(askers)
        self.model = "jury(" + ",".join(asker.caller.model.name for asker in askers) + ")"

    async def ask(self, evaluators: Evaluators, session: Session, spent: Spent, deadline: float) -> Asked:
        heard = await asyncio.gather(*(asker.ask(evaluators, session, spent, deadline) for asker in self.askers))
        names = [asker.caller.model.name for asker in self.askers]
        decided = {
            name: verdict([(juror, asked.evaluations[name]) for juror, asked in zip(names, heard, strict=True)])
            for name in evaluators
        }
        return Asked(decided, any(asked.truncated for asked in heard))


def doubts(evaluation: Evaluation, below: float) -> tuple[str, ...]:
    """Why an evaluation should be looked at by a stronger model; empty if it need not be."""
    if evaluation.outcome == "unscorable":
        return () if evaluation.error_type == "expired" else ("unscorable",)
    found = []
    if evaluation.applicable and evaluation.passed is False:
        found.append("failed")
    if evaluation.details.get("confidence", 1.0) < below:
        found.append("low_confidence")
    if evaluation.details.get("stated_label", evaluation.label) != evaluation.label:
        found.append("label_conflict")
    if evaluation.evidence_verified is False:
        found.append("unverified_evidence")
    return tuple(found)


def _noted(evaluation: Evaluation, **details: object) -> Evaluation:
    return evaluation.model_copy(update={"details": {**evaluation.details, **details}})


def _joined(parts: Sequence[Asked]) -> Asked:
    evaluations = {name: found for part in parts for name, found in part.evaluations.items()}
    return Asked(evaluations, any(part.truncated for part in parts))
