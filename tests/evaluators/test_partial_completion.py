"""Golden tests of partial completion: no model involved."""

from __future__ import annotations

import pytest

from otel_evals.evaluators.partial_completion import PartialCompletion, PartialCompletionAnswer
from otel_evals.sessions.model import ToolFailure
from tests.evaluators.conversations import failed_call, session, turn, worked_call

PC = PartialCompletion()
BROKEN = session(turn("q", "a", failed_call()))


def answer(*reached: str, label: str = "partial") -> PartialCompletionAnswer:
    parts = [{"part": f"part {i}", "turn": 0, "quote": "a", "reached": r} for i, r in enumerate(reached)]
    return PartialCompletionAnswer.model_validate(
        {"parts": parts, "reasoning": "Because.", "label": label, "confidence": 0.8}
    )


@pytest.mark.parametrize(
    ("reached", "score", "label", "passed"),
    [
        (("no", "no"), 0.0, "none", False),
        (("yes", "no", "no", "no"), 0.25, "minor", False),
        (("yes", "no", "no"), 0.3333, "minor", False),
        (("yes", "no"), 0.5, "partial", True),
        (("partly",), 0.5, "partial", True),
        (("yes", "partly"), 0.75, "mostly", True),
        (("yes", "yes"), 1.0, "fully", True),
    ],
)
def test_the_score_is_the_share_of_the_parts_that_were_reached(reached, score, label, passed):
    result = PC.score(answer(*reached), BROKEN)
    assert (result.score, result.label, result.passed) == (score, label, passed)


def test_sessions_where_nothing_failed_are_not_applicable_without_asking():
    result = PC.gate(session(turn("q", "a", worked_call())))
    assert result is not None
    assert result.applicable is False


def test_a_crashed_turn_counts_as_a_failure():
    assert PC.gate(session(turn("q", None, error=ToolFailure(type="APIError")))) is None


def test_an_answer_without_parts_is_asked_about_and_then_taken_at_its_word():
    assert PC.check(answer(), BROKEN)
    assert PC.score(answer(label="mostly"), BROKEN).score == 0.75
