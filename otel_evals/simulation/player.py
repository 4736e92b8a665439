"""Lets a plan happen on a tracer: OpenTelemetry GenAI spans with content, at the pace of the plan."""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context

from otel_evals.simulation.model import PlannedCall, PlannedSession, PlannedTurn

__all__ = ["Conversation", "play"]

PROVIDER = "simulator"
_SECOND_NS = 1_000_000_000


def play(
    sessions: Sequence[PlannedSession],
    tracer: Tracer,
    speed: float,
    *,
    on_turn: Callable[[PlannedSession, int], None] = lambda session, turn: None,
    wait_until: Callable[[float], None] | None = None,
) -> None:
    """Emit every turn of every session when its time has come; returns after the last one.

    Args:
        sessions: the plan.
        tracer: where the spans are started.
        speed: simulated seconds per real second, > 0.
        on_turn: called after each emitted turn with the session and the turn's index.
        wait_until: blocks until so many real seconds after the begin; default: sleeps.
    """
    begin_ns = time.time_ns()
    wait = wait_until or _sleeper(speed)
    conversations: dict[str, Conversation] = {}
    for end_s, session, index in _in_order(sessions):
        wait(end_s / speed)
        if index == 0:
            conversations[session.session_id] = Conversation(session, tracer, begin_ns, speed)
        conversations[session.session_id].emit(session.turns[index])
        if index == len(session.turns) - 1:
            del conversations[session.session_id]
        on_turn(session, index)


def _sleeper(speed: float) -> Callable[[float], None]:
    begin = time.monotonic()

    def wait(until_s: float) -> None:
        time.sleep(max(0.0, begin + until_s - time.monotonic()))

    return wait


def _in_order(sessions: Sequence[PlannedSession]) -> Iterator[tuple[float, PlannedSession, int]]:
    """(end in simulated seconds, session, turn index) of every turn, earliest end first."""
    queue = [(_end(session.turns[0]), number, 0) for number, session in enumerate(sessions)]
    heapq.heapify(queue)
    while queue:
        end_s, number, index = heapq.heappop(queue)
        session = sessions[number]
        yield end_s, session, index
        if index + 1 < len(session.turns):
            heapq.heappush(queue, (_end(session.turns[index + 1]), number, index + 1))


def _end(turn: PlannedTurn) -> float:
    return turn.start_s + turn.duration_s


class Conversation:
    """The agent's side of one session: it remembers the messages, as every model call repeats them."""

    def __init__(self, session: PlannedSession, tracer: Tracer, begin_ns: int, speed: float) -> None:
        self._session = session
        self._tracer = tracer
        self._begin_ns = begin_ns
        self._speed = speed
        self._messages: list[dict[str, Any]] = []
        self._calls = 0
        self._always = {
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.agent.name": session.agent,
            "gen_ai.conversation.id": session.session_id,
        }

    def emit(self, turn: PlannedTurn) -> None:
        """One trace: the agent's span over its model calls and tool calls."""
        question = {"role": "user", "parts": [{"type": "text", "content": turn.user}]}
        answer = {
            "role": "assistant",
            "parts": [{"type": "text", "content": turn.answer}],
            "finish_reason": "stop",
        }
        root = self._tracer.start_span(
            f"invoke_agent {self._session.agent}",
            kind=SpanKind.INTERNAL,
            start_time=self._at(turn.start_s),
            attributes={
                **self._always,
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.request.model": self._session.model,
                "gen_ai.input.messages": json.dumps([question]),
                "gen_ai.output.messages": json.dumps([answer]),
            },
        )
        context = set_span_in_context(root)
        self._messages.append(question)
        now_s = turn.start_s
        for call in turn.calls:
            self._calls += 1
            call_id = f"call_{self._session.session_id}_{self._calls}"
            self._chat(context, now_s, turn.chat_s, _tool_request(call, call_id))
            now_s += turn.chat_s
            self._tool(context, now_s, call, call_id)
            now_s += call.duration_s
        self._chat(context, now_s, turn.chat_s, answer)
        root.end(end_time=self._at(now_s + turn.chat_s))

    def _chat(self, context: Any, start_s: float, duration_s: float, output: dict[str, Any]) -> None:
        """One model call; its output joins the history."""
        messages = json.dumps(self._messages)
        told = json.dumps([output])
        span = self._tracer.start_span(
            f"chat {self._session.model}",
            context=context,
            kind=SpanKind.CLIENT,
            start_time=self._at(start_s),
            attributes={
                **self._always,
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": self._session.model,
                "gen_ai.response.model": self._session.model,
                "gen_ai.response.finish_reasons": [output["finish_reason"]],
                "gen_ai.system_instructions": json.dumps([{"type": "text", "content": self._session.instructions}]),
                "gen_ai.input.messages": messages,
                "gen_ai.output.messages": told,
                "gen_ai.usage.input_tokens": len(messages) // 4,
                "gen_ai.usage.output_tokens": len(told) // 4,
            },
        )
        span.end(end_time=self._at(start_s + duration_s))
        self._messages.append(output)

    def _tool(self, context: Any, start_s: float, call: PlannedCall, call_id: str) -> None:
        """One tool call; its result, or the reason why there is none, joins the history."""
        span = self._tracer.start_span(
            f"execute_tool {call.tool}",
            context=context,
            kind=SpanKind.INTERNAL,
            start_time=self._at(start_s),
            attributes={
                **self._always,
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.tool,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": call_id,
                "gen_ai.tool.call.arguments": json.dumps(call.arguments),
            },
        )
        end_ns = self._at(start_s + call.duration_s)
        if call.error_type:
            span.set_attribute("error.type", call.error_type)
            span.add_event(
                "exception",
                {"exception.type": call.error_type, "exception.message": call.error_message or ""},
                timestamp=end_ns,
            )
            span.set_status(Status(StatusCode.ERROR, call.error_message))
        else:
            span.set_attribute("gen_ai.tool.call.result", json.dumps(call.result))
        span.end(end_time=end_ns)
        response = f"{call.error_type}: {call.error_message}" if call.error_type else call.result
        self._messages.append(
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": response}]}
        )

    def _at(self, simulated_s: float) -> int:
        """Epoch nanoseconds of a simulated moment."""
        return self._begin_ns + int(simulated_s / self._speed * _SECOND_NS)


def _tool_request(call: PlannedCall, call_id: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": call_id, "name": call.tool, "arguments": call.arguments}],
        "finish_reason": "tool_calls",
    }
