"""What the demo shows while it runs."""

from __future__ import annotations

import pytest

from otel_evals.cli.live import LATEST, Failures, live_display
from otel_evals.evaluation import Evaluation, Evidence, JudgedSession, Judgement
from otel_evals.sessions.model import Session


def judged(label: str, *, passed: bool, quote: str = "It depends.") -> JudgedSession:
    evaluation = Evaluation(
        evaluator="failure_rate",
        evaluator_version="1",
        outcome="scored",
        score=1.0 if passed else 0.4,
        label=label,
        passed=passed,
        evidence=(Evidence(turn=0, role="agent", quote=quote),),
    )
    session = Session(session_id="a", session_key="session.id", agents=("travel-agent",))
    return JudgedSession(session=session, evaluations=(evaluation,), judgement=Judgement(model="rules"))


def test_a_failed_session_is_named_with_label_and_quote_on_one_line() -> None:
    failures = Failures()
    failures.add(judged("stall", passed=False, quote="It\n depends."))
    assert failures.lines() == ['travel-agent: failure_rate stall: "It depends."']


def test_a_passed_session_is_no_failure() -> None:
    failures = Failures()
    failures.add(judged("honest_fallback", passed=True))
    assert failures.lines() == []


def test_only_the_latest_failures_are_kept() -> None:
    failures = Failures()
    for number in range(LATEST + 3):
        failures.add(judged(f"label-{number}", passed=False))
    assert [f"label-{number}" in line for number, line in enumerate(failures.lines(), start=3)] == [True] * LATEST


def test_nothing_is_drawn_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with live_display(10, 5, Failures()) as refresh:
        refresh(3, {"decisions": {"judged": 1}, "sessions_completed": 2, "sessions_open": 1})
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_turns_sessions_decisions_and_failures(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    failures = Failures()
    failures.add(judged("stall", passed=False))
    with live_display(10, 5, failures) as refresh:
        refresh(3, {"decisions": {"judged": 1}, "sessions_completed": 2, "sessions_open": 1})
    output, drawn = capfd.readouterr()
    assert output == ""
    assert all(text in drawn for text in ("3/10", "2/5", "1 open", "1/5", "1 judged", "stall"))
