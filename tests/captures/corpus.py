"""The capture corpus, unpacked in memory."""

from __future__ import annotations

import functools
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from otel_evals.dialects.markers import MARKER_KEYS, is_genai_log
from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.sessions.model import Session
from otel_evals.spans.otlp_json import records_from_json
from otel_evals.spans.record import LogRecord_, SpanRecord

ARCHIVE = Path(__file__).with_name("captures.tar.xz")
UNLIMITED = AssemblerLimits(idle_s=10.0**9, max_age_s=10.0**9, max_session_bytes=2**31, max_open_bytes=2**32)


@functools.cache
def unpacked(path: Path) -> dict[str, bytes]:
    """Path in an archive → content."""
    with tarfile.open(path, "r:xz") as archive:
        members = (member for member in archive if member.isfile())
        return {m.name.removeprefix("./"): archive.extractfile(m).read() for m in members}  # type: ignore[union-attr]


def files() -> dict[str, bytes]:
    """Path in the corpus → content."""
    return unpacked(ARCHIVE)


@functools.cache
def rows() -> list[dict[str, Any]]:
    """What each capture lets one recover."""
    return [orjson.loads(line) for line in files()["expected.jsonl"].splitlines()]


def framework(path: str) -> str:
    return path.split("/", 1)[0]


def batches(path: str) -> list[Any]:
    """Export requests of one capture, spans first, then the log records beside them."""
    logs = path.replace(".jsonl", ".logs.jsonl")
    found = [orjson.loads(line) for line in files()[path].splitlines() if line.strip()]
    if logs in files():
        found += [orjson.loads(line) for line in files()[logs].splitlines() if line.strip()]
    return found


def records(path: str) -> list[SpanRecord | LogRecord_]:
    return [record for batch in batches(path) for record in records_from_json(batch)]


def kept_live(record: SpanRecord | LogRecord_) -> bool:
    """Whether the hooks in an application would keep a record."""
    if isinstance(record, SpanRecord):
        return not MARKER_KEYS.isdisjoint(record.attributes)
    return is_genai_log(record.event_name, record.attributes)


def add(assembler: SessionAssembler, given: Iterable[SpanRecord | LogRecord_], now_ns: int = 1) -> None:
    for record in given:
        if isinstance(record, SpanRecord):
            assembler.add_span(record, now_ns)
        else:
            assembler.add_log(record, now_ns)


def assemble(given: Iterable[SpanRecord | LogRecord_], limits: AssemblerLimits = UNLIMITED) -> list[Session]:
    """All sessions in some records."""
    assembler = SessionAssembler(limits)
    add(assembler, given)
    sessions = list(assembler.flush(2))
    assert assembler.poisoned == 0
    return sessions
