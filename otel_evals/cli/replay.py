"""`otel-evals replay`: the whole pipeline over recorded OTLP/JSON, in the time of the recording."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from otel_evals.cli.report import Report, output_console, session_row
from otel_evals.evaluation import Decision, JudgedSession
from otel_evals.pipeline import Pipeline
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings, load_settings
from otel_evals.spans.files import logs_beside, read_file
from otel_evals.spans.record import LogRecord_, SpanRecord

__all__ = ["command"]

Record = SpanRecord | LogRecord_
Key = tuple[str, int]

NOTHING_JUDGED, WRONG_USE = 1, 2
SECOND_NS = 1_000_000_000


def command(
    files: Annotated[list[Path], typer.Argument(help="OTLP/JSON files, one export request a line.", metavar="FILE…")],
    rate: Annotated[float, typer.Option(help="Share of the sessions to judge, 0 to 1.")] = 1.0,
    model: Annotated[str | None, typer.Option(help="Judge; default: the configured one, else rules.")] = None,
    evaluators: Annotated[str | None, typer.Option(help="Comma-separated names; default: all configured.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible endpoint of the judge.", metavar="URL")
    ] = None,
    idle_timeout: Annotated[
        float | None, typer.Option(help="Seconds without a span after which a session is complete.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per session, then a summary.")] = False,
) -> None:
    """Assemble, sample and judge the agent sessions in recorded spans and log records."""
    given = {
        "rate": rate,
        "model": model,
        "evaluators": evaluators,
        "base_url": base_url,
        "idle_timeout": idle_timeout,
    }
    try:
        settings = load_settings(**{name: value for name, value in given.items() if value is not None})
        records = _load(files)
        run = _Replay(settings, _print_line if as_json else None)
        with _progress(records) as tracked:
            asyncio.run(run.run(tracked))
    except ValueError as error:  # settings, evaluators and files that are refused
        typer.echo(f"otel-evals replay: {error}", err=True)
        raise typer.Exit(WRONG_USE) from None
    _finish(run.report, as_json)


def _finish(report: Report, as_json: bool) -> None:
    if as_json:
        _print_line({"summary": report.summary()})
    else:
        report.render(output_console())
    if not report.completed:
        typer.echo("otel-evals replay: no agent session found; `otel-evals inspect` shows what is read", err=True)
    if report.fruitless:
        raise typer.Exit(NOTHING_JUDGED)


class _Replay:
    """Feeds records to a pipeline as if each arrived when its span ended."""

    def __init__(self, settings: Settings, on_row: Callable[[dict[str, object]], None] | None) -> None:
        self.report = Report()
        self._on_row = on_row
        self._settings = settings
        self._judged: dict[Key, JudgedSession] = {}
        self._decided: dict[Key, tuple[Decision, str]] = {}
        self._completed: list[Session] = []
        """Not yet reported, in the order of completion."""
        self._pipeline = Pipeline(settings, on_result=self._on_result, on_decision=self._on_decision)
        # Coarse enough to be cheap, fine enough that no session outlives its idle time by much.
        self._step_ns = max(1, int(min(1.0, settings.idle_timeout / 10) * SECOND_NS))
        self._silence_ns = int((settings.idle_timeout + settings.grace + 1) * SECOND_NS)
        self._polled_ns = self._last_ns = 0
        # The judge works on a batch while the recording stands still, so nothing is lost to a full queue.
        self._batch = min(settings.queue_capacity, 4 * settings.judge_concurrency)

    async def run(self, records: Iterable[tuple[int, Record]]) -> None:
        """`records` with their times in epoch nanoseconds, in order of time."""
        now_ns = 0
        try:
            for now_ns, record in records:
                await self._advance(now_ns)
                self._pipeline.add(record, now_ns)
                self._last_ns = now_ns
            await self._advance(now_ns + self._silence_ns)
            await self._judge(self._pipeline.flush(now_ns + self._silence_ns))
            await self._report_batch()
        finally:
            await self._pipeline.close()

    async def _advance(self, now_ns: int) -> None:
        """Let the time of the recording pass, in steps, so that sessions complete when and in the order they would."""
        quiet_ns = self._last_ns + self._silence_ns  # after that long without a record everything is complete
        while self._polled_ns + self._step_ns <= now_ns:
            next_ns = self._polled_ns + self._step_ns
            self._polled_ns = next_ns if next_ns < quiet_ns else now_ns
            await self._judge(self._pipeline.complete(self._polled_ns))

    async def _judge(self, completed: Iterator[Session]) -> None:
        for session in completed:
            self._completed.append(session)
            if self._pipeline.queue.size() >= self._batch:
                await self._report_batch()

    async def _report_batch(self) -> None:
        """Judge all that wait and report in the order of completion, whichever judge call came back first."""
        await self._pipeline.judge_all()
        for session in self._completed:
            key = (session.session_id, session.generation)
            decision, rule = self._decided.pop(key)
            judged = self._judged.pop(key, None)
            self.report.decided(decision)
            if judged is not None:
                self.report.judged(judged)
            if self._on_row is not None:
                self._on_row(session_row(session, decision, rule, judged))
        self._completed.clear()

    def _on_result(self, judged: JudgedSession) -> None:
        if not self._settings.explanations:
            counted = tuple(evaluation.without_words() for evaluation in judged.evaluations)
            judged = judged.model_copy(update={"evaluations": counted})
        self._judged[judged.session.session_id, judged.session.generation] = judged

    def _on_decision(self, session: Session, decision: Decision, rule: str) -> None:
        self._decided[session.session_id, session.generation] = (decision, rule)


def _load(files: Sequence[Path]) -> list[tuple[int, Record]]:
    """All records with their times, in order of time; they are held in memory for the sorting.

    Raises:
        FileError: a file cannot be read or is not OTLP/JSON.
    """
    read_along = {beside.resolve() for path in files if (beside := logs_beside(path))}
    records = [record for path in files if path.resolve() not in read_along for record in read_file(path)]
    ends = {(r.trace_id, r.span_id): r.end_ns for r in records if isinstance(r, SpanRecord)}
    timed: list[tuple[int, Record]] = []
    last_ns = 0
    for record in records:
        if isinstance(record, SpanRecord):
            last_ns = record.end_ns
        else:  # may carry no time at all: then that of its span, else of what was recorded before it
            last_ns = record.time_ns or ends.get((record.trace_id, record.span_id), last_ns)
        timed.append((last_ns, record))
    timed.sort(key=lambda item: item[0])
    return timed


@contextmanager
def _progress(records: list[tuple[int, Record]]) -> Iterator[Iterable[tuple[int, Record]]]:
    """A bar on standard error, or nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress.track(records, description="replaying")


def _print_line(value: dict[str, object]) -> None:
    """One line of JSON on standard output."""
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    # A lone surrogate (judges write them) has no UTF-8 form; escaped with a backslash it is right JSON.
    sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.flush()
