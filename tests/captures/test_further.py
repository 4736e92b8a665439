"""Captures made after the dialects were written: are kinds solved, or cases?"""

from __future__ import annotations

import tarfile
from pathlib import Path

import orjson
import pytest

from otel_evals.sessions.model import Session
from otel_evals.spans.otlp_json import records_from_json
from tests.captures.corpus import assemble

FIND = "Find me a flight from SFO to JFK on May 20."
THANKS = "Thanks, that is all I needed!"
SORRY = "I'm sorry, the flight search service timed out, so I could not get any results."
WELCOME = "You're welcome! Have a good trip."
ARGUMENTS = {"origin": "SFO", "destination": "JFK", "date": "2026-05-20"}

NAMED = [
    "langfuse__langchain",
    "langsmith__langchain",
    "openinference__agno",
    "openinference__autogen-agentchat",
    "openinference__haystack",
    "otel_genai__agent-framework",
    "otel_genai__mastra",
    "splunk__langchain",
]


def sessions(name: str) -> list[Session]:
    lines: list[bytes] = []
    with tarfile.open(Path(__file__).with_name("further.tar.xz"), "r:xz") as archive:
        for part in (f"{name}.jsonl", f"{name}.logs.jsonl"):
            if part in archive.getnames():
                content = archive.extractfile(part)
                assert content is not None
                lines += content.readlines()
    return assemble([r for line in lines for r in records_from_json(orjson.loads(line))])


@pytest.mark.parametrize("name", NAMED)
def test_the_whole_conversation_is_recovered_with_the_failed_tool(name: str) -> None:
    [session] = sessions(name)
    assert [(turn.user, turn.agent) for turn in session.turns] == [(FIND, SORRY), (THANKS, WELCOME)]
    [call] = session.turns[0].tool_calls
    assert (call.name, call.arguments) == ("search_flights", ARGUMENTS)
    assert call.error is not None
    assert "Tool call timed out after 30s" in str(call.error.message)
    assert session.turns[1].tool_calls == ()
    assert session.evaluable


def test_a_program_without_tools_is_recovered_from_its_fields() -> None:
    [session] = sessions("openinference__dspy")
    assert [(turn.user, turn.agent) for turn in session.turns] == [(FIND, WELCOME), (THANKS, WELCOME)]


@pytest.mark.parametrize("name", ["openllmetry__agno", "openllmetry__crewai"])
def test_without_ids_and_histories_each_trace_is_a_session(name: str) -> None:
    first, second = sessions(name)
    assert [(turn.user, turn.agent) for turn in first.turns] == [(FIND, SORRY)]
    assert str(first.turns[0].tool_calls[0].error) != "None"
    assert [(turn.user, turn.agent) for turn in second.turns] == [(THANKS, WELCOME)]
    assert first.derived
    assert second.derived


def test_the_persons_words_in_json_bodies_of_log_records_are_read() -> None:
    [session] = sessions("otel_genai__semantic-kernel")
    assert [(turn.user, turn.agent) for turn in session.turns] == [(FIND, SORRY), (THANKS, WELCOME)]
    [call] = session.turns[0].tool_calls
    assert (call.name, call.arguments) == ("P-search_flights", ARGUMENTS)
    assert call.error is not None
    assert call.error.message == "Tool call timed out after 30s"
    assert not session.incomplete
