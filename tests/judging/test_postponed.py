"""A provider that asks for a pause: the session waits in the queue, not in the judge's place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from otel_evals import Settings
from otel_evals.evaluation import JudgedSession
from otel_evals.judging import calls
from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from otel_evals.judging.models.protocol import ModelError
from otel_evals.pipeline import Pipeline
from otel_evals.queues.memory import MemoryQueue
from tests.agents import run_conversation
from tests.judging.scripted import FAILED, FakeClock, ScriptedModel, judge_with, reply, task
from tests.runtime.conftest import App, make_app  # noqa: F401 - a fixture
from tests.scripted_judge import ScriptedJudge

SECOND_NS = 10**9


def busy(retry_after_s: float) -> ModelError:
    return ModelError("rate_limited", retryable=True, retry_after_s=retry_after_s)


class Running:
    """A pipeline with a judge on one fake clock for everything."""

    def __init__(self, *steps: Any, **settings: Any) -> None:
        self.clock = FakeClock()
        self.model = ScriptedModel(*steps)
        self.results: list[JudgedSession] = []
        self.pipeline = Pipeline(
            Settings(**settings), model=self.model, clock=self.now_ns, on_result=self.results.append
        )
        self.pipeline._judge = judge_with(self.model, self.clock, **settings)
        self.pipeline._judge._now_ns = self.now_ns
        self.pipeline.ledger.complete()
        self.pipeline.queue.put(task(enqueued_ns=self.now_ns()))

    def now_ns(self) -> int:
        return int(self.clock.now * SECOND_NS)

    async def judge_all_due(self) -> int:
        """How many times a task was taken."""
        taken = 0
        while await self.pipeline.judge_next():
            taken += 1
        return taken


async def test_a_long_pause_is_spent_in_the_queue_and_holds_no_judge() -> None:
    running = Running(busy(30), reply())
    assert await running.judge_all_due() == 1
    assert (running.pipeline.judging, running.pipeline.queue.size(), running.clock.slept) == (0, 1, [])


async def test_it_is_judged_when_the_pause_is_over_and_not_before() -> None:
    running = Running(busy(30), reply())
    await running.judge_all_due()
    running.clock.now += 29
    assert await running.judge_all_due() == 0
    running.clock.now += 1
    assert await running.judge_all_due() == 1
    (result,) = running.results
    assert {e.outcome for e in result.evaluations} == {"scored"}


async def test_calls_and_errors_before_the_pause_are_counted_on() -> None:
    running = Running(busy(30), reply())
    await running.judge_all_due()
    running.clock.now += 30
    await running.judge_all_due()
    judgement = running.results[0].judgement
    assert (judgement.calls, judgement.errors) == (2, ("rate_limited",))


async def test_it_gets_one_decision_and_stays_pending_until_then() -> None:
    running = Running(busy(30), reply())
    await running.judge_all_due()
    assert (running.pipeline.ledger.pending, dict(running.pipeline.ledger.decisions())) == (1, {})
    running.clock.now += 30
    await running.judge_all_due()
    assert (running.pipeline.ledger.pending, running.pipeline.ledger.decisions()["judged"]) == (0, 1)


async def test_pauses_do_not_grant_further_attempts() -> None:
    running = Running(busy(30), judge_attempts=3)
    for _ in range(5):
        await running.judge_all_due()
        running.clock.now += 30
    assert len(running.model.requests) == 3
    assert {e.error_type for e in running.results[0].evaluations} == {"rate_limited"}


async def test_the_deadline_counts_from_the_first_time_it_was_queued() -> None:
    running = Running(busy(60), judge_deadline=100, judge_attempts=9)
    for _ in range(3):
        await running.judge_all_due()
        running.clock.now += 60
    assert len(running.model.requests) == 2
    assert {e.error_type for e in running.results[0].evaluations} == {"rate_limited"}


async def test_a_short_pause_is_waited_for_in_place() -> None:
    running = Running(busy(1.5), reply())
    assert await running.judge_all_due() == 1
    assert running.clock.slept == [1.5]
    assert len(running.results) == 1


async def test_the_others_wait_in_the_queue_too_without_calling() -> None:
    running = Running(busy(30), reply())
    for _ in range(3):
        running.pipeline.ledger.complete()
        running.pipeline.queue.put(task(enqueued_ns=running.now_ns()))
    assert await running.judge_all_due() == 4
    assert (len(running.model.requests), running.pipeline.queue.size()) == (1, 4)
    running.clock.now += 30
    assert await running.judge_all_due() == 4
    assert (len(running.model.requests), len(running.results)) == (5, 4)


async def test_after_a_first_answer_the_pause_is_waited_for_in_place() -> None:
    running = Running(reply({}), busy(30), reply())
    assert await running.judge_all_due() == 1
    assert running.clock.slept == [30]
    assert {e.outcome for e in running.results[0].evaluations} == {"scored"}


async def test_who_has_no_queue_waits_in_place() -> None:
    clock = FakeClock()
    result = await judge_with(ScriptedModel(busy(30), reply()), clock).judge(task())
    assert clock.slept == [30]
    assert {e.outcome for e in result.evaluations} == {"scored"}


async def test_a_queue_gives_what_was_put_back_when_its_time_has_come_and_before_newer_tasks() -> None:
    queue = MemoryQueue(10)
    queue.put_back(task(not_before_ns=50, enqueued_ns=1))
    queue.put_back(task(not_before_ns=40, enqueued_ns=2))
    queue.put(task(enqueued_ns=3))
    assert (queue.size(), queue.oldest_ns(), queue.next_ns()) == (3, 1, 0)
    assert queue.take(39).enqueued_ns == 3
    assert (queue.take(39), queue.next_ns()) == (None, 40)
    assert [queue.take(50).enqueued_ns for _ in range(2)] == [2, 1]
    assert (queue.take(50), queue.next_ns(), queue.oldest_ns()) == (None, None, None)


async def test_what_was_put_back_takes_room_but_is_never_refused() -> None:
    queue = MemoryQueue(1)
    queue.put_back(task(not_before_ns=50))
    queue.put_back(task(not_before_ns=50))
    assert not queue.put(task())
    assert [queue.take().session for _ in range(2)] == [FAILED, FAILED]


async def test_replay_and_flush_wait_for_the_pause(
    scripted_judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_SHORT_WAIT_S", 0.01)
    scripted_judge.fault("rate_limited", times=1, retry_after=0.2)
    results: list[JudgedSession] = []
    model = OpenAICompatibleModel("judge", scripted_judge.base_url, "key")
    pipeline = Pipeline(Settings(), model=model, on_result=results.append)
    pipeline.ledger.complete()
    pipeline.queue.put(task(enqueued_ns=pipeline._clock()))
    await pipeline.judge_all()
    await pipeline.close()
    assert results[0].judgement.errors == ("rate_limited",)
    assert pipeline.ledger.pending == 0


def test_in_an_application_a_paused_session_is_judged_later_without_a_busy_loop(
    make_app: Callable[..., App],  # noqa: F811
    scripted_judge: ScriptedJudge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "_SHORT_WAIT_S", 0.01)
    scripted_judge.fault("rate_limited", times=1, retry_after=0.3)
    app = make_app(judge_model=OpenAICompatibleModel("judge", scripted_judge.base_url, "key"))
    taken = 0
    take = app.handle._runtime.pipeline.queue.take

    def counted(now_ns: int | None = None) -> Any:
        nonlocal taken
        taken += 1
        return take(now_ns)

    monkeypatch.setattr(app.handle._runtime.pipeline.queue, "take", counted)
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    (result,) = app.results
    assert result.judgement.errors == ("rate_limited",)
    assert app.handle.stats()["decisions"] == {"judged": 1}
    assert taken < 20


def test_a_shutdown_does_not_wait_for_a_pause_that_outlasts_it(
    make_app: Callable[..., App],  # noqa: F811
    scripted_judge: ScriptedJudge,
) -> None:
    scripted_judge.fault("rate_limited", times=1, retry_after=60)
    app = make_app(judge_model=OpenAICompatibleModel("judge", scripted_judge.base_url, "key"))
    run_conversation(app.tracer_provider, "c-1")
    began = time.monotonic()
    app.handle.shutdown(20_000)
    assert time.monotonic() - began < 10
    assert len(scripted_judge.requests) == 1
    assert app.handle.stats()["decisions"] == {"expired": 1}
