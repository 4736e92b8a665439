"""Partial completion: which share of the goal was reached although something failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.evaluators.outcome import not_applicable, scored
from otel_evals.evaluators.protocol import Answer, Confidence
from otel_evals.sessions.model import Session

__all__ = ["GoalPart", "PartialCompletion", "PartialCompletionAnswer", "label_of", "share"]

Label: TypeAlias = Literal["none", "minor", "partial", "mostly", "fully"]

RUBRIC = """\
Which share of the user's goal was reached although something failed?
- `parts`: the goal taken apart into what the user asked for, at least one part. For each: `part` in a few \
words, `quote` the agent's words that show it reached or not, `reached` yes, partly or no. What the agent \
claims after a failed tool without a result is not reached.
- `label`: none, minor, partial, mostly or fully reached."""

_REACHED = {"yes": 1.0, "partly": 0.5, "no": 0.0}


class GoalPart(Answer):
    """One part of what the user wanted."""

    part: str
    turn: int
    quote: str
    reached: Literal["yes", "partly", "no"]


class PartialCompletionAnswer(Answer):
    """What the judge fills in."""

    parts: list[GoalPart]
    reasoning: str
    label: Label
    confidence: Confidence


def share(parts: list[GoalPart]) -> float:
    """Mean over the parts, 0 to 1, rounded to 4 places. At least one part has to be given."""
    return round(sum(_REACHED[part.reached] for part in parts) / len(parts), 4)


def label_of(score: float) -> Label:
    """The word for a share."""
    if score <= 0.0:
        return "none"
    if score >= 1.0:
        return "fully"
    return "minor" if score < 0.34 else "partial" if score < 0.67 else "mostly"


@dataclass(frozen=True)
class PartialCompletion:
    """See the module."""

    threshold: float = 0.5
    name: str = "partial_completion"
    version: str = "1"
    rubric: str = RUBRIC
    answer: type[PartialCompletionAnswer] = PartialCompletionAnswer

    def gate(self, session: Session) -> Evaluation | None:
        """Not applicable where neither a tool nor a turn failed: goal achievement covers those sessions."""
        if session.failed_tools or any(turn.error for turn in session.turns):
            return None
        return not_applicable(self, "not_applicable", 1.0, explanation="Nothing failed.")

    def check(self, answer: PartialCompletionAnswer, session: Session) -> tuple[str, ...]:
        """A goal has at least one part."""
        return () if answer.parts else ("`parts` is empty: take the user's goal apart",)

    def score(self, answer: PartialCompletionAnswer, session: Session) -> Evaluation:
        details = {
            "parts": {part.part: part.reached for part in answer.parts},
            "stated_label": answer.label,
            "confidence": answer.confidence,
        }
        # Without parts, which is asked about once, the judge's own word is all there is.
        score = share(answer.parts) if answer.parts else _STATED[answer.label]
        evidence = [Evidence(turn=p.turn, role="agent", quote=p.quote) for p in answer.parts if p.quote.strip()]
        return scored(self, label_of(score), score, explanation=answer.reasoning, evidence=evidence, details=details)


_STATED: dict[Label, float] = {"none": 0.0, "minor": 0.25, "partial": 0.5, "mostly": 0.75, "fully": 1.0}
