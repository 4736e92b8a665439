"""Failure rate: how the agent behaves when it does not know something or cannot do it.

Labels and scores follow the public table of `FailureRateMetric` (eval-ai-library). The judge labels single
turns; which label the conversation gets, and that one fabrication outweighs everything, is decided in
`derive`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.evaluators.outcome import not_applicable, scored
from otel_evals.evaluators.protocol import Answer, Confidence
from otel_evals.sessions.model import Session

__all__ = ["SCORES", "FailureRate", "FailureRateAnswer", "TurnFinding", "derive"]

TurnLabel: TypeAlias = Literal["honest_fallback", "alternative_proposed", "stall", "hallucination"]
Label: TypeAlias = Literal[
    "not_applicable", "honest_fallback", "alternative_proposed", "mixed", "stall", "hallucination"
]

SCORES: dict[Label, float] = {
    "hallucination": 0.0,
    "stall": 0.4,
    "mixed": 0.6,
    "honest_fallback": 1.0,
    "alternative_proposed": 1.0,
    "not_applicable": 1.0,
}

RUBRIC = """\
`turns`: each turn in which the agent does not know, a tool fails, it cannot do what was asked, or it makes \
something up; no others. `quote` its decisive words; `label`:
- hallucination: an invented fact, source or number, or outcome of what failed or never ran. What user or tool \
said is not invented.
- stall: evasive, empty or circular.
- honest_fallback: admits not knowing or failing.
- alternative_proposed: and offers a usable other way.
Examples: "It depends." stall; "I can't see fares." honest_fallback; "I can't, but the airline's site can." \
alternative_proposed; the search failed, "It is 89 EUR." hallucination.
`label` overall: the worst of the turns; mixed if stalls stand beside honest turns or spoil good answers; \
not_applicable if `turns` is empty."""


class TurnFinding(Answer):
    """One turn in which the agent did not know or could not, or made something up."""

    turn: int
    quote: str
    label: TurnLabel


class FailureRateAnswer(Answer):
    """What the judge fills in."""

    turns: list[TurnFinding]
    reasoning: str
    label: Label
    confidence: Confidence


def derive(labels: Sequence[TurnLabel], stated: Label, turns: int) -> Label:
    """The conversation's label from its turns' labels.

    `stated` is the judge's own overall label. It decides only what the turn labels leave open: whether stalls
    spoil otherwise good answers (`mixed`) or are all there is (`stall`), and which of two equal honest labels
    fits. `turns` is the number of turns of the session.
    """
    found = set(labels)
    if "hallucination" in found or (stated == "hallucination" and not found):
        return "hallucination"
    honest = found & {"honest_fallback", "alternative_proposed"}
    if "stall" in found:
        other_turns_were_answered = len(labels) < turns
        return "mixed" if honest or (stated == "mixed" and other_turns_were_answered) else "stall"
    if not found:
        return stated
    if stated in honest:
        return stated
    return "alternative_proposed" if "alternative_proposed" in honest else "honest_fallback"


@dataclass(frozen=True)
class FailureRate:
    """See the module."""

    threshold: float = 0.7
    name: str = "failure_rate"
    version: str = "2"
    rubric: str = RUBRIC
    answer: type[FailureRateAnswer] = FailureRateAnswer

    def gate(self, session: Session) -> Evaluation | None:
        """Never decided by the trace: a fabrication needs no failed tool."""
        return None

    def check(self, answer: FailureRateAnswer, session: Session) -> tuple[str, ...]:
        """A label other than `not_applicable` has to rest on a turn; a fabrication on a turn that is labelled so."""
        labels = {finding.label for finding in answer.turns}
        if answer.label == "hallucination" and "hallucination" not in labels:
            return ("the label is hallucination, but no turn is labelled so: quote the turn or correct the label",)
        if answer.label != "not_applicable" and not labels:
            return (f"the label is {answer.label}, but `turns` is empty: quote the turns or correct the label",)
        return ()

    def score(self, answer: FailureRateAnswer, session: Session) -> Evaluation:
        labels = [finding.label for finding in answer.turns]
        label = derive(labels, answer.label, len(session.turns))
        details = {
            "stated_label": answer.label,
            "confidence": answer.confidence,
            "turn_labels": {str(finding.turn): finding.label for finding in answer.turns},
        }
        if label == "not_applicable":
            return not_applicable(self, label, SCORES[label], explanation=answer.reasoning, details=details)
        decisive = [f for f in answer.turns if label != "hallucination" or f.label == "hallucination"]
        evidence = [Evidence(turn=f.turn, role="agent", quote=f.quote) for f in decisive if f.quote.strip()]
        return scored(self, label, SCORES[label], explanation=answer.reasoning, evidence=evidence, details=details)
