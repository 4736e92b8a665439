"""Reads every shape of chat message that instrumentations export into `Message`.

The shapes differ in a few places only (where the role stands, where the text, the call, the result), so one pass
over the keys that exist reads them all; nothing here knows a framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from otel_evals.dialects.decoding import LONGEST_REDACTED, decode, decode_repr, is_redacted
from otel_evals.dialects.facts import Message, Result, Role
from otel_evals.dialects.failures import failure_of_result
from otel_evals.dialects.pieces import CARRIERS, MAX_DEPTH, Pieces, is_part, may_be_dump
from otel_evals.dialects.tool_calls import (
    CALL_KEYS,
    ITEM_TYPES,
    RESULT_KEYS,
    distinct,
    flagged,
    id_of_answered_call,
    name_of,
    read_call,
    read_result,
)

__all__ = ["contains_messages", "read_messages", "system_text"]

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

_LISTS = ("messages", "contents", "choices", "generations", "candidates", "replies", "output", "outputs", "items")
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
_TYPED = ITEM_TYPES | {"message", "human", "ai", "system", "tool", "chat", "function", "user", "assistant"}
_STATING = frozenset(("role", "type", "lc"))
"""A mapping with none of these is no message itself."""
_SAID = frozenset(("content", "data", "output", "arguments"))
_SPOKEN = frozenset(("content", "response", "output", "result", "input", "final_output", "return_value", "user_msg"))
_PART_KEYS = frozenset(("parts", "tool_calls", "toolCalls", "blocks", *CALL_KEYS, *RESULT_KEYS))
_LIST_KEYS = frozenset(_LISTS)
_ITEMS = ITEM_TYPES | {"custom_tool_call", "mcp_call"}


def read_messages(value: Any, role: Role = "user", before: Iterable[Message] = ()) -> list[Message]:
    """All messages in a value, oldest first.

    Args:
        value: messages, one message, a request or response that holds messages, or text; or JSON or `repr` of these.
        role: whose words plain text is.
        before: messages that these go on from; returned with them.
    """
    out = list(before)
    _collect(decode(value), role, out, 0)
    return out


def contains_messages(value: Any, depth: int = 0) -> bool:
    """Whether a decoded value is, or holds near its top, something that states a message's role."""
    if depth > 4:
        return False
    if isinstance(value, dict):
        if (not _STATING.isdisjoint(value) and _is_message(value)) or _says_by_parts(value):
            return True
        for key, inner in value.items():
            if inner and key in _HOLDERS:
                if isinstance(inner, str):
                    if inner[0] not in '[{"':
                        continue
                    inner = decode(inner)
                if contains_messages(inner, depth + 1):
                    return True
        return False
    if isinstance(value, (list, tuple)):
        if _is_pair(value):
            return True
        for item in value[:4]:
            if contains_messages(_opened(item), depth + 1):
                return True
    return False


def system_text(value: Any) -> str | None:
    """System instructions from text, parts or messages."""
    texts = [message.text for message in read_messages(value, "system") if message.text]
    return "\n".join(texts) or None


def _is_message(value: Mapping[str, Any]) -> bool:
    role = value.get("role")
    if isinstance(role, str) and role.lower() in ROLES:
        return True
    kind = value.get("type")
    stated = isinstance(kind, str)
    if stated and kind in _TYPED and not _SAID.isdisjoint(value):
        return True
    if value.get("lc") == 1 and isinstance(value.get("id"), list) and value["id"]:
        return str(value["id"][-1]).lower() in ROLES
    return stated and "content" in value and isinstance(value.get("source"), str)


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
    if isinstance(value, dict):
        plain = _plain(value) if "role" in value else None
        if plain is not None:
            out.append(plain)
        else:
            _collect_mapping(value, role, out, depth)
    elif isinstance(value, (list, tuple)):
        _collect_list(value, role, out, depth)
    elif isinstance(value, str) and value and (len(value) >= LONGEST_REDACTED or not is_redacted(value)):
        out.append(Message(role, value))


def _opened(item: Any) -> Any:
    """A list's item, its JSON or `repr` undone."""
    if not isinstance(item, str):
        return item
    inner = decode(item)
    return decode_repr(inner) if isinstance(inner, str) else inner


_PLAIN_ROLES: dict[Any, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_PLAIN_MESSAGE_KEYS = frozenset(("role", "content", "parts", "finish_reason", "name"))


def _plain(value: Mapping[str, Any]) -> Message | None:
    """The commonest message, a role and one text, without looking for anything else; None: look closer."""
    stated = value.get("role")
    role = _PLAIN_ROLES.get(stated) if isinstance(stated, str) else None
    if role is None or (len(value) > 2 and not _PLAIN_MESSAGE_KEYS.issuperset(value)):
        return None
    text = value.get("content")
    parts = value.get("parts")
    if text is None and type(parts) is list and len(parts) == 1:
        part = parts[0]
        if type(part) is dict and part.get("type") == "text":
            text = part.get("content")
    elif parts is not None:
        return None
    if type(text) is not str or not text or text[0] in "[{<(_" or text[-1] == ")":
        return None
    if len(text) < LONGEST_REDACTED and is_redacted(text):
        return None
    return Message(role, text)


def _collect_list(value: Any, role: Role, out: list[Message], depth: int) -> None:
    if not value:
        return
    first = value[0]
    if isinstance(first, dict):
        if is_part(first) and all(is_part(item) for item in value):
            message = _message({"content": value}, role)
            if message.text or message.calls or message.results:
                out.append(message)
            return
    elif _is_pair(value):
        out.append(_message({"content": value[1]}, role, first))
        return
    if depth < MAX_DEPTH:
        for item in value:
            if type(item) is dict:
                plain = _plain(item) if "role" in item else None
                if plain is not None:
                    out.append(plain)
                else:
                    _collect_mapping(item, role, out, depth + 1)
            else:
                _collect(_opened(item), role, out, depth + 1)


def _collect_mapping(value: Mapping[str, Any], role: Role, out: list[Message], depth: int) -> None:
    stated = value.get("role")
    if type(stated) is str and stated in ROLES and "lc" not in value and "data" not in value:
        out.append(_message(value, role, stated))
        return
    if type(stated) is str and "content" in value and stated.lower() not in ROLES and _called(stated, out):
        out.append(_message(value if value.get("name") else {**value, "name": stated}, role, "tool"))
        return
    if not _STATING.isdisjoint(value) and _collect_stated(value, role, out, depth):
        return
    inner = value.get("message")
    if inner and isinstance(inner, (dict, str)):
        _collect(decode(inner), role, out, depth + 1)
        return
    if stated is None and _collect_parts(value, out):
        return
    if not _PART_KEYS.isdisjoint(value) and _LIST_KEYS.isdisjoint(value):
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


_PART_ROLES: dict[Any, Role] = {
    "system-prompt": "system",
    "user-prompt": "user",
    "tool-return": "tool",
    "retry-prompt": "tool",
    "text": "assistant",
    "tool-call": "assistant",
}


def _says_by_parts(value: Mapping[str, Any]) -> bool:
    parts = value.get("parts")
    return isinstance(parts, list) and bool(parts) and isinstance(parts[0], dict) and "part_kind" in parts[0]


def _collect_parts(value: Mapping[str, Any], out: list[Message]) -> bool:
    """Takes in a request or a response whose parts say whose words they are. Returns whether it was one."""
    if not _says_by_parts(value):
        return False
    if value.get("kind") == "response":
        out.append(_message(value, "assistant"))
        return True
    for part in value["parts"]:
        kind = part.get("part_kind") if isinstance(part, dict) else None
        role = _PART_ROLES.get(kind) if isinstance(kind, str) else None
        if role is not None:
            out.append(_message({"parts": [part]}, role))
    return True


def _called(name: str, messages: list[Message]) -> bool:
    """Whether a name that stands for a role is that of a tool called before."""
    return any(call.name == name for message in reversed(messages) for call in message.calls)


def _collect_stated(value: Mapping[str, Any], role: Role, out: list[Message], depth: int) -> bool:
    """Takes in a mapping that states what it is. Returns whether it was a message, or nothing that was said."""
    if value.get("lc") == 1 and isinstance(value.get("kwargs"), dict):
        name = str((value.get("id") or [""])[-1]).lower()
        if name in ROLES:
            out.append(_message(value["kwargs"], role, name))
        else:
            _collect(value["kwargs"], role, out, depth + 1)
        return True
    kind = value.get("type")
    if isinstance(kind, str):
        kind = kind.lower()
        if "role" not in value:
            if kind in _ITEMS:
                out.append(_item(value, kind))
                return True
            if kind == "reasoning":
                return True
        if "content" not in value and kind in ROLES and isinstance(value.get("data"), dict):
            out.append(_message(value["data"], role, kind))
            return True
    if _is_message(value):
        out.append(_message(value, role))
        return True
    return False


def _in_order(value: Mapping[str, Any]) -> list[str]:
    """The keys of a mapping that may hold messages, the likeliest first."""
    keys = [key for key in value if key in _HOLDERS]
    if len(keys) > 1:
        keys.sort(key=_HOLDER_RANK.__getitem__)
    return keys


def _item(value: Mapping[str, Any], kind: str) -> Message:
    """One item of the Responses API: a call or its output is a message of its own."""
    if kind in ("function_call_output", "function_call_result"):
        return Message("tool", "", (), (read_result(value),))
    return Message("assistant", "", (read_call(value),))


def _role(value: Mapping[str, Any], default: Role) -> Role:
    for key in ("role", "type", "source"):
        name = value.get(key)
        if isinstance(name, str):
            known = ROLES.get(name) or ROLES.get(name.rsplit(".", 1)[-1].lower())
            if known is not None:
                return known
    return default


_CONTENTS = ("content", "contents", "parts", "blocks", "text")
_SAYING = {key: rank for rank, key in enumerate((*_CONTENTS, *CARRIERS))}
"""The keys that may say something, in the order in which they are read."""
_CALLS_APART = frozenset(("tool_calls", "function_call"))


def _message(value: Mapping[str, Any], default: Role, stated: str | None = None) -> Message:
    """The message that a mapping is; `stated`: its role, where that stands outside."""
    inner = value.get("message")
    if isinstance(inner, dict) and "content" not in value and "parts" not in value:
        value = {**value, **inner} if stated is None else {**value, "role": stated, **inner}
        stated = None
    role = _role(value, default) if stated is None else ROLES.get(stated) or ROLES[stated.lower()]
    if role == "user" and isinstance(value.get("tool_call_id"), str) and value["tool_call_id"]:
        role = "tool"
    keys = _saying(value)
    text = ""
    pieces: Pieces | None = None
    content = value.get("content")
    if (
        type(content) is str
        and len(keys) == 1
        and not may_be_dump(content)
        and (len(content) >= LONGEST_REDACTED or not is_redacted(content))
    ):
        text = content
    elif keys:
        pieces = _pieces(value, keys)
        texts = pieces.texts
        text = texts[0] if len(texts) == 1 else "\n".join([piece for piece in texts if piece])
    if role == "tool" and (pieces is None or not pieces.results):
        call_id, name = id_of_answered_call(value), name_of(value)
        results: tuple[Result, ...] = ()
        if call_id or name or text:
            results = (Result(call_id, name, text or None, flagged(value) or failure_of_result(text)),)
        return Message(role, "", distinct(pieces.calls) if pieces is not None else (), results)
    if pieces is None:
        return Message(role, text)
    return Message(role, text, distinct(pieces.calls), tuple(pieces.results))


def _saying(value: Mapping[str, Any]) -> list[str]:
    """The keys of a message that say something, in the order in which they are read."""
    keys: list[str] = []
    for key, item in value.items():
        if key in _SAYING and (item or item == 0 or item == "" or key in RESULT_KEYS):
            if key == "additional_kwargs" and isinstance(item, dict) and _CALLS_APART.isdisjoint(item):
                continue
            keys.append(key)
    if len(keys) > 1:
        keys.sort(key=_SAYING.__getitem__)
    return keys


def _pieces(value: Mapping[str, Any], keys: list[str]) -> Pieces:
    pieces = Pieces()
    texts = pieces.texts
    for key in keys:
        if key in _CONTENTS:
            before = len(texts)
            pieces.add(value[key])
            if before and "\n".join(texts[before:]) == "\n".join(texts[:before]):
                del texts[before:]  # the same content in two spellings
        else:
            pieces.add_beside(key, value[key])
    return pieces
