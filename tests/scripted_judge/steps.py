"""What a scripted model says in one turn of the conversation: text, tool calls, or a fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Step", "call_tool", "call_tools", "fail", "say"]


@dataclass(frozen=True)
class Step:
    """One assistant message."""

    text: str | None = None
    tool_calls: tuple[tuple[str, Any], ...] = ()
    """(tool name, arguments: an object, or a string that is sent as it is)."""
    finish_reason: str | None = None
    """Default: `tool_calls` or `stop`."""
    fault: str | None = None
    """Name of a fault that is acted out instead."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the fault."""


def say(text: str, *, finish_reason: str | None = None) -> Step:
    """The assistant answers with text."""
    return Step(text=text, finish_reason=finish_reason)


def call_tool(name: str, arguments: Any = None, *, text: str | None = None) -> Step:
    """The assistant calls one tool."""
    return Step(text=text, tool_calls=((name, {} if arguments is None else arguments),))


def call_tools(*calls: tuple[str, Any], text: str | None = None) -> Step:
    """The assistant calls several tools at once."""
    return Step(text=text, tool_calls=calls)


def fail(fault: str, **options: Any) -> Step:
    """The model fails at this point of the conversation."""
    return Step(fault=fault, options=options)
