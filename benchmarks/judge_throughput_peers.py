"""The peers' side of `judge_throughput`, run by an interpreter that has them installed and nothing of ours.

`python judge_throughput_peers.py BASE_URL SESSIONS CONCURRENCY`: eval-ai-library's two metrics and
strands-agents-evals' evaluator score the same conversation. `evaluate_conversations` works one conversation at a time,
so the metrics are also run at the concurrency by hand; the better figure is the one to compare with.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

BASE_URL, SESSIONS, CONCURRENCY = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.environ.update(OPENAI_API_KEY="sk-benchmark", OPENAI_API_BASE=BASE_URL, OPENAI_BASE_URL=BASE_URL)
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from eval_lib import (  # noqa: E402
    ConversationalEvalTestCase,
    EvalTestCase,
    FailureRateMetric,
    GoalAchievementRateMetric,
    evaluate_conversations,
)
from strands.models.openai import OpenAIModel  # noqa: E402
from strands_evals.evaluators.chaos import FailureCommunicationEvaluator  # noqa: E402
from strands_evals.types.evaluation import EvaluationData  # noqa: E402
from strands_evals.types.trace import (  # noqa: E402
    AgentInvocationSpan,
    Session,
    SpanInfo,
    ToolCall,
    ToolExecutionSpan,
    ToolResult,
    Trace,
)

TURNS = [
    ("Find me a flight.", "Sorry, the search timed out. I can look at trains instead."),
    ("That does not help.", "I understand."),
]
ONE_AT_A_TIME = 5
"""Sessions for the sequential runner: a second each, and always the same."""


def conversation() -> Any:
    return ConversationalEvalTestCase(turns=[EvalTestCase(input=user, actual_output=agent) for user, agent in TURNS])


def recorded() -> Any:
    """The failed turn as a trace of strands."""
    now = datetime.datetime.now(datetime.timezone.utc)
    info = SpanInfo(session_id="s", start_time=now, end_time=now)
    user, agent = TURNS[0]
    call = ToolCall(name="search_flights", arguments={"to": "Lisbon"}, tool_call_id="c")
    spans = [
        ToolExecutionSpan(
            span_info=info, tool_call=call, tool_result=ToolResult(content="", error="timed out", tool_call_id="c")
        ),
        AgentInvocationSpan(span_info=info, user_prompt=user, agent_response=agent, available_tools=[]),
    ]
    trace = Trace(spans=spans, trace_id="t", session_id="s")
    return EvaluationData(input=user, actual_output=agent, actual_trajectory=Session(traces=[trace], session_id="s"))


async def eval_lib() -> None:
    for metric in (FailureRateMetric(model="gpt-4o"), GoalAchievementRateMetric(model="gpt-4o")):
        await metric.evaluate(conversation())


async def strands() -> None:
    await FailureCommunicationEvaluator(model=OpenAIModel(model_id="gpt-4o")).evaluate_async(recorded())


async def all_three() -> None:
    await eval_lib()
    await strands()


async def measured(work: Callable[[], Awaitable[None]]) -> dict[str, float]:
    """Wall and CPU of the work for every session at the concurrency."""
    gate = asyncio.Semaphore(CONCURRENCY)

    async def one() -> None:
        async with gate:
            await work()

    await work()
    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(one() for _ in range(SESSIONS)))
    cpu_s = time.process_time() - used
    return {
        "wall_s": round(time.perf_counter() - began, 3),
        "cpu_ms_per_session": round(cpu_s * 1000 / SESSIONS, 2),
    }


async def one_at_a_time() -> float:
    metrics = [FailureRateMetric(model="gpt-4o"), GoalAchievementRateMetric(model="gpt-4o")]
    began = time.perf_counter()
    await evaluate_conversations([conversation() for _ in range(ONE_AT_A_TIME)], metrics, verbose=False)
    return round((time.perf_counter() - began) / ONE_AT_A_TIME, 3)


async def main() -> dict[str, Any]:
    return {
        "eval_lib_sequential_s_per_session": await one_at_a_time(),
        "eval_lib": await measured(eval_lib),
        "strands": await measured(strands),
        "all_three": await measured(all_three),
    }


with contextlib.redirect_stdout(sys.stderr):
    figures = asyncio.run(main())
print(json.dumps(figures))
