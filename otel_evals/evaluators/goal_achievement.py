"""Goal achievement: did the person get what they came for?

Verdict weights and penalty follow the public documentation of `GoalAchievementRateMetric` (eval-ai-library),
which asks three or four times; here the goal, the signals, the verdict and the summary are one answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.evaluators.outcome import scored
from otel_evals.evaluators.protocol import Answer, Confidence, Quote
from otel_evals.sessions.model import Session

__all__ = ["PENALTY", "WEIGHTS", "GoalAchievement", "GoalAchievementAnswer", "penalised"]

Label: TypeAlias = Literal["fully", "mostly", "partial", "minor", "none"]

WEIGHTS: dict[Label, float] = {"fully": 1.0, "mostly": 0.9, "partial": 0.7, "minor": 0.3, "none": 0.0}
PENALTY = 0.1
"""Taken off for each negative signal."""

RUBRIC = """\
- `goal`: that of the metadata, else what the user evidently came for.
- `positive_signals`: user words of satisfaction.
- `negative_signals`: of dissatisfaction (complaint, repeated request, correction), one per occasion.
- `unmet_requests`: asked for and not received.
- `label`, how far it was reached: fully; mostly (all but a detail); partial (an important part missing); \
minor (little of use); none. Count what was shown done, not promises or claims after a failed tool.
Examples: booked, but not the seat: mostly; one of two orders found: partial; "I asked for Monday!" is \
negative, "And Monday?" is not."""


class GoalAchievementAnswer(Answer):
    """What the judge fills in."""

    goal: str
    positive_signals: list[Quote]
    negative_signals: list[Quote]
    unmet_requests: list[str]
    reasoning: str
    label: Label
    confidence: Confidence


def penalised(label: Label, negative_signals: int) -> float:
    """The verdict's weight less the penalty, not below 0, rounded to 4 places."""
    return round(max(0.0, WEIGHTS[label] - PENALTY * negative_signals), 4)


@dataclass(frozen=True)
class GoalAchievement:
    """See the module."""

    threshold: float = 0.7
    name: str = "goal_achievement"
    version: str = "2"
    rubric: str = RUBRIC
    answer: type[GoalAchievementAnswer] = GoalAchievementAnswer

    def gate(self, session: Session) -> Evaluation | None:
        """Never decided by the trace."""
        return None

    def check(self, answer: GoalAchievementAnswer, session: Session) -> tuple[str, ...]:
        """An inferred goal has to be named."""
        if session.goal is None and not answer.goal.strip():
            return ("`goal` is empty: state what the user wanted in one sentence",)
        return ()

    def score(self, answer: GoalAchievementAnswer, session: Session) -> Evaluation:
        negative = _distinct(answer.negative_signals)
        positive = _distinct(answer.positive_signals)
        evidence = [Evidence(turn=q.turn, role="user", quote=q.quote) for q in (*negative, *positive)]
        details = {
            "goal": session.goal if session.goal is not None else answer.goal,
            "goal_given": session.goal is not None,
            "positive_signals": [q.quote for q in positive],
            "negative_signals": [q.quote for q in negative],
            "unmet_requests": list(answer.unmet_requests),
            "stated_label": answer.label,
            "confidence": answer.confidence,
        }
        score = penalised(answer.label, len(negative))
        return scored(self, answer.label, score, explanation=answer.reasoning, evidence=evidence, details=details)


def _distinct(quotes: Iterable[Quote]) -> list[Quote]:
    """The same words of the same turn count once, however often a judge lists them."""
    return list({(q.turn, q.quote.strip().casefold()): q for q in quotes}.values())
