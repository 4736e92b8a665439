"""Google ADK's own attributes (`gcp.vertex.agent.*`), beside the GenAI conventions it also speaks."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="google_adk",
    implies={"gcp.vertex.agent.llm_request": "model", "gcp.vertex.agent.tool_call_args": "tool"},
    messages_in=("gcp.vertex.agent.llm_request",),
    messages_out=("gcp.vertex.agent.llm_response",),
    tool_arguments=("gcp.vertex.agent.tool_call_args",),
    tool_result=("gcp.vertex.agent.tool_response",),
)
