"""Reads every shape of chat message that instrumentations export into `Message`.

The shapes differ in a few places only (where the role stands, where the text, the call, the result), so one pass
over the keys that exist reads them all; nothing here knows a framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from otel_evals.dialects.decoding import decode, decode_repr, is_redacted, plain_text
from otel_evals.dialects.facts import Call, Message, Result, Role
from otel_evals.dialects.failures import failure_of_result
from otel_evals.sessions.model import ToolFailure

__all__ = [
    "arguments_of",
    "contains_messages",
    "join_chunks",
    "parts_text",
    "read_messages",
    "read_text",
    "system_text",
]

MAX_DEPTH = 12
CHUNK = 60
"""Characters up to which a piece of text counts as a streamed one."""

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "systemmessage": "system",
    "user": "user",
    "human": "user",
    "humanmessage": "user",
    "usermessage": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "assistantmessage": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "agent": "assistant",
    "tool": "tool",
    "tool-call": "assistant",
    "toolmessage": "tool",
    "function": "tool",
    "functionmessage": "tool",
    "tool-response": "tool",
    "tool_response": "tool",
    "toolresponse": "tool",
    "chatmessage": "user",
    "systemmessagechunk": "system",
    "humanmessagechunk": "user",
    "toolmessagechunk": "tool",
}
"""Roles and message type names, lower case, in our four words."""

_LISTS = ("messages", "contents", "choices", "generations", "candidates", "output", "outputs", "items")
_WRAPPERS = (
    "message",
    "update",
    "data",
    "kwargs",
    "response",
    "result",
    "chat_message",
    "chat_messages",
    "message_content",
    "content",
    "input",
    "state",
    "value",
    "request",
    "llm_request",
    "body",
    "inputs",
    "raw",
    "return",
    "return_value",
    "final_output",
    "history",
    "chat_history",
    "prompt",
    "new_message",
    "user_msg",
)
_HOLDER_RANK = {key: rank for rank, key in reversed(list(enumerate((*_LISTS, *_WRAPPERS))))}
_HOLDERS = frozenset(_HOLDER_RANK)
_TEXTS = ("text", "content", "value", "message", "output_text", "input_text", "string", "thought_text")
_TYPED = frozenset(
    (
        "message",
        "function_call",
        "function_call_output",
        "human",
        "ai",
        "system",
        "tool",
        "chat",
        "function",
        "user",
        "assistant",
    )
)
_SILENT_TYPES = frozenset(
    ("reasoning", "thinking", "redacted_thinking", "thought", "step-start", "step_start", "source", "uri",
     "blob", "image",
     "image_url", "audio", "file", "input_image", "refusal_reason", "server_tool_call", "server_tool_call_response")
)  # fmt: skip
_CALL_TYPES = frozenset(
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
_RESULT_TYPES = frozenset(
    ("tool_call_response", "tool-result", "tool_result", "function_call_output", "toolresult", "function_response",
     "tool_response", "tool-response", "toolcallresult", "toolresultcontent", "toolreturnpart")
)  # fmt: skip
_CALL_KEYS = ("function_call", "functionCall", "toolUse", "tool_call", "toolCall", "tool_use")
_RESULT_KEYS = ("function_response", "functionResponse", "toolResult", "tool_result", "toolResponse")
_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "function_arguments", "partial_json", "kwargs")
_ID_KEYS = ("id", "tool_call_id", "call_id", "toolCallId", "tool_use_id", "toolUseId", "tool_id", "callId")
_RESULT_ID_KEYS = ("tool_call_id", "call_id", "toolCallId", "tool_use_id", "toolUseId", "callId", "id", "tool_id")
_RESULT_VALUE_KEYS = ("response", "result", "output", "content", "text", "value", "parts")


def read_messages(value: Any, role: Role = "user") -> list[Message]:
    """All messages in a value, oldest first.

    Args:
        value: messages, one message, a request or response that holds messages, or text; or JSON or `repr` of these.
        role: whose words plain text is.
    """
    out: list[Message] = []
    _collect(decode(value), role, out, 0)
    return out


def contains_messages(value: Any, depth: int = 0) -> bool:
    """Whether a decoded value is, or holds near its top, something that states a message's role."""
    if depth > 4:
        return False
    if isinstance(value, dict):
        if _is_message(value):
            return True
        for key in value.keys() & _HOLDERS:
            inner = value[key]
            if (
                inner
                and (not isinstance(inner, str) or inner[0] in '[{"')
                and contains_messages(decode(inner), depth + 1)
            ):
                return True
        return False
    if isinstance(value, (list, tuple)):
        if _is_pair(value):
            return True
        return any(contains_messages(_opened(item), depth + 1) for item in value[:4])
    return False


def system_text(value: Any) -> str | None:
    """System instructions from text, parts or messages."""
    texts = [message.text for message in read_messages(value, "system") if message.text]
    return "\n".join(texts) or None


def join_chunks(messages: list[Message]) -> list[Message]:
    """Streamed answers: dozens of pieces, perhaps followed by the whole again, become one message."""
    if len(messages) < 2:
        return messages
    out: list[Message] = []
    run: list[str] = []
    for message in messages:
        if message.role == "assistant" and not message.calls and not message.results:
            if message.text:
                run.append(message.text)
            continue
        out += _joined(run)
        run = []
        out.append(message)
    return out + _joined(run)


def _joined(texts: list[str]) -> list[Message]:
    """One run of pieces of text by the agent."""
    if len(texts) < 2:
        return [Message("assistant", text) for text in texts]
    head = "".join(texts[:-1])
    last = texts[-1]
    if last.strip().startswith(head.strip()) or len(set(texts)) == 1:
        return [Message("assistant", last)]
    if len(texts) > 3 and max(map(len, texts)) < CHUNK:
        return [Message("assistant", "".join(texts))]
    return [Message("assistant", text) for text in texts]


def read_text(value: Any) -> str:
    """The text in a content value: a string, parts, or nested wrappers; "" where there is none."""
    parts: list[str] = []
    _texts(value, parts, 0)
    return "\n".join(part for part in parts if part)


def arguments_of(value: Any) -> Any:
    """Tool arguments as a dict where possible, from JSON, `repr`, or a call record `{args: [], kwargs: {}}`."""
    value = decode(value)
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        return None if value in ("", [], ()) or is_redacted(value) else value
    keys = set(value)
    if "kwargs" in keys and ("args" in keys or len(keys) == 1 or keys <= {"args", "kwargs", "arguments"}):
        inner = decode(value["kwargs"])
        positional = decode(value.get("args"))
        if isinstance(inner, dict) and inner:
            return arguments_of(inner) if set(inner) == {"kwargs"} else dict(inner)
        if isinstance(positional, (list, tuple)) and len(positional) == 1:
            return arguments_of(positional[0])
        return positional or {}
    for key in ("inputs", "arguments", "parameters", "args", "tool_input", "input"):
        inner = decode(value.get(key)) if key in keys else None
        if isinstance(inner, dict) and (len(keys) == 1 or keys & _CALL_RECORD_KEYS):
            return arguments_of(inner)
    return dict(value)


_CALL_RECORD_KEYS = frozenset(
    ("input_str", "tool_name", "name", "tool_call_id", "id", "tags", "metadata", "function_name", "toolName", "type",
     "config", "toolCallId", "tool", "is_async", "function")
)  # fmt: skip


def _is_message(value: Mapping[str, Any]) -> bool:
    role = value.get("role")
    if isinstance(role, str) and role.lower() in ROLES:
        return True
    kind = value.get("type")
    if (
        isinstance(kind, str)
        and kind in _TYPED
        and ("content" in value or "data" in value or "output" in value or "arguments" in value)
    ):
        return True
    if value.get("lc") == 1 and isinstance(value.get("id"), list) and value["id"]:
        return str(value["id"][-1]).lower() in ROLES
    return isinstance(value.get("source"), str) and "content" in value and isinstance(kind, str)


def _is_pair(value: Any) -> bool:
    """`["user", "text"]`, as LangChain accepts messages."""
    return (
        len(value) == 2
        and isinstance(value[0], str)
        and value[0].lower() in ROLES
        and isinstance(value[1], (str, list))
    )


def _collect(value: Any, role: Role, out: list[Message], depth: int) -> None:
    if depth > MAX_DEPTH or value is None:
        return
    if isinstance(value, str):
        if value and not is_redacted(value):
            out.append(Message(role, value))
    elif isinstance(value, dict):
        plain = _plain(value)
        if plain is not None:
            out.append(plain)
        else:
            _collect_mapping(value, role, out, depth)
    elif isinstance(value, (list, tuple)):
        _collect_list(value, role, out, depth)


def _opened(item: Any) -> Any:
    """A list's item, its JSON or `repr` undone."""
    if not isinstance(item, str):
        return item
    inner = decode(item)
    return decode_repr(inner) if isinstance(inner, str) else inner


_PLAIN_ROLES: dict[Any, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_PLAIN_KEYS = frozenset(("role", "content", "parts", "finish_reason", "name"))


def _plain(value: Mapping[str, Any]) -> Message | None:
    """The commonest message, a role and one text, without looking for anything else; None: look closer."""
    role = _PLAIN_ROLES.get(value.get("role"))
    if role is None or not _PLAIN_KEYS.issuperset(value):
        return None
    text = value.get("content")
    parts = value.get("parts")
    if text is None and type(parts) is list and len(parts) == 1:
        part = parts[0]
        if type(part) is dict and part.get("type") == "text":
            text = part.get("content")
    elif parts is not None:
        return None
    if type(text) is not str or not text or text[0] in "[{<(_" or text[-1] == ")" or is_redacted(text):
        return None
    return Message(role, text)


def _collect_list(value: Any, role: Role, out: list[Message], depth: int) -> None:
    if not value:
        return
    if type(value[0]) is dict and "role" in value[0]:
        for item in value:
            _collect(item if type(item) is dict else _opened(item), role, out, depth + 1)
        return
    if _is_pair(value):
        out.append(_message({"role": value[0], "content": value[1]}, role))
        return
    if all(_is_part(item) for item in value):
        message = _message({"content": value}, role)
        if message.text or message.calls or message.results:
            out.append(message)
        return
    for item in value:
        _collect(_opened(item), role, out, depth + 1)


def _is_part(value: Any) -> bool:
    """A piece of a message's content: states no role of its own."""
    if not isinstance(value, dict) or "role" in value:
        return False
    kind = str(value.get("type", "")).lower()
    if kind in ("function_call", "function_call_output", "message", "reasoning"):
        return False  # items of the Responses API are messages of their own
    return (
        kind in _CALL_TYPES
        or kind in _RESULT_TYPES
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


def _collect_mapping(value: Mapping[str, Any], role: Role, out: list[Message], depth: int) -> None:
    if value.get("lc") == 1 and isinstance(value.get("kwargs"), dict):
        name = str((value.get("id") or [""])[-1]).lower()
        if name in ROLES:
            out.append(_message({**value["kwargs"], "role": name}, role))
        else:
            _collect(value["kwargs"], role, out, depth + 1)
        return
    kind = value.get("type")
    lowered = kind.lower() if isinstance(kind, str) else ""
    if lowered in ("function_call", "function_call_output", "custom_tool_call", "mcp_call") and "role" not in value:
        out.append(_item(value, lowered))
        return
    if lowered == "reasoning" and "role" not in value:
        return
    if isinstance(value.get("data"), dict) and lowered in ROLES and "content" not in value:
        out.append(_message({**value["data"], "role": lowered}, role))
        return
    if _is_message(value):
        out.append(_message(value, role))
        return
    inner = value.get("message")
    if isinstance(inner, (dict, str)) and inner:
        _collect(decode(inner), role, out, depth + 1)
        return
    if any(_is_part_key(key) for key in value) and not any(key in value for key in _LISTS):
        message = _message(value, role)
        if message.text or message.calls or message.results:
            out.append(message)
            return
    for key in _in_order(value):
        inner = value[key]
        if inner and (isinstance(inner, (dict, list, tuple)) or (isinstance(inner, str) and key in _SPOKEN)):
            before = len(out)
            _collect(decode(inner), role, out, depth + 1)
            if len(out) > before:
                return
    text = value.get("text")
    if isinstance(text, str) and text and not is_redacted(text):
        out.append(Message(role, text))


def _in_order(value: Mapping[str, Any]) -> list[str]:
    """The keys of a mapping that may hold messages, the likeliest first."""
    keys = [key for key in value if key in _HOLDERS]
    if len(keys) > 1:
        keys.sort(key=_HOLDER_RANK.__getitem__)
    return keys


_SPOKEN = frozenset(("content", "response", "output", "result", "input", "final_output", "return_value", "user_msg"))


def _is_part_key(key: str) -> bool:
    return key in ("parts", "tool_calls", "toolCalls", "blocks") or key in _CALL_KEYS or key in _RESULT_KEYS


def _item(value: Mapping[str, Any], kind: str) -> Message:
    """One item of the Responses API: a call or its output is a message of its own."""
    if kind == "function_call_output":
        return Message("tool", "", (), (_result(value),))
    return Message("assistant", "", (_call(value),))


def _role(value: Mapping[str, Any], default: Role) -> Role:
    for key in ("role", "type", "source"):
        name = value.get(key)
        if isinstance(name, str) and (known := ROLES.get(name.rsplit(".", 1)[-1].lower())):
            return known
    return default


def _message(value: Mapping[str, Any], default: Role) -> Message:
    inner = value.get("message")
    if isinstance(inner, dict) and "content" not in value and "parts" not in value:
        value = {**value, **inner}
    role = _role(value, default)
    if role == "user" and isinstance(value.get("tool_call_id"), str) and value["tool_call_id"]:
        role = "tool"
    texts: list[str] = []
    calls: list[Call] = []
    results: list[Result] = []
    for key in ("content", "contents", "parts", "blocks", "text"):
        if key in value and value[key] is not None:
            before = len(texts)
            _content(value[key], texts, calls, results, 0)
            if before and "\n".join(texts[before:]) == "\n".join(texts[:before]):
                del texts[before:]  # the same content in two spellings
    if not _CARRIERS.isdisjoint(value):
        _carried(value, texts, calls, results)
    if calls:
        calls = [call for call in calls if call.name or call.id]
    text = "\n".join(piece for piece in texts if piece)
    if role == "tool" and not results:
        call_id, name = _first_text(value, _RESULT_ID_KEYS[:4]) or _tool_id(value), _name(value)
        if call_id or name or text:
            results.append(Result(call_id, name, text or None, _flagged(value) or failure_of_result(text)))
        text = ""
    return Message(role, text, _unique(calls), tuple(results))


_CARRIERS = frozenset(
    (
        "tool_calls",
        "toolCalls",
        "tool_call",
        "function_call",
        "functionCall",
        "additional_kwargs",
        "toolUse",
        *_RESULT_KEYS,
    )
)


def _carried(value: Mapping[str, Any], texts: list[str], calls: list[Call], results: list[Result]) -> None:
    """Calls and results that stand beside a message's content."""
    for key in ("tool_calls", "toolCalls", "tool_call", "function_call", "functionCall"):
        raw = value.get(key)
        if raw and not (key == "function_call" and calls):
            _calls(decode(raw), calls)
    extra = value.get("additional_kwargs")
    if isinstance(extra, dict) and not calls:
        _calls(decode(extra.get("tool_calls") or extra.get("function_call")), calls)
    for key in ("toolUse", *_RESULT_KEYS):
        if key in value:
            _content([{key: value[key]}], texts, calls, results, 0)


def _tool_id(value: Mapping[str, Any]) -> str | None:
    """Message ids of LangChain are uuids, not call ids; elsewhere `id` on a tool message is the call's."""
    return None if "tool_call_id" in value else _first_text(value, ("id",))


def _unique(calls: list[Call]) -> tuple[Call, ...]:
    """Content parts and sibling `tool_calls` may state the same call twice."""
    if len(calls) < 2:
        return tuple(calls)
    seen: dict[Any, Call] = {}
    for call in calls:
        key = call.id or (call.name, repr(call.arguments))
        known = seen.get(key)
        if known is None:
            seen[key] = call
        elif known.arguments is None:
            known.arguments = call.arguments
    return tuple(seen.values())


def _content(value: Any, texts: list[str], calls: list[Call], results: list[Result], depth: int) -> None:
    """Sorts the pieces of a message's content into texts, calls and results."""
    if depth > MAX_DEPTH or value is None:
        return
    if isinstance(value, str):
        if (inner := _structured(value)) is not None:
            for message in inner:
                texts += [message.text] if message.text else []
                calls += message.calls
                results += message.results
        elif not is_redacted(value):
            texts.append(value)
        return
    if isinstance(value, (list, tuple)):
        for item in value:
            _content(item, texts, calls, results, depth + 1)
        return
    if not isinstance(value, dict):
        if isinstance(value, (int, float)):
            texts.append(str(value))
        return
    if value.get("type") == "text":
        inner = value.get("text", value.get("content"))
        if type(inner) is str:
            _content(inner, texts, calls, results, depth + 1)
            return
    for wrapper in ("message_content", "message"):
        if wrapper in value and isinstance(value[wrapper], dict):
            _content(value[wrapper], texts, calls, results, depth + 1)
            return
    kind = str(
        value.get("type") or value.get("block_type") or value.get("kind") or value.get("__class__") or ""
    ).lower()
    if kind in _SILENT_TYPES:
        return
    if kind in _RESULT_TYPES:
        results.append(_result(value))
        return
    if kind in _CALL_TYPES:
        if not _defines_tool(value):
            calls.append(_call(value))
        return
    if not _PART_CARRIERS.isdisjoint(value):
        for key in _CALL_KEYS:
            if isinstance(value.get(key), dict):
                calls.append(_call(value[key]))
                return
        for key in _RESULT_KEYS:
            if isinstance(value.get(key), dict):
                results.append(_result(value[key]))
                return
    if "toolCallId" in value and "toolName" in value:
        if "result" in value or "output" in value:
            results.append(_result(value))
        else:
            calls.append(_call(value))
        return
    if "call_id" in value and "content" in value:
        results.append(_result(value))
        return
    if "arguments" in value and "name" in value:
        calls.append(_call(value))
        return
    for key in _TEXTS:
        inner = value.get(key)
        if isinstance(inner, (str, list, dict)):
            _content(inner, texts, calls, results, depth + 1)
            return


_PART_CARRIERS = frozenset((*_CALL_KEYS, *_RESULT_KEYS))
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
    if (
        isinstance(inner, list)
        and inner
        and all(isinstance(i, dict) and ("text" in i or "type" in i or _is_part(i)) for i in inner)
    ):
        return read_messages(inner, "assistant")
    if not isinstance(inner, dict):
        return None
    kind = str(inner.get("type", "")).lower()
    if kind in ("text", "output_text", "input_text") or kind in _CALL_TYPES:
        return read_messages([inner], "assistant")
    if ("id" in inner or "object" in inner) and any(isinstance(inner.get(key), list) for key in _RESPONSE_KEYS):
        return read_messages(inner, "assistant")
    return None


def _defines_tool(value: Mapping[str, Any]) -> bool:
    """Whether this offers a tool to the model, by name and schema, and calls none."""
    inner = value.get("function")
    offered = inner if isinstance(inner, dict) else value
    schema = offered.get("parameters", offered.get("input_schema"))
    return isinstance(schema, dict) and isinstance(schema.get("properties"), dict) and "arguments" not in offered


def _calls(value: Any, calls: list[Call]) -> None:
    if isinstance(value, dict):
        value = [value]
    if isinstance(value, (list, tuple)):
        for item in value:
            item = decode(item)
            if isinstance(item, dict):
                call = _call(item)
                if call.name or call.id:
                    calls.append(call)


def _call(value: Mapping[str, Any]) -> Call:
    for wrapper in ("tool_call", "toolCall", "function"):
        inner = value.get(wrapper)
        if isinstance(inner, dict):
            merged = {**{k: v for k, v in value.items() if k != wrapper}, **inner}
            if value.get("id"):
                merged["id"] = value["id"]
            return _call(merged)
    arguments: Any = None
    for key in _ARGUMENT_KEYS:
        if value.get(key) is not None:
            arguments = arguments_of(value[key])
            break
    if isinstance(arguments, dict) and set(arguments) == {"kwargs"} and isinstance(arguments["kwargs"], dict):
        arguments = arguments["kwargs"]
    return Call(_first_text(value, ("call_id", *_ID_KEYS)), _name(value), arguments)


def _name(value: Mapping[str, Any]) -> str | None:
    return _first_text(value, ("name", "toolName", "tool_name", "function_name"))


def _result(value: Mapping[str, Any]) -> Result:
    content: Any = None
    for key in _RESULT_VALUE_KEYS:
        if value.get(key) is not None:
            content = value[key]
            break
    origin = value.get("origin")
    if isinstance(origin, dict):  # the call itself, beside its result
        value = {**origin, **value}
    failure = _flagged(value) or failure_of_result(content)
    inner = decode(content)
    if isinstance(inner, dict) and isinstance(inner.get("type"), str) and "value" in inner:
        content = inner["value"]
    elif isinstance(inner, list):
        content = parts_text(inner) or content
    if is_redacted(content):
        content = None
    return Result(_first_text(value, _RESULT_ID_KEYS), _name(value), content, failure)


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


def _flagged(value: Mapping[str, Any]) -> ToolFailure | None:
    """A result that says it failed: a flag or a status beside the content."""
    status = value.get("status")
    flagged = any(value.get(key) is True for key in ("is_error", "isError", "failed", "error"))
    if flagged or (isinstance(status, str) and status.lower() in ("error", "failed")):
        content = next((value[key] for key in _RESULT_VALUE_KEYS if value.get(key) is not None), None)
        reason = content if isinstance(content, str) else read_text(content) or plain_text(content)
        found = failure_of_result(reason)
        return ToolFailure(type=found.type if found else None, message=reason or None)
    return None


def _first_text(value: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    for key in keys:
        item = value.get(key)
        if isinstance(item, str) and item:
            return item
        if isinstance(item, int) and not isinstance(item, bool):
            return str(item)
    return None


def _texts(value: Any, parts: list[str], depth: int) -> None:
    calls: list[Call] = []
    results: list[Result] = []
    _content(value, parts, calls, results, depth)
