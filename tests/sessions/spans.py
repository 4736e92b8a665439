"""Small spans for tests, in the vocabulary of the OpenTelemetry GenAI conventions."""

from __future__ import annotations

import itertools
from typing import Any

import orjson

from otel_evals.spans.record import EventRecord, LogRecord_, SpanRecord

SECOND = 1_000_000_000
_ids = itertools.count(1)


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}]}


def result(call_id: str, response: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": response}]}


def span(
    name: str,
    attributes: dict[str, Any],
    *,
    trace: int = 1,
    span_id: int | None = None,
    parent: int | None = None,
    start: float = 0.0,
    end: float | None = None,
    status: str = "unset",
    message: str = "",
    events: tuple[EventRecord, ...] = (),
    **more: Any,
) -> SpanRecord:
    """A span; times in seconds."""
    return SpanRecord(
        trace_id=trace,
        span_id=span_id if span_id is not None else next(_ids) + 1_000_000,
        parent_id=parent,
        name=name,
        start_ns=int(start * SECOND),
        end_ns=int((start + 1 if end is None else end) * SECOND),
        attributes=attributes,
        status=status,  # type: ignore[arg-type]
        status_message=message,
        events=events,
        **more,
    )


def model(inputs: list[Any], outputs: list[Any], session: str | None = "s", **where: Any) -> SpanRecord:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.input.messages": orjson.dumps(inputs).decode(),
        "gen_ai.output.messages": orjson.dumps(outputs).decode(),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
    }
    return span("chat gpt-4o", _named(attributes, session), **where)


def agent(user: str | None, answer: str | None, session: str | None = "s", **where: Any) -> SpanRecord:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel"}
    if user is not None:
        attributes["gen_ai.input.messages"] = orjson.dumps([text("user", user)]).decode()
    if answer is not None:
        attributes["gen_ai.output.messages"] = orjson.dumps([text("assistant", answer)]).decode()
    return span("invoke_agent travel", _named(attributes, session), **where)


def tool(name: str, arguments: dict[str, Any], output: Any, session: str | None = "s", **where: Any) -> SpanRecord:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": orjson.dumps(arguments).decode(),
    }
    if output is not None:
        attributes["gen_ai.tool.call.result"] = output
    return span(f"execute_tool {name}", _named(attributes, session), **where)


def log(name: str, body: Any, *, trace: int, span_id: int, at: float = 0.0, **attributes: Any) -> LogRecord_:
    return LogRecord_(trace, span_id, int(at * SECOND), name, body, attributes)


def _named(attributes: dict[str, Any], session: str | None) -> dict[str, Any]:
    return attributes if session is None else {**attributes, "gen_ai.conversation.id": session}
