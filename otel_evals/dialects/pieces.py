"""The pieces of one message's content, sorted into texts, tool calls and tool results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_evals.dialects.decoding import LONGEST_REDACTED, decode, decode_repr, is_cut_dump, is_redacted, lacks_keys
from otel_evals.dialects.facts import Call, Message, Result
from otel_evals.dialects.tool_calls import (
    CALL_KEYS,
    CALL_TYPES,
    ITEM_TYPES,
    RESULT_KEYS,
    RESULT_TYPES,
    defines_tool,
    read_call,
    read_calls,
    read_result,
)

__all__ = ["CARRIERS", "MAX_DEPTH", "Pieces", "is_part", "may_be_dump"]

MAX_DEPTH = 12
_TEXTS = ("text", "content", "value", "message", "output_text", "input_text", "string", "thought_text")
_SILENT_TYPES = frozenset(
    ("reasoning", "thinking", "redacted_thinking", "thought", "step-start", "step_start", "source", "uri", "blob",
     "image", "image_url", "audio", "file", "input_image", "refusal_reason", "server_tool_call",
     "server_tool_call_response")
)  # fmt: skip
_CALL_CARRIERS = ("tool_calls", "toolCalls", "tool_call", "function_call", "functionCall")
CARRIERS = (*_CALL_CARRIERS, "additional_kwargs", "tool_responses", "toolUse", *RESULT_KEYS)
"""Keys of calls and results beside a message's content, in the order in which they are read."""
_TOOL_KEYS = frozenset(("toolCallId", *CALL_KEYS, *RESULT_KEYS))


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
        elif isinstance(value, dict):
            self._add_part(value, depth)
        elif isinstance(value, (list, tuple)):
            for item in value:
                if type(item) is dict and depth < MAX_DEPTH:
                    self._add_part(item, depth + 1)
                else:
                    self.add(item, depth + 1)
        elif isinstance(value, (int, float)):
            self.texts.append(str(value))

    def _add_text(self, text: str) -> None:
        dumped = _structured(text) if may_be_dump(text) else None
        if dumped is None:
            if len(text) >= LONGEST_REDACTED or not is_redacted(text):
                self.texts.append(text)
            return
        for message in dumped:
            self.texts += [message.text] if message.text else []
            self.calls += message.calls
            self.results += message.results

    def _add_part(self, part: Mapping[str, Any], depth: int) -> None:
        stated = part.get("type")
        if stated == "text":
            text = part.get("text", part.get("content"))
            if type(text) is str:
                self._add_text(text)
                return
        for wrapper in ("message_content", "message"):
            inner = part.get(wrapper)
            if isinstance(inner, dict):
                self.add(inner, depth + 1)
                return
        kind = str(
            stated or part.get("block_type") or part.get("part_kind") or part.get("kind") or part.get("__class__") or ""
        ).lower()
        if kind in _SILENT_TYPES:
            return
        if kind in RESULT_TYPES or ("call_id" in part and "content" in part):
            self.results.append(read_result(part))
        elif kind in CALL_TYPES or ("arguments" in part and "name" in part):
            if not defines_tool(part):
                self.calls.append(read_call(part))
        elif _TOOL_KEYS.isdisjoint(part) or not self._add_tool(part):
            for key in _TEXTS:
                inner = part.get(key)
                if isinstance(inner, (str, list, dict)):
                    self.add(inner, depth + 1)
                    return

    def _add_tool(self, part: Mapping[str, Any]) -> bool:
        """Takes in a call or a result that its keys tell. Returns whether the part was one."""
        if "toolCallId" in part and "toolName" in part:
            if "result" in part or "output" in part:
                self.results.append(read_result(part))
            else:
                self.calls.append(read_call(part))
            return True
        for key in CALL_KEYS:
            if isinstance(part.get(key), dict):
                self.calls.append(read_call(part[key]))
                return True
        for key in RESULT_KEYS:
            if isinstance(part.get(key), dict):
                self.results.append(read_result(part[key]))
                return True
        return False

    def add_beside(self, key: str, value: Any) -> None:
        """Takes in what one of `CARRIERS` holds beside a message's content."""
        if key in _CALL_CARRIERS:
            if value and not (key == "function_call" and self.calls):
                read_calls(decode(value), self.calls)
        elif key == "additional_kwargs":
            if value and isinstance(value, dict) and not self.calls:
                read_calls(decode(value.get("tool_calls") or value.get("function_call")), self.calls)
        elif key == "tool_responses":
            if isinstance(value, (list, tuple)):
                self.results += [read_result(item) for item in value if isinstance(item, dict)]
        else:
            self._add_part({key: value}, 1)


_ITEMS = ITEM_TYPES | {"message", "reasoning"}
_PART_TYPES = (CALL_TYPES | RESULT_TYPES | _SILENT_TYPES) - _ITEMS
_TEXT_TYPES = frozenset(("text", "output_text", "input_text"))
_PART_KEYS = frozenset(
    ("toolUse", "toolResult", "functionCall", "functionResponse", "function_call", "function_response",
     "toolRequest", "toolResponse", "message_content")
)  # fmt: skip


def is_part(value: Any) -> bool:
    """A piece of a message's content: states no role of its own."""
    if not isinstance(value, dict) or "role" in value:
        return False
    kind = value.get("type")
    if kind is not None:
        kind = str(kind).lower()
        if kind in _PART_TYPES or (kind in _TEXT_TYPES and not value.get("lc")):
            return True
        if kind in _ITEMS:
            return False
    elif not value or (len(value) == 1 and "text" in value):
        return True
    return not _PART_KEYS.isdisjoint(value) or ("toolCallId" in value and "toolName" in value)


_STRUCTURED = frozenset(("[{", '{"', "[[", '["', "{'", "['"))
_RESPONSE_KEYS = ("output", "choices", "candidates", "generations")


def may_be_dump(text: str) -> bool:
    """Whether a text begins and ends as dumps of data and of objects do."""
    first = text[:1]
    if first == "[" or first == "{":
        return text[:2] in _STRUCTURED
    last = text[-1:]
    return (last == ")" or last.isspace()) and first.isupper() and text.rstrip().endswith(")")


def _structured(text: str) -> list[Message] | None:
    """The messages in a text that is really a dump of parts, of a response, or of an object; None: it is text."""
    if text[0] not in "[{":
        inner = decode_repr(text)
    elif lacks_keys(text, "type", "text", "tool", "unction", "message_content", *_RESPONSE_KEYS):
        return [] if is_cut_dump(text) else None
    else:
        inner = decode(text)
    if isinstance(inner, str):
        return [] if is_cut_dump(text) else None
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
