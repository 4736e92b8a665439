"""Which spans and log records are worth keeping, decided from attribute names alone.

The hooks ask this on every span of the process, so the answer is one set operation and nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["MARKER_KEYS", "MARKER_PREFIXES", "SESSION_KEYS", "is_genai_log", "keeps"]

SESSION_KEYS: tuple[str, ...] = (
    "gen_ai.conversation.id",
    "gen_ai.conversation_id",
    "gen_ai.session.id",
    "session.id",
    "session_id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId",
    "ai.settings.context.sessionId",
    "langsmith.metadata.session_id",
    "mastra.metadata.sessionId",
    "metadata.sessionId",
    "metadata.session_id",
    "mlflow.trace.session",
    "gcp.vertex.agent.session_id",
    "langfuse.observation.metadata.langfuse_session_id",
    "ai.telemetry.metadata.session_id",
    "ai.settings.context.session_id",
    "ai.telemetry.metadata.conversationId",
    "ai.telemetry.metadata.threadId",
    "traceloop.association.properties.conversation_id",
    "traceloop.association.properties.chat_id",
    "traceloop.association.properties.sessionId",
    "traceloop.association.properties.thread_id",
    "langsmith.metadata.conversation_id",
    "langsmith.metadata.thread_id",
    "mastra.metadata.conversationId",
    "mastra.metadata.threadId",
    "mastra.threadId",
    "mastra.thread_id",
    "metadata.conversation_id",
    "metadata.thread_id",
    "metadata.threadId",
    "agento11y.framework.thread_id",
    "thread_id",
    "threadId",
    "thread.session.id",
    "conversation.id",
    "spring.ai.chat.client.conversation.id",
    "lmnr.association.properties.session_id",
    "galileo.session.id",
    "lilypad.session_id",
    "mirascope.ops.session.id",
    "conversation_id",
    "conversationId",
    "sessionId",
    "chat_id",
)
"""Attributes that name the conversation, the most deliberate choice of the application first."""

_COMMON = frozenset(
    ("thread_id", "threadId", "session_id", "conversation_id", "conversationId", "sessionId", "chat_id")
)
"""Names that spans of other things have too."""

MARKER_KEYS: frozenset[str] = frozenset(SESSION_KEYS) - _COMMON | frozenset(
    (
        # OpenTelemetry GenAI conventions and what grew from them
        "gen_ai.operation.name",
        "gen_ai.system",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.model",
        "gen_ai.agent.name",
        "gen_ai.agent.id",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.workflow.name",
        "gen_ai.task.name",
        "gen_ai.task.id",
        "gen_ai.span.kind",
        "gen_ai.prompt",
        "gen_ai.completion",
        "gen_ai.prompt.0.role",
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.role",
        "gen_ai.completion.0.content",
        # OpenInference
        "openinference.span.kind",
        "input.value",
        "output.value",
        "llm.model_name",
        "llm.system",
        # OpenLLMetry
        "traceloop.span.kind",
        "traceloop.workflow.name",
        "traceloop.entity.name",
        "llm.request.type",
        # Vercel AI SDK
        "ai.operationId",
        "ai.model.id",
        "ai.toolCall.name",
        # the others, in alphabetical order
        "agento11y.framework.run_id",
        "agento11y.framework.name",
        "agento11y.generation.id",
        "agento11y.sdk.name",
        "agent_name",
        "agentops.span.kind",
        "braintrust.span_attributes",
        "braintrust.input_json",
        "braintrust.output_json",
        "confident.span.type",
        "final_result",
        "haystack.agent.input",
        "haystack.agent.step.llm.input",
        "haystack.agent.step.tool.input",
        "haystack.component.name",
        "haystack.tool.name",
        "honeyhive_event_type",
        "humanloop.file.path",
        "lilypad.type",
        "mirascope.type",
        "gcp.vertex.agent.invocation_id",
        "gcp.vertex.agent.event_id",
        "genkit:type",
        "genkit:metadata:subtype",
        "genkit:input",
        "genkit:output",
        "langfuse.observation.type",
        "langfuse.observation.input",
        "langfuse.observation.output",
        "langfuse.trace.input",
        "langfuse.trace.output",
        "langfuse.trace.name",
        "langsmith.span.kind",
        "langsmith.trace.name",
        "langsmith.trace.id",
        "litellm.call_id",
        "llm.anthropic.messages",
        "llm.openai.messages",
        "logfire.json_schema",
        "lmnr.span.path",
        "lmnr.span.type",
        "mastra.span.type",
        "mastra.traceId",
        "mlflow.spanType",
        "mlflow.spanInputs",
        "mlflow.spanOutputs",
        "mlflow.traceRequestId",
        "openai.api.type",
        "agent.messages",
        "tool.call.id",
        "voltagent.operation_id",
        "pydantic_ai.all_messages",
        "recipient_agent_type",
        "sender_agent_type",
        "request_data",
        "response_data",
        "span_type",
        "spring.ai.kind",
        "tool_arguments",
        "tool_response",
        "all_messages_events",
        "model_request_parameters",
        "otel_evals.goal",
        "otel_evals.session.id",
    )
)
"""A span with one of these is kept: keys that each vocabulary always puts on its spans, and the session keys."""

MARKER_PREFIXES: tuple[str, ...] = (
    "gen_ai.",
    "llm.",
    "openinference.",
    "traceloop.",
    "langfuse.",
    "langsmith.",
    "mlflow.",
    "ai.",
    "mastra.",
    "pydantic_ai.",
    "agento11y.",
    "litellm.",
    "gcp.vertex.agent.",
    "genkit:",
)
"""For sources that can afford to look at every key (see `keeps`)."""

_LOG_PREFIXES = ("gen_ai.", "gen_ai_", "traceloop.", "llm.", "ai.", "langfuse.")
_LOG_NAMES = frozenset(("event.name", "event_name"))
_CONTENT_KEYS = frozenset(
    ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.operation.name")
)


def keeps(attributes: Mapping[str, Any]) -> bool:
    """Whether a span with these attributes can say anything about an agent session."""
    return not MARKER_KEYS.isdisjoint(attributes) or _any_prefix(attributes)


def is_genai_log(event_name: str | None, attributes: Mapping[str, Any] | None) -> bool:
    """Whether a log record is a GenAI event: by its name, wherever that stands, or by the content it carries."""
    if event_name and event_name.startswith(_LOG_PREFIXES):
        return True
    if not attributes:
        return False
    for key in _LOG_NAMES:
        name = attributes.get(key)
        if isinstance(name, str) and name.startswith(_LOG_PREFIXES):
            return True
    return not _CONTENT_KEYS.isdisjoint(attributes)


def _any_prefix(keys: Iterable[str]) -> bool:
    return any(isinstance(key, str) and key.startswith(MARKER_PREFIXES) for key in keys)
