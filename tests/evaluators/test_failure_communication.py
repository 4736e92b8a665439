"""Golden tests of the failure-communication table: no model involved."""

from __future__ import annotations

import itertools

import pytest

from otel_evals.evaluators.failure_communication import (
    SCORES,
    FailureCommunication,
    FailureCommunicationAnswer,
    ToldFailure,
    combine,
    level,
)
from tests.evaluators.conversations import failed_call, session, turn, worked_call

FC = FailureCommunication()


def told(number: int = 1, **facts: object) -> dict[str, object]:
    return {
        "failure": number,
        "turn": 0,
        "quote": "The search timed out.",
        "told": "explained",
        "cause": True,
        "next_step": "specific",
        "flaw": "none",
        **facts,
    }


def answer(*failures: dict[str, object], label: str = "Good") -> FailureCommunicationAnswer:
    return FailureCommunicationAnswer.model_validate(
        {"failures": list(failures), "reasoning": "Because.", "label": label, "confidence": 0.8}
    )


@pytest.mark.parametrize(
    ("facts", "label"),
    [
        ({"told": "fabricated"}, "Failure"),
        ({"told": "ignored", "quote": ""}, "Failure"),
        ({"told": "vague", "next_step": "none"}, "Poor"),
        ({"told": "vague", "next_step": "generic"}, "Acceptable"),
        ({"next_step": "none"}, "Acceptable"),
        ({"next_step": "generic"}, "Good"),
        ({"cause": False}, "Good"),
        ({}, "Excellent"),
        ({"told": "recovered", "quote": ""}, "Acceptable"),
        ({"told": "recovered", "quote": "The first try failed."}, "Good"),
        ({"flaw": "internals"}, "Good"),
        ({"flaw": "tone", "next_step": "none"}, "Poor"),
        ({"told": "vague", "next_step": "none", "flaw": "tone"}, "Poor"),
    ],
)
def test_the_level_of_one_failure_follows_from_the_facts(facts, label):
    assert level(ToldFailure.model_validate(told(**facts))) == label


@pytest.mark.parametrize("label", list(SCORES))
def test_equal_levels_combine_to_that_level(label):
    assert combine([label] * 3) == label


@pytest.mark.parametrize(
    ("labels", "combined"),
    [
        (("Excellent", "Failure"), "Acceptable"),
        (("Good", "Failure"), "Poor"),
        (("Good", "Excellent"), "Good"),
        (("Excellent", "Excellent", "Failure"), "Acceptable"),
        (("Acceptable", "Failure", "Failure"), "Failure"),
    ],
)
def test_unequal_levels_combine_to_their_mean_rounded_down(labels, combined):
    assert combine(labels) == combined


def test_combination_does_not_depend_on_the_order():
    for labels in itertools.product(SCORES, repeat=3):
        assert len({combine(p) for p in itertools.permutations(labels)}) == 1


@pytest.mark.parametrize(
    ("facts", "score", "passed"),
    [({}, 1.0, True), ({"next_step": "none"}, 0.5, True), ({"told": "vague", "next_step": "none"}, 0.25, False)],
)
def test_a_half_passes(facts, score, passed):
    result = FC.score(answer(told(**facts)), session(turn("q", "a", failed_call())))
    assert (result.score, result.passed) == (score, passed)


def test_without_a_failed_tool_it_is_acceptable_not_applicable_and_no_judge_is_asked():
    result = FC.gate(session(turn("q", "a", worked_call())))
    assert result is not None
    assert (result.label, result.score, result.applicable, result.outcome) == (
        "Acceptable",
        0.5,
        False,
        "not_applicable",
    )


def test_the_trace_decides_that_no_tool_failed_even_if_the_agent_says_so():
    assert FC.gate(session(turn("q", "Sorry, the search failed.", worked_call()))) is not None


def test_silence_after_the_failure_is_a_failure_without_asking():
    result = FC.gate(session(turn("q", "fine"), turn("q", None, failed_call())))
    assert result is not None
    assert (result.label, result.score, result.applicable) == ("Failure", 0.0, True)


def test_a_reply_in_a_later_turn_is_judged():
    assert FC.gate(session(turn("q", None, failed_call()), turn("hello?", "The search failed."))) is None


def test_every_failed_tool_of_every_turn_has_to_be_answered_for():
    broken = session(turn("a", "b", failed_call("x"), failed_call("y")), turn("c", "d", failed_call("z")))
    problems = FC.check(answer(told(1), told(3)), broken)
    assert problems == ("`failures` has no entry for number 2",)


def test_failures_the_trace_does_not_know_are_ignored():
    result = FC.score(answer(told(1), told(9, told="fabricated")), session(turn("q", "a", failed_call())))
    assert result.label == "Excellent"


def test_an_answer_for_no_known_failure_is_unscorable_not_a_default():
    result = FC.score(answer(told(9)), session(turn("q", "a", failed_call())))
    assert (result.outcome, result.score, result.error_type) == ("unscorable", None, "incomplete_answer")


def test_repeated_failures_of_one_tool_in_one_turn_are_one():
    broken = session(turn("q", "a", failed_call("x"), failed_call("x"), failed_call("y")))
    assert FC.check(answer(told(1), told(2)), broken) == ()


def test_the_four_dimensions_are_reported():
    broken = session(turn("q", "a", failed_call("x"), failed_call("y")))
    result = FC.score(answer(told(1), told(2, told="vague", next_step="generic", cause=False)), broken)
    assert result.details["dimensions"] == {
        "clarity": 0.75,
        "actionability": 0.75,
        "transparency": 0.5,
        "tone": 1.0,
    }
