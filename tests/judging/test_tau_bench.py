"""The judge without a model on 200 recorded conversations: what it is worth is printed, a floor to beat."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from typing import Any

from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from otel_evals.judging.models.rules import RulesModel
from otel_evals.judging.plan import Judge
from otel_evals.settings import EVALUATOR_NAMES, Settings
from tests.judging.scripted import task
from tests.scripted_judge import ScriptedJudge
from tests.tau_bench import tau_bench


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
        print(f"{name:24} n={len(pairs):3}  agreement of `rules` with the reward: AUC {_auc(pairs):.2f}")
    assert {name: len(pairs) for name, pairs in scored.items()}["goal_achievement"] == len(tau_bench())


async def test_over_http_every_session_is_scored_by_one_call(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.answer(goal="As asked.", failures=_told)
    model = OpenAICompatibleModel("judge", scripted_judge.base_url, "key")
    judge = Judge(model, create_evaluators(EVALUATOR_NAMES), Settings(judge_concurrency=20))
    results = await asyncio.gather(*(judge.judge(task(case.session)) for case in tau_bench()))
    await judge.close()
    assert {e.outcome for result in results for e in result.evaluations} == {"scored", "not_applicable"}
    assert {result.judgement.calls for result in results} == {1}


def _told(body: dict[str, Any]) -> list[dict[str, Any]]:
    """An entry for each failed tool that the prompt shows."""
    numbers = sorted({int(n) for n in re.findall(r'"failure":(\d+)', body["messages"][1]["content"])})
    facts = {"told": "explained", "cause": False, "next_step": "none", "flaw": "none"}
    return [{"failure": number, "turn": 0, "quote": "", **facts} for number in numbers]


def _auc(pairs: list[tuple[float, bool]]) -> float:
    """Chance that a successful session has the higher score, ties counted half."""
    good = [score for score, succeeded in pairs if succeeded]
    bad = [score for score, succeeded in pairs if not succeeded]
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    return wins / (len(good) * len(bad)) if good and bad else float("nan")
