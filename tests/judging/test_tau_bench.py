"""The judge without a model on 200 recorded conversations: what it is worth is printed, a floor to beat."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from otel_evals.judging.models.rules import RulesModel
from otel_evals.judging.plan import Judge
from otel_evals.settings import EVALUATOR_NAMES, Settings
from tests.cli.command import otel_evals
from tests.judging.scripted import task
from tests.scripted_judge import ScriptedJudge
from tests.tau_bench import auc, tau_bench
from tests.tau_bench_spans import write_spans


async def test_every_session_is_scored_with_quotes_that_occur() -> None:
    judge = Judge(RulesModel(), create_evaluators(EVALUATOR_NAMES), Settings())
    scored: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for case in tau_bench():
        for evaluation in (await judge.judge(task(case.session))).evaluations:
            assert evaluation.score is not None
            assert evaluation.evidence_verified is not False
            if evaluation.applicable:
                scored[evaluation.evaluator].append((evaluation.score, case.succeeded))
    for name, pairs in scored.items():
        # The reward asks for the right state of a database: refusing what the policy forbids is a success there, and
        # leaves the person without what they came for. Below 0.5 is no mistake in these figures.
        print(f"{name:24} n={len(pairs):3}  agreement of `rules` with the reward: AUC {auc(pairs):.2f}")
    assert {name: len(pairs) for name, pairs in scored.items()}["goal_achievement"] == len(tau_bench())


async def test_over_http_every_session_is_scored_by_one_call(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.answer(goal="As asked.", failures=_told)
    model = OpenAICompatibleModel("judge", scripted_judge.base_url, "key")
    judge = Judge(model, create_evaluators(EVALUATOR_NAMES), Settings(judge_concurrency=20))
    results = await asyncio.gather(*(judge.judge(task(case.session)) for case in tau_bench()))
    await judge.close()
    assert {e.outcome for result in results for e in result.evaluations} == {"scored", "not_applicable"}
    assert {result.judgement.calls for result in results} == {1}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_spans(tmp_path_factory.mktemp("tau_bench") / "spans.jsonl")


def replayed(recording: Path, *options: str) -> list[dict[str, Any]]:
    *rows, _ = map(json.loads, otel_evals("replay", recording, "--json", *options).stdout.splitlines())
    return rows


@pytest.mark.slow
async def test_replayed_from_spans_every_session_gets_the_scores_of_its_conversation(recording: Path) -> None:
    judge = Judge(RulesModel(), create_evaluators(EVALUATOR_NAMES), Settings())
    expected = {
        (case.session.session_id, e.evaluator): (e.label, e.score)
        for case in tau_bench()
        for e in (await judge.judge(task(case.session))).evaluations
    }
    rows = replayed(recording, "--model", "rules")
    assert {row["decision"] for row in rows} == {"judged"}
    found = {(r["session_id"], e["evaluator"]): (e["label"], e["score"]) for r in rows for e in r["evaluations"]}
    assert found == expected


@pytest.mark.slow
def test_replayed_with_a_model_every_session_is_scored_by_one_call(
    recording: Path, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.answer(goal="As asked.", failures=_told)
    rows = replayed(recording, "--model", "judge", "--base-url", scripted_judge.base_url)
    assert {row["session_id"] for row in rows} == {case.session.session_id for case in tau_bench()}
    assert {e["outcome"] for row in rows for e in row["evaluations"]} == {"scored", "not_applicable"}
    assert [row["judgement"]["calls"] for row in rows] == [1] * len(tau_bench())


def _told(body: dict[str, Any]) -> list[dict[str, Any]]:
    """An entry for each failed tool that the prompt shows."""
    numbers = sorted({int(n) for n in re.findall(r'"failure":(\d+)', body["messages"][1]["content"])})
    facts = {"told": "explained", "cause": False, "next_step": "none", "flaw": "none"}
    return [{"failure": number, "turn": 0, "quote": "", **facts} for number in numbers]
