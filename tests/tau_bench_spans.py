"""The τ-bench conversations as OTLP/JSON in the GenAI conventions: what an instrumented airline agent would have sent.

One trace per turn: the agent's span over its model calls, which repeat the whole history as real ones do, and its tool
calls. A tool that failed says so in its result only, as in τ-bench; no span has an error status.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.tau_bench import ARCHIVE, STOP, messages_of, session_name

__all__ = ["write_spans"]

AGENT = "airline"
BEGIN_NS = 1_700_000_000 * 10**9
BETWEEN_SESSIONS_NS = 20 * 10**9
"""Sessions overlap, as in production: one starts while others wait for their person."""
STEP_NS = 1_500_000_000
"""Time that a model call or a tool takes."""
REPLY_NS = 8 * 10**9
"""Time that a person takes."""

Message = dict[str, Any]


def write_spans(path: Path) -> Path:
    """All 200 conversations, one export request a line and trace."""
    with lzma.open(ARCHIVE, "rt", encoding="utf-8") as rows, path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows):
            for spans in _traces(json.loads(row), BEGIN_NS + number * BETWEEN_SESSIONS_NS):
                scopes = [{"scope": {"name": "airline.instrumentation"}, "spans": spans}]
                file.write(json.dumps({"resourceSpans": [{"resource": _resource(), "scopeSpans": scopes}]}) + "\n")
    return path


def _resource() -> dict[str, Any]:
    return {"attributes": _attributes({"service.name": "tau-bench"})}


def _traces(row: dict[str, Any], now_ns: int) -> Iterator[list[dict[str, Any]]]:
    """The spans of each turn that the agent did something in."""
    messages: list[Message] = messages_of(row)
    session = session_name(row)
    history: list[Message] = []
    starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    for start, end in zip(starts, [*starts[1:], len(messages)], strict=True):
        turn = _Turn(session, start, now_ns, history)
        for message in messages[start:end]:
            turn.add(message)
        if len(turn.spans) > 1:
            yield turn.finished()
        now_ns = turn.now_ns + REPLY_NS


class _Turn:
    """Collects the spans of one trace. The first one is the agent's."""

    def __init__(self, session: str, index: int, now_ns: int, history: list[Message]) -> None:
        self._always = {"gen_ai.conversation.id": session, "gen_ai.agent.name": AGENT}
        self._key = f"{session}/{index}"
        self._history = history
        self._calls: dict[str, dict[str, Any]] = {}
        self.now_ns = now_ns
        self.spans: list[dict[str, Any]] = []
        self._span("invoke_agent airline", {"gen_ai.operation.name": "invoke_agent"}, 0)

    def add(self, message: Message) -> None:
        if message["role"] == "user":
            part = _text(message["content"].replace(STOP, "").strip())
            self._history.append({"role": "user", "parts": [part]})
        elif message["role"] == "assistant":
            self._model(message)
        elif message["role"] == "tool":
            self._tool(message)

    def finished(self) -> list[dict[str, Any]]:
        self.spans[0]["endTimeUnixNano"] = str(self.now_ns)
        return self.spans

    def _model(self, message: Message) -> None:
        calls = message.get("tool_calls") or ()
        parts = [_text(message["content"])] if message["content"] else []
        for call in calls:
            arguments = json.loads(call["arguments"])
            self._calls[call["id"]] = {"name": call["name"], "arguments": arguments}
            parts.append({"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": arguments})
        output = {"role": "assistant", "parts": parts, "finish_reason": "tool_calls" if calls else "stop"}
        told = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.input.messages": json.dumps(self._history),
            "gen_ai.output.messages": json.dumps([output]),
        }
        self._span("chat gpt-4o", told, STEP_NS)
        self._history.append(output)

    def _tool(self, message: Message) -> None:
        call = self._calls[message["tool_call_id"]]
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.id": message["tool_call_id"],
            "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
            "gen_ai.tool.call.result": message["content"],
        }
        self._span(f"execute_tool {call['name']}", told, STEP_NS)
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        self._history.append({"role": "tool", "parts": [part]})

    def _span(self, name: str, attributes: dict[str, Any], duration_ns: int) -> None:
        start_ns, self.now_ns = self.now_ns, self.now_ns + duration_ns
        parent = {"parentSpanId": self.spans[0]["spanId"]} if self.spans else {}
        self.spans.append(
            {
                "traceId": _digest(self._key, 32),
                "spanId": _digest(f"{self._key}/{len(self.spans)}", 16),
                **parent,
                "name": name,
                "startTimeUnixNano": str(start_ns),
                "endTimeUnixNano": str(self.now_ns),
                "attributes": _attributes(self._always | attributes),
            }
        )


def _text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def _attributes(values: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
