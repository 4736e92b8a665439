"""A small agent as tracers see it: emits OpenTelemetry GenAI spans for one conversation, through any provider."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode, TracerProvider

from otel_evals import Session, ToolCall, ToolFailure, Turn

ANSWERED = ("Find me a flight to Oslo.", "I found SK 4412 at 08:05 for 120 euros.")
THANKS = ("Thank you, that is all I needed.", "You are welcome, have a good trip!")


def run_turn(
    provider: TracerProvider,
    session_id: str | None,
    user: str,
    answer: str,
    *,
    tool_error: str | None = None,
    agent: str = "travel-agent",
    attributes: dict[str, Any] | None = None,
) -> str:
    """One turn as one trace: `invoke_agent` > `execute_tool` (if it fails) and `chat`. Returns the trace id (hex)."""
    tracer = provider.get_tracer("test-agent")
    common: dict[str, Any] = {"gen_ai.agent.name": agent, **(attributes or {})}
    if session_id is not None:
        common["gen_ai.conversation.id"] = session_id
    with tracer.start_as_current_span(
        f"invoke_agent {agent}", attributes={"gen_ai.operation.name": "invoke_agent", **common}
    ) as root:
        if tool_error is not None:
            with tracer.start_as_current_span(
                "execute_tool search",
                attributes={
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "search",
                    "gen_ai.tool.call.id": "call_1",
                    "gen_ai.tool.call.arguments": json.dumps({"to": "OSL"}),
                    "error.type": "TimeoutError",
                },
            ) as tool:
                tool.set_status(Status(StatusCode.ERROR, tool_error))
        with tracer.start_as_current_span(
            "chat model",
            kind=trace.SpanKind.CLIENT,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "test-model",
                "gen_ai.input.messages": messages("user", user),
                "gen_ai.output.messages": messages("assistant", answer),
            },
        ):
            pass
        return f"{root.get_span_context().trace_id:032x}"


def run_conversation(
    provider: TracerProvider, session_id: str, turns: Sequence[tuple[str, str]] = (ANSWERED, THANKS)
) -> list[str]:
    """All turns of a conversation; their trace ids."""
    return [run_turn(provider, session_id, user, answer) for user, answer in turns]


def messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def a_session(session_id: str = "s-1", **changes: Any) -> Session:
    """A completed session of two traced turns, the first with a failed tool."""
    failed = ToolCall(
        id="call_1",
        name="search",
        arguments={"to": "OSL"},
        error=ToolFailure(type="TimeoutError", message="timed out after 30 s"),
    )
    values: dict[str, Any] = {
        "session_id": session_id,
        "session_key": "gen_ai.conversation.id",
        "conversation_id": session_id,
        "agents": ("travel-agent",),
        "models": ("test-model",),
        "turns": (
            Turn(
                user="Find me a flight to Oslo.",
                agent="The flight search timed out. Shall I try again in a minute?",
                tool_calls=(failed,),
                trace_id="0" * 31 + "1",
                root_span_id="0" * 15 + "1",
            ),
            Turn(
                user="Yes, please.",
                agent="I found SK 4412 at 08:05 for 120 euros.",
                trace_id="0" * 31 + "2",
                root_span_id="0" * 15 + "2",
            ),
        ),
        **changes,
    }
    return Session(**values)
