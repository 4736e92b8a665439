"""The plan of a simulation: repeatable, varied, with faults of every kind, and truthful."""

from __future__ import annotations

from collections import Counter

import pytest

from otel_evals.simulation import texts
from otel_evals.simulation.model import BEHAVIOURS, PlannedSession
from otel_evals.simulation.planner import FAULT_SHARE, plan_sessions


@pytest.fixture(scope="module")
def plan() -> list[PlannedSession]:
    return plan_sessions(1000, seed=7)


def of(plan: list[PlannedSession], behaviour: str) -> list[PlannedSession]:
    return [session for session in plan if session.behaviour == behaviour]


def failed_calls(session: PlannedSession) -> int:
    return sum(call.error_type is not None for turn in session.turns for call in turn.calls)


def test_the_same_seed_gives_the_same_plan() -> None:
    assert plan_sessions(50, seed=3) == plan_sessions(50, seed=3)


def test_another_seed_gives_another_plan() -> None:
    assert plan_sessions(50, seed=3) != plan_sessions(50, seed=4)


def test_more_sessions_leave_the_first_ones_as_they_were() -> None:
    assert plan_sessions(50, seed=3)[:20] == plan_sessions(20, seed=3)


def test_session_ids_are_unique(plan: list[PlannedSession]) -> None:
    assert len({session.session_id for session in plan}) == 1000


def test_three_agents_and_two_models_take_part(plan: list[PlannedSession]) -> None:
    assert {session.agent for session in plan} == {"travel-agent", "order-support", "bank-assistant"}
    assert {session.model for session in plan} == {"simulated-large", "simulated-small"}


def test_every_fault_and_behaviour_occurs(plan: list[PlannedSession]) -> None:
    assert len({session.fault for session in plan} - {None}) == 7
    assert {session.behaviour for session in plan} == {*BEHAVIOURS, None}


def test_the_share_of_faults_is_kept(plan: list[PlannedSession]) -> None:
    assert sum(session.fault is not None for session in plan) / 1000 == pytest.approx(FAULT_SHARE, abs=0.05)


def test_sessions_have_one_to_five_turns(plan: list[PlannedSession]) -> None:
    assert {len(session.turns) for session in plan} == {1, 2, 3, 4, 5}


def test_turns_of_a_session_do_not_overlap(plan: list[PlannedSession]) -> None:
    for session in plan:
        for earlier, later in zip(session.turns, session.turns[1:], strict=False):
            assert earlier.start_s + earlier.duration_s < later.start_s


def test_texts_are_varied(plan: list[PlannedSession]) -> None:
    reports = [turn.answer for session in plan for turn in session.turns if turn.calls]
    assert Counter(reports).most_common(1)[0][1] < len(reports) / 50
    assert len(set(reports)) > len(reports) * 0.7


def test_no_template_is_left_unfilled(plan: list[PlannedSession]) -> None:
    said = [text for session in plan for turn in session.turns for text in (turn.user, turn.answer)]
    assert not [text for text in said if "{" in text or "None" in text]


def test_without_a_fault_no_call_fails(plan: list[PlannedSession]) -> None:
    assert {failed_calls(session) for session in plan if session.fault is None} == {0}


def test_a_failing_fault_fails_exactly_one_call(plan: list[PlannedSession]) -> None:
    failing = [s for s in plan if s.fault in ("timeout", "network_error", "execution_error", "validation_error")]
    assert {failed_calls(session) for session in failing} == {1}


def test_a_spoiling_fault_leaves_no_error_in_the_trace(plan: list[PlannedSession]) -> None:
    spoiled = [s for s in plan if s.fault in ("truncated", "missing", "corrupted")]
    assert spoiled
    assert {failed_calls(session) for session in spoiled} == {0}


def test_who_recovers_calls_the_tool_again(plan: list[PlannedSession]) -> None:
    for session in of(plan, "recovered"):
        assert any(len(turn.calls) == 2 and turn.calls[1].result for turn in session.turns)


def test_who_makes_things_up_answers_as_if_the_tool_had_worked(plan: list[PlannedSession]) -> None:
    failed = [t for s in of(plan, "fabricated") for t in s.turns if any(call.error_type for call in t.calls)]
    assert failed
    for turn in failed:
        assert any(character.isdigit() for character in turn.answer)
        assert not any(trouble in turn.answer for words in texts.TROUBLE.values() for trouble in words)
