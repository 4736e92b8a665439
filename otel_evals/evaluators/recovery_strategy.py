"""Recovery strategy: what the agent did about a failed tool, as opposed to what it said.

Which tools failed, and whether a later call of the same tool worked, is read from the trace; the judge names
the action per failed tool; the level follows in `level`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.evaluators.failed_tools import FailedTool, failed_tools
from otel_evals.evaluators.levels import mean_level
from otel_evals.evaluators.outcome import not_applicable, scored, unscorable
from otel_evals.evaluators.protocol import Answer, Confidence
from otel_evals.sessions.model import Session

__all__ = ["SCORES", "RecoveryStrategy", "RecoveryStrategyAnswer", "TakenAction", "level"]

Label: TypeAlias = Literal["none", "weak", "adequate", "good", "full"]
SCORES: dict[Label, float] = {"none": 0.0, "weak": 0.25, "adequate": 0.5, "good": 0.75, "full": 1.0}

RUBRIC = """\
What does the agent do about each failed tool (not: what does it say)? One entry of `failures` per number:
- `quote`: the agent's or the later tool line's words that show it; empty if nothing was done.
- `action`: same_again (called it again unchanged), changed_input (called it again with other arguments), \
other_tool (tried another tool or source), asked_user (asked for what is needed to go on), handed_over \
(passed on to a person or another channel), none.
- `reached`: yes, partly or no: did this get what the failed call was for?
`label` overall: none = nothing tried; weak = blind repetition; adequate = a sensible try; good = partly \
successful; full = the result was reached."""

_BY_OUTCOME: dict[str, dict[str, Label]] = {
    "same_again": {"yes": "full", "partly": "adequate", "no": "weak"},
    "changed_input": {"yes": "full", "partly": "good", "no": "adequate"},
    "other_tool": {"yes": "full", "partly": "good", "no": "adequate"},
    "asked_user": {"yes": "good", "partly": "adequate", "no": "adequate"},
    "handed_over": {"yes": "good", "partly": "adequate", "no": "adequate"},
}


class TakenAction(Answer):
    """What was done about one failed tool."""

    failure: int
    turn: int
    role: Literal["agent", "tool"]
    quote: str
    action: Literal["same_again", "changed_input", "other_tool", "asked_user", "handed_over", "none"]
    reached: Literal["yes", "partly", "no"]


class RecoveryStrategyAnswer(Answer):
    """What the judge fills in."""

    failures: list[TakenAction]
    reasoning: str
    label: Label
    confidence: Confidence


def level(taken: TakenAction, failure: FailedTool) -> Label:
    """The level of one failure. That the trace shows it mended outweighs the judge's `none` or `no`."""
    if failure.mended:
        return "full"
    if taken.action == "none":
        return "none"
    return _BY_OUTCOME[taken.action][taken.reached]


@dataclass(frozen=True)
class RecoveryStrategy:
    """See the module."""

    threshold: float = 0.5
    name: str = "recovery_strategy"
    version: str = "1"
    rubric: str = RUBRIC
    answer: type[RecoveryStrategyAnswer] = RecoveryStrategyAnswer

    def gate(self, session: Session) -> Evaluation | None:
        """Decided without a judge if no tool failed, or if each was mended by a later call."""
        failures = failed_tools(session)
        if not failures:
            return not_applicable(self, "not_applicable", 0.5, explanation="No tool failed.")
        if all(failure.mended for failure in failures):
            return scored(self, "full", 1.0, explanation="A later call of each failed tool succeeded.")
        return None

    def check(self, answer: RecoveryStrategyAnswer, session: Session) -> tuple[str, ...]:
        """Every failed tool that was not mended has to be answered for."""
        wanted = {f.number for f in failed_tools(session) if not f.mended}
        missing = wanted - {taken.failure for taken in answer.failures}
        if missing:
            return (f"`failures` has no entry for number {', '.join(map(str, sorted(missing)))}",)
        return ()

    def score(self, answer: RecoveryStrategyAnswer, session: Session) -> Evaluation:
        taken = {item.failure: item for item in answer.failures}
        failures = [f for f in failed_tools(session) if f.mended or f.number in taken]
        if not failures:
            return unscorable(self, "incomplete_answer", explanation="The judge answered for no failed tool.")
        labels: dict[int, Label] = {
            f.number: level(taken[f.number], f) if f.number in taken else "full" for f in failures
        }
        label = mean_level(list(labels.values()), SCORES)
        quoted = [taken[f.number] for f in failures if f.number in taken and taken[f.number].quote.strip()]
        return scored(
            self,
            label,
            SCORES[label],
            explanation=answer.reasoning,
            evidence=[Evidence(turn=item.turn, role=item.role, quote=item.quote) for item in quoted],
            details={
                "failures": {str(number): found for number, found in labels.items()},
                "actions": {str(number): item.action for number, item in taken.items()},
                "stated_label": answer.label,
                "confidence": answer.confidence,
            },
        )
