"""The τ-bench conversations of `tests/data` as sessions, with the reward that says whether the agent succeeded."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from otel_evals.sessions.model import Session, ToolCall, ToolFailure, Turn

__all__ = ["TauBenchCase", "auc", "messages_of", "session_name", "tau_bench"]

ARCHIVE = Path(__file__).parent / "data" / "tau_bench_airline_gpt4o.jsonl.xz"
STOP = "###STOP###"


class TauBenchCase(NamedTuple):
    session: Session
    succeeded: bool
    """The database ended in the right state."""


@lru_cache(maxsize=1)
def tau_bench() -> tuple[TauBenchCase, ...]:
    """All 200 conversations."""
    with lzma.open(ARCHIVE, "rt", encoding="utf-8") as lines:
        return tuple(_case(json.loads(line)) for line in lines)


def auc(pairs: list[tuple[float, bool]]) -> float:
    """Chance that a session which succeeded has a higher score than one which did not, ties counted half.

    0.5 is what a coin reaches; NaN without one of both.
    """
    good = [score for score, succeeded in pairs if succeeded]
    bad = [score for score, succeeded in pairs if not succeeded]
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    return wins / (len(good) * len(bad)) if good and bad else float("nan")


def _case(row: dict[str, Any]) -> TauBenchCase:
    turns = tuple(_turns(messages_of(row)))
    session = Session(session_id=session_name(row), session_key="session.id", turns=turns, completion="ended")
    return TauBenchCase(session, row["reward"] == 1.0)


def session_name(row: dict[str, Any]) -> str:
    """The session id of one recorded conversation."""
    return f"tau-bench-airline-{row['task_id']}-{row['trial']}"


def messages_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of one conversation, with call ids that are its own: as published, some occur twice."""
    messages: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}
    for message in row["messages"]:
        calls = message.get("tool_calls") or ()
        for call in calls:
            numbers[call["id"]] = numbers.get(call["id"], 0) + 1
        changed: dict[str, Any] = {}
        if calls:
            changed["tool_calls"] = [{**call, "id": f"{call['id']}_{numbers[call['id']]}"} for call in calls]
        elif message["role"] == "tool":
            changed["tool_call_id"] = f"{message['tool_call_id']}_{numbers[message['tool_call_id']]}"
        messages.append({**message, **changed})
    return messages


def _turns(messages: list[dict[str, Any]]) -> Iterator[Turn]:
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    for start, end in zip(starts, [*starts[1:], len(messages)], strict=True):
        user = messages[start]["content"].replace(STOP, "").strip()
        said = [m for m in messages[start:end] if m["role"] == "assistant"]
        # Words beside a tool call are said on the way to a reply, which a handover to a person never gets.
        reply = said.pop()["content"] if said and not said[-1].get("tool_calls") else None
        interim = tuple(m["content"] for m in said if m["content"])
        calls = [call for m in said for call in m.get("tool_calls") or ()]
        if reply or interim or calls:
            yield Turn(
                user=user or None,
                agent=reply or None,
                interim=interim,
                tool_calls=tuple(_call(call, results.get(call["id"])) for call in calls),
            )


def _call(call: dict[str, Any], result: str | None) -> ToolCall:
    failed = result is not None and result.startswith("Error:")
    return ToolCall(
        id=call["id"],
        name=call["name"],
        arguments=json.loads(call["arguments"]),
        result=result,
        error=ToolFailure(message=result) if failed else None,
    )
