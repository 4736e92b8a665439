"""The user's own question from configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from otel_evals.evaluators.registry import create_evaluators
from otel_evals.evaluators.rubric import Rubric, RubricEvaluator
from otel_evals.judging.plan import Judge
from otel_evals.settings import Settings
from tests.evaluators.conversations import failed_call, session, turn, worked_call
from tests.judging.scripted import ScriptedModel, reply, task

POLITE: dict[str, Any] = {
    "name": "politeness",
    "question": "Is the agent polite?",
    "labels": [
        {"label": "rude", "score": 0.0, "definition": "insults or mocks"},
        {"label": "curt", "score": 0.5},
        {"label": "polite", "score": 1.0},
    ],
    "threshold": 0.5,
}
SETTINGS = Settings(evaluators=("politeness",), rubrics=(POLITE,))
ANSWER = {
    "politeness": {
        "quotes": [{"turn": 0, "role": "agent", "quote": "with pleasure"}],
        "reasoning": "It was.",
        "label": "polite",
        "confidence": 0.9,
    }
}
SESSION = session(turn("Find a flight", "Yes, with pleasure.", worked_call()), system_prompt="Be polite.")


async def judged(answer, **changes):
    settings = Settings(evaluators=("politeness",), rubrics=({**POLITE, **changes},))
    model = ScriptedModel(reply(answer))
    judge = Judge(model, create_evaluators(settings.evaluators, settings), settings)
    return (await judge.judge(task(SESSION, "politeness"))).evaluations[0], model


async def test_it_is_asked_and_scored_by_its_own_table():
    result, model = await judged(ANSWER)
    assert (result.label, result.score, result.passed, result.evidence_verified) == ("polite", 1.0, True, True)
    assert "Is the agent polite?" in model.requests[0].messages[0]["content"]
    assert "- rude: insults or mocks" in model.requests[0].messages[0]["content"]


async def test_a_score_at_its_threshold_passes():
    result, _ = await judged({"politeness": {**ANSWER["politeness"], "label": "Curt"}})
    assert (result.label, result.score, result.passed) == ("curt", 0.5, True)


async def test_a_label_it_does_not_have_is_unscorable():
    result, _ = await judged({"politeness": {**ANSWER["politeness"], "label": "charming"}})
    assert (result.outcome, result.error_type) == ("unscorable", "unknown_label")


async def test_the_judge_is_shown_only_what_it_needs():
    _, everything = await judged(ANSWER)
    _, words_only = await judged(ANSWER, needs=[])
    shown = everything.requests[0].messages[1]["content"]
    assert "search_flights" in shown
    assert "Be polite." in shown
    shown = words_only.requests[0].messages[1]["content"]
    assert "search_flights" not in shown
    assert "Be polite." not in shown


@pytest.mark.parametrize(
    ("gate", "calls", "arises"),
    [
        ("always", (), True),
        ("tool_used", (), False),
        ("tool_used", (worked_call(),), True),
        ("tool_failed", (worked_call(),), False),
        ("tool_failed", (failed_call(),), True),
        ("no_tool_failed", (failed_call(),), False),
    ],
)
def test_the_gate_says_by_the_trace_where_the_question_arises(gate, calls, arises):
    evaluator = RubricEvaluator(Rubric.model_validate({**POLITE, "gate": gate}))
    gated = evaluator.gate(session(turn("q", "a", *calls)))
    assert (gated is None) is arises
    assert gated is None or gated.applicable is False


async def test_missing_quotes_are_asked_about_once():
    bare = {"politeness": {**ANSWER["politeness"], "quotes": []}}
    result, model = await judged(bare)
    assert len(model.requests) == 2
    assert result.evidence_verified is False


async def test_a_rubric_may_do_without_quotes():
    bare = {"politeness": {**ANSWER["politeness"], "quotes": []}}
    result, model = await judged(bare, quotes=False)
    assert len(model.requests) == 1
    assert result.evidence_verified is None


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Politeness!"},
        {"labels": POLITE["labels"][:1]},
        {"labels": [{"label": "a", "score": 1.5}, {"label": "b", "score": 0}]},
        {"labels": [{"label": "Good", "score": 1}, {"label": "good", "score": 0}]},
        {"labels": [{"label": "not_applicable", "score": 1}, {"label": "b", "score": 0}]},
        {"threshold": 2},
        {"gate": "sometimes"},
        {"question": ""},
        {"colour": "blue"},
    ],
)
def test_a_rubric_that_cannot_work_is_refused(changes):
    with pytest.raises(ValidationError):
        Rubric.model_validate({**POLITE, **changes})


def test_a_rubric_cannot_take_a_built_in_name():
    settings = Settings(rubrics=({**POLITE, "name": "failure_rate"},))
    with pytest.raises(ValueError, match=r"failure_rate.*choose another"):
        create_evaluators(settings.evaluators, settings)


def test_configured_rubrics_are_named_among_the_known_evaluators():
    with pytest.raises(ValueError, match="politeness"):
        create_evaluators(("politness",), SETTINGS)


def test_rubrics_come_from_a_yaml_file(tmp_path, monkeypatch):
    file = tmp_path / "evals.yaml"
    file.write_text(json.dumps({"evaluators": ["failure_rate", "politeness"], "rubrics": [POLITE]}))
    monkeypatch.setenv("OTEL_EVALS_CONFIG", str(file))
    settings = Settings()
    assert list(create_evaluators(settings.evaluators, settings)) == ["failure_rate", "politeness"]
