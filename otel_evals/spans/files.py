"""Recorded OTLP/JSON files: one export request a line, or one document; log records in `X.logs.jsonl` beside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson

from otel_evals.spans.otlp_json import records_from_json
from otel_evals.spans.record import LogRecord_, SpanRecord

__all__ = ["FileError", "logs_beside", "read_file"]


class FileError(ValueError):
    """A file could not be read as OTLP/JSON; the message names the file, the line and the reason."""


def logs_beside(path: Path) -> Path | None:
    """`X.logs.jsonl` for `X.jsonl`, if there is one."""
    if path.name.endswith((".logs.jsonl", ".logs.json")):
        return None
    beside = path.with_name(f"{path.stem}.logs{path.suffix}")
    return beside if beside.is_file() else None


def read_file(path: Path, *, with_logs: bool = True) -> Iterator[SpanRecord | LogRecord_]:
    """Records of one file in its order, then those of the log file beside it.

    Raises:
        FileError: not readable, or not JSON.
    """
    yield from _read(path)
    if with_logs and (beside := logs_beside(path)) is not None:
        yield from _read(beside)


def _read(path: Path) -> Iterator[SpanRecord | LogRecord_]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from None
    if not data.strip():
        return
    lines = data.splitlines()
    try:
        documents = [orjson.loads(data)] if len(lines) > 1 and not _is_json(lines[0]) else None
    except orjson.JSONDecodeError as error:
        raise FileError(f"{path}: no OTLP/JSON: {error}") from None
    for number, line in enumerate(lines if documents is None else (), 1):
        if line.strip():
            try:
                yield from _documents(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise FileError(f"{path}, line {number}: no OTLP/JSON: {error}") from None
    for document in documents or ():
        yield from _documents(document)


def _documents(value: object) -> Iterator[SpanRecord | LogRecord_]:
    for item in value if isinstance(value, list) else [value]:
        yield from records_from_json(item)


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
