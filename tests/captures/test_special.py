"""Interleaved and concurrent conversations, cancelled runs, abandoned streams, a dead model: read by hand once.

What a person reads out of each capture is written down here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from otel_evals.sessions.model import Session
from tests.captures.checking import fold
from tests.captures.corpus import assemble, framework, records, rows

FIND = "Find me a flight from SFO to JFK on May 20."
FOUND = (
    "I found two flights from SFO to JFK on May 20: UA 1234 at 08:05 for $312 and B6 616 at 13:20 for $287. "
    "Would you like me to book one of them?"
)


class Read(NamedTuple):
    """One turn: what was said, and which tools were called, `!` before those that failed."""

    user: str
    agent: str | None
    tools: tuple[str, ...] = ()


SUCCESS = (
    Read(FIND, FOUND, ("search_flights",)),
    Read("Thanks, that is all I needed!", "You're welcome! Have a good trip."),
)
STALL = (
    Read(
        "How do I change the name on my booking?",
        "There are many ways to manage bookings. It depends on several factors.",
    ),
    Read(
        "That does not answer my question. How do I change the name on my booking?",
        "I understand. Managing a booking can be done in different ways depending on your situation.",
    ),
    Read(
        "This is useless. I still don't know how to change the name.",
        "Thank you for your feedback. Is there anything else I can help with?",
    ),
)
FABRICATED = (Read(FIND, "There are no flights available for that route.", ("!search_flights",)),)

ROWS = [row["file"] for row in rows() if row["check"] == "special"]
INTERLEAVED = [path for path in ROWS if "interleaved" in path and framework(path) != "otel_genai__autogen-agentchat"]
CONCURRENT = [path for path in ROWS if path.endswith("/concurrent.jsonl")]
CANCELLED = [path for path in ROWS if path.endswith("/cancelled_then_ok.jsonl")]
DEAD = [path for path in ROWS if path.endswith("/llm_down.jsonl")]
ABANDONED = [path for path in ROWS if "stream_abandoned" in path]


def read(session: Session) -> tuple[Read, ...]:
    return tuple(
        Read(
            fold(turn.user),
            fold(turn.agent) if turn.agent else None,
            tuple(("!" if call.error else "") + (call.name or "") for call in turn.tool_calls),
        )
        for turn in session.turns
    )


def conversations(path: str) -> list[tuple[Read, ...]]:
    return sorted((read(session) for session in assemble(records(path))), key=repr)


def in_order(*expected: Sequence[Read]) -> list[tuple[Read, ...]]:
    return sorted((tuple(conversation) for conversation in expected), key=repr)


@pytest.mark.parametrize("path", INTERLEAVED)
def test_interleaved_conversations_stay_apart(path: str) -> None:
    three = path.endswith("/interleaved.jsonl")
    assert conversations(path) == (in_order(SUCCESS, SUCCESS, STALL) if three else in_order(SUCCESS, STALL))


@pytest.mark.parametrize("path", CONCURRENT)
def test_concurrent_conversations_stay_apart(path: str) -> None:
    other = FABRICATED if framework(path) == "openllmetry__langgraph" else STALL
    assert conversations(path) == in_order(SUCCESS, other)


@pytest.mark.parametrize("path", CANCELLED)
def test_a_cancelled_run_is_a_turn_without_an_answer_and_the_retry_is_the_next(path: str) -> None:
    [session] = assemble(records(path))
    cancelled, *rest = read(session)
    assert (cancelled.user, cancelled.agent) == (FIND, None)
    assert [name.lstrip("!") for name in cancelled.tools] == ["search_flights"]
    assert tuple(rest) == SUCCESS


@pytest.mark.parametrize("path", [path for path in DEAD if framework(path) != "otel_genai__autogen-agentchat"])
def test_a_dead_model_is_a_turn_with_an_error_and_not_evaluable(path: str) -> None:
    [session] = assemble(records(path))
    assert read(session) == (Read(FIND, None),)
    assert session.turns[0].error is not None
    assert "onnection" in str(session.turns[0].error)
    assert (session.evaluable, session.not_evaluable_reason) == (False, "no_agent_answer")


@pytest.mark.parametrize("path", ABANDONED)
def test_an_abandoned_stream_leaves_what_had_been_said_and_does_not_swallow_the_next_turn(path: str) -> None:
    [session] = assemble(records(path))
    first, second = read(session)
    assert (first.user, first.agent) == (STALL[0].user, "There are many")
    assert second == STALL[1]


def test_without_content_interleaved_runs_are_counted_and_nothing_is_invented() -> None:
    sessions = assemble(records("otel_genai__autogen-agentchat/default/interleaved_success_stall.jsonl"))
    assert len(sessions) == 5
    assert {session.not_evaluable_reason for session in sessions} == {"no_content"}
    assert [call.name for s in sessions for turn in s.turns for call in turn.tool_calls] == ["search_flights"]


def test_a_dead_model_without_content_shows_its_error() -> None:
    [session] = assemble(records("otel_genai__autogen-agentchat/default/llm_down.jsonl"))
    assert session.not_evaluable_reason == "no_content"
    assert "onnection" in str(session.turns[0].error)


def test_every_special_capture_is_read_here() -> None:
    without_content = 2
    read_here = INTERLEAVED + CONCURRENT + CANCELLED + DEAD + ABANDONED
    assert len(read_here) + without_content - 1 == len(ROWS)
