"""An OpenAI-compatible chat server on loopback that answers by script and misbehaves on request.

It plays two parts: the judge (it builds a valid answer from the JSON schema it was sent) and the model of real
agent frameworks (assistant messages and tool calls by turn).

    with ScriptedJudge() as judge:
        judge.label("failure_rate", "hallucination")           # the judge's verdict
        judge.script(call_tool("search", {"q": "x"}), say("Found it."), model="agent")
        judge.fault("rate_limited", times=1, retry_after=0.1)  # the next call fails
        ...                                                    # point a client at judge.base_url
        assert len(judge.requests) == 3
"""

from tests.scripted_judge.answers import schema_of, valid_answer
from tests.scripted_judge.faults import FAULTS, Fault
from tests.scripted_judge.server import RecordedRequest, ScriptedJudge
from tests.scripted_judge.steps import Step, call_tool, call_tools, fail, say

__all__ = [
    "FAULTS",
    "Fault",
    "RecordedRequest",
    "ScriptedJudge",
    "Step",
    "call_tool",
    "call_tools",
    "fail",
    "say",
    "schema_of",
    "valid_answer",
]
