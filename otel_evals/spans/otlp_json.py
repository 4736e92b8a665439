"""OTLP/JSON export requests → records: camelCase or snake_case, numbers as strings or not, hex or base64 ids.

Tolerant by intent: exporters in the field disagree about all of these, and one odd span must not cost the rest.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from otel_evals.spans.record import EventRecord, LinkRecord, LogRecord_, ScopeRecord, SpanRecord, StatusCode

__all__ = ["records_from_json"]

_HEX = frozenset("0123456789abcdefABCDEF")
_STATUS: dict[Any, StatusCode] = {
    1: "ok", "1": "ok", "STATUS_CODE_OK": "ok", "OK": "ok",
    2: "error", "2": "error", "STATUS_CODE_ERROR": "error", "ERROR": "error",
}  # fmt: skip
_KINDS = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_HAS_IS_REMOTE, _IS_REMOTE, _SAMPLED = 0x100, 0x200, 0x01


def records_from_json(obj: Any) -> Iterator[SpanRecord | LogRecord_]:
    """All records of one `ExportTraceServiceRequest` or `ExportLogsServiceRequest`; malformed ones are left out."""
    if not isinstance(obj, Mapping):
        return
    for group, scope_key, item_key, read in (
        ("resourceSpans", "scopeSpans", "spans", _span),
        ("resourceLogs", "scopeLogs", "logRecords", _log),
    ):
        for of_resource in _list(obj, group):
            resource = _attributes(_list(_get(of_resource, "resource") or {}, "attributes"))
            for of_scope in _list(of_resource, scope_key) or _list(of_resource, "instrumentationLibrarySpans"):
                scope = _scope(_get(of_scope, "scope") or _get(of_scope, "instrumentationLibrary"))
                for item in _list(of_scope, item_key):
                    record = read(item, scope, resource)
                    if record is not None:
                        yield record


def _snake(key: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


_SNAKE: dict[str, str] = {}


def _get(obj: Any, key: str) -> Any:
    if not isinstance(obj, Mapping):
        return None
    value = obj.get(key)
    if value is None:
        name = _SNAKE.get(key)
        if name is None:
            name = _SNAKE[key] = _snake(key)
        if name != key:
            value = obj.get(name)
    return value


def _list(obj: Any, key: str) -> list[Any]:
    value = _get(obj, key)
    return value if isinstance(value, list) else []


def _scope(obj: Any) -> ScopeRecord:
    if not isinstance(obj, Mapping):
        return ScopeRecord()
    return ScopeRecord(str(obj.get("name") or ""), str(obj.get("version") or ""))


def _id(value: Any, digits: int) -> int:
    """An id as hex, or as base64 as protobuf's own JSON mapping writes it; 0 when absent.

    Raises:
        ValueError: neither.
    """
    if not value:
        return 0
    if isinstance(value, int):
        return value
    text = str(value)
    if len(text) == digits and _HEX.issuperset(text):
        return int(text, 16)
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        raw = b""
    if len(raw) * 2 == digits:
        return int.from_bytes(raw, "big")
    return int(text, 16)


def _int(value: Any) -> int:
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        return 0


def _span(obj: Any, scope: ScopeRecord, resource: Mapping[str, Any]) -> SpanRecord | None:
    if not isinstance(obj, Mapping):
        return None
    try:
        trace_id, span_id = _id(_get(obj, "traceId"), 32), _id(_get(obj, "spanId"), 16)
        parent_id = _id(_get(obj, "parentSpanId"), 16)
    except ValueError:
        return None
    status = _get(obj, "status") or {}
    flags = _get(obj, "flags")
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id or None,
        name=str(_get(obj, "name") or ""),
        start_ns=_int(_get(obj, "startTimeUnixNano")),
        end_ns=_int(_get(obj, "endTimeUnixNano")),
        attributes=_attributes(_list(obj, "attributes")),
        kind=_kind(_get(obj, "kind")),
        status=_STATUS.get(_get(status, "code"), "unset"),
        status_message=str(_get(status, "message") or ""),
        events=tuple(_event(e) for e in _list(obj, "events") if isinstance(e, Mapping)),
        links=tuple(link for item in _list(obj, "links") if (link := _link(item)) is not None),
        scope=scope,
        resource=resource,
        sampled=True,
        parent_remote=bool(isinstance(flags, int) and flags & _HAS_IS_REMOTE and flags & _IS_REMOTE),
    )


def _kind(value: Any) -> int:
    if isinstance(value, str) and not value.isdigit():
        return _KINDS.get(value.removeprefix("SPAN_KIND_"), 1)
    return _int(value) or 1


def _event(obj: Mapping[str, Any]) -> EventRecord:
    return EventRecord(
        str(obj.get("name") or ""), _int(_get(obj, "timeUnixNano")), _attributes(_list(obj, "attributes"))
    )


def _link(obj: Any) -> LinkRecord | None:
    try:
        return LinkRecord(
            _id(_get(obj, "traceId"), 32), _id(_get(obj, "spanId"), 16), _attributes(_list(obj, "attributes"))
        )
    except ValueError:
        return None


def _log(obj: Any, scope: ScopeRecord, resource: Mapping[str, Any]) -> LogRecord_ | None:
    if not isinstance(obj, Mapping):
        return None
    try:
        trace_id, span_id = _id(_get(obj, "traceId"), 32), _id(_get(obj, "spanId"), 16)
    except ValueError:
        return None
    attributes = _attributes(_list(obj, "attributes"))
    name = _get(obj, "eventName") or attributes.get("event.name") or attributes.get("event_name") or ""
    return LogRecord_(
        trace_id=trace_id,
        span_id=span_id,
        time_ns=_int(_get(obj, "timeUnixNano")) or _int(_get(obj, "observedTimeUnixNano")),
        event_name=str(name),
        body=_value(_get(obj, "body")),
        attributes=attributes,
        scope=scope,
        resource=resource,
    )


def _attributes(items: list[Any]) -> dict[str, Any]:
    return {
        str(item["key"]): _value(item.get("value")) for item in items if isinstance(item, Mapping) and "key" in item
    }


def _value(value: Any) -> Any:
    """One AnyValue; an empty one, as some exporters write for null, is None."""
    if not isinstance(value, Mapping):
        return value
    for key, inner in value.items():
        if key in ("stringValue", "string_value", "boolValue", "bool_value"):
            return inner
        if key in ("intValue", "int_value"):
            return _int(inner)
        if key in ("doubleValue", "double_value"):
            return _float(inner)
        if key in ("arrayValue", "array_value"):
            return [_value(item) for item in _list(inner, "values")]
        if key in ("kvlistValue", "kvlist_value"):
            return _attributes(_list(inner, "values"))
        if key in ("bytesValue", "bytes_value"):
            return _bytes(inner)
    return None


def _float(value: Any) -> float | None:
    try:
        return float(value)  # also "NaN" and "Infinity", which JSON cannot say as numbers
    except (TypeError, ValueError):
        return None


def _bytes(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value)
    except (binascii.Error, TypeError, ValueError):
        return None
