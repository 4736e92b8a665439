"""Evaluating conversations that are at hand."""

from __future__ import annotations

import json

import pytest

from otel_evals.judging.models.protocol import ChatReply, ModelError
from otel_evals.offline import (
    ConversationalEvalTestCase,
    EvalTestCase,
    FailureCommunicationEvaluator,
    FailureRateMetric,
    GoalAchievementRateMetric,
    Metric,
    evaluate_conversations,
)
from otel_evals.settings import Settings, SettingsError
from tests.evaluators.conversations import session, turn
from tests.judging.scripted import FAILED, ScriptedModel, answers, canary_of, reply


def conversation(*texts: str, name: str | None = None) -> ConversationalEvalTestCase:
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return ConversationalEvalTestCase(name=name, turns=[EvalTestCase(input=u, actual_output=a) for u, a in pairs])


HELLO = conversation("What is the fare?", "It is $312.", name="hello")


async def test_metrics_with_the_same_model_share_one_call():
    model = ScriptedModel()
    metrics = [FailureRateMetric(model), GoalAchievementRateMetric(model), FailureCommunicationEvaluator(model)]
    (result,) = await evaluate_conversations([FAILED], metrics)
    assert len(model.requests) == 1
    assert [m.name for m in result.metrics] == ["failure_rate", "goal_achievement", "failure_communication"]


async def test_metrics_with_different_models_are_asked_separately():
    models = [ScriptedModel(), ScriptedModel()]
    await evaluate_conversations([FAILED], [FailureRateMetric(models[0]), GoalAchievementRateMetric(models[1])])
    assert [r.evaluators for m in models for r in m.requests] == [("failure_rate",), ("goal_achievement",)]


async def test_two_metrics_of_the_same_name_are_both_answered():
    model = ScriptedModel()
    metrics = [GoalAchievementRateMetric(model, user_goal="A"), GoalAchievementRateMetric(model, user_goal="B")]
    (result,) = await evaluate_conversations([FAILED], metrics)
    assert [m.evaluation_log["goal"] for m in result.metrics] == ["A", "B"]


async def test_results_come_in_the_order_of_the_conversations():
    cases = [conversation("q", "a", name=str(i)) for i in range(50)]
    results = await evaluate_conversations(cases, [FailureRateMetric("rules")])
    assert [r.name for r in results] == [str(i) for i in range(50)]


async def test_one_failing_conversation_does_not_lose_the_others():
    def step(request):
        failing = "poison" in request.messages[1]["content"]
        return ModelError("bad_request", retryable=False) if failing else reply(quiet(request))(request)

    def quiet(request):
        return {"failure_rate": {**answers()["failure_rate"], "turns": [], "label": "not_applicable"}}

    cases = [HELLO, conversation("poison", "a"), conversation(), HELLO]
    results = await evaluate_conversations(cases, [FailureRateMetric(ScriptedModel(step))])
    assert [(r.metrics[0].outcome, r.metrics[0].error_type) for r in results] == [
        ("not_applicable", None),
        ("unscorable", "bad_request"),
        ("unscorable", "no_turns"),
        ("not_applicable", None),
    ]


async def test_something_that_is_no_conversation_is_a_result_too():
    results = await evaluate_conversations([None, HELLO], [FailureRateMetric("rules")])  # type: ignore[list-item]
    assert [r.metrics[0].outcome for r in results] == ["unscorable", "not_applicable"]


async def test_a_result_fails_only_when_scored_below_the_threshold():
    cases = [session(turn("q", "It depends.")), session(turn("q", "It is $312."))]
    results = await evaluate_conversations(cases, [FailureRateMetric("rules")])
    assert [(r.success, r["failure_rate"].score) for r in results] == [(False, 0.4), (True, 1.0)]
    assert [r["failure_rate"].test_pass for r in results] == [False, True]


async def test_thresholds_are_the_metrics_own():
    (result,) = await evaluate_conversations(
        [session(turn("q", "It depends."))], [FailureRateMetric("rules", threshold=0.4)]
    )
    assert result["failure_rate"].success is True


async def test_the_model_of_the_settings_is_the_default():
    (result,) = await evaluate_conversations([HELLO], [FailureRateMetric()], settings=Settings(model="rules"))
    assert result["failure_rate"].evaluation_model == "rules"


class Client:
    """A `CustomLLMClient`."""

    def get_model_name(self):
        return "in-house"

    async def chat_complete(self, messages, temperature):
        canary = canary_of(type("Request", (), {"messages": messages}))
        return json.dumps({"canary": canary, **answers(["failure_rate"])}), 0.25


async def test_a_custom_client_is_a_model():
    (result,) = await evaluate_conversations([FAILED], [FailureRateMetric(Client())])
    metric = result["failure_rate"]
    assert (metric.evaluation_model, metric.evaluation_cost, metric.score) == ("in-house", 0.25, 1.0)


async def test_a_model_that_cannot_be_used_is_refused_at_once(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        await evaluate_conversations([HELLO], [FailureRateMetric("gpt-4o")])


async def test_models_are_closed_afterwards():
    model = ScriptedModel(ChatReply(text=""))
    await evaluate_conversations([HELLO], [FailureRateMetric(model)])
    assert model.closed


async def test_it_prints_only_when_asked(capsys):
    await evaluate_conversations([HELLO], [FailureRateMetric("rules")])
    assert capsys.readouterr() == ("", "")
    await evaluate_conversations([HELLO], [FailureRateMetric("rules", verbose=True)])
    assert "failure_rate 1.00 not_applicable" in capsys.readouterr().out


async def test_the_progress_bar_is_on_standard_error(capsys):
    await evaluate_conversations([HELLO], [FailureRateMetric("rules")], progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "conversations" in err


async def test_an_unknown_name_in_a_result_is_a_key_error():
    (result,) = await evaluate_conversations([HELLO], [FailureRateMetric("rules")])
    with pytest.raises(KeyError):
        result["goal_achievement"]


async def test_any_evaluator_makes_a_metric():
    from otel_evals.evaluators.recovery_strategy import RecoveryStrategy

    (result,) = await evaluate_conversations([FAILED], [Metric(RecoveryStrategy(), model="rules")])
    assert result["recovery_strategy"].label == "adequate"
