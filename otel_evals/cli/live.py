"""What the demo shows while it runs: bars for turns and sessions, and the failures found last."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from otel_evals.evaluation import JudgedSession

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["Failures", "Refresh", "live_display"]

LATEST = 5
"""Failures shown at a time."""


class Refresh(Protocol):
    def __call__(self, played: int, stats: dict[str, Any]) -> None:
        """Show `played` turns and the figures of `EvaluationHandle.stats()`."""
        ...


class Failures:
    """The failures found last. Added to on the judge's thread, read on the main one: a deque needs no lock."""

    def __init__(self) -> None:
        self._latest: deque[str] = deque(maxlen=LATEST)

    def add(self, judged: JudgedSession) -> None:
        """Remember the first failed evaluation of the session, if there is one."""
        failed = next((each for each in judged.evaluations if each.passed is False), None)
        if failed is None:
            return
        quote = " ".join(failed.evidence[0].quote.split()) if failed.evidence else failed.explanation or ""
        self._latest.append(f'{judged.session.agent_name}: {failed.evaluator} {failed.label}: "{quote}"')

    def lines(self) -> list[str]:
        return list(self._latest)


@contextmanager
def live_display(turns: int, sessions: int, failures: Failures) -> Iterator[Refresh]:
    """A display on standard error that vanishes at the end, or nothing where that is no terminal."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda played, stats: None
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        bars = _Bars(turns, sessions, console)

        def refresh(played: int, stats: dict[str, Any]) -> None:
            live.update(bars.drawn(played, stats, failures.lines()), refresh=True)

        yield refresh


class _Bars:
    def __init__(self, turns: int, sessions: int, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description:<18}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._progress = Progress(*columns, console=console)
        self._played = self._progress.add_task("turns played", total=turns, note="")
        self._completed = self._progress.add_task("sessions completed", total=sessions, note="")
        self._decided = self._progress.add_task("sessions decided", total=sessions, note="")

    def drawn(self, played: int, stats: dict[str, Any], failures: list[str]) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        decisions = ", ".join(f"{number} {name}" for name, number in sorted(stats["decisions"].items()))
        progress = self._progress
        progress.update(self._played, completed=played)
        progress.update(self._completed, completed=stats["sessions_completed"], note=f"{stats['sessions_open']} open")
        progress.update(self._decided, completed=sum(stats["decisions"].values()), note=decisions)
        lines = [Text(line, style="red", no_wrap=True, overflow="ellipsis") for line in failures]
        return Group(progress, *lines)
