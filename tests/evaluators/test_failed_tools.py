"""Which tool failures an agent had to explain."""

from __future__ import annotations

from otel_evals.evaluators.failed_tools import failed_tools
from tests.evaluators.conversations import failed_call, session, turn, worked_call


def test_failures_are_numbered_in_order_over_all_turns():
    found = failed_tools(session(turn("a", "b", failed_call("x")), turn("c", "d", failed_call("y"), failed_call("x"))))
    assert [(f.number, f.turn, f.name) for f in found] == [(1, 0, "x"), (2, 1, "y"), (3, 1, "x")]


def test_a_failure_mended_by_a_later_call_of_the_same_tool_is_marked():
    found = failed_tools(session(turn("a", "b", failed_call("x"), worked_call("x"), failed_call("y"))))
    assert [(f.name, f.mended) for f in found] == [("x", True), ("y", False)]


def test_a_success_before_the_failure_mends_nothing():
    (found,) = failed_tools(session(turn("a", "b", worked_call("x"), failed_call("x"))))
    assert not found.mended


def test_a_failure_after_the_mending_counts_again():
    (found,) = failed_tools(session(turn("a", "b", failed_call("x"), worked_call("x"), failed_call("x"))))
    assert not found.mended
