"""Reads tool calls and their results from the pieces of a message, in every spelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from otel_evals.dialects.decoding import decode, is_redacted, lacks_keys, plain_text
from otel_evals.dialects.facts import Call, Result
from otel_evals.dialects.failures import failure_of_result
from otel_evals.sessions.model import ToolFailure

__all__ = [
    "CALL_KEYS",
    "CALL_TYPES",
    "ITEM_TYPES",
    "RESULT_KEYS",
    "RESULT_TYPES",
    "arguments_of",
    "defines_tool",
    "distinct",
    "flagged",
    "id_of_answered_call",
    "name_of",
    "parts_text",
    "read_call",
    "read_calls",
    "read_result",
]

CALL_TYPES = frozenset(
    (
        "tool_call",
        "tool-call",
        "tool_use",
        "function_call",
        "toolcall",
        "tooluse",
        "toolcallpart",
        "function",
        "mcp_call",
    )
)
RESULT_TYPES = frozenset(
    ("tool_call_response", "tool-result", "tool_result", "function_call_output", "toolresult", "function_response",
     "tool_response", "tool-response", "toolcallresult", "toolresultcontent", "toolreturnpart",
     "tool-return", "retry-prompt", "function_call_result")
)  # fmt: skip
ITEM_TYPES = frozenset(("function_call", "function_call_output", "function_call_result"))
"""Calls and results that are messages of their own, as in the Responses API."""
CALL_KEYS = ("function_call", "functionCall", "toolUse", "tool_call", "toolCall", "tool_use", "toolRequest")
RESULT_KEYS = ("function_response", "functionResponse", "toolResult", "tool_result", "toolResponse")
_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "function_arguments", "partial_json", "kwargs")
_ID_KEYS = ("call_id", "id", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "tool_id", "callId", "ref")
_NAME_KEYS = ("name", "toolName", "tool_name", "function_name")
_RESULT_ID_KEYS = (
    "tool_call_id", "call_id", "toolCallId", "tool_use_id", "toolUseId", "callId", "id", "tool_id", "ref",
)  # fmt: skip
_ANSWERED_KEYS = _RESULT_ID_KEYS[:4]
_RESULT_VALUE_KEYS = ("response", "result", "output", "content", "text", "value", "parts")


def arguments_of(value: Any) -> Any:
    """Tool arguments as a dict where possible, from JSON, `repr`, or a call record `{args: [], kwargs: {}}`."""
    value = decode(value)
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        return None if value in ("", [], ()) or is_redacted(value) else value
    if _WRAPPING.isdisjoint(value):
        return dict(value)
    keys = set(value)
    if "kwargs" in keys and ("args" in keys or all(k in _BESIDE or isinstance(value[k], bool) for k in keys)):
        inner = decode(value["kwargs"])
        positional = decode(value.get("args"))
        if isinstance(inner, dict) and inner:
            return arguments_of(inner) if set(inner) == {"kwargs"} else dict(inner)
        if isinstance(positional, (list, tuple)) and len(positional) == 1:
            return arguments_of(positional[0])
        return positional or {}
    for key in ("inputs", "arguments", "parameters", "args", "tool_input", "input"):
        inner = decode(value.get(key)) if key in keys else None
        if key == "args" and isinstance(inner, (list, tuple)) and len(inner) == 1:
            inner = decode(inner[0])
        if isinstance(inner, dict) and (keys & _CALL_RECORD_KEYS or not any(value[k] for k in keys if k != key)):
            return arguments_of(inner)
    return dict(value)


_BESIDE = frozenset(("args", "kwargs", "arguments"))
_WRAPPING = frozenset(("kwargs", "inputs", "arguments", "parameters", "args", "tool_input", "input"))
_CALL_RECORD_KEYS = frozenset(
    ("input_str", "tool_name", "name", "tool_call_id", "id", "tags", "metadata", "function_name", "toolName", "type",
     "config", "toolCallId", "tool", "is_async", "function")
)  # fmt: skip


_CALL_WRAPPERS = ("tool_call", "toolCall", "function")
_WRAPPED_CALL = frozenset(_CALL_WRAPPERS)


def read_calls(value: Any, calls: list[Call]) -> None:
    if isinstance(value, dict):
        value = [value]
    if isinstance(value, (list, tuple)):
        for item in value:
            item = decode(item)
            if isinstance(item, dict):
                call = read_call(item)
                if call.name or call.id:
                    calls.append(call)


def read_call(value: Mapping[str, Any]) -> Call:
    if not _WRAPPED_CALL.isdisjoint(value):
        for wrapper in _CALL_WRAPPERS:
            inner = value.get(wrapper)
            if isinstance(inner, dict):
                return read_call(_unwrapped(value, wrapper, inner))
    arguments: Any = None
    for key in _ARGUMENT_KEYS:
        item = value.get(key)
        if item is not None:
            arguments = arguments_of(item)
            break
    if isinstance(arguments, dict) and len(arguments) == 1 and isinstance(arguments.get("kwargs"), dict):
        arguments = arguments["kwargs"]
    return Call(_first_text(value, _ID_KEYS), name_of(value), arguments)


def _unwrapped(value: Mapping[str, Any], wrapper: str, inner: dict[str, Any]) -> dict[str, Any]:
    """A call and what stands inside it, side by side; the outer id is the call's."""
    if len(value) == 1:
        return inner
    merged = dict(value)
    del merged[wrapper]
    merged.update(inner)
    if value.get("id"):
        merged["id"] = value["id"]
    return merged


def defines_tool(value: Mapping[str, Any]) -> bool:
    """Whether this offers a tool to the model, by name and schema, and calls none."""
    inner = value.get("function")
    offered = inner if isinstance(inner, dict) else value
    if "arguments" in offered:
        return False
    schema = offered.get("parameters", offered.get("input_schema"))
    return isinstance(schema, dict) and isinstance(schema.get("properties"), dict)


def distinct(calls: list[Call]) -> tuple[Call, ...]:
    """Content parts and sibling `tool_calls` may state the same call twice, and some state no call."""
    if not calls:
        return ()
    if len(calls) == 1:
        return (calls[0],) if calls[0].name or calls[0].id else ()
    seen: dict[Any, Call] = {}
    for call in calls:
        if not call.name and not call.id:
            continue
        key = call.id or (call.name, repr(call.arguments))
        known = seen.get(key)
        if known is None:
            seen[key] = call
        elif known.arguments is None:
            known.arguments = call.arguments
    return tuple(seen.values())


def name_of(value: Mapping[str, Any]) -> str | None:
    return _first_text(value, _NAME_KEYS)


def read_result(value: Mapping[str, Any]) -> Result:
    content: Any = None
    for key in _RESULT_VALUE_KEYS:
        content = value.get(key)
        if content is not None:
            break
    origin = value.get("origin")
    if isinstance(origin, dict):  # the call itself, beside its result
        value = {**origin, **value}
    failure = flagged(value) or failure_of_result(content)
    if isinstance(content, str) and lacks_keys(content, "type", "text", "content", "json"):
        inner = content
    else:
        inner = decode(content)
    if isinstance(inner, dict) and isinstance(inner.get("type"), str) and "value" in inner:
        content = inner["value"]
    elif isinstance(inner, dict) and inner.get("type") == "text" and isinstance(inner.get("text"), str):
        content = inner["text"]
    elif isinstance(inner, list):
        content = parts_text(inner) or content
    if is_redacted(content):
        content = None
    return Result(_first_text(value, _RESULT_ID_KEYS), name_of(value), content, failure)


_PART_KEYS = frozenset(("text", "type", "content", "annotations", "block_type", "json", "_meta", "meta", "id", "index"))


def parts_text(value: Any) -> str | None:
    """The text of a list of content parts; None where the list is data, not content."""
    if not isinstance(value, list) or not value:
        return None
    texts: list[str] = []
    for part in value:
        if not isinstance(part, dict) or not _PART_KEYS.issuperset(part):
            return None
        text = part.get("text", part.get("content"))
        if isinstance(text, str):
            texts.append(text)
        elif "json" in part:
            texts.append(plain_text(part["json"]))
        elif "type" not in part and "block_type" not in part:
            return None
    return "\n".join(texts) or None


def id_of_answered_call(value: Mapping[str, Any]) -> str | None:
    """The call that a tool's message answers. LangChain's message ids are no call ids; elsewhere `id` is the call's."""
    named = _first_text(value, _ANSWERED_KEYS)
    return named if named or "tool_call_id" in value else _first_text(value, ("id",))


_FLAGS = frozenset(("status", "is_error", "isError", "failed", "error"))


def flagged(value: Mapping[str, Any]) -> ToolFailure | None:
    """A result that says it failed: a flag or a status beside the content."""
    if _FLAGS.isdisjoint(value):
        return None
    status = value.get("status")
    if (
        value.get("is_error") is True
        or value.get("isError") is True
        or value.get("failed") is True
        or value.get("error") is True
        or (isinstance(status, str) and status.lower() in ("error", "failed"))
    ):
        content = next((value[key] for key in _RESULT_VALUE_KEYS if value.get(key) is not None), None)
        reason = content if isinstance(content, str) else parts_text(content) or plain_text(content)
        found = failure_of_result(reason)
        return ToolFailure(type=found.type if found else None, message=reason or None)
    return None


def _first_text(value: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    for key in keys:
        item = value.get(key)
        if item is None:
            continue
        if isinstance(item, str):
            if item and (item[0] != "[" or not is_redacted(item)):
                return item
        elif isinstance(item, int) and not isinstance(item, bool):
            return str(item)
    return None
