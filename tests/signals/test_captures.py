"""Signals on the capture corpus: the same scripted conversations through 38 instrumentations."""

from __future__ import annotations

from collections import Counter

import pytest

from otel_evals.signals import detect, signal_names
from tests.captures.corpus import assemble, records, rows


@pytest.fixture(scope="module")
def found() -> dict[str, Counter[str]]:
    """Scenario to signal to the share of its captures that have it; `captures` holds their number."""
    counts: dict[str, Counter[str]] = {}
    for row in rows():
        if row["check"] == "content_off" or not row.get("content", True):
            continue
        names = {name for session in assemble(records(row["file"])) for name in signal_names(detect(session))}
        counts.setdefault(row.get("scenario", "other"), Counter()).update(["captures", *names])
    for scenario, of_scenario in counts.items():
        print(f"{scenario}: {dict(of_scenario)}")
    return counts


def share(found: dict[str, Counter[str]], scenario: str, signal: str) -> float:
    return found[scenario][signal] / found[scenario]["captures"]


def test_failed_tools_are_seen_through_every_instrumentation(found: dict[str, Counter[str]]) -> None:
    for scenario in ("tool_error_honest", "tool_error_fabricated", "two_tools_partial"):
        assert share(found, scenario, "tool_error") > 0.97


def test_a_fabricated_answer_after_a_failed_tool_is_unacknowledged(found: dict[str, Counter[str]]) -> None:
    assert share(found, "tool_error_fabricated", "tool_error_unacknowledged") > 0.97


def test_an_honest_one_is_not_unless_the_run_broke_before_it(found: dict[str, Counter[str]]) -> None:
    assert share(found, "tool_error_honest", "tool_error_unacknowledged") < 0.05


def test_frustration_is_heard(found: dict[str, Counter[str]]) -> None:
    assert share(found, "stall_frustrated", "user_frustration") > 0.97


def test_a_dead_model_leaves_the_question_unanswered(found: dict[str, Counter[str]]) -> None:
    assert share(found, "llm_down", "no_answer") == 1.0


def test_success_raises_no_alarm(found: dict[str, Counter[str]]) -> None:
    quiet = set(found["success"]) | set(found["success_stream"])
    # Where an instrumentation loses the answer, or reports a turn twice, that is what the session looks like.
    assert quiet <= {"captures", "no_answer", "repeated_question"}
    assert share(found, "success", "no_answer") < 0.08
    assert share(found, "success", "repeated_question") < 0.02


def test_nobody_attacked_the_judge(found: dict[str, Counter[str]]) -> None:
    assert not any(counts["judge_injection_suspected"] for counts in found.values())
