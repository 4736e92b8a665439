"""The judge's path from a task to results: gates, one call, at most one repair, what is reported."""

from __future__ import annotations

import pytest

from otel_evals.evaluators.failure_rate import FailureRate
from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.models.protocol import ChatReply, ModelError
from otel_evals.judging.plan import Judge
from otel_evals.settings import EVALUATOR_NAMES, Settings, SettingsError
from tests.evaluators.conversations import session, turn
from tests.judging.scripted import FAILED, PLAIN, ScriptedModel, answers, judge_with, reply, task


async def judged(model, *args, **kwargs):
    result = await judge_with(model).judge(task(*args, **kwargs))
    return {e.evaluator: e for e in result.evaluations}, result.judgement


async def test_all_three_evaluators_are_answered_by_one_call():
    model = ScriptedModel()
    results, judgement = await judged(model)
    assert {n: (e.outcome, e.label, e.score) for n, e in results.items()} == {
        "failure_rate": ("scored", "alternative_proposed", 1.0),
        "goal_achievement": ("scored", "minor", 0.2),
        "failure_communication": ("scored", "Excellent", 1.0),
    }
    assert (len(model.requests), judgement.calls) == (1, 1)


async def test_quotes_that_occur_are_marked_verified():
    results, _ = await judged(ScriptedModel())
    assert all(e.evidence_verified for e in results.values())
    assert all(item.verified for e in results.values() for item in e.evidence)


async def test_what_the_trace_decides_is_not_asked():
    model = ScriptedModel(reply({**answers(["failure_rate", "goal_achievement"])}))
    results, _ = await judged(model, PLAIN)
    assert model.requests[0].evaluators == ("failure_rate", "goal_achievement")
    assert results["failure_communication"].outcome == "not_applicable"


async def test_no_call_is_made_when_the_trace_decides_everything():
    model = ScriptedModel()
    results, judgement = await judged(model, PLAIN, "failure_communication")
    assert (model.requests, judgement.calls, judgement.cost_usd) == ([], 0, 0.0)
    assert list(results) == ["failure_communication"]


@pytest.mark.parametrize(
    ("empty", "reason"),
    [
        (session(), "no_turns"),
        (session(turn(None, None)), "no_content"),
        (session(turn("a", "b"), evaluable=False, not_evaluable_reason="no_agent_answer"), "no_agent_answer"),
    ],
)
async def test_empty_content_is_unscorable_with_its_reason_and_no_call(empty, reason):
    model = ScriptedModel()
    results, _ = await judged(model, empty)
    assert {(e.outcome, e.error_type, e.score) for e in results.values()} == {("unscorable", reason, None)}
    assert model.requests == []


async def test_every_result_carries_its_inclusion_probability():
    results, _ = await judged(ScriptedModel())
    assert {e.probability for e in results.values()} == {0.25}


async def test_only_the_evaluators_of_the_task_are_asked():
    model = ScriptedModel()
    results, _ = await judged(model, FAILED, "goal_achievement")
    assert list(results) == ["goal_achievement"]
    assert model.requests[0].evaluators == ("goal_achievement",)


async def test_an_evaluator_this_process_does_not_have_is_unscorable_and_the_others_are_not():
    results, _ = await judged(ScriptedModel(), FAILED, "failure_rate", "politeness")
    assert results["politeness"].error_type == "unknown_evaluator"
    assert results["failure_rate"].outcome == "scored"


async def test_tokens_and_known_cost_are_summed_over_calls():
    model = ScriptedModel(reply({}, cost_usd=0.01, cached_tokens=50), reply(cost_usd=0.02))
    _, judgement = await judged(model)
    assert (judgement.calls, judgement.input_tokens, judgement.output_tokens, judgement.cached_tokens) == (
        2,
        200,
        40,
        50,
    )
    assert judgement.cost_usd == pytest.approx(0.03)


async def test_one_unknown_cost_makes_the_sum_unknown_never_zero():
    _, judgement = await judged(ScriptedModel(reply({}, cost_usd=0.01), reply(cost_usd=None)))
    assert judgement.cost_usd is None


async def test_the_prompt_hash_depends_on_the_questions_only():
    _, first = await judged(ScriptedModel(), FAILED)
    _, second = await judged(ScriptedModel(), session(turn("a", "b"), turn("c", "d")))
    _, other = await judged(ScriptedModel(), FAILED, "failure_rate")
    assert first.prompt_hash == second.prompt_hash != other.prompt_hash


async def test_the_static_part_is_the_same_bytes_for_every_session():
    model = ScriptedModel()
    await judged(model, FAILED)
    await judged(model, session(*FAILED.turns, session_id="other", goal="Something else"))
    assert model.requests[0].messages[0] == model.requests[1].messages[0]
    assert model.requests[0].schema == model.requests[1].schema


async def test_a_partly_wrong_answer_is_repaired_for_the_wrong_part_only():
    wrong = answers(failure_rate={"label": "splendid"})
    model = ScriptedModel(reply(wrong), reply())
    results, judgement = await judged(model)
    assert model.requests[1].evaluators == ("failure_rate",)
    assert {e.outcome for e in results.values()} == {"scored"}
    assert judgement.calls == 2


async def test_the_repair_call_names_the_problem_and_repeats_the_question():
    model = ScriptedModel(reply(answers(failure_rate={"label": "splendid"})), reply())
    await judged(model)
    first, second = model.requests
    assert list(second.messages[:2]) == list(first.messages)
    assert "failure_rate: `label`" in second.messages[-1]["content"]


async def test_invented_quotes_get_one_repair_call():
    invented = answers(failure_rate={"turns": [{"turn": 0, "quote": "never said", "label": "honest_fallback"}]})
    model = ScriptedModel(reply(invented), reply())
    results, _ = await judged(model)
    assert "do not occur" in model.requests[1].messages[-1]["content"]
    assert results["failure_rate"].evidence_verified is True


async def test_quotes_that_stay_invented_leave_the_verdict_marked_unverified():
    invented = answers(failure_rate={"turns": [{"turn": 0, "quote": "never said", "label": "honest_fallback"}]})
    model = ScriptedModel(reply(invented))
    results, judgement = await judged(model)
    assert (results["failure_rate"].outcome, results["failure_rate"].evidence_verified) == ("scored", False)
    assert judgement.calls == 2


async def test_a_failed_repair_call_falls_back_to_the_usable_first_answer():
    invented = answers(failure_rate={"turns": [{"turn": 0, "quote": "never said", "label": "honest_fallback"}]})
    model = ScriptedModel(reply(invented), ModelError("bad_request", retryable=False))
    results, judgement = await judged(model)
    assert (results["failure_rate"].outcome, results["failure_rate"].evidence_verified) == ("scored", False)
    assert judgement.errors == ("bad_request",)


async def test_a_contradiction_between_label_and_turns_is_asked_about_once():
    contradictory = answers(failure_rate={"label": "hallucination"})
    model = ScriptedModel(reply(contradictory), reply())
    results, _ = await judged(model)
    assert results["failure_rate"].label == "alternative_proposed"
    assert len(model.requests) == 2


async def test_there_are_never_more_than_two_answers():
    model = ScriptedModel(ChatReply(text="I would rather not use JSON."))
    results, judgement = await judged(model)
    assert (len(model.requests), judgement.calls) == (2, 2)
    assert {e.error_type for e in results.values()} == {"malformed_answer"}


async def test_an_answer_without_our_canary_is_not_an_answer():
    model = ScriptedModel(reply({**answers(), "canary": "guess"}))
    results, _ = await judged(model)
    assert {e.error_type for e in results.values()} == {"canary_mismatch"}


class Exploding(FailureRate):
    def score(self, answer, session):
        raise RuntimeError("a third party's bug")


async def test_an_evaluator_that_raises_does_not_take_the_others_with_it(caplog):
    evaluators = {**create_evaluators(EVALUATOR_NAMES), "failure_rate": Exploding()}
    result = await Judge(ScriptedModel(), evaluators, Settings()).judge(task())
    assert [e.error_type for e in result.evaluations] == ["evaluator_error", None, None]
    assert "third party" not in caplog.text


async def test_close_closes_the_model():
    model = ScriptedModel()
    await judge_with(model).close()
    assert model.closed


class WithoutQuestion:
    """A third party's evaluator that was not tried out."""

    name, version, threshold = "failure_rate", "1", 0.7

    @property
    def rubric(self):
        raise RuntimeError("a third party's bug")

    def gate(self, session):
        return None


def test_an_evaluator_whose_question_cannot_be_put_is_refused_at_the_start():
    with pytest.raises(SettingsError, match=r"failure_rate.*a third party's bug"):
        Judge(ScriptedModel(), {"failure_rate": WithoutQuestion()}, Settings())


class FailingPlan:
    """Stands for a bug anywhere below."""

    name, model, askers = "single", "scripted", ()

    async def ask(self, *_):
        raise RuntimeError("a bug")


async def test_whatever_raises_below_leaves_the_gated_results():
    judge = judge_with(ScriptedModel())
    judge._plan = FailingPlan()
    result = await judge.judge(task(PLAIN))
    assert [(e.outcome, e.error_type) for e in result.evaluations] == [
        ("unscorable", "unexpected"),
        ("unscorable", "unexpected"),
        ("not_applicable", None),
    ]


async def test_the_judge_is_told_where_parts_of_the_recording_were_lost():
    model = ScriptedModel()
    await judged(model, FAILED)
    await judged(model, FAILED.model_copy(update={"incomplete": True}))
    whole, lost = (r.messages[1]["content"].partition("\n")[0] for r in model.requests)
    assert "lost" not in whole
    assert "Parts of the recording were lost" in lost


async def test_a_given_goal_is_told_to_the_judge_and_reported():
    model = ScriptedModel()
    results, _ = await judged(model, FAILED.model_copy(update={"goal": "Fly to JFK"}))
    assert '{"goal":"Fly to JFK"}' in model.requests[0].messages[1]["content"]
    assert results["goal_achievement"].details["goal"] == "Fly to JFK"


async def test_the_hosts_log_gets_one_line_however_many_sessions_meet_the_same_error(caplog):
    evaluators = {**create_evaluators(EVALUATOR_NAMES), "failure_rate": Exploding()}
    judge = Judge(ScriptedModel(), evaluators, Settings())
    for _ in range(20):
        await judge.judge(task())
    assert [r.getMessage() for r in caplog.records] == ["evaluator failure_rate raised RuntimeError"]
