"""Whole inputs and outputs of runs and functions: text, messages, or a call record around either."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from otel_evals.dialects.decoding import decode, is_cut_dump, is_object_repr, is_redacted
from otel_evals.dialects.facts import Message, Role
from otel_evals.dialects.messages import contains_messages, read_messages

__all__ = ["read_blob"]

INPUT_KEYS = (
    "user_message", "user_input", "user_query", "user_prompt", "user_msg", "userMessage", "question", "query",
    "prompt",
    "message", "input", "input_text", "input_value", "text", "content", "task", "request", "new_message",
    "inputs", "input_str",
    "kwargs", "args", "body", "data", "ctx", "event", "start_event", "value", "state",
)  # fmt: skip
"""Names that applications give the person's words, the clearest first."""
OUTPUT_KEYS = (
    "final_output", "final_answer", "answer", "reply", "response", "output_text", "output", "result",
    "final_result",
    "completion", "text", "content", "message", "return_value", "return", "outputs", "raw", "value", "data",
    "chat_message",
)  # fmt: skip

_INPUT_RANK = {key: rank for rank, key in enumerate(INPUT_KEYS)}
_OUTPUT_RANK = {key: rank for rank, key in enumerate(OUTPUT_KEYS)}
MAX_DEPTH = 6
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?[\d.,]*(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?$")


def read_blob(value: Any, role: Role) -> list[Message]:
    """Messages in a run's input (role `user`) or output (role `assistant`); [] where none can be told."""
    if value is None or value == "" or is_redacted(value):
        return []
    inner = decode(value)
    if isinstance(inner, str):
        return [Message(role, inner)] if _said(inner) else []
    if contains_messages(inner):
        positional = _with_positional(inner) if role == "user" and isinstance(inner, dict) else None
        return positional or read_messages(inner, role)
    text = _find_text(inner, _INPUT_RANK if role == "user" else _OUTPUT_RANK, 0)
    if not text:
        return []
    before = _exchanges(inner) if role == "user" and isinstance(inner, dict) else []
    return [*before, Message(role, text)]


def _said(text: str) -> bool:
    if not text or (text.startswith("__") and text.endswith("__")):
        return False  # names of graph nodes, such as `__end__`
    if text[0].isdigit() and _TIMESTAMP.match(text):
        return False
    return not is_redacted(text) and not is_object_repr(text) and not is_cut_dump(text)


def _with_positional(value: dict[str, Any]) -> list[Message] | None:
    """`handle("new text", history)`: the text is newer than the history passed beside it."""
    if "args" not in value and "kwargs" not in value:
        return None
    args = value.get("args")
    arguments = (list(args) if isinstance(args, (list, tuple)) else []) + list((value.get("kwargs") or {}).values())
    texts = [item for item in arguments if isinstance(item, str) and " " in item]
    if len(texts) != 1:
        return None
    histories = [item for item in arguments if isinstance(item, (list, tuple, dict)) and contains_messages(item)]
    if not histories:
        return None
    history = read_messages(histories[0])
    if history and history[-1].role == "user" and history[-1].text == texts[0]:
        return history
    return [*history, Message("user", texts[0])]


_HISTORIES = ("history", "chat_history", "conversation_history")
_ASKED = ("question", "query", "user_input", "user", "human", "input")
_ANSWERED = ("answer", "response", "assistant", "ai", "output")


def _exchanges(value: dict[str, Any]) -> list[Message]:
    """Earlier questions and answers in fields of their own: `{"history": [{"question": …, "answer": …}]}`."""
    history = next((value[key] for key in _HISTORIES if value.get(key)), None)
    records = history.get("messages") if isinstance(history, dict) else history
    out: list[Message] = []
    for record in records if isinstance(records, (list, tuple)) else ():
        if not isinstance(record, dict):
            return []
        asked = next((record[key] for key in _ASKED if isinstance(record.get(key), str)), None)
        answered = next((record[key] for key in _ANSWERED if isinstance(record.get(key), str)), None)
        if asked is None or answered is None:
            return []
        out += [Message("user", asked), Message("assistant", answered)]
    return out


def _find_text(value: Any, ranks: Mapping[str, int], depth: int) -> str | None:
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, str):
        inner = decode(value) if depth else value
        if not isinstance(inner, str):
            return _find_text(inner, ranks, depth + 1)
        return value if _said(value) else None
    if isinstance(value, dict):
        keys = [key for key, item in value.items() if item and key in ranks]
        if len(keys) > 1:
            keys.sort(key=ranks.__getitem__)
        for key in keys:
            item = value[key]
            if found := _find_text(item, ranks, depth + 1):
                return found
        texts = [item for item in value.values() if isinstance(item, str) and " " in item and _said(item)]
        return texts[0] if len(texts) == 1 else None
    if isinstance(value, (list, tuple)):
        if len(value) == 1:
            return _find_text(value[0], ranks, depth + 1)
        texts = [item for item in value if isinstance(item, str) and " " in item and _said(item)]
        return texts[0] if len(texts) == 1 else None
    return None
