"""The peers' side of `judge_cost`, run by an interpreter that has them installed and nothing of ours.

`python judge_cost_peers.py BASE_URL < conversation.json`: eval-ai-library's two metrics and strands-agents-evals'
evaluator score one conversation; the judge they talk to counts what they send.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import sys
from typing import Any

BASE_URL = sys.argv[1]
os.environ.update(OPENAI_API_KEY="sk-benchmark", OPENAI_API_BASE=BASE_URL, OPENAI_BASE_URL=BASE_URL)
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from eval_lib import (  # noqa: E402
    ConversationalEvalTestCase,
    EvalTestCase,
    FailureRateMetric,
    GoalAchievementRateMetric,
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


def recorded(turns: list[dict[str, Any]]) -> Any:
    """The conversation as traces of strands, one per turn."""
    now = datetime.datetime.now(datetime.timezone.utc)
    info = SpanInfo(session_id="s", start_time=now, end_time=now)
    traces = []
    for number, turn in enumerate(turns):
        spans: list[Any] = [
            ToolExecutionSpan(
                span_info=info,
                tool_call=ToolCall(name=tool["name"], arguments=tool["arguments"], tool_call_id=str(number)),
                tool_result=ToolResult(content="", error=tool["error"], tool_call_id=str(number)),
            )
            for tool in turn["failed_tools"]
        ]
        spans.append(
            AgentInvocationSpan(
                span_info=info, user_prompt=turn["user"], agent_response=turn["agent"], available_tools=[]
            )
        )
        traces.append(Trace(spans=spans, trace_id=str(number), session_id="s"))
    trajectory = Session(traces=traces, session_id="s")
    return EvaluationData(input=turns[0]["user"], actual_output=turns[-1]["agent"], actual_trajectory=trajectory)


async def main(turns: list[dict[str, Any]]) -> None:
    cases = [EvalTestCase(input=turn["user"], actual_output=turn["agent"]) for turn in turns]
    for metric in (FailureRateMetric(model="gpt-4o"), GoalAchievementRateMetric(model="gpt-4o")):
        await metric.evaluate(ConversationalEvalTestCase(turns=cases))
    await FailureCommunicationEvaluator(model=OpenAIModel(model_id="gpt-4o")).evaluate_async(recorded(turns))


with contextlib.redirect_stdout(sys.stderr):
    asyncio.run(main(json.load(sys.stdin)))
