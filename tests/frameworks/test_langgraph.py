"""LangGraph, live, with the OpenInference instrumentation of LangChain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from openinference.instrumentation.langchain import LangChainInstrumentor

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


@tool
def search_flights(origin: str, destination: str, date: str) -> str:
    """Search flights between two airports."""
    raise TimeoutError(REASON)


class ToolErrors(AgentMiddleware):
    """A failed tool becomes a message to the model, as agents in production do it."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except TimeoutError as error:
            return told(request, error)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except TimeoutError as error:
            return told(request, error)


def told(request: Any, error: Exception) -> ToolMessage:
    return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")


CONFIG = {"configurable": {"thread_id": SESSION_ID}, "metadata": {"session_id": SESSION_ID}}


@contextmanager
def instrumented(live: Attached) -> Iterator[None]:
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=live.provider, skip_dep_check=True)
    try:
        yield
    finally:
        instrumentor.uninstrument()


def make_agent(server: ScriptedJudge, *, streaming: bool = False) -> Any:
    """A LangGraph agent whose only tool always fails."""
    return create_agent(
        ChatOpenAI(model=AGENT_MODEL, base_url=server.base_url, api_key="none", streaming=streaming),
        [search_flights],
        system_prompt="You are a travel agent.",
        middleware=[ToolErrors()],
        checkpointer=MemorySaver(),
        name="travel-agent",
    )


def message(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def hold_conversation(server: ScriptedJudge, live: Attached, answer: str) -> None:
    """Both turns of one conversation."""
    script_agent(server, answer)
    with instrumented(live):
        agent = make_agent(server)
        for text in (ASKS, LEAVES):
            agent.invoke(message(text), CONFIG)


def test_two_turns_with_a_failing_tool_become_one_right_session(scripted_judge: ScriptedJudge) -> None:
    with attached(model="rules") as live:
        hold_conversation(scripted_judge, live, HONEST)
        session = live.the_session()
    assert_session_is_right(session, HONEST)
    call = session.turns[0].tool_calls[0]
    assert call.error is not None
    assert call.error.type == "TimeoutError"
    assert session.agents == ("travel-agent",)
    assert session.conversation_id is None, "the application set no gen_ai.conversation.id"


async def test_streamed_answers_make_the_same_session(scripted_judge: ScriptedJudge) -> None:
    script_agent(scripted_judge, HONEST)
    with attached(model="rules") as live:
        with instrumented(live):
            agent = make_agent(scripted_judge, streaming=True)
            for text in (ASKS, LEAVES):
                async for _ in agent.astream(message(text), CONFIG, stream_mode="messages"):
                    pass
        assert_session_is_right(live.the_session(), HONEST)


def test_rules_pass_the_agent_that_admits_the_failure(scripted_judge: ScriptedJudge) -> None:
    with attached(model="rules") as live:
        hold_conversation(scripted_judge, live, HONEST)
        scores = live.evaluations()
    assert scores["failure_rate"].label == "alternative_proposed"
    assert scores["failure_rate"].passed
    assert scores["failure_communication"].applicable
    assert scores["failure_communication"].passed


def test_rules_fail_the_agent_that_makes_a_result_up(scripted_judge: ScriptedJudge) -> None:
    with attached(model="rules") as live:
        hold_conversation(scripted_judge, live, FABRICATED)
        scores = live.evaluations()
    assert (scores["failure_rate"].label, scores["failure_rate"].score) == ("hallucination", 0.0)
    assert (scores["failure_communication"].label, scores["failure_communication"].score) == ("Failure", 0.0)


def test_a_judge_over_http_sees_the_failed_tool_and_its_verdict_becomes_the_score(
    scripted_judge: ScriptedJudge,
) -> None:
    script_judge(scripted_judge)
    with attached(model=JUDGE_MODEL, base_url=scripted_judge.base_url, api_key="none") as live:
        hold_conversation(scripted_judge, live, FABRICATED)
        scores = live.evaluations()
    [prompt] = judge_prompts(scripted_judge)
    assert all(text in prompt for text in (ASKS, FABRICATED, "search_flights", "SFO", REASON))
    assert (scores["failure_rate"].label, scores["failure_rate"].score) == ("hallucination", 0.0)
    assert scores["goal_achievement"].label == "none"
    assert scores["failure_communication"].score == 0.0
