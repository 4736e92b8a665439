"""Whatever arrives, in whatever order, twice or not at all: nothing raises, nothing is invented, no two people meet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.sessions.model import Session
from otel_evals.spans.otlp_json import records_from_json
from otel_evals.spans.record import EventRecord, LogRecord_, SpanRecord
from tests.captures.corpus import records, rows
from tests.captures.renaming import renamed

LIMITS = AssemblerLimits(idle_s=1e6, max_age_s=1e9)
CAPTURES = [row["file"] for row in rows() if row["check"] != "special"]
ONE_SESSION = [row["file"] for row in rows() if row.get("grouping") == "one" and row["check"] == "turns"]

Records = Sequence[SpanRecord | LogRecord_]


def assemble(given: Records) -> tuple[list[Session], SessionAssembler]:
    assembler = SessionAssembler(LIMITS)
    for record in given:
        if isinstance(record, SpanRecord):
            assembler.add_span(record, 1)
        else:
            assembler.add_log(record, 1)
    return list(assembler.flush(2)), assembler


def texts(session: Session) -> list[str]:
    return [text for turn in session.turns for text in (turn.user, turn.agent, *turn.interim) if text]


def everything(given: Records) -> str:
    """All that was exported, as `unescaped`."""
    return unescaped("".join(orjson.dumps(_plain(record), default=str).decode() for record in given))


def _plain(record: SpanRecord | LogRecord_) -> Any:
    if isinstance(record, LogRecord_):
        return [record.body, record.attributes]
    return [record.attributes, [event.attributes for event in record.events]]


def unescaped(text: str) -> str:
    """Without white space and escapes, however deep: texts quote each other as JSON in JSON in JSON."""
    return "".join(re.sub(r"\\+n?", "", text).split())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.sampled_from(CAPTURES), st.data())
def test_any_permutation_and_duplication_gives_the_same_sessions(path: str, data: st.DataObject) -> None:
    original = records(path)
    spans = [record for record in original if isinstance(record, SpanRecord)]
    logs = [
        record for record in original if not isinstance(record, SpanRecord)
    ]  # order matters where times are missing
    shuffled = data.draw(st.permutations(spans + data.draw(st.lists(st.sampled_from(spans), max_size=5))))
    expected, _ = assemble(original)
    found, assembler = assemble([*shuffled, *logs])
    assert assembler.poisoned == 0
    assert sorted(map(str, found)) == sorted(map(str, expected))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(CAPTURES), st.data())
def test_any_loss_of_spans_invents_no_text_and_poisons_nothing(path: str, data: st.DataObject) -> None:
    original = records(path)
    kept = [record for record in original if data.draw(st.booleans())]
    sessions, assembler = assemble(kept)
    assert assembler.poisoned == 0
    exported = everything(kept)
    for session in sessions:
        for text in texts(session):
            assert unescaped(text) in exported


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(ONE_SESSION), min_size=2, max_size=4), st.data())
def test_session_ids_never_merge(paths: list[str], data: st.DataObject) -> None:
    mixed: list[SpanRecord | LogRecord_] = []
    expected = 0
    for number, path in enumerate(paths):
        copy = [renamed(record, f"-{number}") for record in records(path)]
        expected += len(assemble(copy)[0])
        mixed += copy
    spans = [record for record in mixed if isinstance(record, SpanRecord)]
    logs = [record for record in mixed if not isinstance(record, SpanRecord)]
    sessions, _ = assemble([*data.draw(st.permutations(spans)), *logs])
    assert len(sessions) == expected


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
known_keys = st.sampled_from(
    ["gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.conversation.id", "session.id",
     "openinference.span.kind", "llm.input_messages.0.message.content", "llm.input_messages.0.message", "input.value",
     "output.value", "gen_ai.tool.name", "gen_ai.tool.call.result", "traceloop.entity.input", "metadata", "tags",
     "gen_ai.usage.input_tokens", "mlflow.spanType", "events", "pydantic_ai.all_messages", "final_result",
     "pydantic_ai.new_message_index", "ai.prompt", "gen_ai.system_instructions", "error.type", "tool.name"]
)  # fmt: skip
words = st.sampled_from(
    ["chat", "invoke_agent", "execute_tool", "LLM", "TOOL", "AGENT", "[]", "{}", "[{", '{"role":"user"}']
)
hostile = st.builds(
    SpanRecord,
    trace_id=st.integers(0, 3),
    span_id=st.integers(0, 6),
    parent_id=st.none() | st.integers(0, 6),
    name=st.text(max_size=10),
    start_ns=st.integers(0, 20),
    end_ns=st.integers(0, 20),
    attributes=st.dictionaries(known_keys | st.text(max_size=5), anything | words, max_size=8),
    status=st.sampled_from(["unset", "ok", "error"]),
    events=st.lists(
        st.builds(
            EventRecord,
            st.sampled_from(["exception", "gen_ai.choice", "gen_ai.user.message", "x"]),
            st.just(0),
            st.dictionaries(st.sampled_from(["content", "message", "exception.message"]), anything, max_size=2),
        ),
        max_size=2,
    ).map(tuple),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(hostile, max_size=8))
def test_hostile_spans_neither_raise_nor_poison_nor_break_serialisation(given: list[SpanRecord]) -> None:
    sessions, assembler = assemble(given)
    assert assembler.poisoned == 0
    for session in sessions:
        assert Session.model_validate_json(session.model_dump_json()).session_id == session.session_id


@settings(max_examples=200, deadline=None)
@given(anything)
def test_any_document_is_read_without_raising(document: Any) -> None:
    list(records_from_json(document))
    list(records_from_json({"resourceSpans": [{"scopeSpans": [{"spans": [document, {"traceId": document}]}]}]}))
    list(records_from_json({"resourceLogs": [{"scopeLogs": [{"logRecords": [document, {"body": document}]}]}]}))
