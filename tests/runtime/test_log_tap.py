"""Instrumentations that put the conversation into log records: the log processor feeds the same sessions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.conftest import App


def chat_with_content_in_events(app: App, session_id: str, user: str, answer: str) -> None:
    """One model call as semantic conventions 1.36 have it: a bare span, and an event per message."""
    tracer, logger = app.tracer_provider.get_tracer("client"), app.logger_provider.get_logger("client")
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.conversation.id": session_id}
    with tracer.start_as_current_span("chat model", attributes=attributes):
        events: list[tuple[str, Any]] = [
            ("gen_ai.user.message", {"content": user}),
            ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}),
        ]  # fmt: skip
        for name, body in events:
            logger.emit(event_name=name, body=body, attributes={"gen_ai.system": "openai"})


def test_a_conversation_in_log_records_is_scored(app: App) -> None:
    chat_with_content_in_events(app, "c-1", "Find me a flight.", "SK 4412 leaves at 08:05.")
    assert app.complete()
    (result,) = app.results
    (turn,) = result.session.turns
    assert (turn.user, turn.agent) == ("Find me a flight.", "SK 4412 leaves at 08:05.")


def test_other_log_records_are_not_taken(app: App) -> None:
    app.logger_provider.get_logger("app").emit(body="user logged in", attributes={"user": "u-1"})
    assert app.handle.stats()["spans"]["accepted"] == 0


def test_our_own_events_are_not_taken(app: App) -> None:
    chat_with_content_in_events(app, "c-1", "Find me a flight.", "SK 4412 leaves at 08:05.")
    assert app.complete()
    accepted = app.handle.stats()["spans"]["accepted"]
    assert len(app.logs.get_finished_logs()) == 2 + 3  # the application's, then one per evaluator
    assert app.complete()
    assert app.handle.stats()["spans"]["accepted"] == accepted == 3


def test_a_log_record_after_the_shutdown_does_not_open_the_buffer_again(app: App) -> None:
    app.handle.shutdown()
    before = app.handle.stats()
    for _ in range(2):
        chat_with_content_in_events(app, "c-1", "Find me a flight.", "SK 4412 leaves at 08:05.")
    assert app.handle.stats() == before


@pytest.mark.parametrize("body", [None, "text", 7, {"content": None}, ["x"]])
def test_events_with_odd_bodies_stop_nothing(app: App, body: Any) -> None:
    app.logger_provider.get_logger("client").emit(event_name="gen_ai.user.message", body=body)
    chat_with_content_in_events(app, "c-1", "Hello", "Hi, how can I help?")
    assert app.complete()
    assert [result.session.session_id for result in app.results] == ["c-1"]
