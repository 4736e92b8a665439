"""What judging one session may take at most, in tokens and in money."""

from __future__ import annotations

import pytest

from otel_evals import Settings
from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.calls import Spent
from otel_evals.judging.models.price import Price
from otel_evals.judging.plan import Judge
from otel_evals.judging.session_limit import SessionLimit
from otel_evals.settings import EVALUATOR_NAMES
from tests.judging.scripted import ScriptedModel, answers, judge_with, reply, task

WRONG = answers(failure_rate={"label": "splendid"})
CONTRADICTORY = answers(failure_rate={"label": "hallucination"})


def outcomes(result):
    return {e.evaluator: (e.outcome, e.error_type) for e in result.evaluations}


async def test_without_a_limit_a_wrong_answer_is_asked_again():
    model = ScriptedModel(reply(WRONG, input_tokens=4000), reply())
    result = await judge_with(model).judge(task())
    assert len(model.requests) == 2
    assert {outcome for outcome, _ in outcomes(result).values()} == {"scored"}


async def test_a_second_call_that_would_exceed_the_tokens_is_not_made_and_the_reason_is_the_first_answers():
    model = ScriptedModel(reply(WRONG, input_tokens=4000), reply())
    result = await judge_with(model, judge_session_tokens=5000).judge(task())
    assert len(model.requests) == 1
    assert outcomes(result)["failure_rate"] == ("unscorable", "unknown_label")
    assert outcomes(result)["goal_achievement"] == ("scored", None)
    assert result.judgement.errors == ("session_limit",)


async def test_a_first_answer_that_gives_something_is_kept():
    model = ScriptedModel(reply(CONTRADICTORY, input_tokens=4000), reply())
    result = await judge_with(model, judge_session_tokens=5000).judge(task())
    assert len(model.requests) == 1
    assert {outcome for outcome, _ in outcomes(result).values()} == {"scored"}
    assert next(e for e in result.evaluations if e.evaluator == "failure_rate").evidence_verified is False


async def test_a_session_whose_prompt_alone_exceeds_the_limit_is_not_judged():
    model = ScriptedModel()
    result = await judge_with(model, judge_session_tokens=500).judge(task())
    assert model.requests == []
    assert {error for _, error in outcomes(result).values()} == {"session_limit"}


async def test_a_call_gets_no_more_output_than_is_left():
    model = ScriptedModel()
    await judge_with(model, judge_session_tokens=2000, judge_max_tokens=2000).judge(task())
    assert 64 <= model.requests[0].max_tokens < 1500


async def test_answers_without_usage_are_estimated():
    wrong = reply(WRONG, input_tokens=0, output_tokens=0)
    model = ScriptedModel(wrong, reply())
    await judge_with(model, judge_session_tokens=1900).judge(task())
    assert len(model.requests) == 1


async def test_money_stops_the_second_call_at_the_price_of_the_first():
    model = ScriptedModel(reply(WRONG, cost_usd=0.009), reply())
    result = await judge_with(model, judge_session_usd=0.01).judge(task())
    assert len(model.requests) == 1
    assert result.judgement.cost_usd == 0.009


async def test_money_enough_for_two_calls_pays_for_two():
    model = ScriptedModel(reply(WRONG, cost_usd=0.0001), reply(cost_usd=0.0001))
    await judge_with(model, judge_session_usd=1.0).judge(task())
    assert len(model.requests) == 2


async def test_where_the_price_is_unknown_there_is_no_second_call():
    model = ScriptedModel(reply(WRONG), reply())
    await judge_with(model, judge_session_usd=100.0).judge(task())
    assert len(model.requests) == 1


async def test_a_configured_price_limits_the_first_call_too():
    model = ScriptedModel()
    prices = {"input_price": 1000.0, "output_price": 1000.0}
    result = await judge_with(model, judge_session_usd=0.1, **prices).judge(task())
    assert model.requests == []
    assert {error for _, error in outcomes(result).values()} == {"session_limit"}


async def test_the_stronger_model_is_not_asked_beyond_the_limit_and_the_first_verdict_stays():
    cheap = ScriptedModel(reply(input_tokens=4000))  # goal achievement fails, which is a reason to escalate
    strong = ScriptedModel()
    settings = Settings(plan="escalate", escalate_model="unused", judge_session_tokens=4200)
    judge = Judge(cheap, create_evaluators(EVALUATOR_NAMES), settings, others=[strong])
    result = await judge.judge(task())
    assert strong.requests == []
    goal = next(e for e in result.evaluations if e.evaluator == "goal_achievement")
    assert (goal.outcome, goal.details["escalation_error"]) == ("scored", "session_limit")


async def test_calls_at_the_same_time_count_against_one_limit():
    model = ScriptedModel()
    result = await judge_with(model, plan="separate", judge_session_tokens=2700, judge_max_tokens=2000).judge(task())
    assert len(model.requests) == 1
    assert sorted(outcome for outcome, _ in outcomes(result).values()) == ["scored", "unscorable", "unscorable"]


@pytest.mark.parametrize(
    ("limit", "room"),
    [
        (SessionLimit(), 2000),
        (SessionLimit(tokens=1000), 500),
        (SessionLimit(tokens=563), 0),
        (SessionLimit(tokens=564), 64),
        (SessionLimit(usd=0.002, price=Price(1.0, 2.0)), 750),
        (SessionLimit(usd=0.0005, price=Price(1.0, 2.0)), 0),
        (SessionLimit(usd=0.0001, price=Price(0.0, 0.0)), 2000),
        (SessionLimit(usd=0.0001), 2000),
        (SessionLimit(tokens=1000, usd=0.001, price=Price(1.0, 2.0)), 250),
    ],
)
def test_room_for_output_after_a_prompt_of_500_tokens(limit, room):
    assert limit.room(Spent(), 500, 2000) == room
