"""Vendors that no vocabulary lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from otel_evals.dialects.guessing import guess
from otel_evals.spans.record import SpanRecord
from tests.captures.checking import check
from tests.captures.corpus import assemble, framework, records, rows
from tests.sessions.spans import span
from tests.sessions.test_turns import said, session_of, tools

FILES = [row for row in rows() if framework(row["file"]) == "langfuse__langfuse-py" and row["check"] == "turns"]


def of_another_vendor(record: Any) -> Any:
    if not isinstance(record, SpanRecord):
        return record
    return replace(record, attributes={k.replace("langfuse.", "acme."): v for k, v in record.attributes.items()})


@pytest.mark.parametrize("row", FILES, ids=[row["file"] for row in FILES])
def test_a_vocabulary_under_a_name_that_nobody_knows_is_read_as_well(row: dict[str, Any]) -> None:
    known = records(row["file"])
    assert check(row, assemble([of_another_vendor(record) for record in known])) == check(row, assemble(known))


def test_what_a_span_is_and_what_went_in_make_a_namespace_an_agents() -> None:
    found = guess(["acme.span.type", "acme.input_json", "acme.output", "acme.session_id", "acme.error", "acme.latency"])
    assert found is not None
    assert (found.kinds, found.inputs, found.outputs) == (("acme.span.type",), ("acme.input_json",), ("acme.output",))
    assert (found.sessions, found.marks, found.reasons) == (("acme.session_id",), ("acme.error",), ("acme.error",))


@pytest.mark.parametrize(
    "names",
    [
        ["acme.span.type", "acme.latency"],
        ["acme.input", "acme.output"],
        ["acme.span.type", "other.input"],
        ["messaging.type", "messaging.input"],
        ["", ".", "acme", "acme.", ":type", "a" * 1000],
    ],
)
def test_one_of_the_two_alone_means_nothing(names: list[str]) -> None:
    assert guess(names) is None


def test_a_failure_is_told_by_the_namespace_too() -> None:
    session = session_of(
        span("turn", {"acme:type": "agent", "acme:input": "one", "acme:output": "first", "acme:session_id": "s"},
             span_id=10, end=9),
        span("search", {"acme:type": "tool", "acme:input": '{"q": "x"}', "acme:state": "error", "acme:error": "no route",
                        "acme:session_id": "s"}, parent=10, start=1, end=2),
    )  # fmt: skip
    assert session.session_id == "s"
    assert said(session) == [("one", "first")]
    assert tools(session.turns[0]) == [("search", {"q": "x"}, None, "no route")]
