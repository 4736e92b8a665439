"""The draw of a session: uniform, the same everywhere, and nested."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from otel_evals.sampling.draw import draw

IDS = [f"session-{number}" for number in range(20_000)]


def test_it_never_changes_between_releases() -> None:
    assert draw("abc") == 0.6317996050971565
    assert draw("abc", "june") == 0.30171926529095405


def test_another_process_with_another_hash_seed_draws_the_same() -> None:
    code = "from otel_evals.sampling.draw import draw; print(repr(draw('žluťoučký', 's')))"
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(printed.stdout) == draw("žluťoučký", "s")


def test_it_is_uniform() -> None:
    counts = [0] * 20
    for name in IDS:
        counts[int(draw(name) * 20)] += 1
    expected = len(IDS) / 20
    # 99.9 % quantile of chi-square with 19 degrees of freedom.
    assert sum((count - expected) ** 2 / expected for count in counts) < 43.8


def test_it_stays_below_one() -> None:
    assert all(0.0 <= draw(name) < 1.0 for name in IDS[:1000])


def test_a_salt_draws_a_fresh_cohort() -> None:
    old = {name for name in IDS if draw(name) < 0.1}
    new = {name for name in IDS if draw(name, "june") < 0.1}
    assert len(old & new) == pytest.approx(len(IDS) * 0.01, rel=0.25)


def test_salt_and_id_do_not_run_into_each_other() -> None:
    assert draw("ab", "c") != draw("b", "ca")
    assert draw("bc", "a") != draw("c", "ab")


def test_ids_that_are_no_proper_text_are_drawn_too() -> None:
    assert 0.0 <= draw("\ud800\x00") < 1.0
    assert 0.0 <= draw("") < 1.0
