"""Golden tests of the recovery table: no model involved."""

from __future__ import annotations

import pytest

from otel_evals.evaluators.recovery_strategy import RecoveryStrategy, RecoveryStrategyAnswer
from tests.evaluators.conversations import failed_call, session, turn, worked_call

RS = RecoveryStrategy()
BROKEN = session(turn("q", "a", failed_call("x")))


def taken(number: int = 1, action: str = "other_tool", reached: str = "yes") -> dict[str, object]:
    return {"failure": number, "turn": 0, "role": "agent", "quote": "q", "action": action, "reached": reached}


def answer(*failures: dict[str, object]) -> RecoveryStrategyAnswer:
    return RecoveryStrategyAnswer.model_validate(
        {"failures": list(failures), "reasoning": "Because.", "label": "adequate", "confidence": 0.8}
    )


@pytest.mark.parametrize(
    ("action", "reached", "score"),
    [
        ("none", "no", 0.0),
        ("none", "yes", 0.0),
        ("same_again", "no", 0.25),
        ("same_again", "partly", 0.5),
        ("same_again", "yes", 1.0),
        ("changed_input", "no", 0.5),
        ("changed_input", "partly", 0.75),
        ("other_tool", "no", 0.5),
        ("other_tool", "yes", 1.0),
        ("asked_user", "no", 0.5),
        ("asked_user", "yes", 0.75),
        ("handed_over", "partly", 0.5),
    ],
)
def test_the_level_follows_from_what_was_done_and_reached(action, reached, score):
    result = RS.score(answer(taken(action=action, reached=reached)), BROKEN)
    assert (result.score, result.passed) == (score, score >= 0.5)


def test_several_failures_give_their_mean_rounded_down():
    two = session(turn("q", "a", failed_call("x"), failed_call("y")))
    assert RS.score(answer(taken(1), taken(2, "same_again", "no")), two).score == 0.5


def test_the_trace_outweighs_the_judge_where_a_later_call_succeeded():
    two = session(turn("q", "a", failed_call("x"), worked_call("x"), failed_call("y")))
    result = RS.score(answer(taken(1, "none", "no"), taken(2, "none", "no")), two)
    assert result.details["failures"] == {"1": "full", "2": "none"}


def test_no_failed_tool_is_not_applicable_without_asking():
    result = RS.gate(session(turn("q", "a", worked_call())))
    assert result is not None
    assert (result.outcome, result.applicable) == ("not_applicable", False)


def test_failures_that_were_all_mended_need_no_judge():
    result = RS.gate(session(turn("q", "a", failed_call("x"), worked_call("x"))))
    assert result is not None
    assert (result.outcome, result.score) == ("scored", 1.0)


def test_only_unmended_failures_have_to_be_answered_for():
    two = session(turn("q", "a", failed_call("x"), worked_call("x"), failed_call("y")))
    assert RS.check(answer(), two) == ("`failures` has no entry for number 2",)
    assert RS.check(answer(taken(2)), two) == ()


def test_an_answer_for_nothing_is_unscorable():
    assert RS.score(answer(), BROKEN).error_type == "incomplete_answer"
