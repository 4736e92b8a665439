"""The tool failures that an agent had to explain, as the trace says them; no judge is asked whether one happened."""

from __future__ import annotations

from dataclasses import dataclass

from otel_evals.sessions.model import Session, ToolCall

__all__ = ["FailedTool", "failed_tools"]


@dataclass(frozen=True, slots=True)
class FailedTool:
    """A tool that failed in a turn. Repeated failures of one tool in one turn are one: they share one reply."""

    number: int
    """From 1, in order of occurrence; the transcript and the answers refer to it."""
    turn: int
    name: str
    calls: tuple[ToolCall, ...]
    mended: bool
    """A later call of the same tool in the same turn succeeded."""


def failed_tools(session: Session) -> tuple[FailedTool, ...]:
    """Failed tools of all turns, in order."""
    found: list[FailedTool] = []
    for index, turn in enumerate(session.turns):
        by_name: dict[str, list[ToolCall]] = {}
        succeeded_after: dict[str, bool] = {}
        for call in turn.tool_calls:
            name = call.name or ""
            if call.error:
                by_name.setdefault(name, []).append(call)
            if name in by_name:
                succeeded_after[name] = call.error is None
        for name, calls in by_name.items():
            found.append(FailedTool(len(found) + 1, index, name, tuple(calls), succeeded_after[name]))
    return tuple(found)
