"""The τ-bench conversations of `tests/data` as sessions, with the reward that says whether the agent succeeded."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from otel_evals.sessions.model import Session, ToolCall, ToolFailure, Turn

__all__ = ["TauBenchCase", "tau_bench"]

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


def _case(row: dict[str, Any]) -> TauBenchCase:
    turns = tuple(_turns(row["messages"]))
    name = f"tau-bench-airline-{row['task_id']}-{row['trial']}"
    session = Session(session_id=name, session_key="session.id", turns=turns, completion="ended")
    return TauBenchCase(session, row["reward"] == 1.0)


def _turns(messages: list[dict[str, Any]]) -> Iterator[Turn]:
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    for start, end in zip(starts, [*starts[1:], len(messages)], strict=True):
        user = messages[start]["content"].replace(STOP, "").strip()
        replies = [m["content"] for m in messages[start:end] if m["role"] == "assistant" and m["content"]]
        calls = [call for m in messages[start:end] for call in m.get("tool_calls") or ()]
        if replies or calls:
            yield Turn(
                user=user or None,
                agent=replies[-1] if replies else None,
                interim=tuple(replies[:-1]),
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
