"""Signals on 200 recorded conversations: what they are worth is printed, what they must not become is checked."""

from __future__ import annotations

import time
from collections import Counter

from otel_evals.signals import detect, signal_names
from tests.tau_bench import tau_bench


def test_evidence_of_failed_tools_finds_failed_sessions_more_often_than_chance() -> None:
    cases = tau_bench()
    base = sum(not case.succeeded for case in cases) / len(cases)
    found: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for case in cases:
        names = signal_names(detect(case.session))
        found.update(names)
        failed.update(names if not case.succeeded else ())
    for name, count in found.most_common():
        precision = failed[name] / count
        print(f"{name:28} {count:4} sessions, precision {precision:.2f}, lift {precision / base:.2f}")
    for name in ("tool_error", "tool_error_unacknowledged", "loop"):
        assert failed[name] / found[name] > 1.2 * base


def test_nobody_attacked_the_judge_in_them() -> None:
    assert not any("judge_injection_suspected" in signal_names(detect(case.session)) for case in tau_bench())


def test_a_session_costs_less_than_a_thousandth_of_a_judge_call() -> None:
    cases = tau_bench()
    started = time.process_time()
    for case in cases:
        detect(case.session)
    assert (time.process_time() - started) / len(cases) < 0.002
