"""What an evaluator is: a question with an answer schema, a deterministic gate, and a pure score function.

The judge model answers questions of fact with quotes; label and score are derived here, in Python, by the
same function whichever plan or model produced the answer.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict

from otel_evals.evaluation import Evaluation
from otel_evals.sessions.model import Session

__all__ = ["Answer", "Confidence", "Evaluator", "Quote"]

_WORDS = {"low": 0.3, "medium": 0.6, "high": 0.9}


def _confidence(value: Any) -> Any:
    """`high`, `85%` and 85 become numbers from 0 to 1; what cannot be read is left to the validation."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in _WORDS:
            return _WORDS[text]
        percent = text.endswith("%")
        value = float(text.rstrip("% ")) / (100 if percent else 1)
    if isinstance(value, (int, float)):
        if isinstance(value, bool) or not math.isfinite(value):
            raise ValueError("a number from 0 to 1 is needed")
        value = value / 100 if 1 < value <= 100 else value
        return min(1.0, max(0.0, float(value)))
    return value


Confidence = Annotated[float, BeforeValidator(_confidence)]
"""The judge's own confidence, 0 to 1."""


class Answer(BaseModel):
    """Base of all answers: every field is required, surplus fields are dropped.

    Field order is the order in which the judge writes: evidence, reasoning, label, confidence. A label that
    comes after its evidence is better founded than one that comes before.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class Quote(Answer):
    """Words that occur in the transcript, and where."""

    turn: int
    quote: str


class Evaluator(Protocol):
    """One question about a session. Built-ins and third parties have the same shape."""

    @property
    def name(self) -> str:
        """Name in the telemetry, e.g. `failure_rate`."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever rubric, schema or score function change."""
        ...

    @property
    def threshold(self) -> float:
        """Scores from here on pass, 0 to 1."""
        ...

    @property
    def rubric(self) -> str:
        """Instruction to the judge. The same bytes for every session, so that providers can cache it."""
        ...

    @property
    def answer(self) -> type[Answer]:
        """What the judge has to fill in."""
        ...

    def gate(self, session: Session) -> Evaluation | None:
        """The result, where the trace alone decides it and no judge needs to be asked."""
        ...

    def check(self, answer: Any, session: Session) -> tuple[str, ...]:
        """What is missing or contradictory in a well-formed answer: one sentence each, sent back to the judge
        once.

        Nothing of the session's content may be in these sentences.
        """
        ...

    def score(self, answer: Any, session: Session) -> Evaluation:
        """Label, score and evidence from an answer. Pure: no clock, no randomness, no I/O."""
        ...
