"""The figures that `demo` and `replay` share."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from otel_evals.cli.report import Report, session_row
from otel_evals.evaluation import Evaluation, Evidence, JudgedSession, Judgement
from otel_evals.sampling.estimate import weighted_rate
from otel_evals.sessions.model import Session, Turn


def evaluation(score: float | None, label: str = "honest_fallback", **given: Any) -> Evaluation:
    outcome = "unscorable" if score is None else "scored"
    passed = None if score is None else score >= 0.7
    values = {"evaluator": "failure_rate", "evaluator_version": "1", "outcome": outcome, "score": score}
    return Evaluation(**{**values, "label": label, "passed": passed, **given})


def judged(session_id: str, *evaluations: Evaluation, cost_usd: float | None = None) -> JudgedSession:
    session = Session(session_id=session_id, session_key="session.id", turns=(Turn(user="hi", agent="hello"),))
    judgement = Judgement(model="rules", calls=1, input_tokens=10, output_tokens=5, cost_usd=cost_usd, duration_s=0.1)
    return JudgedSession(session=session, evaluations=evaluations, judgement=judgement)


def rendered(report: Report) -> str:
    console = Console(file=io.StringIO(), width=100)
    report.render(console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_failure_rate_is_weighted_by_the_sampling_probability() -> None:
    report = Report()
    report.judged(judged("a", evaluation(0.0, probability=0.1)))
    report.judged(judged("b", evaluation(1.0, probability=1.0)))
    found = report.summary()["evaluators"]["failure_rate"]["failure_rate"]
    expected = weighted_rate([10.0, 1.0], [True, False])
    assert found["value"] == pytest.approx(10 / 11, abs=1e-6)
    assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert found["n"] == 2


def test_what_is_not_applicable_stays_out_of_the_rate() -> None:
    report = Report()
    report.judged(judged("a", evaluation(0.0)))
    report.judged(judged("b", evaluation(1.0, "not_applicable", applicable=False, outcome="not_applicable")))
    found = report.summary()["evaluators"]["failure_rate"]
    assert found["failure_rate"]["value"] == 1.0
    assert found["not_applicable"] == 1
    assert found["labels"] == {"honest_fallback": 1}


def test_a_judge_error_is_counted_by_name_and_never_a_score() -> None:
    report = Report()
    report.judged(judged("a", evaluation(None, error_type="timeout")))
    found = report.summary()["evaluators"]["failure_rate"]
    assert found["unscorable"] == {"timeout": 1}
    assert found["failure_rate"] == {"value": None, "low": 0.0, "high": 1.0, "n": 0, "effective_n": 0.0}


def test_the_summary_does_not_depend_on_the_order_of_arrival() -> None:
    items = [judged(f"s{n}", evaluation(n / 20, probability=0.5)) for n in range(20)]
    forward, backward = Report(), Report()
    for item in items:
        forward.judged(item)
    for item in reversed(items):
        backward.judged(item)
    assert forward.summary() == backward.summary()
    assert rendered(forward) == rendered(backward)


def test_the_worst_three_have_the_lowest_mean_score() -> None:
    report = Report()
    for name, score in {"good": 1.0, "bad": 0.4, "worse": 0.3, "poor": 0.6, "worst": 0.0}.items():
        report.judged(judged(name, evaluation(score)))
    assert report.summary()["worst"] == ["worst", "worse", "bad"]


def test_a_session_that_passed_everything_is_none_of_the_worst() -> None:
    report = Report()
    report.judged(judged("good", evaluation(1.0)))
    assert report.summary()["worst"] == []
    assert "Worst" not in rendered(report)


def test_the_worst_sessions_are_shown_with_their_quotes() -> None:
    report = Report()
    evidence = (
        Evidence(turn=1, role="agent", quote="It costs\n  $212.", verified=True),
        Evidence(turn=0, role="agent", quote="[bold]never said[/bold]", verified=False),
    )
    report.judged(judged("s-1", evaluation(0.0, "hallucination", evidence=evidence)))
    text = rendered(report)
    assert "1. s-1, 1 turn\n" in text
    assert "Failure rate: hallucination (0)" in text
    assert 'turn 2, agent: "It costs $212."' in text
    assert 'turn 1, agent: "[bold]never said[/bold]" (not found in the session)' in text


def test_praise_is_not_shown_as_evidence_of_a_failure_but_what_was_not_reached_is() -> None:
    report = Report()
    evidence = (
        Evidence(turn=0, role="user", quote="Useless.", verified=True),
        Evidence(turn=0, role="user", quote="Thanks!", verified=True),
    )
    details = {"positive_signals": ["Thanks!"], "negative_signals": ["Useless."], "unmet_requests": ["the balance"]}
    report.judged(judged("a", evaluation(0.3, "minor", evidence=evidence, details=details)))
    text = rendered(report)
    assert '"Useless."' in text
    assert "Thanks!" not in text
    assert 'not reached: "the balance"' in text


def test_the_rules_judge_is_labelled_as_no_language_model() -> None:
    report = Report()
    report.judged(judged("a", evaluation(1.0), cost_usd=0.0))
    assert "rules (deterministic checks, no language model); 1 model calls, 15 tokens, 0.0000 USD" in rendered(report)


def test_an_unknown_price_is_not_shown_as_zero() -> None:
    report = Report()
    report.judged(judged("a", evaluation(1.0)))
    assert report.summary()["judge"]["cost_usd"] is None
    assert "cost unknown" in rendered(report)


def test_known_costs_add_up() -> None:
    report = Report()
    for name in "ab":
        report.judged(judged(name, evaluation(1.0), cost_usd=0.25))
    assert report.summary()["judge"]["cost_usd"] == 0.5


def test_nothing_judged_still_gives_a_report() -> None:
    report = Report()
    report.decided("sampled_out")
    assert "Sessions: 1 completed (1 sampled_out)" in rendered(report)
    assert report.summary()["evaluators"] == {}


def test_a_judge_that_fails_on_everything_makes_the_report_fruitless() -> None:
    report = Report()
    report.decided("unscorable")
    report.judged(judged("a", evaluation(None, error_type="unavailable")))
    assert report.fruitless


def test_one_score_or_a_decision_against_judging_is_not_fruitless() -> None:
    scored, declined = Report(), Report()
    scored.decided("judged")
    scored.judged(judged("a", evaluation(1.0), evaluation(None, error_type="timeout")))
    declined.decided("sampled_out")
    assert not scored.fruitless
    assert not declined.fruitless


def test_no_session_at_all_is_fruitless() -> None:
    assert Report().fruitless


def test_a_session_row_has_no_wall_clock_durations() -> None:
    item = judged("a", evaluation(1.0))
    row = session_row(item.session, "judged", "default", item)
    assert row["decision"] == "judged"
    assert row["evaluations"][0]["label"] == "honest_fallback"
    assert row["evaluations"][0]["id"] == item.evaluation_id(item.evaluations[0])
    assert "duration_s" not in row["judgement"]


def test_the_row_of_a_declined_session_says_why() -> None:
    session = Session(session_id="a", session_key="trace", evaluable=False, not_evaluable_reason="no_content")
    row = session_row(session, "not_evaluable", "none", None)
    assert row["not_evaluable_reason"] == "no_content"
    assert "evaluations" not in row
