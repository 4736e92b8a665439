"""What happens around the processor must not reach the application: a dead collector, a hanging or failing judge."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_evals import Settings
from otel_evals.pipeline import Pipeline
from tests.agents import run_conversation, run_turn
from tests.runtime.conftest import App
from tests.scripted_judge import ScriptedJudge


def judged_by(judge: ScriptedJudge, **settings: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "base_url": judge.base_url, "api_key": "sk-secret", **settings}


def identity_holds(app: App) -> bool:
    stats = app.handle.stats()
    return sum(stats["decisions"].values()) + stats["pending"] == stats["sessions_completed"]


def test_a_judge_behind_http_scores_the_session(make_app: Callable[..., App], scripted_judge: ScriptedJudge) -> None:
    app = make_app(**judged_by(scripted_judge))
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"judged": 1}
    assert len(scripted_judge.requests) == 1
    (result,) = app.results
    assert result.judgement.calls == 1
    assert result.judgement.input_tokens > 0


def test_a_hanging_judge_holds_up_neither_application_nor_shutdown(
    make_app: Callable[..., App], scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.fault("hang")
    app = make_app(**judged_by(scripted_judge))
    run_conversation(app.tracer_provider, "c-1")
    assert app.handle.force_flush(300, complete=True) is False
    begin = time.monotonic()
    app.handle.shutdown(300)
    assert time.monotonic() - begin < 8
    assert app.handle.stats()["decisions"] == {"expired": 1}
    assert app.results == []


def test_a_judge_call_that_times_out_is_an_outcome_not_a_score(
    make_app: Callable[..., App], scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.fault("hang")
    app = make_app(**judged_by(scripted_judge, judge_timeout=0.2, judge_attempts=1))
    run_turn(app.tracer_provider, "c-1", "Find me a flight.", "The search timed out.", tool_error="timed out")
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"unscorable": 1}
    (result,) = app.results
    assert {(e.outcome, e.score) for e in result.evaluations} == {("unscorable", None)}
    assert app.metric_total("otel_evals.evaluations.weight") == 0


def test_a_judge_that_is_down_keeps_the_ledger_whole(make_app: Callable[..., App]) -> None:
    app = make_app(model="gpt-4o", base_url="http://127.0.0.1:9/v1", judge_attempts=1)
    for number in range(5):
        run_conversation(app.tracer_provider, f"c-{number}")
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"unscorable": 5}
    assert identity_holds(app)


def test_a_full_judge_queue_is_a_decision(make_app: Callable[..., App], scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("hang")
    app = make_app(**judged_by(scripted_judge, queue_capacity=2, judge_concurrency=1))
    for number in range(10):
        run_conversation(app.tracer_provider, f"c-{number}")
    app.handle.force_flush(300, complete=True)
    assert app.handle.stats()["decisions"]["queue_full"] >= 7
    assert identity_holds(app)
    app.handle.shutdown(200)
    stats = app.handle.stats()
    assert sum(stats["decisions"].values()) == stats["sessions_completed"] == 10
    assert app.metric_total("otel_evals.sessions") == app.metric_total("otel_evals.sessions.completed") == 10


def test_a_dead_collector_does_not_keep_sessions_from_being_judged(make_app: Callable[..., App]) -> None:
    app = make_app()
    exporter = OTLPSpanExporter(endpoint="http://127.0.0.1:9/v1/traces", timeout=1)
    app.tracer_provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=10))
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"judged": 1}


def test_a_callback_that_raises_is_named_in_the_log_and_costs_no_session(
    make_app: Callable[..., App], caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app()

    def broken(_: Any) -> None:
        raise LookupError("my secret content")

    app.handle._runtime.pipeline._on_result = broken
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"judged": 1}
    assert "LookupError" in caplog.text
    assert "my secret content" not in caplog.text


def test_no_key_and_no_conversation_text_reaches_the_logs(
    make_app: Callable[..., App], scripted_judge: ScriptedJudge, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    scripted_judge.fault("auth")
    app = make_app(**judged_by(scripted_judge))
    run_turn(app.tracer_provider, "c-1", "my very private question", "my very private answer")
    assert app.complete()
    for secret in ("sk-secret", "my very private"):
        assert secret not in caplog.text


def test_a_session_that_cannot_be_decided_on_is_accounted_for(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("rule")

    monkeypatch.setattr(app.handle._runtime.sampler, "decide", broken)
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"unscorable": 1}
    assert app.handle.stats()["pending"] == 0


def test_a_session_that_waits_beyond_its_deadline_expires_without_a_call() -> None:
    now = [0]
    pipeline = Pipeline(Settings(rate=1.0, judge_deadline=10.0), clock=lambda: now[0])
    from tests.agents import a_session

    pipeline._decide(a_session())
    now[0] = 11 * 10**9
    assert asyncio.run(pipeline.judge_next()) is True
    assert pipeline.ledger.decisions() == {"expired": 1}


def test_a_session_without_content_is_not_evaluable_and_not_judged(app: App) -> None:
    tracer = app.tracer_provider.get_tracer("content off")
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c-1"}
    tracer.start_span("invoke_agent", attributes=attributes).end()
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"not_evaluable": 1}
    assert app.results == []


def test_the_judge_does_not_run_in_the_applications_current_span(
    make_app: Callable[..., App],
) -> None:
    """Judge work started from a flush inside a request must not become part of that request's trace."""
    from opentelemetry import trace

    seen: list[bool] = []

    class Spy:
        def get_model_name(self) -> str:
            return "spy"

        async def chat_complete(self, messages: Any, temperature: float) -> tuple[str, None]:
            seen.append(trace.get_current_span().get_span_context().is_valid)
            return "{}", None

    app = make_app(judge_model=Spy())
    run_conversation(app.tracer_provider, "c-1")
    with app.tracer_provider.get_tracer("web").start_as_current_span("POST /flush"):
        assert app.complete()
    assert seen
    assert not any(seen)
