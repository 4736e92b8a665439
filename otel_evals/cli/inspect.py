"""`otel-evals inspect`: which sessions are in recorded files, as a transcript for people or as JSON lines."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from otel_evals.dialects.guessing import STANDARD
from otel_evals.dialects.markers import MARKER_KEYS
from otel_evals.dialects.reader import Reader
from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.sessions.model import Session
from otel_evals.spans.files import FileError, read_file
from otel_evals.spans.record import SpanRecord

__all__ = ["assemble", "command"]

_NEVER = 10.0**9
"""Seconds: recorded files are complete, nothing is waited for."""


def command(
    files: Annotated[list[Path], typer.Argument(help="OTLP/JSON files; X.logs.jsonl beside X.jsonl is read with it.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object per session and line.")] = False,
    isolate: Annotated[bool, typer.Option("--isolate", help="Judge each file on its own, not all together.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say where each fact came from.")] = False,
) -> None:
    """Show the sessions in recorded OTLP/JSON files: turns, tools, failures."""
    groups = [[path] for path in files] if isolate else [files]
    broken = False
    for group in groups:
        try:
            sessions = list(assemble(group, explain=explain))
        except FileError as error:
            broken = True
            _report(group, error, json)
            continue
        if json:
            for session in sessions:
                sys.stdout.write(_line(group, session))
        else:
            from otel_evals.cli.transcript import show

            show(group, sessions, explain=explain)
            if explain and (left_out := _left_out_live(group)) is not None:
                typer.echo(f"\n{left_out}")
    raise typer.Exit(1 if broken else 0)


def assemble(files: list[Path], *, explain: bool = False) -> Iterator[Session]:
    """All sessions in the files, assembled together.

    Raises:
        FileError: a file is no OTLP/JSON.
    """
    assembler = SessionAssembler(
        AssemblerLimits(idle_s=_NEVER, max_age_s=_NEVER, max_session_bytes=2**31, max_open_bytes=2**32, explain=explain)
    )
    now = 0
    for path in files:
        for record in read_file(path):
            if isinstance(record, SpanRecord):
                now = max(now, record.end_ns)
                assembler.add_span(record, now)
            else:
                now = max(now, record.time_ns)
                assembler.add_log(record, now)
    yield from assembler.flush(now)


def _left_out_live(files: list[Path]) -> str | None:
    """Says so, if the hooks in an application would not keep spans that are read here, and what helps."""
    reader = Reader()
    left_out = 0
    names: Counter[str] = Counter()
    common: set[str] = set()
    for path in files:
        for record in read_file(path):
            if not isinstance(record, SpanRecord) or not MARKER_KEYS.isdisjoint(record.attributes):
                continue
            if reader.read_span(record) is None:
                common.update(record.attributes)
            else:
                left_out += 1
                names.update(record.attributes.keys())
    if not left_out:
        return None
    said = f"In an application, {left_out} of these spans would not be looked at: none of their attributes is known."
    own = [name for name, _ in names.most_common() if name not in common and name.split(".")[0] not in STANDARD]
    if not own:
        return said
    return (
        f"{said}\nOTEL_EVALS_MARKER_ATTRIBUTES={own[0]} lets {names[own[0]]} of them in (see docs/instrumentations.md)."
    )


def _line(group: list[Path], session: Session) -> str:
    dumped: dict[str, Any] = session.model_dump(mode="json")
    if session.derived:
        dumped["session_id"] = session.session_id
    out = {"file": str(group[0]) if len(group) == 1 else None, "session": dumped}
    return orjson.dumps(out, default=str).decode("utf-8") + "\n"


def _report(group: list[Path], error: FileError, json: bool) -> None:
    if json:
        sys.stdout.write(orjson.dumps({"file": str(group[0]), "session": None, "error": str(error)}).decode() + "\n")
    else:
        sys.stderr.write(f"{error}\n")
