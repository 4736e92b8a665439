"""One call or several, one model or several: who is asked what, and what is reported."""

from __future__ import annotations

import pytest

from otel_evals.evaluation import Evaluation
from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.jury import verdict
from otel_evals.judging.models.protocol import ModelError
from otel_evals.judging.plan import Judge
from otel_evals.judging.plans import doubts
from otel_evals.settings import EVALUATOR_NAMES, Settings, SettingsError
from tests.judging.scripted import FAILED, ScriptedModel, answers, judge_with, reply, task


def judge(settings: Settings, first, *others) -> Judge:
    return Judge(first, create_evaluators(EVALUATOR_NAMES), settings, others=others)


def named(name: str, *steps) -> ScriptedModel:
    model = ScriptedModel(*steps)
    model.name = name
    return model


SURE = answers(goal_achievement={"label": "fully", "negative_signals": [], "unmet_requests": []})
"""All three pass with high confidence."""


async def test_separate_asks_each_question_in_its_own_call_with_the_same_scores():
    model = ScriptedModel()
    separate = await judge_with(model, plan="separate").judge(task())
    single = await judge_with(ScriptedModel()).judge(task())
    assert sorted(r.evaluators for r in model.requests) == sorted((name,) for name in EVALUATOR_NAMES)
    assert separate.evaluations == single.evaluations
    assert (separate.judgement.plan, separate.judgement.calls) == ("separate", 3)


async def test_separate_loses_only_the_question_whose_call_failed():
    def step(request):
        return ModelError("bad_request", retryable=False) if "failure_rate" in request.evaluators else reply()(request)

    result = await judge_with(ScriptedModel(step), plan="separate").judge(task())
    assert [e.outcome for e in result.evaluations] == ["unscorable", "scored", "scored"]


ESCALATE = Settings(plan="escalate", escalate_model="rules")


async def test_escalate_leaves_sure_passes_with_the_cheap_model():
    cheap, strong = named("cheap", reply(SURE)), named("strong")
    result = await judge(ESCALATE, cheap, strong).judge(task())
    assert (len(cheap.requests), strong.requests) == (1, [])
    assert (result.judgement.plan, result.judgement.model) == ("escalate", "cheap+strong")


async def test_escalate_asks_the_stronger_model_only_about_what_is_bad_or_doubtful():
    unsure = {**SURE, "failure_rate": {**SURE["failure_rate"], "confidence": 0.2}}
    cheap, strong = named("cheap", reply(unsure)), named("strong")
    result = await judge(ESCALATE, cheap, strong).judge(task())
    assert strong.requests[0].evaluators == ("failure_rate",)
    assert result.evaluations[0].details["escalated_for"] == ["low_confidence"]


async def test_the_stronger_models_verdict_counts():
    failing = {**SURE, "goal_achievement": {**SURE["goal_achievement"], "label": "none"}}
    result = await judge(ESCALATE, named("cheap", reply(failing)), named("strong", reply(SURE))).judge(task())
    goal = result.evaluations[1]
    assert (goal.label, goal.details["first_label"], goal.details["escalated_for"]) == ("fully", "none", ["failed"])


async def test_if_the_stronger_model_fails_the_first_verdict_stays():
    failing = {**SURE, "goal_achievement": {**SURE["goal_achievement"], "label": "none"}}
    strong = named("strong", ModelError("auth", retryable=False))
    result = await judge(ESCALATE, named("cheap", reply(failing)), strong).judge(task())
    goal = result.evaluations[1]
    assert (goal.label, goal.details["escalation_error"]) == ("none", "auth")


async def test_what_the_cheap_model_could_not_score_goes_to_the_stronger_one():
    cheap = named("cheap", ModelError("refused", retryable=False))
    result = await judge(ESCALATE, cheap, named("strong")).judge(task())
    assert {e.outcome for e in result.evaluations} == {"scored"}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, ()),
        ({"passed": False}, ("failed",)),
        ({"details": {"confidence": 0.59}}, ("low_confidence",)),
        ({"details": {"confidence": 0.6}}, ()),
        ({"details": {"stated_label": "b"}}, ("label_conflict",)),
        ({"evidence_verified": False}, ("unverified_evidence",)),
        ({"outcome": "unscorable", "error_type": "refusal"}, ("unscorable",)),
        ({"outcome": "unscorable", "error_type": "expired"}, ()),
        ({"outcome": "not_applicable", "applicable": False, "passed": False}, ()),
    ],
)
def test_what_makes_an_evaluation_doubtful(fields, found):
    base = {"evaluator": "x", "evaluator_version": "1", "outcome": "scored", "label": "a", "passed": True}
    assert doubts(Evaluation(**{**base, **fields}), below=0.6) == found


def test_a_plan_without_its_further_model_is_refused_with_the_remedy():
    for plan, remedy in (("escalate", "escalate_model"), ("jury", "jury")):
        with pytest.raises(SettingsError, match=remedy):
            judge(Settings(plan=plan), ScriptedModel())


def test_the_further_models_come_from_the_settings():
    settings = Settings(plan="jury", jury=("rules", "rules"))
    built = Judge(ScriptedModel(), create_evaluators(EVALUATOR_NAMES), settings)
    assert built._plan.model == "jury(scripted,rules,rules)"


JURY = Settings(plan="jury")
HONEST = reply()
LYING = reply(
    answers(
        failure_rate={
            "turns": [{"turn": 0, "quote": "the search timed out", "label": "hallucination"}],
            "label": "hallucination",
        }
    )
)


async def test_a_jury_decides_by_majority_and_reports_the_agreement():
    jurors = [named("a", HONEST), named("b", LYING), named("c", HONEST)]
    result = await judge(JURY, *jurors).judge(task())
    first = result.evaluations[0]
    assert (first.label, first.details["agreement"]) == ("alternative_proposed", pytest.approx(0.6667))
    assert first.details["jury"] == {"a": "alternative_proposed", "b": "hallucination", "c": "alternative_proposed"}
    assert (result.judgement.model, result.judgement.calls) == ("jury(a,b,c)", 3)


async def test_a_split_jury_does_not_acquit():
    result = await judge(JURY, named("a", HONEST), named("b", LYING)).judge(task(FAILED, "failure_rate"))
    assert result.evaluations[0].label == "hallucination"


async def test_a_juror_that_fails_abstains():
    dead = named("dead", ModelError("auth", retryable=False))
    result = await judge(JURY, dead, named("a", HONEST)).judge(task(FAILED, "failure_rate"))
    first = result.evaluations[0]
    assert (first.label, first.details["agreement"]) == ("alternative_proposed", 1.0)
    assert first.details["jury"]["dead"] == "auth"


async def test_a_jury_of_which_all_fail_is_unscorable():
    dead = [named(n, ModelError("auth", retryable=False)) for n in "ab"]
    result = await judge(JURY, *dead).judge(task())
    assert {(e.outcome, e.error_type) for e in result.evaluations} == {("unscorable", "auth")}


def test_the_middle_score_of_the_majority_is_taken():
    heard = [
        (name, Evaluation(evaluator="x", evaluator_version="1", outcome="scored", label="mostly", score=score))
        for name, score in (("a", 0.9), ("b", 0.6), ("c", 0.7))
    ]
    assert verdict(heard).score == 0.7


async def test_closing_closes_all_models():
    models = [named("a"), named("b")]
    await judge(JURY, *models).close()
    assert all(model.closed for model in models)
