"""SDK spans and log records: the snapshot a hook takes, and the record the worker makes of it later.

`snapshot_span` runs inside the application's `span.end()`, so it only collects references and copies the
attributes (other processors may rewrite them afterwards). Everything else happens in `SdkReader`, on our thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from otel_evals.spans.record import EventRecord, LinkRecord, LogRecord_, ScopeRecord, SpanRecord, StatusCode

__all__ = ["END", "LOG", "SPAN", "SdkReader", "attributes_of", "end_marker", "size_of", "snapshot_log", "snapshot_span"]

SPAN, LOG, END = "span", "log", "end"
"""First element of a snapshot: what it is."""

_EMPTY: dict[str, Any] = {}
_STATUS: tuple[StatusCode, StatusCode, StatusCode] = ("unset", "ok", "error")
_NESTED_SIZE = 64
"""Characters that an element of a nested value counts for where it is too deep or too long to look at."""


def attributes_of(span: Any) -> Any:
    """The attributes of a span that has no `_attributes._dict`: one of a later SDK, or without any."""
    return getattr(span, "attributes", None) or _EMPTY


def snapshot_span(span: Any, attributes: Any) -> tuple[Any, ...]:
    """All that a `SpanRecord` needs of an ended `ReadableSpan`, with the attributes copied.

    One flat tuple that lets go of the span, its status and its (mostly empty) lists of events and links: keeping those
    alive would cost the application twice as much, in memory it cannot reuse and in garbage collection.
    """
    try:
        status = span._status
        return (
            SPAN,
            span._context,
            span._parent,
            span._name,
            span._kind,
            span._start_time,
            span._end_time,
            attributes.copy(),
            status._status_code,
            status._description,
            span._events._dq or (),
            span._links._dq or (),
            span._resource,
            span._instrumentation_scope,
        )
    except AttributeError:  # a later SDK with other insides: the public way, slower
        return _snapshot_public(span, attributes)


def _snapshot_public(span: Any, attributes: Any) -> tuple[Any, ...]:
    return (
        SPAN,
        span.context,
        span.parent,
        span.name,
        span.kind,
        span.start_time,
        span.end_time,
        dict(attributes),
        span.status.status_code,
        span.status.description,
        tuple(span.events),
        tuple(span.links),
        span.resource,
        span.instrumentation_scope,
    )


def snapshot_log(record: Any) -> tuple[Any, ...]:
    """The same for an SDK `ReadWriteLogRecord`."""
    log = record.log_record
    return (
        LOG,
        log.trace_id,
        log.span_id,
        log.timestamp,
        log.observed_timestamp,
        log.event_name,
        log.body,
        dict(log.attributes or _EMPTY),
        record.resource,
        record.instrumentation_scope,
    )


def end_marker(session_id: str) -> tuple[Any, ...]:
    """Travels with the snapshots, so that a session ends after the spans that came before the call."""
    return (END, session_id)


def size_of(attributes: Mapping[str, Any]) -> int:
    """Rough size of attributes, or of a log body, in characters."""
    total = 0
    for value in attributes.values():
        total += len(value) if type(value) is str else _nested_size(value)
    return total


def _nested_size(value: Any, depth: int = 4) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if not isinstance(value, (dict, list, tuple)):
        return 8
    if not depth or len(value) > 1000:
        return _NESTED_SIZE * len(value)
    return sum(_nested_size(item, depth - 1) for item in (value.values() if isinstance(value, dict) else value))


class SdkReader:
    """Turns snapshots into records; remembers resources and scopes, of which a process has few."""

    def __init__(self) -> None:
        self._resources: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._scopes: dict[int, tuple[Any, ScopeRecord]] = {}

    def span(self, snapshot: tuple[Any, ...]) -> SpanRecord:
        _, context, parent, name, kind, start, end, attributes, *rest = snapshot
        status, description, events, links, resource, scope = rest
        return SpanRecord(
            trace_id=context.trace_id,
            span_id=context.span_id,
            parent_id=None if parent is None else parent.span_id,
            name=name if isinstance(name, str) else str(name),
            start_ns=start or 0,
            end_ns=end or start or 0,
            attributes=attributes,
            kind=getattr(kind, "value", 0) + 1,  # the SDK counts from 0, OTLP from 1
            status=_STATUS[status.value] if status is not None else "unset",
            status_message=description or "",
            events=tuple(
                EventRecord(event.name, event.timestamp, dict(event.attributes or _EMPTY)) for event in events
            ),
            links=tuple(
                LinkRecord(link.context.trace_id, link.context.span_id, dict(link.attributes or _EMPTY))
                for link in links
            ),
            scope=self._scope(scope),
            resource=self._resource(resource),
            sampled=bool(context.trace_flags & 1),
            parent_remote=parent is not None and bool(parent.is_remote),
        )

    def log(self, snapshot: tuple[Any, ...]) -> LogRecord_:
        _, trace_id, span_id, timestamp, observed, *rest = snapshot
        event_name, body, attributes, resource, scope = rest
        name = event_name or attributes.get("event.name") or attributes.get("event_name") or ""
        return LogRecord_(
            trace_id=trace_id or 0,
            span_id=span_id or 0,
            time_ns=timestamp or observed or 0,
            event_name=str(name),
            body=body,
            attributes=attributes,
            scope=self._scope(scope),
            resource=self._resource(resource),
        )

    def _resource(self, resource: Any) -> Mapping[str, Any]:
        if resource is None:
            return _EMPTY
        found = self._resources.get(id(resource))
        if found is None or found[0] is not resource:
            if len(self._resources) > 256:  # an application that makes resources without end
                self._resources.clear()
            found = (resource, dict(resource.attributes))
            self._resources[id(resource)] = found
        return found[1]

    def _scope(self, scope: Any) -> ScopeRecord:
        if scope is None:
            return ScopeRecord()
        found = self._scopes.get(id(scope))
        if found is None or found[0] is not scope:
            if len(self._scopes) > 1024:
                self._scopes.clear()
            found = (scope, ScopeRecord(scope.name or "", scope.version or ""))
            self._scopes[id(scope)] = found
        return found[1]
