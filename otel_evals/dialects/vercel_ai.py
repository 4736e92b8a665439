"""Vercel AI SDK, `ai.*` attributes (v3 to v6; v7's default speaks the GenAI conventions)."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="vercel_ai",
    kinds={
        "ai.operationId": {
            "ai.generatetext": "agent",
            "ai.streamtext": "agent",
            "ai.generateobject": "agent",
            "ai.streamobject": "agent",
            "ai.agent": "agent",
            "ai.generatetext.dogenerate": "model",
            "ai.streamtext.dostream": "model",
            "ai.generateobject.dogenerate": "model",
            "ai.streamobject.dostream": "model",
            "ai.toolcall": "tool",
            "ai.embed": "other",
            "ai.embedmany": "other",
        }
    },
    messages_in=("ai.prompt.messages", "ai.prompt"),
    answer=("ai.response.text", "ai.response.object"),
    messages_out=("ai.response.toolCalls",),
    model=("ai.response.model", "ai.model.id"),
    response_id=("ai.response.id",),
    agent=("ai.telemetry.metadata.agentName", "ai.telemetry.functionId"),
    tool_name=("ai.toolCall.name",),
    tool_id=("ai.toolCall.id",),
    tool_arguments=("ai.toolCall.args", "ai.toolCall.input"),
    tool_result=("ai.toolCall.result", "ai.toolCall.output"),
    input_tokens=("ai.usage.inputTokens", "ai.usage.promptTokens"),
    output_tokens=("ai.usage.outputTokens", "ai.usage.completionTokens"),
    cached_tokens=("ai.usage.cachedInputTokens",),
    user_id=("ai.telemetry.metadata.userId", "ai.settings.context.userId"),
    tags=("ai.telemetry.metadata.tags",),
)
