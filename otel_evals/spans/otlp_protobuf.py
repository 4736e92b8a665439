"""OTLP protobuf export requests → records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from otel_evals.spans.record import EventRecord, LinkRecord, LogRecord_, ScopeRecord, SpanRecord, StatusCode

__all__ = ["records_from_protobuf"]

_STATUS: tuple[StatusCode, StatusCode, StatusCode] = ("unset", "ok", "error")
_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200


def records_from_protobuf(request: Any) -> Iterator[SpanRecord | LogRecord_]:
    """All records of one `ExportTraceServiceRequest` or `ExportLogsServiceRequest` message."""
    for of_resource in getattr(request, "resource_spans", ()):
        resource = _attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            scope = ScopeRecord(of_scope.scope.name, of_scope.scope.version)
            for span in of_scope.spans:
                yield _span(span, scope, resource)
    for of_resource in getattr(request, "resource_logs", ()):
        resource = _attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_logs:
            scope = ScopeRecord(of_scope.scope.name, of_scope.scope.version)
            for log in of_scope.log_records:
                yield _log(log, scope, resource)


def _span(span: Any, scope: ScopeRecord, resource: Mapping[str, Any]) -> SpanRecord:
    code = span.status.code
    return SpanRecord(
        trace_id=int.from_bytes(span.trace_id, "big"),
        span_id=int.from_bytes(span.span_id, "big"),
        parent_id=int.from_bytes(span.parent_span_id, "big") or None,
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        kind=span.kind or 1,
        status=_STATUS[code] if 0 <= code <= 2 else "unset",
        status_message=span.status.message,
        events=tuple(EventRecord(e.name, e.time_unix_nano, _attributes(e.attributes)) for e in span.events),
        links=tuple(
            LinkRecord(
                int.from_bytes(link.trace_id, "big"), int.from_bytes(link.span_id, "big"), _attributes(link.attributes)
            )
            for link in span.links
        ),
        scope=scope,
        resource=resource,
        parent_remote=bool(span.flags & _HAS_IS_REMOTE and span.flags & _IS_REMOTE),
    )


def _log(log: Any, scope: ScopeRecord, resource: Mapping[str, Any]) -> LogRecord_:
    attributes = _attributes(log.attributes)
    name = log.event_name or attributes.get("event.name") or attributes.get("event_name") or ""
    return LogRecord_(
        trace_id=int.from_bytes(log.trace_id, "big"),
        span_id=int.from_bytes(log.span_id, "big"),
        time_ns=log.time_unix_nano or log.observed_time_unix_nano,
        event_name=str(name),
        body=_value(log.body),
        attributes=attributes,
        scope=scope,
        resource=resource,
    )


def _attributes(items: Iterable[Any]) -> dict[str, Any]:
    return {item.key: _value(item.value) for item in items}


def _value(value: Any) -> Any:
    """One AnyValue as plain Python; an unset one is None."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind)
