"""pydantic-ai, live, with its own OpenTelemetry instrumentation."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent, ModelRetry, ToolFailed
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.frameworks.live import (
    AGENT_MODEL,
    ASKS,
    FABRICATED,
    HONEST,
    JUDGE_MODEL,
    LEAVES,
    REASON,
    SESSION_ID,
    Attached,
    assert_session_is_right,
    attached,
    judge_prompts,
    script_agent,
    script_judge,
)
from tests.scripted_judge import ScriptedJudge


def make_agent(server: ScriptedJudge, provider: TracerProvider, failure: type[Exception]) -> Agent[None, str]:
    """A travel agent whose only tool always fails."""
    model = OpenAIChatModel(AGENT_MODEL, provider=OpenAIProvider(base_url=server.base_url, api_key="none"))
    agent = Agent(model, name="travel-agent", instructions="You are a travel agent.", retries=2)
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    @agent.tool_plain
    def search_flights(origin: str, destination: str, date: str) -> str:
        """Search flights between two airports."""
        raise failure(REASON)

    return agent


async def converse(agent: Agent[None, str], *texts: str, session_id: str = SESSION_ID) -> None:
    """All turns of one conversation."""
    history = []
    for text in texts:
        result = await agent.run(text, message_history=history, conversation_id=session_id)
        history = result.all_messages()


async def hold_conversation(
    server: ScriptedJudge, live: Attached, answer: str, failure: type[Exception] = ToolFailed
) -> None:
    script_agent(server, answer)
    await converse(make_agent(server, live.provider, failure), ASKS, LEAVES)


@pytest.mark.parametrize("failure", [ToolFailed, ModelRetry])
async def test_two_turns_with_a_failing_tool_become_one_right_session(
    scripted_judge: ScriptedJudge, failure: type[Exception]
) -> None:
    with attached(model="rules") as live:
        await hold_conversation(scripted_judge, live, HONEST, failure)
        session = live.the_session()
    assert_session_is_right(session, HONEST)
    assert session.agents == ("travel-agent",)
    assert session.conversation_id == SESSION_ID
    assert session.models == (AGENT_MODEL,)


async def test_streamed_answers_make_the_same_session(scripted_judge: ScriptedJudge) -> None:
    script_agent(scripted_judge, HONEST)
    with attached(model="rules") as live:
        agent = make_agent(scripted_judge, live.provider, ToolFailed)
        history = []
        for text in (ASKS, LEAVES):
            async with agent.run_stream(text, message_history=history, conversation_id=SESSION_ID) as result:
                await result.get_output()
                history = result.all_messages()
        assert_session_is_right(live.the_session(), HONEST)


async def test_conversations_at_the_same_time_are_kept_apart(scripted_judge: ScriptedJudge) -> None:
    script_agent(scripted_judge, HONEST)
    with attached(model="rules") as live:
        agent = make_agent(scripted_judge, live.provider, ToolFailed)
        await asyncio.gather(
            *(converse(agent, f"{ASKS} ({number})", LEAVES, session_id=f"c-{number}") for number in range(5))
        )
        assert live.handle.force_flush(30_000, complete=True)
        sessions = {judged.session.session_id: judged.session for judged in live.judged}
    assert {name: [turn.user for turn in session.turns] for name, session in sessions.items()} == {
        f"c-{number}": [f"{ASKS} ({number})", LEAVES] for number in range(5)
    }


async def test_rules_pass_the_agent_that_admits_the_failure(scripted_judge: ScriptedJudge) -> None:
    with attached(model="rules") as live:
        await hold_conversation(scripted_judge, live, HONEST)
        scores = live.evaluations()
    assert scores["failure_rate"].label == "alternative_proposed"
    assert scores["failure_rate"].passed
    assert scores["failure_communication"].applicable
    assert scores["failure_communication"].passed


async def test_rules_fail_the_agent_that_makes_a_result_up(scripted_judge: ScriptedJudge) -> None:
    with attached(model="rules") as live:
        await hold_conversation(scripted_judge, live, FABRICATED)
        scores = live.evaluations()
    assert (scores["failure_rate"].label, scores["failure_rate"].score) == ("hallucination", 0.0)
    assert (scores["failure_communication"].label, scores["failure_communication"].score) == ("Failure", 0.0)
    assert scores["failure_rate"].evidence[0].quote in FABRICATED
    assert scores["failure_rate"].evidence[0].verified


async def test_a_judge_over_http_sees_the_failed_tool_and_its_verdict_becomes_the_score(
    scripted_judge: ScriptedJudge,
) -> None:
    script_judge(scripted_judge)
    with attached(model=JUDGE_MODEL, base_url=scripted_judge.base_url, api_key="none") as live:
        await hold_conversation(scripted_judge, live, FABRICATED)
        scores = live.evaluations()
    [prompt] = judge_prompts(scripted_judge)
    assert all(text in prompt for text in (ASKS, FABRICATED, "search_flights", "SFO", REASON))
    assert (scores["failure_rate"].label, scores["failure_rate"].score) == ("hallucination", 0.0)
    assert (scores["goal_achievement"].label, scores["goal_achievement"].score) == ("none", 0.0)
    assert scores["failure_communication"].score == 0.0
    assert scores["failure_rate"].evidence[0].verified
    assert live.judged[0].judgement.model == JUDGE_MODEL
    assert live.judged[0].judgement.calls == 1


async def test_the_judges_own_calls_make_no_session(scripted_judge: ScriptedJudge) -> None:
    script_judge(scripted_judge)
    with attached(model=JUDGE_MODEL, base_url=scripted_judge.base_url, api_key="none") as live:
        await hold_conversation(scripted_judge, live, FABRICATED)
        live.the_session()
        assert live.handle.force_flush(30_000, complete=True)
        assert live.handle.stats()["sessions_completed"] == 1
