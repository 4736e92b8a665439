"""Mastra's attributes beside the GenAI conventions its exporter speaks."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="mastra",
    kinds={
        "mastra.span.type": {
            "agent_run": "agent",
            "workflow_run": "chain",
            "workflow_step": "chain",
            "model_generation": "model",
            "llm_generation": "model",
            "model_step": "chain",
            "model_chunk": "other",
            "llm_chunk": "other",
            "tool_call": "tool",
            "mcp_tool_call": "tool",
            "generic": "chain",
        }
    },
    blob_in=("mastra.agent_run.input", "mastra.input"),
    blob_out=("mastra.agent_run.output", "mastra.output"),
    tool_arguments=("mastra.tool_call.input", "mastra.mcp_tool_call.input"),
    tool_result=("mastra.tool_call.output", "mastra.mcp_tool_call.output"),
    user_id=("mastra.metadata.userId", "mastra.metadata.user_id"),
)
