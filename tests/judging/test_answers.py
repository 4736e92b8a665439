"""Reading answers: whatever a judge writes, reading it never raises and never invents a label."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from otel_evals.evaluators.failure_rate import SCORES
from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.answers import parse_answers
from otel_evals.settings import EVALUATOR_NAMES

EVALUATORS = create_evaluators(EVALUATOR_NAMES)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
labels = st.sampled_from([*SCORES, "Stall", "HALLUCINATION", "splendid", ""]) | json_values
answers = st.fixed_dictionaries(
    {},
    optional={
        "turns": json_values
        | st.lists(st.fixed_dictionaries({"turn": json_values, "quote": json_values, "label": labels}), max_size=3),
        "reasoning": json_values,
        "label": labels,
        "confidence": json_values | st.sampled_from(["high", "90%", 0.5]),
    },
)


@given(st.text())
def test_any_text_ends_as_an_answer_or_a_named_problem(text):
    parsed = parse_answers(text, EVALUATORS, "canary")
    assert parsed.answers.keys() | parsed.problems.keys() == EVALUATORS.keys()
    assert parsed.problems.keys() == parsed.error_types.keys()


@given(json_values)
def test_any_json_ends_as_an_answer_or_a_named_problem(value):
    parsed = parse_answers(json.dumps({"canary": "c", "failure_rate": value}), EVALUATORS, "c")
    assert parsed.answers.keys() | parsed.problems.keys() == EVALUATORS.keys()


@given(answers)
def test_a_label_is_read_only_where_it_was_written(value):
    parsed = parse_answers(json.dumps({"canary": "c", "failure_rate": value}), EVALUATORS, "c")
    if answer := parsed.answers.get("failure_rate"):
        written = value["label"][0] if isinstance(value["label"], list) else value["label"]
        assert answer.label in SCORES
        assert answer.label.replace("_", "") == "".join(c for c in written.casefold() if c.isalnum())


@given(answers)
def test_problems_repeat_nothing_of_the_answer(value):
    marked = json.loads(json.dumps(value).replace("splendid", "SECRETWORD"))
    parsed = parse_answers(json.dumps({"canary": "c", "failure_rate": marked}), EVALUATORS, "c")
    assert "SECRETWORD" not in str(parsed.problems)


def test_an_answer_without_its_wrapper_is_read_when_only_one_question_was_asked():
    bare = {"canary": "c", "turns": [], "reasoning": "", "label": "not_applicable", "confidence": 1}
    one = {"failure_rate": EVALUATORS["failure_rate"]}
    assert "failure_rate" in parse_answers(json.dumps(bare), one, "c").answers
    assert parse_answers(json.dumps(bare), EVALUATORS, "c").error_types["failure_rate"] == "missing_field"
