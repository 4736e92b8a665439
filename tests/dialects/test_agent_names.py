"""The agent's name: from its attribute, or else from the name of a span that calls itself an agent."""

from __future__ import annotations

import pytest

from otel_evals.dialects.reader import Reader
from otel_evals.spans.record import SpanRecord


def agent_of(name: str, **attributes: str) -> str | None:
    written = {key.replace("__", "."): value for key, value in attributes.items()}
    facts = Reader().read_span(SpanRecord(1, 2, None, name, 0, 1, written))
    assert facts is not None
    return facts.agent


@pytest.mark.parametrize(
    ("span_name", "agent"),
    [
        ("travel_agent", "travel_agent"),
        ("Travel agent.kickoff", "Travel agent"),
        ("Travel agent.Find me a flight.execute", "Travel agent"),
        ("agent_run [travel_agent]", "travel_agent"),
        ("invoke_agent travel-agent", "travel-agent"),
        ("invoke_agent", None),
        ("agent", None),
        ("", None),
        ("a" * 65, None),
        ("two\nlines", None),
    ],
)
def test_the_span_of_an_agent_names_it(span_name: str, agent: str | None) -> None:
    assert agent_of(span_name, openinference__span__kind="AGENT") == agent


def test_the_attribute_wins_over_the_span_name() -> None:
    assert agent_of("run", openinference__span__kind="AGENT", agent__name="booker") == "booker"


def test_spans_that_only_work_like_an_agent_do_not_name_one() -> None:
    assert agent_of("ai.generateText", ai__operationId="ai.generateText") is None
    assert agent_of("pipeline", openinference__span__kind="CHAIN") is None
