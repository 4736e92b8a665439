"""Tool calls described by a record in a wrapper's input or output: `{tool_name, tool_kwargs, tool_output, …}`."""

from __future__ import annotations

from typing import Any

import orjson

from otel_evals.dialects.decoding import decode, decode_repr
from otel_evals.dialects.facts import ToolFacts
from otel_evals.dialects.failures import failure_of_result
from otel_evals.dialects.tool_calls import arguments_of, parts_text

__all__ = ["plain_result", "read_tool_record"]

_NAMES = ("tool_name", "toolName", "function_name", "tool")
_ARGUMENTS = (
    "tool_kwargs",
    "tool_args",
    "toolArgs",
    "tool_input",
    "toolInput",
    "raw_input",
    "args",
    "arguments",
    "kwargs",
    "input",
)
_RESULTS = ("tool_output", "toolOutput", "tool_result", "toolResult", "raw_output", "output", "result", "content")
_IDS = ("tool_id", "tool_call_id", "toolCallId", "call_id", "id")
_SURE = frozenset(
    ("tool_output", "tool_kwargs", "toolOutput", "tool_result", "toolResult", "raw_output", "tool_args", "toolArgs",
     "tool_input")
)  # fmt: skip
MAX_WRAPPERS = 3
_WRAPPER_MARKS = frozenset(("is_error", "isError", "blocks", "raw_output"))
_WRAPPED = ("raw_output", "content", "blocks", "output", "result", "text")


def read_tool_record(value: Any) -> ToolFacts | None:
    """The call that a decoded value records; None when it is no such record."""
    value = decode(value)
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = decode(value[0])
    if not isinstance(value, dict) or _SURE.isdisjoint(value):
        return None
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str) and value[key]), None)
    if name is None:
        return None
    arguments = next((arguments_of(value[key]) for key in _ARGUMENTS if value.get(key)), None)
    result = next((decode(value[key]) for key in _RESULTS if value.get(key) is not None), None)
    call_id = next((value[key] for key in _IDS if isinstance(value.get(key), str) and value[key]), None)
    failure = failure_of_result(value) or failure_of_result(result)
    return ToolFacts(call_id, name, arguments, plain_result(result), failure)


def plain_result(value: Any, depth: int = 0) -> Any:
    """A result without the object that a framework wrapped around it; a text that wraps nothing stays as it is."""
    inner = decode(value)
    if isinstance(value, str) and value[:1] == '"':
        once = _unquoted(value)
        value = value if once is None else once
    if isinstance(inner, dict) and depth < MAX_WRAPPERS:
        if not _WRAPPER_MARKS.isdisjoint(inner):
            for key in _WRAPPED:
                if found := inner.get(key):
                    return parts_text(found) or found
        if isinstance(inner.get("type"), str) and "value" in inner and len(inner) == 2:
            return inner["value"]
        if len(inner) == 1:
            for key in ("output", "_value"):
                if isinstance(inner.get(key), str):
                    return plain_result(inner[key], depth + 1)
    if isinstance(inner, str) and inner[:1].islower() and "=" in inner[:20]:
        printed = decode_repr(inner)
        if isinstance(printed, dict):
            return next((printed[key] for key in ("content", "result", "error") if printed.get(key)), value)
    return parts_text(inner) or value


def _unquoted(text: str) -> str | None:
    """The text that a JSON string holds; None: it is none."""
    try:
        inner = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return inner if isinstance(inner, str) else None
