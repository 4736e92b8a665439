"""Spring AI's observations: tools and clients; what is said is in its logs only."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="spring_ai",
    kinds={
        "spring.ai.kind": {
            "tool_call": "tool",
            "chat_client": "chain",
            "advisor": "chain",
            "vector_store": "other",
        }
    },
    tool_name=("spring.ai.tool.definition.name",),
    tool_arguments=("spring.ai.tool.call.arguments",),
    tool_result=("spring.ai.tool.call.result",),
)
