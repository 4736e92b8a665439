"""Reads histories that mostly repeat what was read before, and parses only what is new.

A session's memory holds digests of the last texts and the messages they came to, never the texts themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from otel_evals.dialects.blobs import read_blob
from otel_evals.dialects.facts import Message, Role
from otel_evals.dialects.messages import read_messages, system_text

__all__ = ["Recall", "read_history", "read_remembered", "read_system"]

Recall: TypeAlias = Callable[[int, tuple[tuple[str, str], ...]], dict[Any, Any]]
"""(trace id, session ids) → the memory of that session."""

WORTH = 256
"""Characters from which a text is worth remembering."""
KEPT = 16
"""Texts remembered per session."""


def read_history(value: Any, key: str, role: Role, memory: dict[Any, Any]) -> list[Message]:
    """Messages of a list that grows from span to span.

    Args:
        key: the attribute: each grows on its own.
        memory: of the session; changed here.
    """
    if not isinstance(value, str) or len(value) < WORTH or value[0] != "[" or value[-1] != "]":
        return _worth(read_messages(value, role))
    length, digest, known = memory.get(key, (0, 0, ()))
    found: list[Message] | None = None
    if length and len(value) > length and hash(value[:length]) == digest:
        if value[length] == "]" and len(value) == length + 1:
            return list(known)
        if value[length] == ",":
            found = _worth(read_messages("[" + value[length + 1 :], role, known))
    if found is None:
        found = _worth(read_messages(value, role))
    _remember(memory, key, (len(value) - 1, hash(value[:-1]), tuple(found)))
    return found


def read_remembered(value: Any, role: Role, memory: dict[Any, Any]) -> list[Message]:
    """Messages of a run's whole input or output, which wrappers repeat word for word."""
    if not isinstance(value, str) or len(value) < WORTH:
        return _worth(read_blob(value, role))
    key = (role, len(value), hash(value))
    known = memory.get(key)
    if known is not None:
        return list(known)
    found = _worth(read_blob(value, role))
    _remember(memory, key, tuple(found))
    return found


def read_system(value: Any, memory: dict[Any, Any]) -> str | None:
    """System instructions, which every model call repeats."""
    if value is None:
        return None
    if not isinstance(value, str):
        return system_text(value)
    key = ("system", len(value), hash(value))
    if key not in memory:
        _remember(memory, key, system_text(value))
    known: str | None = memory[key]
    return known


def _remember(memory: dict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    if len(memory) > KEPT:
        del memory[next(iter(memory))]


def _worth(messages: list[Message]) -> list[Message]:
    for message in messages:
        if not message.text and not message.calls and not message.results:
            return [m for m in messages if m.text or m.calls or m.results]
    return messages
