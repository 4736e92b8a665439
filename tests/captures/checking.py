"""Compares assembled sessions with what a capture lets one recover, aspect by aspect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from otel_evals.sessions.model import Session, ToolCall, Turn
from otel_evals.sessions.portions import ANSWER_TOOLS


def fold(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()


def check(row: dict[str, Any], sessions: Sequence[Session]) -> dict[str, bool]:
    """Aspect → whether it holds; only the aspects whose facts were exported at all."""
    turns = [turn for session in sessions for turn in session.turns]
    if row["check"] == "content_off":
        silent = not any(turn.user or turn.agent for turn in turns)
        return {"silent": bool(sessions) and silent and not any(session.evaluable for session in sessions)}
    wanted = row["turns"]
    found: dict[str, bool] = {}
    if row["grouping"] == "one":
        found["sessions"] = len(sessions) == 1
    elif row["grouping"] == "per_turn":
        found["sessions"] = len(sessions) in (1, len(wanted)) and all(session.turns for session in sessions)
    else:
        return {}
    found["turns"] = len(turns) == len(wanted)
    pairs = list(zip(wanted, turns, strict=True)) if found["turns"] else []
    for side in ("user", "agent"):
        if any(want[side] for want in wanted):
            told = [(want[side], getattr(turn, side)) for want, turn in pairs if want[side]]
            found[side] = bool(pairs) and all(fold(want) == fold(got) for want, got in told)
    if any(tool["name"] for want in wanted for tool in want["tools"]):
        verdicts = [check_tools(want["tools"], turn) for want, turn in pairs]
        found["tools"] = bool(pairs) and all(tools for tools, _ in verdicts)
        found["outcome"] = bool(pairs) and all(outcome for _, outcome in verdicts)
    return found


def check_tools(wanted: list[dict[str, Any]], turn: Turn) -> tuple[bool, bool]:
    """Whether a turn's calls are the wanted ones, and whether they failed as wanted and for the wanted reason."""
    calls = [call for call in turn.tool_calls if call.name not in ANSWER_TOOLS]
    named = [tool for tool in wanted if tool["name"]]
    tools = outcome = True
    if (named and len(calls) != len(named)) or (not wanted and calls):
        tools = False
    for tool in named:
        call = next((c for c in calls if (c.name or "").split("__")[-1] == tool["name"]), None)
        if call is None:
            return False, False
        calls.remove(call)
        if tool["arguments"] is not None:
            tools = tools and same_arguments(tool["arguments"], call)
        outcome = outcome and (call.error is not None) == tool["failed"]
        if tool["failed"] and tool["error_contains"]:
            outcome = outcome and tool["error_contains"].lower() in reasons(call)
    return tools, outcome


def same_arguments(wanted: dict[str, Any], call: ToolCall) -> bool:
    given = call.arguments
    return isinstance(given, dict) and all(
        fold(str(given.get(key))) == fold(str(value)) for key, value in wanted.items()
    )


def reasons(call: ToolCall) -> str:
    """All that a call tells about its failure, in lower case."""
    error = call.error.model_dump() if call.error else None
    return orjson.dumps([error, call.result], default=str).decode().lower()
