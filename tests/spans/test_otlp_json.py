"""OTLP/JSON as exporters in the field write it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from otel_evals.spans.otlp_json import records_from_json
from otel_evals.spans.record import LogRecord_, SpanRecord

TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def request(span: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    scope = {"name": "lib", "version": "1"}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": [span]}]}]}


def read(span: dict[str, Any]) -> SpanRecord:
    [record] = records_from_json(request(span))
    assert isinstance(record, SpanRecord)
    return record


def test_a_span_is_read_whole() -> None:
    record = read(
        {
            "traceId": TRACE,
            "spanId": SPAN,
            "parentSpanId": PARENT,
            "name": "chat",
            "kind": 3,
            "startTimeUnixNano": "1000",
            "endTimeUnixNano": 2000,
            "attributes": [{"key": "a", "value": {"intValue": "7"}}],
            "status": {"code": 2, "message": "boom"},
            "events": [{"name": "exception", "timeUnixNano": "1500", "attributes": []}],
            "links": [{"traceId": TRACE, "spanId": PARENT}],
        }
    )
    assert (record.trace_id, record.span_id, record.parent_id) == (int(TRACE, 16), int(SPAN, 16), int(PARENT, 16))
    assert (record.start_ns, record.end_ns, record.kind) == (1000, 2000, 3)
    assert (record.status, record.status_message) == ("error", "boom")
    assert record.attributes == {"a": 7}
    assert (record.resource["service.name"], record.scope.name) == ("shop", "lib")
    assert [event.name for event in record.events] == ["exception"]
    assert [link.span_id for link in record.links] == [int(PARENT, 16)]


def test_ids_in_base64_are_read_like_those_in_hex() -> None:
    encoded = {
        "traceId": base64.b64encode(bytes.fromhex(TRACE)).decode(),
        "spanId": base64.b64encode(bytes.fromhex(SPAN)).decode(),
    }
    record = read({**encoded, "name": "chat"})
    assert (record.trace_id, record.span_id, record.parent_id) == (int(TRACE, 16), int(SPAN, 16), None)


def test_snake_case_is_read_like_camel_case() -> None:
    span = {"trace_id": TRACE, "span_id": SPAN, "name": "x", "start_time_unix_nano": "5", "end_time_unix_nano": "6"}
    [record] = records_from_json({"resource_spans": [{"scope_spans": [{"spans": [span]}]}]})
    assert isinstance(record, SpanRecord)
    assert (record.trace_id, record.start_ns, record.end_ns) == (int(TRACE, 16), 5, 6)


@pytest.mark.parametrize(("code", "status"), [(0, "unset"), (1, "ok"), ("STATUS_CODE_ERROR", "error"), (None, "unset")])
def test_status_codes_are_numbers_or_names(code: Any, status: str) -> None:
    assert read({"traceId": TRACE, "spanId": SPAN, "status": {"code": code}}).status == status


@pytest.mark.parametrize(("kind", "number"), [("SPAN_KIND_CLIENT", 3), (2, 2), ("4", 4), (None, 1)])
def test_kinds_are_numbers_or_names(kind: Any, number: int) -> None:
    assert read({"traceId": TRACE, "spanId": SPAN, "kind": kind}).kind == number


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"stringValue": "x"}, "x"),
        ({"boolValue": True}, True),
        ({"intValue": 3}, 3),
        ({"doubleValue": "0.5"}, 0.5),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}, {"k": "v"}),
        ({"bytesValue": "aGk="}, b"hi"),
        ({}, None),
        ({"arrayValue": {}}, []),
    ],
)
def test_every_kind_of_value_becomes_plain_python(value: dict[str, Any], plain: Any) -> None:
    record = read({"traceId": TRACE, "spanId": SPAN, "attributes": [{"key": "k", "value": value}]})
    assert record.attributes == {"k": plain}


def test_a_remote_parent_is_told_by_the_flags() -> None:
    assert read({"traceId": TRACE, "spanId": SPAN, "flags": 0x301}).parent_remote
    assert not read({"traceId": TRACE, "spanId": SPAN, "flags": 0x101}).parent_remote


def test_a_span_with_a_corrupt_id_is_left_out_and_the_rest_is_read() -> None:
    good, bad = {"traceId": TRACE, "spanId": SPAN}, {"traceId": "nonsense!", "spanId": SPAN}
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [bad, good, None, 7]}]}]}
    assert len(list(records_from_json(spans))) == 1


@pytest.mark.parametrize(
    "named",
    [
        {"eventName": "gen_ai.choice"},
        {"attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.choice"}}]},
        {"attributes": [{"key": "event_name", "value": {"stringValue": "gen_ai.choice"}}]},
    ],
)
def test_a_log_record_has_its_event_name_wherever_it_stands(named: dict[str, Any]) -> None:
    entry = {"traceId": TRACE, "spanId": SPAN, "observedTimeUnixNano": "9", "body": {"stringValue": "{}"}, **named}
    [record] = records_from_json({"resourceLogs": [{"scopeLogs": [{"logRecords": [entry]}]}]})
    assert isinstance(record, LogRecord_)
    assert (record.event_name, record.time_ns, record.body) == ("gen_ai.choice", 9, "{}")
