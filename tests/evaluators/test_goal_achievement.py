"""Golden tests of the goal-achievement table: no model involved."""

from __future__ import annotations

import pytest

from otel_evals.evaluators.goal_achievement import WEIGHTS, GoalAchievement, GoalAchievementAnswer, penalised
from tests.evaluators.conversations import session, turn

GA = GoalAchievement()
SESSION = session(turn("Fix my import error", "Run pip install."), turn("That worked, thanks!", "Glad."))


def answer(label: str = "fully", negative: int = 0, goal: str = "A fix", **fields: object) -> GoalAchievementAnswer:
    return GoalAchievementAnswer.model_validate(
        {
            "goal": goal,
            "positive_signals": [{"turn": 1, "quote": "thanks"}],
            "negative_signals": [{"turn": 0, "quote": f"complaint {i}"} for i in range(negative)],
            "unmet_requests": [],
            "reasoning": "Summed up.",
            "label": label,
            "confidence": 0.8,
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("label", "weight"), [("fully", 1.0), ("mostly", 0.9), ("partial", 0.7), ("minor", 0.3), ("none", 0.0)]
)
def test_each_verdict_has_its_documented_weight(label, weight):
    assert GA.score(answer(label), SESSION).score == weight


@pytest.mark.parametrize("label", list(WEIGHTS))
@pytest.mark.parametrize("negative", range(12))
def test_each_negative_signal_costs_a_tenth_and_never_goes_below_zero(label, negative):
    expected = max(0, round(WEIGHTS[label] * 10) - negative) / 10
    assert penalised(label, negative) == expected


@pytest.mark.parametrize(
    ("label", "negative", "score", "passed"),
    [
        ("mostly", 2, 0.7, True),
        ("mostly", 3, 0.6, False),
        ("fully", 3, 0.7, True),
        ("fully", 4, 0.6, False),
        ("partial", 0, 0.7, True),
        ("partial", 1, 0.6, False),
        ("none", 3, 0.0, False),
    ],
)
def test_the_threshold_passes_at_exactly_seven_tenths(label, negative, score, passed):
    result = GA.score(answer(label, negative), SESSION)
    assert (result.score, result.passed) == (score, passed)


def test_the_same_words_of_the_same_turn_are_one_signal():
    twice = [{"turn": 0, "quote": "Useless."}, {"turn": 0, "quote": " useless. "}, {"turn": 1, "quote": "Useless."}]
    assert GA.score(answer("fully", negative_signals=twice), SESSION).score == 0.8


def test_a_given_goal_is_kept_and_the_judges_wording_dropped():
    details = GA.score(answer(), session(turn("a", "b"), goal="Get a fix")).details
    assert (details["goal"], details["goal_given"]) == ("Get a fix", True)


def test_an_inferred_goal_is_reported_as_such():
    details = GA.score(answer(), SESSION).details
    assert (details["goal"], details["goal_given"]) == ("A fix", False)


def test_an_empty_inferred_goal_is_asked_about_a_given_one_is_not():
    assert GA.check(answer(goal=" "), SESSION)
    assert not GA.check(answer(goal=""), session(turn("a", "b"), goal="Get a fix"))


def test_signals_are_the_users_words_and_the_evidence():
    result = GA.score(answer("fully", 1), SESSION)
    assert {(e.role, e.quote) for e in result.evidence} == {("user", "complaint 0"), ("user", "thanks")}


def test_the_summary_is_the_explanation():
    assert GA.score(answer(), SESSION).explanation == "Summed up."
