"""The settings file, edited while the program runs."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from otel_evals.sampling.file import RatesFile
from otel_evals.sampling.sampler import Sampler
from otel_evals.sessions.model import Session
from otel_evals.settings import load_settings


class Setup:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        self.path = folder / "otel-evals.yaml"
        self.path.write_text(text)
        monkeypatch.setenv("OTEL_EVALS_CONFIG", str(self.path))
        settings = load_settings()
        self.sampler = Sampler(settings)
        self.file = RatesFile(str(self.path), self.sampler, settings)

    def write(self, text: str) -> None:
        """As editors do: a new file takes the old one's place."""
        draft = self.path.with_suffix(".new")
        draft.write_text(text)
        os.replace(draft, self.path)

    def rates(self) -> set[float]:
        return set(self.sampler.rates().values())


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    return Setup(tmp_path, monkeypatch, "rate: 0.1\nmodel: rules\n")


def test_an_edited_rate_holds_after_the_next_look(setup: Setup) -> None:
    setup.write("rate: 0.5\nmodel: rules\n")
    assert setup.file.poll()
    assert setup.rates() == {0.5}


def test_an_untouched_file_changes_nothing(setup: Setup) -> None:
    setup.sampler.set_rate(0.7)
    assert not setup.file.poll()
    assert setup.rates() == {0.7}


def test_a_change_of_the_same_length_is_seen(setup: Setup) -> None:
    for rate in ("0.2", "0.3", "0.4"):
        setup.write(f"rate: {rate}\nmodel: rules\n")
        assert setup.file.poll()
        assert setup.rates() == {float(rate)}


def test_settings_that_need_a_restart_leave_the_rates_alone(setup: Setup) -> None:
    setup.sampler.set_rate(0.7)
    setup.write("rate: 0.1\nmodel: gpt-4o\njudge_timeout: 5\n")
    assert not setup.file.poll()
    assert setup.rates() == {0.7}


def test_rules_may_come_and_go(setup: Setup) -> None:
    setup.write("rate: 0.1\nrules:\n- {name: vip, match: {tag: vip}, rate: 1}\n")
    setup.file.poll()
    vip = Session(session_id="s", session_key="session.id", tags=("vip",))
    assert setup.sampler.decide(vip).rule == "vip"
    setup.write("rate: 0.1\n")
    setup.file.poll()
    assert setup.sampler.decide(vip).rule == "default"


def test_the_kill_switch_is_a_line_in_the_file(setup: Setup) -> None:
    setup.write("rate: 0.1\npaused: true\n")
    setup.file.poll()
    assert setup.sampler.paused
    setup.write("rate: 0.1\n")
    setup.file.poll()
    assert not setup.sampler.paused


def test_a_new_rate_does_not_resume_what_code_has_paused(setup: Setup) -> None:
    setup.sampler.pause()
    setup.write("rate: 0.5\n")
    setup.file.poll()
    assert setup.sampler.paused


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rate: 1.5", "1.5 is no rate"),
        ("rate: -1", "is no rate"),
        ("rate: .nan", "nan is no rate"),
        ("rate: often", "valid number"),
        ("rate:", "valid number"),
        ("rates: {failure_rate: 2}", "2.0 is no rate"),
        ("rules: [{name: a, rate: 7}]", "7.0 is no rate"),
        ("rules: [{name: a}, {name: a}]", "two rules are named 'a'"),
        ("rules: [{name: a, rates: {typo: 1}}]", "'typo' is no evaluator here"),
        ("rate: [", "while parsing"),
        ("", "perhaps half written"),
        ("just text", "perhaps half written"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason_and_the_old_rates_stay(
    setup: Setup, caplog: pytest.LogCaptureFixture, text: str, reason: str
) -> None:
    setup.write(text)
    with caplog.at_level(logging.WARNING):
        assert not setup.file.poll()
    assert reason in caplog.text
    assert setup.rates() == {0.1}


def test_a_refusal_is_said_once_for_each_version_of_the_file(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    setup.write("rate: 7")
    with caplog.at_level(logging.WARNING):
        setup.file.poll()
        setup.file.poll()
    assert len(caplog.records) == 1


@pytest.mark.parametrize("good", ["rate: 0", "rate: 1", "rate: 0.25"])
def test_the_bounds_are_taken(setup: Setup, good: str) -> None:
    setup.write(good)
    assert setup.file.poll()
    assert setup.rates() == {float(good.partition(": ")[2])}


def test_a_file_that_is_gone_changes_nothing_until_it_is_back(setup: Setup) -> None:
    setup.path.unlink()
    assert not setup.file.poll()
    assert setup.rates() == {0.1}
    setup.write("rate: 0.5")
    assert setup.file.poll()
    assert setup.rates() == {0.5}


def test_reload_reads_without_a_change_being_seen_first(setup: Setup) -> None:
    setup.write("rate: 0.5")
    assert setup.file.reload()
    assert setup.rates() == {0.5}


def test_a_change_is_logged_with_the_old_and_the_new_rate(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    setup.write("rate: 0.5")
    with caplog.at_level(logging.INFO):
        setup.file.poll()
    assert "default/failure_rate 0.1 -> 0.5" in caplog.text
    assert str(setup.path) in caplog.text
