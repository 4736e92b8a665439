"""When a judge model is left alone, for how long, and how it comes back."""

from __future__ import annotations

import pytest

from otel_evals.judging.breaker import Breaker
from otel_evals.judging.models.protocol import ModelError
from tests.judging.scripted import FakeClock, ScriptedModel, judge_with, reply, task


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def breaker(clock):
    return Breaker("some-model", clock)


@pytest.mark.parametrize("error_type", ["quota", "auth", "not_found"])
def test_a_lasting_refusal_opens_it_at_once_and_for_minutes(breaker, clock, error_type):
    breaker.failed(error_type)
    clock.now += 299
    assert not breaker.allows()
    clock.now += 2
    assert breaker.allows()


def test_unavailability_opens_it_after_five_failures_in_a_row(breaker):
    for _ in range(4):
        breaker.failed("unavailable")
    assert breaker.allows()
    breaker.failed("unavailable")
    assert not breaker.allows()


def test_a_success_in_between_starts_the_count_again(breaker):
    for _ in range(4):
        breaker.failed("timeout")
    breaker.succeeded()
    breaker.failed("timeout")
    assert breaker.allows()


@pytest.mark.parametrize("error_type", ["bad_request", "context_length", "content_filter", "bad_response"])
def test_errors_of_single_requests_never_open_it(breaker, error_type):
    for _ in range(100):
        breaker.failed(error_type)
    assert breaker.allows()


def test_exactly_one_probe_is_let_through_after_the_pause(breaker, clock):
    breaker.failed("auth")
    clock.now += 301
    assert [breaker.allows() for _ in range(5)] == [True, False, False, False, False]


def test_a_successful_probe_closes_it(breaker, clock):
    breaker.failed("auth")
    clock.now += 301
    breaker.allows()
    breaker.succeeded()
    assert [breaker.allows() for _ in range(3)] == [True, True, True]


def test_each_failed_probe_doubles_the_pause_up_to_an_hour(breaker, clock):
    pauses = []
    breaker.failed("quota")
    for _ in range(6):
        pause = 0
        while not breaker.allows():
            clock.now += 10
            pause += 10
        pauses.append(pause)
        breaker.failed("quota")
    assert pauses == [300, 600, 1200, 2400, 3600, 3600]


def test_a_cancelled_probe_lets_the_next_one_through(breaker, clock):
    breaker.failed("auth")
    clock.now += 301
    assert breaker.allows()
    breaker.abandoned()
    assert breaker.allows()


def test_one_line_is_logged_however_many_calls_and_probes_fail(breaker, clock, caplog):
    for _ in range(5):
        for _ in range(20):
            breaker.failed("quota")
        clock.now += 4000
        breaker.allows()
    assert [r.message for r in caplog.records if "some-model" in r.message] == [caplog.records[0].message]
    assert "quota" in caplog.records[0].message


async def test_while_open_sessions_are_unscorable_and_no_call_is_made():
    clock = FakeClock()
    model = ScriptedModel(ModelError("auth", retryable=False), reply())
    judge = judge_with(model, clock)
    await judge.judge(task())
    result = await judge.judge(task())
    assert {e.error_type for e in result.evaluations} == {"breaker_open"}
    assert (len(model.requests), result.judgement.calls) == (1, 0)


async def test_after_the_pause_sessions_are_judged_again():
    clock = FakeClock()
    judge = judge_with(ScriptedModel(ModelError("auth", retryable=False), reply()), clock)
    await judge.judge(task())
    clock.now += 301
    result = await judge.judge(task())
    assert {e.outcome for e in result.evaluations} == {"scored"}


async def test_the_judge_says_which_models_it_leaves_alone_and_why():
    clock = FakeClock()
    judge = judge_with(ScriptedModel(ModelError("quota", retryable=False), reply()), clock)
    assert judge.left_alone == {}
    await judge.judge(task())
    assert judge.left_alone == {"scripted": "quota"}
    clock.now += 301
    await judge.judge(task())
    assert judge.left_alone == {}
