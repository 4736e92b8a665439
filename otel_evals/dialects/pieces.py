"""The pieces of one message's content, sorted into texts, tool calls and tool results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_evals.dialects.decoding import decode, decode_repr, is_redacted
from otel_evals.dialects.facts import Call, Message, Result
from otel_evals.dialects.tool_calls import (
    CALL_KEYS,
    CALL_TYPES,
    RESULT_KEYS,
    RESULT_TYPES,
    defines_tool,
    read_call,
    read_calls,
    read_result,
)

__all__ = ["MAX_DEPTH", "Pieces", "is_part"]

MAX_DEPTH = 12
_TEXTS = ("text", "content", "value", "message", "output_text", "input_text", "string", "thought_text")
_SILENT_TYPES = frozenset(
    ("reasoning", "thinking", "redacted_thinking", "thought", "step-start", "step_start", "source", "uri", "blob",
     "image", "image_url", "audio", "file", "input_image", "refusal_reason", "server_tool_call",
     "server_tool_call_response")
)  # fmt: skip
_CARRIERS = frozenset(
    (
        "tool_calls",
        "toolCalls",
        "tool_call",
        "function_call",
        "functionCall",
        "additional_kwargs",
        "toolUse",
        *RESULT_KEYS,
    )
)


class Pieces:
    """What one message says, collected piece by piece."""

    __slots__ = ("calls", "results", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[Call] = []
        self.results: list[Result] = []

    def add(self, value: Any, depth: int = 0) -> None:
        """Takes in a content value: text, a part, or a list of parts."""
        if depth > MAX_DEPTH:
            return
        if isinstance(value, str):
            self._add_text(value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.add(item, depth + 1)
        elif isinstance(value, dict):
            self._add_part(value, depth)
        elif isinstance(value, (int, float)):
            self.texts.append(str(value))

    def _add_text(self, text: str) -> None:
        dumped = _structured(text)
        if dumped is None:
            if not is_redacted(text):
                self.texts.append(text)
            return
        for message in dumped:
            self.texts += [message.text] if message.text else []
            self.calls += message.calls
            self.results += message.results

    def _add_part(self, part: Mapping[str, Any], depth: int) -> None:
        if part.get("type") == "text":
            text = part.get("text", part.get("content"))
            if type(text) is str:
                self._add_text(text)
                return
        for wrapper in ("message_content", "message"):
            if wrapper in part and isinstance(part[wrapper], dict):
                self.add(part[wrapper], depth + 1)
                return
        kind = str(
            part.get("type") or part.get("block_type") or part.get("kind") or part.get("__class__") or ""
        ).lower()
        if kind in _SILENT_TYPES or self._add_tool(part, kind):
            return
        for key in _TEXTS:
            inner = part.get(key)
            if isinstance(inner, (str, list, dict)):
                self.add(inner, depth + 1)
                return

    def _add_tool(self, part: Mapping[str, Any], kind: str) -> bool:
        """Takes in a call or a result. Returns whether the part was one, or offered a tool."""
        if kind in RESULT_TYPES or ("call_id" in part and "content" in part):
            self.results.append(read_result(part))
        elif kind in CALL_TYPES or ("arguments" in part and "name" in part):
            if not defines_tool(part):
                self.calls.append(read_call(part))
        elif "toolCallId" in part and "toolName" in part:
            if "result" in part or "output" in part:
                self.results.append(read_result(part))
            else:
                self.calls.append(read_call(part))
        elif (key := next((k for k in CALL_KEYS if isinstance(part.get(k), dict)), None)) is not None:
            self.calls.append(read_call(part[key]))
        elif (key := next((k for k in RESULT_KEYS if isinstance(part.get(k), dict)), None)) is not None:
            self.results.append(read_result(part[key]))
        else:
            return False
        return True

    def add_beside(self, value: Mapping[str, Any]) -> None:
        """Takes in calls and results that stand beside a message's content."""
        if _CARRIERS.isdisjoint(value):
            return
        for key in ("tool_calls", "toolCalls", "tool_call", "function_call", "functionCall"):
            raw = value.get(key)
            if raw and not (key == "function_call" and self.calls):
                read_calls(decode(raw), self.calls)
        extra = value.get("additional_kwargs")
        if isinstance(extra, dict) and not self.calls:
            read_calls(decode(extra.get("tool_calls") or extra.get("function_call")), self.calls)
        for key in ("toolUse", *RESULT_KEYS):
            if key in value:
                self.add([{key: value[key]}])


def is_part(value: Any) -> bool:
    """A piece of a message's content: states no role of its own."""
    if not isinstance(value, dict) or "role" in value:
        return False
    kind = str(value.get("type", "")).lower()
    if kind in ("function_call", "function_call_output", "message", "reasoning"):
        return False  # items of the Responses API are messages of their own
    return (
        kind in CALL_TYPES
        or kind in RESULT_TYPES
        or kind in _SILENT_TYPES
        or (kind in ("text", "output_text", "input_text") and not value.get("lc"))
        or set(value) <= {"text"}
        or any(
            key in value
            for key in (
                "toolUse",
                "toolResult",
                "functionCall",
                "functionResponse",
                "function_call",
                "function_response",
            )
        )
        or "message_content" in value
        or ("toolCallId" in value and "toolName" in value)
    )


_STRUCTURED = ("[{", '{"', "[[", '["', "{'", "['")
_RESPONSE_KEYS = ("output", "choices", "candidates", "generations")


def _structured(text: str) -> list[Message] | None:
    """The messages in a text that is really a dump of parts, of a response, or of an object; None: it is text."""
    if text[:2] in _STRUCTURED:
        inner = decode(text)
    elif text[:1].isupper() and text.rstrip().endswith(")"):
        inner = decode_repr(text)
    else:
        return None
    from otel_evals.dialects.messages import read_messages  # the two read each other: messages hold pieces

    if (
        isinstance(inner, list)
        and inner
        and all(isinstance(i, dict) and ("text" in i or "type" in i or is_part(i)) for i in inner)
    ):
        return read_messages(inner, "assistant")
    if not isinstance(inner, dict):
        return None
    kind = str(inner.get("type", "")).lower()
    if kind in ("text", "output_text", "input_text") or kind in CALL_TYPES:
        return read_messages([inner], "assistant")
    if ("id" in inner or "object" in inner) and any(isinstance(inner.get(key), list) for key in _RESPONSE_KEYS):
        return read_messages(inner, "assistant")
    return None
