"""The user's own question as an evaluator, from configuration: labels with scores, threshold, gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model, field_validator

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.evaluators.outcome import not_applicable, scored
from otel_evals.evaluators.protocol import Answer, Confidence
from otel_evals.sessions.model import Session

__all__ = ["NOT_APPLICABLE", "Rubric", "RubricEvaluator", "RubricLabel"]

NOT_APPLICABLE = "not_applicable"

Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RubricLabel(_Config):
    """One possible verdict."""

    label: Annotated[str, StringConstraints(pattern=r"^\w[\w -]{0,62}$")]
    score: float = Field(ge=0, le=1)
    definition: str = ""
    """When this label is right."""


class Rubric(_Config):
    """A question to ask about sessions."""

    name: Name
    """Name in the telemetry: small letters, digits and `_`."""
    question: str = Field(min_length=1)
    labels: tuple[RubricLabel, ...] = Field(min_length=2)
    threshold: float = Field(default=0.7, ge=0, le=1)
    """Scores from here on pass."""
    version: str = "1"
    """Change it with the question, so that old and new results are not mixed."""
    gate: Literal["always", "tool_used", "tool_failed", "no_tool_failed"] = "always"
    """Which sessions the question arises in, as the trace says it; others are not applicable."""
    needs: tuple[Literal["tools", "system_prompt"], ...] = ("tools", "system_prompt")
    """What the judge is shown besides what was said."""
    quotes: bool = True
    """Whether the verdict has to rest on quotes."""

    @field_validator("labels")
    @classmethod
    def _distinct(cls, labels: tuple[RubricLabel, ...]) -> tuple[RubricLabel, ...]:
        names = [label.label.casefold() for label in labels]
        if len(set(names)) < len(names):
            raise ValueError("two labels differ in nothing but case; give each its own name")
        if NOT_APPLICABLE in names:
            raise ValueError(f"{NOT_APPLICABLE} is what the gate decides; give the label another name")
        return labels


class RoleQuote(Answer):
    """Words that occur in the transcript, where, and whose they are."""

    turn: int
    role: Literal["user", "agent", "tool"]
    quote: str


@dataclass(frozen=True)
class RubricEvaluator:
    """An evaluator from a `Rubric`."""

    config: Rubric

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def version(self) -> str:
        return self.config.version

    @property
    def threshold(self) -> float:
        return self.config.threshold

    @property
    def needs(self) -> frozenset[str]:
        """What the transcript has to hold for this question."""
        return frozenset(self.config.needs)

    @property
    def rubric(self) -> str:
        labels = "\n".join(f"- {item.label}: {item.definition or 'as its name says'}" for item in self.config.labels)
        quotes = "`quotes`: the words your label rests on." if self.config.quotes else "`quotes`: empty."
        return f"{self.config.question.strip()}\n{quotes}\n`label`:\n{labels}"

    @property
    def answer(self) -> type[Answer]:
        return _answer_model(tuple(item.label for item in self.config.labels))

    def gate(self, session: Session) -> Evaluation | None:
        """As configured."""
        used = any(turn.tool_calls for turn in session.turns)
        failed = bool(session.failed_tools)
        arises = {"always": True, "tool_used": used, "tool_failed": failed, "no_tool_failed": not failed}
        if arises[self.config.gate]:
            return None
        # A neutral score that passes; being not applicable it stays out of rates and means anyhow.
        why = f"The question does not arise (gate {self.config.gate})."
        return not_applicable(self, NOT_APPLICABLE, self.threshold, explanation=why)

    def check(self, answer: Any, session: Session) -> tuple[str, ...]:
        """Quotes have to be there where the rubric asks for them."""
        if self.config.quotes and not any(item.quote.strip() for item in answer.quotes):
            return ("`quotes` is empty: quote the words that the label rests on",)
        return ()

    def score(self, answer: Any, session: Session) -> Evaluation:
        scores = {item.label: item.score for item in self.config.labels}
        return scored(
            self,
            answer.label,
            scores[answer.label],
            explanation=answer.reasoning,
            evidence=[Evidence(turn=q.turn, role=q.role, quote=q.quote) for q in answer.quotes if q.quote.strip()],
            details={"stated_label": answer.label, "confidence": answer.confidence},
        )


_models: dict[tuple[str, ...], type[Answer]] = {}


def _answer_model(labels: tuple[str, ...]) -> type[Answer]:
    """One class per set of labels, so that schemas are derived once."""
    if labels not in _models:
        _models[labels] = create_model(
            "RubricAnswer",
            __base__=Answer,
            quotes=(list[RoleQuote], ...),
            reasoning=(str, ...),
            label=(cast(Any, Literal[labels]), ...),
            confidence=(Confidence, ...),
        )
    return _models[labels]
