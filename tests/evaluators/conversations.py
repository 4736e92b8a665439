"""Small sessions for the tests of evaluators and judging."""

from __future__ import annotations

from typing import Any

from otel_evals.sessions.model import Session, ToolCall, ToolFailure, Turn

__all__ = ["failed_call", "session", "turn", "worked_call"]


def worked_call(name: str = "search_flights", result: Any = None, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, result={"flights": ["UA 1234"]} if result is None else result)


def failed_call(name: str = "search_flights", message: str = "timed out after 30s", **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, error=ToolFailure(type="TimeoutError", message=message))


def turn(user: str | None, agent: str | None, *calls: ToolCall, **fields: Any) -> Turn:
    return Turn(user=user, agent=agent, tool_calls=calls, **fields)


def session(*turns: Turn, **fields: Any) -> Session:
    return Session(**{"session_id": "s-1", "session_key": "session.id", "turns": turns, **fields})
