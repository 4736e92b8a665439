"""A real provider with the processor attached, and the judge's answers to the conversations of these tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

import otel_evals
from otel_evals import Evaluation, JudgedSession, Session
from tests.scripted_judge import ScriptedJudge, call_tool, say

SESSION_ID = "conversation-42"
ASKS = "Find me a flight from SFO to JFK on May 20."
ARGUMENTS = {"origin": "SFO", "destination": "JFK", "date": "2027-05-20"}
REASON = "Tool call timed out after 30s"
LEAVES = "I see. I will try again later."
GOODBYE = "All right. Have a good day."
HONEST = (
    "I'm sorry, the flight search service timed out, so I could not get any results. "
    "You could try again in a few minutes, or I can check a nearby airport."
)
FABRICATED = "Nordwind NW212 leaves at 09:40 and costs $212."

AGENT_MODEL = "scripted-agent"
JUDGE_MODEL = "scripted-judge"


def script_agent(server: ScriptedJudge, answer: str) -> None:
    """The agent's model: it calls the tool, answers after its failure, and says goodbye in the second turn."""
    server.script(call_tool("search_flights", ARGUMENTS), say(answer), say(GOODBYE), model=AGENT_MODEL)


def script_judge(server: ScriptedJudge) -> None:
    """The judge: finds a fabrication in the first turn and ignores nothing else."""
    server.answer(
        **{
            "failure_rate.turns": [{"turn": 0, "quote": FABRICATED, "label": "hallucination"}],
            "failure_rate.label": "hallucination",
            "goal_achievement.label": "none",
            "goal_achievement.negative_signals": [],
            "failure_communication.failures": [
                {
                    "failure": 1,
                    "turn": 0,
                    "quote": FABRICATED,
                    "told": "fabricated",
                    "cause": False,
                    "next_step": "none",
                    "flaw": "none",
                }
            ],
            "failure_communication.label": "Failure",
        }
    )


class Attached:
    """A tracer provider with the processor on it, and the sessions that came back."""

    def __init__(self, settings: otel_evals.Settings) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.judged: list[JudgedSession] = []
        self.handle = otel_evals.attach(self.provider, settings=settings, on_result=self.judged.append)

    def the_session(self) -> Session:
        """The only judged session, once everything open is completed and judged."""
        assert self.handle.force_flush(30_000, complete=True)
        assert len(self.judged) == 1, [judged.session.session_id for judged in self.judged]
        return self.judged[0].session

    def evaluations(self) -> dict[str, Evaluation]:
        """Evaluator name to result of the only session."""
        self.the_session()
        return {evaluation.evaluator: evaluation for evaluation in self.judged[0].evaluations}


@contextmanager
def attached(**settings: Any) -> Iterator[Attached]:
    """Attach with every session judged; idle time is out of the way, the tests end sessions by flushing."""
    live = Attached(otel_evals.Settings(rate=1.0, idle_timeout=600, grace=0, **settings))
    try:
        yield live
    finally:
        live.handle.shutdown()
        live.provider.shutdown()


def assert_session_is_right(session: Session, answer: str) -> None:
    """One session, two turns, the words of both sides, and the tool call with its failure."""
    assert session.session_id == SESSION_ID
    assert [turn.user for turn in session.turns] == [ASKS, LEAVES]
    assert [turn.agent for turn in session.turns] == [answer, GOODBYE]
    [call] = session.turns[0].tool_calls
    assert call.name == "search_flights"
    assert call.arguments == ARGUMENTS
    assert call.error is not None
    assert REASON in f"{call.error.message} {json.dumps(call.result, default=str)}"
    assert session.turns[1].tool_calls == ()


def judge_prompts(server: ScriptedJudge) -> list[str]:
    """What the judge was asked, one text for each call."""
    return [
        "\n".join(str(message["content"]) for message in request.body["messages"])
        for request in server.requests
        if request.body["model"] == JUDGE_MODEL
    ]
