"""`otel-evals replay`, run as a command over a recording of simulated sessions."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from otel_evals.simulation.planner import plan_sessions
from tests.cli.command import otel_evals
from tests.cli.recording import record
from tests.scripted_judge import ScriptedJudge

SESSIONS = 30
SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(plan_sessions(SESSIONS, seed=7), tmp_path_factory.mktemp("recording") / "traces.jsonl")


Rows = tuple[list[dict[str, Any]], dict[str, Any]]


def rows(*arguments: Any) -> Rows:
    """The session objects and the summary of `--json`."""
    *sessions, last = map(json.loads, otel_evals("replay", *arguments, "--json").stdout.splitlines())
    return sessions, last["summary"]


@pytest.fixture(scope="module")
def replayed(recording: Path) -> Rows:
    return rows(recording)


def test_every_recorded_session_is_judged_once(replayed: Rows) -> None:
    sessions, summary = replayed
    assert {row["session_id"] for row in sessions} == {s.session_id for s in plan_sessions(SESSIONS, seed=7)}
    assert {(row["decision"], row["generation"]) for row in sessions} == {("judged", 1)}
    assert summary["sessions"] == SESSIONS
    assert summary["decisions"] == {"judged": SESSIONS}


def test_turns_are_those_of_the_recording(replayed: Rows) -> None:
    sessions, _ = replayed
    assert {row["session_id"]: row["turns"] for row in sessions} == {
        s.session_id: len(s.turns) for s in plan_sessions(SESSIONS, seed=7)
    }


def test_sessions_come_in_the_order_of_their_completion(replayed: Rows) -> None:
    ends = [row["end_ns"] for row in replayed[0]]
    assert len(ends) == SESSIONS
    assert all(earlier < later + SECOND_NS for earlier, later in pairwise(ends)), "to the second"


def test_sessions_complete_by_idle_time_of_the_recording_not_of_the_clock(replayed: Rows) -> None:
    assert {row["completion"] for row in replayed[0]} == {"idle"}


def test_a_shorter_idle_time_splits_sessions_into_generations(recording: Path) -> None:
    sessions, _ = rows(recording, "--idle-timeout", 5)
    assert len(sessions) > SESSIONS
    assert max(row["generation"] for row in sessions) > 1


def test_the_same_recording_gives_the_same_output(recording: Path) -> None:
    runs = {otel_evals("replay", recording, "--json", "--rate", 0.5).stdout for _ in range(2)}
    assert len(runs) == 1


def test_declined_sessions_are_listed_with_their_decision(recording: Path) -> None:
    sessions, summary = rows(recording, "--rate", 0.5)
    declined = [row for row in sessions if row["decision"] == "sampled_out"]
    assert 0 < len(declined) < SESSIONS
    assert all("evaluations" not in row for row in declined)
    assert summary["decisions"]["sampled_out"] == len(declined)


def test_only_the_named_evaluators_run(recording: Path) -> None:
    sessions, summary = rows(recording, "--evaluators", "failure_rate")
    assert {e["evaluator"] for row in sessions for e in row["evaluations"]} == {"failure_rate"}
    assert list(summary["evaluators"]) == ["failure_rate"]


def test_several_files_are_replayed_as_one_stream(recording: Path, replayed: Rows, tmp_path: Path) -> None:
    lines = recording.read_text().splitlines(keepends=True)
    halves = [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
    halves[0].write_text("".join(lines[1::2]))
    halves[1].write_text("".join(lines[::2]))
    assert rows(*halves) == replayed


def test_a_language_model_as_judge_gives_the_same_output_whatever_its_pace(
    recording: Path, scripted_judge: ScriptedJudge
) -> None:
    given = (
        recording,
        "--model",
        "scripted",
        "--base-url",
        scripted_judge.base_url,
        "--evaluators",
        "goal_achievement",
    )
    scripted_judge.answer(label="mostly")
    quick = rows(*given)
    scripted_judge.fault("slow", times=None, probability=0.3, seconds=0.1)
    assert rows(*given) == quick
    assert quick[1]["evaluators"]["goal_achievement"]["labels"] == {"mostly": SESSIONS}


def test_the_table_names_judge_decisions_and_figures(recording: Path) -> None:
    output = otel_evals("replay", recording).stdout
    assert "Judge: rules (deterministic checks, no language model)" in output
    assert f"Sessions: {SESSIONS} completed ({SESSIONS} judged)" in output
    assert re.search(r"Failure rate\s.*\d+\.\d %\s.*\d+\.\d – \d+\.\d %", output)
    assert "\x1b" not in output


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    done = otel_evals("replay", tmp_path / "none.jsonl", expect=2)
    [line] = done.stderr.splitlines()
    assert "none.jsonl" in line


def test_a_file_that_is_no_json_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("once upon a time\n")
    done = otel_evals("replay", tmp_path / "x.jsonl", expect=2)
    [line] = done.stderr.splitlines()
    assert "x.jsonl" in line


def test_an_unknown_evaluator_is_one_line_with_the_known_ones(recording: Path) -> None:
    done = otel_evals("replay", recording, "--evaluators", "vibes", expect=2)
    [line] = done.stderr.splitlines()
    assert "vibes" in line
    assert "failure_rate" in line


def test_a_recording_without_agent_sessions_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"resourceSpans": []}\n')
    done = otel_evals("replay", tmp_path / "x.jsonl", expect=1)
    assert "no agent session found" in done.stderr
