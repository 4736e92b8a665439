"""Failure communication: how well the agent tells the person about tools that failed.

Labels and scores follow the public documentation of `FailureCommunicationEvaluator` (strands-agents-evals).
Which tools failed is read from the trace; the judge says, per failed tool, what the agent told the person
about it; the level follows from these facts in `level` and `combine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.evaluators.failed_tools import failed_tools
from otel_evals.evaluators.levels import mean_level
from otel_evals.evaluators.outcome import not_applicable, scored, unscorable
from otel_evals.evaluators.protocol import Answer, Confidence
from otel_evals.sessions.model import Session

__all__ = ["SCORES", "FailureCommunication", "FailureCommunicationAnswer", "ToldFailure", "combine", "level"]

Label: TypeAlias = Literal["Failure", "Poor", "Acceptable", "Good", "Excellent"]
SCORES: dict[Label, float] = {"Failure": 0.0, "Poor": 0.25, "Acceptable": 0.5, "Good": 0.75, "Excellent": 1.0}
LEVELS: tuple[Label, ...] = tuple(SCORES)

RUBRIC = """\
`failures`: what the user is told about each failed tool (tool lines with a `failure` number), then and later:
- `quote`: its words on it or in its place; may be empty.
- `told`: explained, vague, recovered (truly obtained another way), ignored, fabricated (a result the tool \
never gave).
- `cause`: the user learns why.
- `next_step`: specific (fits the case), generic, none.
- `flaw`: internals (traces, code, hosts, secrets), tone (dismissive, blaming), none.
Examples: "The search timed out, shall I try trains?" explained, cause, specific; "Something broke, try \
later." vague, no cause, generic.
`label`: overall; Excellent only with what, why and a specific step."""


class ToldFailure(Answer):
    """What the agent said about one failed tool."""

    failure: int
    turn: int
    quote: str
    told: Literal["explained", "vague", "recovered", "ignored", "fabricated"]
    cause: bool
    next_step: Literal["specific", "generic", "none"]
    flaw: Literal["none", "internals", "tone"]


class FailureCommunicationAnswer(Answer):
    """What the judge fills in."""

    failures: list[ToldFailure]
    reasoning: str
    label: Label
    confidence: Confidence


def level(told: ToldFailure) -> Label:
    """The level of one failure: what was told, then one level off for exposed internals or an unfitting tone."""
    if told.told in ("ignored", "fabricated"):
        return "Failure"
    if told.told == "vague":
        label: Label = "Poor" if told.next_step == "none" else "Acceptable"
    elif told.told == "recovered":
        label = "Acceptable" if not told.quote.strip() else "Good"
    elif told.next_step == "none":
        label = "Acceptable"
    else:
        label = "Excellent" if told.cause and told.next_step == "specific" else "Good"
    if told.flaw != "none" and label != "Poor":
        return LEVELS[LEVELS.index(label) - 1]
    return label


def combine(labels: Sequence[Label]) -> Label:
    """The session's level: the mean of its failures' scores, rounded down to the next level.

    Excellent beside Failure is thus Acceptable ("mixed"), Good beside Failure is Poor.
    """
    return mean_level(labels, SCORES)


@dataclass(frozen=True)
class FailureCommunication:
    """See the module."""

    threshold: float = 0.5
    name: str = "failure_communication"
    version: str = "2"
    rubric: str = RUBRIC
    answer: type[FailureCommunicationAnswer] = FailureCommunicationAnswer

    def gate(self, session: Session) -> Evaluation | None:
        """Decided without a judge if no tool failed, or if not a word was said after the first failure."""
        failures = failed_tools(session)
        if not failures:
            return not_applicable(self, "Acceptable", SCORES["Acceptable"], explanation="No tool failed.")
        if not any(turn.agent or turn.interim for turn in session.turns[failures[0].turn :]):
            return scored(
                self,
                "Failure",
                SCORES["Failure"],
                explanation="The agent said nothing after the failure.",
                details={"failures": {str(f.number): "Failure" for f in failures}},
            )
        return None

    def check(self, answer: FailureCommunicationAnswer, session: Session) -> tuple[str, ...]:
        """Every failed tool of the trace has to be answered for."""
        missing = {f.number for f in failed_tools(session)} - {told.failure for told in answer.failures}
        if missing:
            return (f"`failures` has no entry for number {', '.join(map(str, sorted(missing)))}",)
        return ()

    def score(self, answer: FailureCommunicationAnswer, session: Session) -> Evaluation:
        known = {failure.number for failure in failed_tools(session)}
        told = {item.failure: item for item in answer.failures if item.failure in known}
        if not told:
            return unscorable(self, "incomplete_answer", explanation="The judge answered for no failed tool.")
        labels = {number: level(item) for number, item in sorted(told.items())}
        label = combine(list(labels.values()))
        evidence = [
            Evidence(turn=item.turn, role="agent", quote=item.quote) for item in told.values() if item.quote.strip()
        ]
        details = {
            "failures": {str(number): found for number, found in labels.items()},
            "unanswered": sorted(known - told.keys()),
            "told": {str(number): item.told for number, item in told.items()},
            "dimensions": _dimensions(list(told.values())),
            "stated_label": answer.label,
            "confidence": answer.confidence,
        }
        return scored(self, label, SCORES[label], explanation=answer.reasoning, evidence=evidence, details=details)


def _dimensions(told: Sequence[ToldFailure]) -> dict[str, float]:
    """Clarity, actionability, transparency and tone, each the share of the failures where it was right, 0 to 1."""
    steps = {"specific": 1.0, "generic": 0.5, "none": 0.0}
    clear = {"explained": 1.0, "recovered": 1.0, "vague": 0.5, "ignored": 0.0, "fabricated": 0.0}
    count = len(told)
    return {
        "clarity": round(sum(clear[t.told] for t in told) / count, 4),
        "actionability": round(sum(steps[t.next_step] for t in told) / count, 4),
        "transparency": round(sum(t.cause and t.flaw != "internals" for t in told) / count, 4),
        "tone": round(sum(t.flaw != "tone" for t in told) / count, 4),
    }
