"""Pydantic AI and Logfire attributes beside the GenAI conventions, all their format versions."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="pydantic_ai",
    implies={"request_data": "model", "tool_arguments": "tool", "tool_response": "tool", "agent_name": "agent"},
    whole=("pydantic_ai.all_messages",),
    new_from=("pydantic_ai.new_message_index",),
    answer=("final_result",),
    events=("events", "all_messages_events"),
    blob_in=("request_data", "user_message"),
    blob_out=("response_data", "reply"),
    agent=("agent_name",),
    model=("model_name",),
    tool_arguments=("tool_arguments",),
    tool_result=("tool_response",),
)
