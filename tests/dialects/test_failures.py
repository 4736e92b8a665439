"""How traces say that something failed."""

from __future__ import annotations

from typing import Any

import pytest

from otel_evals.dialects.failures import failure_of_result, failure_of_span, merge_failures
from otel_evals.sessions.model import ToolFailure
from otel_evals.spans.record import EventRecord
from tests.sessions.spans import span


def exception(kind: str, message: str) -> EventRecord:
    return EventRecord("exception", 0, {"exception.type": kind, "exception.message": message})


def told(**given: Any) -> tuple[str | None, str | None] | None:
    attributes = given.pop("attributes", {})
    failure = failure_of_span(span("x", attributes, **given))
    return (failure.type, failure.message) if failure else None


def test_a_span_without_marks_has_not_failed() -> None:
    assert told(status="ok") is None
    assert told(status="unset", message="fine") is None


def test_the_exception_event_tells_type_and_reason() -> None:
    assert told(status="error", events=(exception("TimeoutError", "30 s"),)) == ("TimeoutError", "30 s")


def test_an_exception_event_is_a_failure_whatever_the_status() -> None:
    assert told(status="ok", events=(exception("TimeoutError", "30 s"),)) == ("TimeoutError", "30 s")


def test_the_same_exception_twice_is_one_failure() -> None:
    assert told(status="error", events=(exception("KeyError", "x"), exception("KeyError", "x"))) == ("KeyError", "x")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", (None, None)),
        ("no route", (None, "no route")),
        ("TOOL_ERROR", (None, None)),
        ("TimeoutError('30 s')", ("TimeoutError", "30 s")),
        (
            "TimeoutError('30 s')Traceback (most recent call last):\n  File x\nTimeoutError: 30 s",
            ("TimeoutError", "30 s"),
        ),
        ("shop.errors.StockError: none left", ("shop.errors.StockError", "shop.errors.StockError: none left")),
    ],
)
def test_the_status_message_is_read_as_what_it_is(message: str, expected: tuple[str | None, str | None]) -> None:
    assert told(status="error", message=message) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"error.type": "timeout"}, ("timeout", None)),
        ({"error.type": "_OTHER", "error.message": "StockError: none left"}, ("StockError", "StockError: none left")),
        ({"gen_ai.tool.status": "error"}, (None, None)),
        ({"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "no"}, (None, "no")),
        ({"exception.type": "KeyError", "exception.message": "x"}, ("KeyError", "x")),
    ],
)
def test_attributes_alone_tell_a_failure(attributes: dict[str, str], expected: tuple[str | None, str | None]) -> None:
    assert told(attributes=attributes) == expected


@pytest.mark.parametrize(
    "result",
    [
        "Error: no route",
        "Tool error: TimeoutError: no route",
        "Error executing tool: no route",
        "An error occurred while running the tool: no route",
        "TimeoutError: no route",
        {"is_error": True, "content": "no route"},
        {"status": "error", "error_message": "no route"},
        {"error": "no route"},
        '{"error": {"type": "x", "message": "no route"}}',
        [{"type": "text", "text": "Error: no route"}],
        "status='failure' result=None error='no route'",
    ],
)
def test_a_result_tells_a_failure_and_its_reason(result: Any) -> None:
    failure = failure_of_result(result)
    assert failure is not None
    assert "no route" in str(failure.message)


@pytest.mark.parametrize(
    "result", [None, 3, True, "fine", {"status": "ok"}, {"error": None, "rows": []}, [], "", {"is_error": False}]
)
def test_a_good_result_is_no_failure(result: Any) -> None:
    assert failure_of_result(result) is None


@pytest.mark.parametrize(
    "text",
    [
        "DNS resolution failed for flights.internal",
        "weather service unreachable",
        "Service temporarily unavailable",
        "connection refused",
        "Unable to connect to 10.0.0.1:5432",
        "The upstream API is not responding",
    ],
)
def test_a_short_answer_that_a_service_cannot_be_reached_is_a_failure(text: str) -> None:
    failure = failure_of_result(text)
    assert failure is not None
    assert failure.message == text


@pytest.mark.parametrize(
    "text",
    [
        "2 tests failed",
        "The tour service is unavailable in winter",
        "The request was refused by the user",
        "Unable to reach the customer, voicemail left",
        "weather service unreachable\nretried: 21 degrees",
        "Rain. " * 40 + "connection refused",
    ],
)
def test_what_a_tool_found_is_no_failure(text: str) -> None:
    assert failure_of_result(text) is None


def test_the_more_telling_of_two_messages_is_kept() -> None:
    merged = merge_failures(ToolFailure(type="ToolError", message="Tool Error"), ToolFailure(message="timed out"))
    assert merged == ToolFailure(type="ToolError", message="timed out")
