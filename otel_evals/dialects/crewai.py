"""CrewAI's own attributes, as OpenLLMetry exports them: the task holds the person's words, the crew the answer."""

from __future__ import annotations

from otel_evals.dialects.vocabulary import Vocabulary

__all__ = ["VOCABULARY"]

VOCABULARY = Vocabulary(
    name="crewai",
    blob_in=("crewai.crew.inputs", "crewai.task.description"),
    blob_out=("crewai.crew.result",),
    agent=("crewai.agent.role",),
)
