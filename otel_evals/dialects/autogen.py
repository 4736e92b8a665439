"""AutoGen's runtime spans: the messages that agents sent each other, as JSON in `message`."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="autogen",
    implies={"recipient_agent_type": "chain", "sender_agent_type": "chain"},
    blob_in=("message",),
)
