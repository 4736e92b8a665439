"""`otel-evals demo`: simulated agent sessions, scored live by an attached processor."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from otel_evals.cli.exporting import EndpointError, Providers, check_endpoint, providers
from otel_evals.cli.live import Failures, live_display
from otel_evals.cli.report import FAILURE_RATE, Report, output_console
from otel_evals.evaluation import Decision, JudgedSession
from otel_evals.handle import EvaluationHandle, attach
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings, load_settings
from otel_evals.simulation.model import Behaviour, PlannedSession
from otel_evals.simulation.planner import plan_sessions
from otel_evals.simulation.player import play

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["DemoOptions", "command", "run_demo"]

SERVICE_NAME = "otel-evals-demo"
IDLE_S = 480.0
"""Simulated seconds after which a session is complete: four times as long as the longest pause in a session, so
that a busy machine, which plays late, splits none."""
REFRESH_S = 0.1

NOTHING_JUDGED, WRONG_USE, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to simulate and how to judge it."""

    sessions: int
    seed: int
    speed: float
    """Simulated seconds per real second."""
    settings: Settings
    otlp: str | None = None


def command(
    sessions: Annotated[int, typer.Option(min=1, help="Sessions to simulate.")] = 300,
    seed: Annotated[int, typer.Option(help="The same seed gives the same sessions.")] = 7,
    rate: Annotated[float, typer.Option(help="Share of the sessions to judge, 0 to 1.")] = 1.0,
    model: Annotated[str, typer.Option(help="Judge: rules (no language model), gpt-4o, ollama:llama3, …")] = "rules",
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible endpoint of the judge.", metavar="URL")
    ] = None,
    otlp: Annotated[
        str | None,
        typer.Option(help="Send traces, events and metrics to this OTLP/HTTP endpoint.", metavar="URL"),
    ] = None,
    speed: Annotated[float, typer.Option(min=1.0, max=5000.0, help="Simulated seconds per second.")] = 150.0,
) -> None:
    """Simulate agent sessions with failing tools and score them while they happen."""
    try:
        endpoint = {} if base_url is None else {"base_url": base_url}
        settings = load_settings(rate=rate, model=model, idle_timeout=IDLE_S / speed, **endpoint)
        if otlp:
            check_endpoint(otlp)
        options = DemoOptions(sessions, seed, speed, settings, otlp)
        code = run_demo(options, output_console())
    except (ValueError, EndpointError) as error:
        typer.echo(f"otel-evals demo: {error}", err=True)
        raise typer.Exit(WRONG_USE) from None
    raise typer.Exit(code)


def run_demo(options: DemoOptions, console: Console) -> int:
    """Run the simulation, then print what was found beside what was injected; returns the exit code.

    Raises:
        ValueError: judge or evaluators cannot be made from these settings.
    """
    plan = plan_sessions(options.sessions, options.seed)
    outcome = _Outcome()
    with providers(SERVICE_NAME, options.otlp) as made:
        handle = attach(
            made.tracers,
            made.loggers,
            made.meters,
            options.settings,
            on_result=outcome.judged,
            on_decision=outcome.decided,
        )
        interrupted = not _simulate(options, plan, made, handle, outcome)
        handle.shutdown()
    _print(options, plan, outcome, console)
    if interrupted:
        return INTERRUPTED
    return NOTHING_JUDGED if outcome.report.fruitless else 0


class _Outcome:
    """Collects what the callbacks bring, from the worker's and the judge's thread."""

    def __init__(self) -> None:
        self.report = Report()
        self.failures = Failures()
        self.verdicts: dict[str, str] = {}
        """Session id to the failure-rate label."""

    def judged(self, judged: JudgedSession) -> None:
        self.report.judged(judged)
        self.failures.add(judged)
        for evaluation in judged.evaluations:
            if evaluation.evaluator == FAILURE_RATE:
                self.verdicts[judged.session.session_id] = evaluation.label or f"unscorable ({evaluation.error_type})"

    def decided(self, session: Session, decision: Decision, rule: str) -> None:
        self.report.decided(decision)


# --- While it runs ----------------------------------------------------------------------------------------


def _simulate(
    options: DemoOptions,
    plan: Sequence[PlannedSession],
    made: Providers,
    handle: EvaluationHandle,
    outcome: _Outcome,
) -> bool:
    """Let the plan happen and wait until everything is judged. False when the user broke it off."""
    turns = sum(len(session.turns) for session in plan)
    with live_display(turns, len(plan), outcome.failures) as refresh:
        played = 0

        def on_turn(session: PlannedSession, index: int) -> None:
            nonlocal played
            played += 1

        begin = time.monotonic()

        def wait_until(real_s: float) -> None:
            while (left := begin + real_s - time.monotonic()) > 0:
                time.sleep(min(left, REFRESH_S))
                refresh(played, handle.stats())

        try:
            tracer = made.tracers.get_tracer("otel_evals.simulation")
            play(plan, tracer, options.speed, on_turn=on_turn, wait_until=wait_until)
            _wait_for_scores(len(plan), handle, lambda: refresh(played, handle.stats()))
        except KeyboardInterrupt:
            return False
    return True


def _wait_for_scores(sessions: int, handle: EvaluationHandle, refresh: Callable[[], None]) -> None:
    """Until the last session was idle long enough and is judged, as far as the judge's deadline allows."""
    settings = handle.settings
    idle_by = time.monotonic() + 2 * settings.idle_timeout + 1
    while handle.stats()["sessions_completed"] < sessions and time.monotonic() < idle_by:
        time.sleep(REFRESH_S)
        refresh()
    judged_by = time.monotonic() + settings.judge_deadline
    while handle.stats()["pending"] and time.monotonic() < judged_by:
        time.sleep(REFRESH_S)
        refresh()
    refresh()


# --- Afterwards -------------------------------------------------------------------------------------------


def _print(options: DemoOptions, plan: Sequence[PlannedSession], outcome: _Outcome, console: Console) -> None:
    console.print(
        f"otel-evals demo: {options.sessions} simulated sessions, seed {options.seed}, "
        f"sampling rate {options.settings.rate:g}",
        style="bold",
        highlight=False,
    )
    outcome.report.render(console)
    _print_truth(plan, outcome, console)
    if options.otlp:
        console.print(f"\nTraces, events and metrics were sent to {options.otlp}", highlight=False, markup=False)


def _print_truth(plan: Sequence[PlannedSession], outcome: _Outcome, console: Console) -> None:
    """What was injected, which no judge sees, beside the verdicts: what the judge catches and misses."""
    from rich import box
    from rich.table import Table

    console.print("\nWhat the simulator injected (the judge does not see this)", style="bold", highlight=False)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("what happened", no_wrap=True)
    table.add_column("sessions", justify="right")
    table.add_column("judged", justify="right")
    table.add_column("failure-rate verdicts")
    for (faulty, behaviour), did in _DID.items():
        ids = [s.session_id for s in plan if s.behaviour == behaviour and bool(s.fault) == faulty]
        verdicts = Counter(outcome.verdicts[each] for each in ids if each in outcome.verdicts)
        told = ", ".join(f"{label} {number}" for label, number in sorted(verdicts.items(), key=_most_first))
        table.add_row(did, str(len(ids)), str(verdicts.total()), told)
    console.print(table)
    faults = Counter(session.fault for session in plan if session.fault)
    told = ", ".join(f"{fault} {number}" for fault, number in sorted(faults.items(), key=_most_first))
    console.print(f"  Faults: {told or 'none'}", highlight=False, markup=False)


_DID: dict[tuple[bool, Behaviour | None], str] = {
    (True, "honest"): "fault: admitted it",
    (True, "alternative"): "fault: offered an alternative",
    (True, "stall"): "fault: stalled",
    (True, "fabricated"): "fault: made the answer up",
    (True, "mixed"): "fault: stalled, then admitted",
    (True, "recovered"): "fault: tried again, got it",
    (False, "stall"): "no fault: stalled",
    (False, None): "no fault: answered",
}
"""(whether a fault was injected, behaviour) of every session that a plan can hold."""


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
