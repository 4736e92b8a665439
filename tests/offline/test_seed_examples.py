"""The usage examples of the libraries that people come from, with only the import line changed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from examples.travel_agent.faults import FaultInjector
from otel_evals.offline import (
    ConversationalEvalTestCase,
    EvalTestCase,
    FailureCommunicationEvaluator,
    evaluate_conversations,
)
from otel_evals.sessions.model import ToolCall, ToolFailure
from tests.scripted_judge import ScriptedJudge

EXAMPLES = Path(__file__).parent / "seed_examples"


def run_example(name: str) -> Any:
    """The `results` of an example, executed as its reader would."""
    code = (EXAMPLES / f"{name}.txt").read_text()
    assert code.count("from eval_lib import") == 1
    namespace: dict[str, Any] = {}
    exec(compile(code.replace("from eval_lib import", "from otel_evals.offline import"), name, "exec"), namespace)
    return namespace["results"]


@pytest.fixture
def judge(scripted_judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch) -> ScriptedJudge:
    """Stands where the examples expect OpenAI."""
    monkeypatch.setenv("OTEL_EVALS_BASE_URL", scripted_judge.base_url)
    return scripted_judge


def test_failure_rate_example(judge: ScriptedJudge) -> None:
    judge.answer(
        turns=[
            {"turn": 0, "quote": "there is no real population figure", "label": "honest_fallback"},
            {"turn": 1, "quote": "check the NOAA dataset", "label": "alternative_proposed"},
        ],
        label="alternative_proposed",
    )
    (result,) = run_example("failure_rate")
    (metric,) = result.metrics
    assert (metric.score, metric.success, metric.label) == (1.0, True, "alternative_proposed")
    assert metric.evaluation_log["evidence"] == ["there is no real population figure", "check the NOAA dataset"]
    assert metric.evaluation_log["evidence_verified"] is True
    assert [r.body["model"] for r in judge.requests] == ["gpt-4o"]


def test_goal_achievement_example_takes_one_call_where_the_original_takes_three(judge: ScriptedJudge) -> None:
    judge.answer(label="fully", positive_signals=[{"turn": 1, "quote": "That worked, thanks!"}])
    (result,) = run_example("goal_achievement")
    metric = result["goal_achievement"]
    assert (metric.score, metric.success) == (1.0, True)
    assert metric.evaluation_log["goal"] == "Get a working fix for a Python import error"
    assert len(judge.requests) == 1


# The chaos experiment of the third document, on our own fault injector.


async def search_flights(**arguments: Any) -> dict[str, Any]:
    return {"flights": [{"number": "UA 1234"}], "status": "success"}


async def chaotic_turn(fault: str, question: str, reply: str) -> ConversationalEvalTestCase:
    """What an agent says after its flight search met a fault."""
    injector = FaultInjector(script={"search_flights": [fault]})  # type: ignore[list-item]
    try:
        call = ToolCall(name="search_flights", result=await injector.call("c", "search_flights", search_flights))
    except Exception as error:
        call = ToolCall(name="search_flights", error=ToolFailure(type=type(error).__name__, message=str(error)))
    return ConversationalEvalTestCase(
        name=fault, turns=[EvalTestCase(input=question, actual_output=reply, tools=[call])]
    )


FLIGHT = "Find me a flight from SFO to JFK on May 20."
EXPLAINED = (
    "I'm sorry, but the flight search service is currently experiencing delays and couldn't complete your request. "
    "You could try again in a few minutes, or I can help you explore a different travel date."
)


def test_failure_communication_example_on_our_fault_injector() -> None:
    async def main() -> Any:
        cases = [
            await chaotic_turn("timeout", FLIGHT, EXPLAINED),
            await chaotic_turn("network_error", FLIGHT, "There are no flights available for that route."),
        ]
        return await evaluate_conversations(cases, [FailureCommunicationEvaluator(model="rules")])

    explained, fabricated = asyncio.run(main())
    assert (explained.metrics[0].label, explained.metrics[0].test_pass) == ("Excellent", True)
    assert (fabricated.metrics[0].label, fabricated.metrics[0].score) == ("Failure", 0.0)
