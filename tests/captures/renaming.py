"""Copies of records with ids of their own, so that one capture can stand for many conversations."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from otel_evals.dialects.session_keys import METADATA_KEYS, session_rank
from otel_evals.spans.record import LinkRecord, LogRecord_, SpanRecord


def renamed(record: SpanRecord | LogRecord_, suffix: str) -> SpanRecord | LogRecord_:
    """The record with trace, span and session ids that differ for every suffix."""
    if isinstance(record, LogRecord_):
        return dataclasses.replace(
            record,
            trace_id=new_id(record.trace_id, suffix, 128),
            span_id=new_id(record.span_id, suffix, 64),
            attributes=_attributes(record.attributes, suffix),
        )
    return dataclasses.replace(
        record,
        trace_id=new_id(record.trace_id, suffix, 128),
        span_id=new_id(record.span_id, suffix, 64),
        parent_id=new_id(record.parent_id, suffix, 64) if record.parent_id else None,
        attributes=_attributes(record.attributes, suffix),
        links=tuple(
            LinkRecord(new_id(link.trace_id, suffix, 128), new_id(link.span_id, suffix, 64)) for link in record.links
        ),
    )


def new_id(number: int, suffix: str, bits: int) -> int:
    digest = hashlib.blake2b(f"{number}{suffix}".encode(), digest_size=bits // 8).digest()
    return int.from_bytes(digest, "big")


def _attributes(attributes: Mapping[str, Any], suffix: str) -> dict[str, Any]:
    out = dict(attributes)
    for key, value in attributes.items():
        if not isinstance(value, str):
            continue
        if session_rank(key) is not None:
            out[key] = value[:-1] + suffix + '"' if value.endswith('"') else value + suffix
        elif key in METADATA_KEYS and "_id" in value:
            out[key] = _in_json(value, suffix)
    return out


def _in_json(value: str, suffix: str) -> str:
    import orjson

    try:
        inner = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    for name in ("session_id", "thread_id", "langfuse_session_id"):
        if isinstance(inner, dict) and isinstance(inner.get(name), str):
            inner[name] += suffix
    return orjson.dumps(inner).decode()
