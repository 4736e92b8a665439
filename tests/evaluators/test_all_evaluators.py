"""What holds for every built-in evaluator, whatever a judge answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_evals.evaluators.registry import create_evaluator, create_evaluators, known_evaluators
from otel_evals.settings import EVALUATOR_NAMES
from tests.evaluators.conversations import failed_call, session, turn

EVALUATORS = create_evaluators(known_evaluators())
BROKEN = session(turn("q", "a", failed_call("x"), failed_call("y")), turn("thanks", "b", failed_call("x")))

every_evaluator = pytest.mark.parametrize("evaluator", EVALUATORS.values(), ids=EVALUATORS)


@every_evaluator
@given(data=st.data())
def test_any_valid_answer_gives_a_score_from_0_to_1_or_a_reason(evaluator, data):
    answer = data.draw(st.builds(evaluator.answer, confidence=st.floats(0, 1)))
    assert all(isinstance(problem, str) for problem in evaluator.check(answer, BROKEN))
    result = evaluator.score(answer, BROKEN)
    assert result.evaluator == evaluator.name
    if result.outcome == "unscorable":
        assert (result.score, result.label, result.passed) == (None, None, None)
        assert result.error_type
    else:
        assert 0.0 <= result.score <= 1.0
        assert result.passed == (result.score >= evaluator.threshold)
        assert result.applicable == (result.outcome == "scored")


@every_evaluator
def test_field_order_is_evidence_reasoning_label_confidence(evaluator):
    names = list(evaluator.answer.model_fields)
    assert names[-3:] == ["reasoning", "label", "confidence"]


@every_evaluator
def test_every_field_is_required_and_no_label_has_a_default(evaluator):
    assert all(field.is_required() for field in evaluator.answer.model_fields.values())


@every_evaluator
def test_the_rubric_explains_every_field_but_those_explained_for_all(evaluator):
    explained_for_all = {"reasoning", "confidence"}
    names = set(evaluator.answer.model_fields) - explained_for_all
    assert [name for name in names if f"`{name}`" not in evaluator.rubric] == []


@pytest.mark.parametrize("name", EVALUATOR_NAMES)
def test_the_default_questions_come_with_examples_that_are_the_same_for_every_session(name):
    assert "\nExamples: " in create_evaluator(name).rubric
