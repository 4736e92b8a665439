"""200 recorded conversations with known outcome through `otel-evals replay`: is every one accounted for, who is right?

The τ-bench airline conversations become OTLP/JSON and are replayed twice, as anybody would replay a recording: with
`rules`, the judge that is no model, and with the scripted judge over HTTP. Of `rules` the agreement with τ-bench's
reward is printed, as a floor for a model to beat. The reward is about the final state of a database: refusing what the
airline's policy forbids is right there, and yet the person leaves without what they came for.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.report import goal, report
from tests.scripted_judge import ScriptedJudge
from tests.tau_bench import auc, tau_bench
from tests.tau_bench_spans import write_spans

REPLAY = (sys.executable, "-c", "from otel_evals.cli import main; main()", "replay", "--json")

Rows = list[dict[str, Any]]


def replay(recording: Path, *options: str) -> tuple[Rows, dict[str, Any]]:
    """The sessions and the figures of one run of the command."""
    began = time.perf_counter()
    done = subprocess.run([*REPLAY, str(recording), *options], stdout=subprocess.PIPE, text=True, check=True)
    wall_s = time.perf_counter() - began
    *rows, last = map(json.loads, done.stdout.splitlines())
    outcomes = Counter(each["outcome"] for row in rows for each in row.get("evaluations", ()))
    figures = {
        "sessions": len({row["session_id"] for row in rows}),
        "decisions": last["summary"]["decisions"],
        "outcomes": dict(outcomes),
        "calls": last["summary"]["judge"]["calls"],
        "wall_s": round(wall_s, 2),
    }
    return rows, figures


def agreement(rows: Rows) -> dict[str, Any]:
    """Per evaluator: sessions it applies to, and how well its score tells success from failure."""
    succeeded = {case.session.session_id: case.succeeded for case in tau_bench()}
    pairs: dict[str, list[tuple[float, bool]]] = {}
    for row in rows:
        applicable = [each for each in row["evaluations"] if each["applicable"] and each["score"] is not None]
        for each in applicable:
            pairs.setdefault(each["evaluator"], []).append((each["score"], succeeded[row["session_id"]]))
        mean = sum(each["score"] for each in applicable) / len(applicable)
        pairs.setdefault("mean_of_all", []).append((mean, succeeded[row["session_id"]]))
    return {name: _agreement(found) for name, found in pairs.items()}


def _agreement(pairs: list[tuple[float, bool]]) -> dict[str, Any]:
    good = sum(succeeded for _, succeeded in pairs)
    value = auc(pairs)
    return {"n": len(pairs), "succeeded": good, "auc": round(value, 3), "se": round(_se(value, good, len(pairs)), 3)}


def _se(value: float, good: int, n: int) -> float:
    """Standard error of an AUC (Hanley and McNeil, 1982)."""
    bad = n - good
    q1, q2 = value / (2 - value), 2 * value**2 / (1 + value)
    spread = value * (1 - value) + (good - 1) * (q1 - value**2) + (bad - 1) * (q2 - value**2)
    return math.sqrt(spread / (good * bad))


def told(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The scripted judge's entry for each failed tool that its prompt shows."""
    numbers = sorted({int(n) for n in re.findall(r'"failure":(\d+)', body["messages"][1]["content"])})
    facts = {"told": "explained", "cause": False, "next_step": "none", "flaw": "none"}
    return [{"failure": number, "turn": 0, "quote": "", **facts} for number in numbers]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ScriptedJudge() as judge:
        judge.answer(goal="As asked.", failures=told)
        recording = write_spans(Path(folder) / "tau_bench.jsonl")
        rows, rules = replay(recording, "--model", "rules")
        scripted_rows, scripted = replay(recording, "--model", "judge", "--base-url", judge.base_url)
    found = agreement(rows)
    for name, figure in found.items():
        print(f"{name:22} {figure}")
    for name, figure in (("rules", rules), ("scripted", scripted)):
        print(f"{name:22} {figure}")
    whole = len(tau_bench())
    report(
        "tau_bench",
        {"rules": rules, "scripted": scripted, "agreement_of_rules_with_reward": found},
        {
            "sessions_decided_rules": goal(_decided(rows) / whole, ">= 1"),
            "sessions_decided_scripted": goal(_decided(scripted_rows) / whole, ">= 1"),
            "sessions_scored_rules": goal(rules["decisions"].get("judged", 0) / whole, ">= 1"),
            "sessions_scored_scripted": goal(scripted["decisions"].get("judged", 0) / whole, ">= 1"),
            "calls_per_session": goal(scripted["calls"] / whole, "<= 1"),
        },
    )


def _decided(rows: Rows) -> int:
    """Sessions with exactly one decision."""
    return sum(count == 1 for count in Counter(row["session_id"] for row in rows if row["decision"]).values())


if __name__ == "__main__":
    main()
