"""The neutral snapshot of one span or log record, whichever way it reached us.

Built from SDK objects (`from_sdk`), OTLP protobuf (`from_protobuf`) or OTLP/JSON (`from_json`); everything behind
this module sees only these types, so live, collector-fed and replayed data take the same path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["EventRecord", "LinkRecord", "LogRecord_", "ScopeRecord", "SpanRecord", "StatusCode"]

StatusCode: TypeAlias = Literal["unset", "ok", "error"]


@dataclass(frozen=True, slots=True)
class ScopeRecord:
    """Instrumentation scope: informative only, never used to recognise a dialect."""

    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One span event."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """One span link; ids as integers."""

    trace_id: int
    span_id: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One ended span. Attribute values are plain Python: str, bool, int, float, list, dict, bytes or None."""

    trace_id: int
    """128-bit id; format with `f"{trace_id:032x}"`."""
    span_id: int
    """64-bit id; format with `f"{span_id:016x}"`."""
    parent_id: int | None
    name: str
    start_ns: int
    """Epoch nanoseconds."""
    end_ns: int
    attributes: Mapping[str, Any]
    kind: int = 1
    """OTLP span kind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer."""
    status: StatusCode = "unset"
    status_message: str = ""
    events: tuple[EventRecord, ...] = ()
    links: tuple[LinkRecord, ...] = ()
    scope: ScopeRecord = ScopeRecord()
    resource: Mapping[str, Any] = field(default_factory=dict)
    """Resource attributes; one mapping is shared by all records of a resource."""
    sampled: bool = True
    parent_remote: bool = False
    """The parent lives in another process, so this span is a local root."""


@dataclass(frozen=True, slots=True)
class LogRecord_:
    """One log record that may carry a GenAI event. The underscore keeps it apart from the SDK's LogRecord."""

    trace_id: int
    """0 when the record was emitted outside any span."""
    span_id: int
    time_ns: int
    """`timeUnixNano`, or `observedTimeUnixNano` where the former is absent, or 0."""
    event_name: str
    """`eventName`, or the attribute `event.name` or `event_name`, or ""."""
    body: Any
    attributes: Mapping[str, Any]
    scope: ScopeRecord = ScopeRecord()
    resource: Mapping[str, Any] = field(default_factory=dict)
