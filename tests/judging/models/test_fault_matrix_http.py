"""A whole judgement over HTTP, row by row of what a provider can do wrong: outcome, calls, waiting, nothing leaked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from otel_evals.evaluation import JudgedSession
from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from otel_evals.judging.plan import Judge
from tests.judging.models.conftest import API_KEY
from tests.judging.scripted import FakeClock, answers, judge_with, task
from tests.scripted_judge import ScriptedJudge

ATTEMPTS = 3

Matrix = tuple[Judge, FakeClock]


@pytest.fixture
async def matrix(scripted_judge: ScriptedJudge) -> AsyncIterator[Matrix]:
    scripted_judge.answer(**answers())
    clock = FakeClock()
    judge = judge_with(OpenAICompatibleModel("judge", scripted_judge.base_url, API_KEY), clock, judge_attempts=ATTEMPTS)
    yield judge, clock
    await judge.close()


def outcomes(result: JudgedSession) -> set[tuple[str, str | None]]:
    return {(evaluation.outcome, evaluation.error_type) for evaluation in result.evaluations}


SCORED = {("scored", None)}

# Fault → HTTP calls until the answer is good, when the fault strikes the first call only.
STRIKES_ONCE = {
    "rate_limited": 2,
    "server_error": 2,
    "html_502": 2,
    "overloaded": 2,
    "dropped": 2,
    "not_json": 2,
    "not_a_completion": 2,
    "schema_rejected": 2,
    "parameter_rejected": 2,
    "malformed": 2,
    "truncated": 2,
    "empty": 2,
    "wrong_label": 2,
    "null_label": 2,
    "missing_field": 2,
    "fenced": 1,
    "prose": 1,
    "two_objects": 1,
    "wrong_case": 1,
    "list_label": 1,
    "slow": 1,
}


@pytest.mark.parametrize("fault", STRIKES_ONCE)
async def test_a_fault_that_passes_costs_calls_but_no_score(
    matrix: Matrix, scripted_judge: ScriptedJudge, assert_nothing_leaked: Callable[..., None], fault: str
) -> None:
    scripted_judge.fault(fault)
    result = await matrix[0].judge(task())
    assert outcomes(result) == SCORED
    assert len(scripted_judge.requests) == result.judgement.calls == STRIKES_ONCE[fault]
    assert_nothing_leaked()


# Fault → (reason, HTTP calls) when the fault strikes every call.
STRIKES_ALWAYS = {
    "rate_limited": ("rate_limited", ATTEMPTS),
    "server_error": ("server_error", ATTEMPTS),
    "html_502": ("unavailable", ATTEMPTS),
    "overloaded": ("unavailable", ATTEMPTS),
    "dropped": ("unavailable", ATTEMPTS),
    "not_json": ("bad_response", ATTEMPTS),
    "not_a_completion": ("bad_response", ATTEMPTS),
    "quota": ("quota", 1),
    "auth": ("auth", 1),
    "forbidden": ("auth", 1),
    "not_found": ("not_found", 1),
    "content_filter_400": ("content_filter", 1),
    "refusal": ("refusal", 1),
    "content_filter": ("content_filter", 1),
    "malformed": ("malformed_answer", 2),
    "truncated": ("truncated_answer", 2),
    "empty": ("empty_answer", 2),
    "wrong_label": ("unknown_label", 2),
    "null_label": ("unknown_label", 2),
}


@pytest.mark.parametrize("fault", STRIKES_ALWAYS)
async def test_a_fault_that_stays_is_a_reason_and_never_a_score(
    matrix: Matrix, scripted_judge: ScriptedJudge, assert_nothing_leaked: Callable[..., None], fault: str
) -> None:
    error_type, calls = STRIKES_ALWAYS[fault]
    scripted_judge.fault(fault, times=None)
    result = await matrix[0].judge(task())
    assert ("unscorable", error_type) in outcomes(result)
    assert {evaluation.score for evaluation in result.evaluations if evaluation.outcome == "unscorable"} == {None}
    assert len(scripted_judge.requests) == result.judgement.calls == calls
    assert_nothing_leaked()


async def test_a_transcript_too_long_for_the_model_is_shortened_and_asked_once_more(
    matrix: Matrix, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.fault("context_length")
    result = await matrix[0].judge(task())
    assert outcomes(result) == SCORED
    assert len(scripted_judge.requests) == 2


async def test_a_provider_that_is_down_is_a_reason(matrix: Matrix, scripted_judge: ScriptedJudge) -> None:
    with scripted_judge.refusing():
        result = await matrix[0].judge(task())
    assert outcomes(result) == {("unscorable", "refused")}


async def test_retry_after_is_waited_for(matrix: Matrix, scripted_judge: ScriptedJudge) -> None:
    judge, clock = matrix
    scripted_judge.fault("rate_limited", retry_after=40)
    assert outcomes(await judge.judge(task())) == SCORED
    assert clock.slept == [40.0]


async def test_everything_rejected_but_plain_text_still_ends_in_scores(
    matrix: Matrix, scripted_judge: ScriptedJudge
) -> None:
    for fault in ("schema_rejected", "tools_rejected", "json_object_rejected", "parameter_rejected"):
        scripted_judge.fault(fault, times=None)
    judge, _ = matrix
    assert outcomes(await judge.judge(task())) == SCORED
    learned = len(scripted_judge.requests)
    assert outcomes(await judge.judge(task())) == SCORED
    assert (learned, len(scripted_judge.requests)) == (5, 6)


async def test_a_judge_that_hangs_ends_at_its_timeouts(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("hang", times=None)
    model = OpenAICompatibleModel("judge", scripted_judge.base_url, API_KEY)
    judge = judge_with(model, judge_timeout=0.1, judge_attempts=2)
    assert outcomes(await judge.judge(task())) == {("unscorable", "timeout")}
    assert len(scripted_judge.requests) == 2
    await judge.close()
