"""Haystack's own tracing: components and agent steps, each attribute named after its span."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="haystack",
    implies={
        "haystack.agent.step.llm.input": "model",
        "haystack.agent.step.tool.input": "tool",
        "haystack.tool.name": "tool",
        "haystack.agent.input": "agent",
        "haystack.component.name": "chain",
        "haystack.pipeline.input_data": "chain",
    },
    blob_in=(
        "haystack.agent.step.llm.input",
        "haystack.agent.input",
        "haystack.component.input",
        "haystack.pipeline.input_data",
    ),
    blob_out=(
        "haystack.agent.step.llm.output",
        "haystack.agent.output",
        "haystack.component.output",
        "haystack.pipeline.output_data",
    ),
    tool_name=("haystack.tool.name",),
    tool_arguments=("haystack.agent.step.tool.input",),
    tool_result=("haystack.agent.step.tool.output",),
)
