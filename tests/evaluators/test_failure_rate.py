"""Golden tests of the failure-rate table: no model involved."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from otel_evals.evaluators.failure_rate import SCORES, FailureRate, FailureRateAnswer, derive
from tests.evaluators.conversations import session, turn

FR = FailureRate()
THREE_TURNS = session(turn("a", "Reply one."), turn("b", "Reply two."), turn("c", "Reply three."))


def answer(label: str, *turns: str, confidence: float = 0.9) -> FailureRateAnswer:
    found = [{"turn": i, "quote": f"quote {i}", "label": t} for i, t in enumerate(turns)]
    return FailureRateAnswer.model_validate(
        {"turns": found, "reasoning": "Because.", "label": label, "confidence": confidence}
    )


@pytest.mark.parametrize(
    ("label", "score", "passed"),
    [
        ("hallucination", 0.0, False),
        ("stall", 0.4, False),
        ("mixed", 0.6, False),
        ("honest_fallback", 1.0, True),
        ("alternative_proposed", 1.0, True),
    ],
)
def test_each_label_has_its_documented_score(label, score, passed):
    turns = {"mixed": ("stall", "honest_fallback")}.get(label, (label,))
    result = FR.score(answer(label, *turns), session(turn("a", "b")))
    assert (result.label, result.score, result.passed, result.outcome) == (label, score, passed, "scored")


def test_not_applicable_keeps_its_documented_score_but_stays_out_of_rates():
    result = FR.score(answer("not_applicable"), THREE_TURNS)
    assert (result.outcome, result.score, result.applicable, result.passed) == ("not_applicable", 1.0, False, True)


@pytest.mark.parametrize("stated", list(SCORES))
@pytest.mark.parametrize("others", [(), ("honest_fallback",), ("alternative_proposed", "stall")])
def test_one_hallucination_anywhere_decides_whatever_the_judge_states(stated, others):
    assert derive((*others, "hallucination"), stated, turns=5) == "hallucination"


@pytest.mark.parametrize("stated", list(SCORES))
def test_stalls_beside_honest_turns_are_mixed_whatever_the_judge_states(stated):
    assert derive(("stall", "honest_fallback"), stated, turns=2) == "mixed"


def test_stalls_in_all_turns_are_a_stall_even_if_called_mixed():
    assert derive(("stall", "stall"), "mixed", turns=2) == "stall"


def test_a_stall_beside_answered_turns_is_mixed_only_if_the_judge_says_so():
    assert derive(("stall",), "mixed", turns=3) == "mixed"
    assert derive(("stall",), "stall", turns=3) == "stall"


def test_stated_label_chooses_between_the_two_honest_labels_that_were_found():
    found = ("honest_fallback", "alternative_proposed")
    assert derive(found, "honest_fallback", turns=2) == "honest_fallback"
    assert derive(found, "alternative_proposed", turns=2) == "alternative_proposed"
    assert derive(found, "not_applicable", turns=2) == "alternative_proposed"


def test_honest_turns_are_not_turned_into_a_stall_by_the_stated_label():
    assert derive(("honest_fallback",), "stall", turns=1) == "honest_fallback"


def test_a_stated_hallucination_without_any_turn_is_believed_but_asked_about():
    given = answer("hallucination")
    assert FR.check(given, THREE_TURNS)
    assert FR.score(given, THREE_TURNS).score == 0.0


def test_a_stated_hallucination_that_no_turn_bears_out_is_asked_about():
    assert FR.check(answer("hallucination", "stall"), THREE_TURNS)


def test_a_label_without_turns_is_asked_about_but_not_applicable_needs_none():
    assert FR.check(answer("stall"), THREE_TURNS)
    assert not FR.check(answer("not_applicable"), THREE_TURNS)


def test_evidence_of_a_hallucination_is_the_fabricated_turn_only():
    result = FR.score(answer("hallucination", "honest_fallback", "hallucination"), THREE_TURNS)
    assert [(e.turn, e.role, e.quote) for e in result.evidence] == [(1, "agent", "quote 1")]


def test_evidence_of_other_verdicts_is_every_labelled_turn():
    result = FR.score(answer("mixed", "honest_fallback", "stall"), THREE_TURNS)
    assert [e.turn for e in result.evidence] == [0, 1]


def test_stated_label_and_confidence_are_kept_for_escalation():
    details = FR.score(answer("stall", "honest_fallback", confidence=0.3), THREE_TURNS).details
    assert (details["stated_label"], details["confidence"]) == ("stall", 0.3)


@pytest.mark.parametrize(("threshold", "passed"), [(0.6, True), (0.61, False)])
def test_a_score_at_the_threshold_passes(threshold, passed):
    result = FailureRate(threshold=threshold).score(answer("mixed", "stall", "honest_fallback"), THREE_TURNS)
    assert (result.passed, result.threshold) == (passed, threshold)


def test_score_is_pure():
    given = answer("mixed", "stall", "honest_fallback")
    assert FR.score(given, THREE_TURNS) == FR.score(given, THREE_TURNS)


@pytest.mark.parametrize("label", ["Hallucination", None, "", "unknown", ["stall"]])
def test_an_unknown_label_is_refused_by_the_schema_never_defaulted(label):
    with pytest.raises(ValidationError):
        FailureRateAnswer.model_validate({"turns": [], "reasoning": "", "label": label, "confidence": 1})


@pytest.mark.parametrize(
    ("given", "read"),
    [("high", 0.9), ("85%", 0.85), (85, 0.85), ("0.4", 0.4), (1, 1.0), (0, 0.0), (-3, 0.0), (250, 1.0)],
)
def test_confidence_is_read_as_a_number_from_0_to_1(given, read):
    assert answer("not_applicable", confidence=given).confidence == pytest.approx(read)


@pytest.mark.parametrize("given", ["sure", None, True, float("nan"), "nan", "inf"])
def test_an_unreadable_confidence_is_refused(given):
    with pytest.raises(ValidationError):
        answer("not_applicable", confidence=given)
