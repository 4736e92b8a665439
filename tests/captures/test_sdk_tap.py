"""What comes through the SDK's hooks gives the same sessions as what comes over OTLP."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation import set_span_in_context

from otel_evals.sessions.model import Session
from otel_evals.spans.otlp_protobuf import records_from_protobuf
from otel_evals.spans.record import LogRecord_, SpanRecord
from otel_evals.spans.sdk import SdkReader, snapshot_log, snapshot_span
from tests.captures.checking import check
from tests.captures.corpus import assemble, framework, records, rows

STATUS = {"unset": StatusCode.UNSET, "ok": StatusCode.OK, "error": StatusCode.ERROR}
ONE_EACH = {framework(row["file"]): row["file"] for row in rows() if row["check"] != "special"}
WITH_LOGS = [row["file"] for row in rows() if row["logs"] and "two_tools" in row["file"]]


class Caught:
    """A log-record processor that keeps what the SDK gives it."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def on_emit(self, record: Any) -> None:
        self.records.append(record)

    emit = on_emit

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


def plain(value: Any) -> Any:
    """Span attributes hold no maps and no nulls in the SDK."""
    if isinstance(value, list):
        return tuple(plain(item) for item in value if item is not None)
    return value


def sdk_span(record: SpanRecord) -> ReadableSpan:
    def kept(attributes: Any) -> dict[str, Any]:
        return {key: plain(value) for key, value in attributes.items() if value is not None}

    return ReadableSpan(
        record.name,
        SpanContext(record.trace_id, record.span_id, False, TraceFlags(1)),
        SpanContext(record.trace_id, record.parent_id, False) if record.parent_id else None,
        Resource(dict(record.resource)),
        kept(record.attributes),
        [Event(event.name, kept(event.attributes), event.time_ns) for event in record.events],
        [Link(SpanContext(link.trace_id, link.span_id, False)) for link in record.links],
        SpanKind(record.kind - 1),
        InstrumentationScope(record.scope.name, record.scope.version),
        Status(STATUS[record.status], record.status_message if record.status == "error" else None),
        record.start_ns,
        record.end_ns,
    )


def sdk_logs(given: Sequence[LogRecord_]) -> list[Any]:
    """The records as the SDK hands them to its processors."""
    out: list[Any] = []
    for record in given:
        caught = Caught()
        provider = LoggerProvider(resource=Resource(dict(record.resource)), shutdown_on_exit=False)
        provider.add_log_record_processor(caught)  # type: ignore[arg-type]
        context = SpanContext(record.trace_id, record.span_id, False, TraceFlags(1))
        log = LogRecord(
            timestamp=record.time_ns,
            context=set_span_in_context(NonRecordingSpan(context)),
            body=record.body,
            attributes=dict(record.attributes),
            event_name=record.event_name or None,
        )
        provider.get_logger(record.scope.name).emit(log)
        out += caught.records
    return out


def both_ways(path: str) -> tuple[list[Session], list[Session]]:
    given = records(path)
    spans = [sdk_span(record) for record in given if isinstance(record, SpanRecord)]
    logs = sdk_logs([record for record in given if isinstance(record, LogRecord_)])
    reader = SdkReader()
    tapped: list[SpanRecord | LogRecord_] = [reader.span(snapshot_span(s, s.attributes)) for s in spans]
    tapped += [reader.log(snapshot_log(log)) for log in logs]
    exported: list[SpanRecord | LogRecord_] = list(records_from_protobuf(encode_spans(spans)))
    if logs:
        exported += list(records_from_protobuf(encode_logs(logs)))
    return assemble(tapped), assemble(exported)


def essence(sessions: Iterable[Session]) -> list[str]:
    return sorted(session.model_dump_json(exclude={"service_name", "service_version"}) for session in sessions)


@pytest.mark.parametrize("path", sorted(ONE_EACH.values()))
def test_spans_tapped_and_spans_exported_give_the_same_sessions(path: str) -> None:
    tapped, exported = both_ways(path)
    assert tapped
    assert essence(tapped) == essence(exported)


@pytest.mark.parametrize("path", WITH_LOGS)
def test_log_records_tapped_and_exported_give_the_same_sessions(path: str) -> None:
    tapped, exported = both_ways(path)
    assert essence(tapped) == essence(exported)
    assert all(check(next(row for row in rows() if row["file"] == path), tapped).values())
