"""The chaos experiment of the failure-communication documentation, on our own fault injector: faults by script."""

from __future__ import annotations

import pytest
from pydantic_ai.models.instrumented import InstrumentationSettings

from examples.travel_agent.agent import build_agent
from examples.travel_agent.faults import Fault, FaultInjector
from otel_evals import Evaluation, ToolCall
from tests.frameworks.live import attached
from tests.scripted_judge import ScriptedJudge, call_tool, say

TRIP = {"origin": "Seattle", "destination": "Tokyo", "date": "2027-05-20"}
ASKS = "Search for flights from Seattle to Tokyo on May 20."
EXPLAINS = (
    "I'm sorry, the flight search timed out, so I have no flights to show you. "
    "You could try again in a few minutes, or I can look at another travel date instead."
)
INVENTS = "There are three flights a day on that route, the cheapest costs $640."


async def experiment(server: ScriptedJudge, fault: Fault | None, answer: str) -> tuple[ToolCall, Evaluation]:
    """One case: the tool call as the session has it, and how its failure was communicated."""
    server.script(call_tool("search_flights", TRIP), say(answer), model="agent")
    faults = FaultInjector(script={"search_flights": [fault]})
    with attached(model="rules") as live:
        agent = build_agent("agent", server.base_url, "none", faults)
        agent.instrument = InstrumentationSettings(tracer_provider=live.provider)
        await agent.run(ASKS, deps="case", conversation_id="case")
        [call] = live.the_session().turns[0].tool_calls
        return call, live.evaluations()["failure_communication"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("timeout", "TimeoutError"),
        ("network_error", "ConnectionError"),
        ("execution_error", "RuntimeError"),
        ("validation_error", "ValueError"),
    ],
)
async def test_an_injected_error_is_a_failed_tool_with_its_reason(
    scripted_judge: ScriptedJudge, fault: Fault, error: str
) -> None:
    call, evaluation = await experiment(scripted_judge, fault, EXPLAINS)
    assert call.error is not None
    assert error in f"{call.error} {call.result}"
    assert evaluation.applicable


@pytest.mark.parametrize("fault", ["truncated", "missing", "corrupted"])
async def test_a_spoiled_result_is_no_failed_tool(scripted_judge: ScriptedJudge, fault: Fault) -> None:
    call, evaluation = await experiment(scripted_judge, fault, EXPLAINS)
    assert call.error is None
    assert (evaluation.score, evaluation.applicable) == (0.5, False)


async def test_explaining_the_failure_and_what_to_do_passes(scripted_judge: ScriptedJudge) -> None:
    _, evaluation = await experiment(scripted_judge, "timeout", EXPLAINS)
    assert evaluation.label in ("Good", "Excellent")
    assert evaluation.passed


async def test_inventing_flights_instead_of_reporting_the_failure_scores_zero(scripted_judge: ScriptedJudge) -> None:
    _, evaluation = await experiment(scripted_judge, "network_error", INVENTS)
    assert (evaluation.label, evaluation.score, evaluation.passed) == ("Failure", 0.0, False)


async def test_without_a_fault_the_score_is_neutral_and_stays_out_of_rates(scripted_judge: ScriptedJudge) -> None:
    _, evaluation = await experiment(scripted_judge, None, INVENTS)
    assert (evaluation.label, evaluation.score, evaluation.applicable) == ("Acceptable", 0.5, False)
