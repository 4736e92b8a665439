"""The spans of a played plan, as an OpenTelemetry exporter sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from otel_evals.simulation.model import PlannedSession
from otel_evals.simulation.planner import plan_sessions
from otel_evals.simulation.player import play

SPEED = 100.0


@pytest.fixture(scope="module")
def plan() -> list[PlannedSession]:
    return plan_sessions(60, seed=7)


@pytest.fixture(scope="module")
def spans(plan: list[PlannedSession]) -> Sequence[ReadableSpan]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    play(plan, provider.get_tracer("test"), SPEED, wait_until=lambda real_s: None)
    return exporter.get_finished_spans()


def named(spans: Sequence[ReadableSpan], operation: str) -> list[ReadableSpan]:
    return [span for span in spans if attributes(span)["gen_ai.operation.name"] == operation]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_each_turn_is_one_trace_with_one_root(plan: list[PlannedSession], spans: Sequence[ReadableSpan]) -> None:
    roots = [span for span in spans if span.parent is None]
    assert len(roots) == sum(len(session.turns) for session in plan)
    assert len({span.context.trace_id for span in roots}) == len(roots)
    assert roots == named(spans, "invoke_agent")


def test_every_span_carries_the_session_and_the_agent(
    plan: list[PlannedSession], spans: Sequence[ReadableSpan]
) -> None:
    agents = {session.session_id: session.agent for session in plan}
    for span in spans:
        found = attributes(span)
        assert agents[found["gen_ai.conversation.id"]] == found["gen_ai.agent.name"]


def test_children_lie_within_their_root(spans: Sequence[ReadableSpan]) -> None:
    roots = {span.context.span_id: span for span in spans if span.parent is None}
    for span in spans:
        if span.parent is not None:
            root = roots[span.parent.span_id]
            assert root.start_time <= span.start_time <= span.end_time <= root.end_time


def test_a_failed_tool_has_error_status_type_and_exception(
    plan: list[PlannedSession], spans: Sequence[ReadableSpan]
) -> None:
    failed = [span for span in named(spans, "execute_tool") if span.status.status_code is StatusCode.ERROR]
    planned = [c for s in plan for t in s.turns for c in t.calls if c.error_type]
    assert len(failed) == len(planned) > 0
    for span in failed:
        assert attributes(span)["error.type"] == span.events[0].attributes["exception.type"]
        assert "gen_ai.tool.call.result" not in attributes(span)


def test_a_model_call_repeats_the_history(plan: list[PlannedSession], spans: Sequence[ReadableSpan]) -> None:
    session = max(plan, key=lambda each: len(each.turns))
    chats = [s for s in named(spans, "chat") if attributes(s)["gen_ai.conversation.id"] == session.session_id]
    last = json.loads(attributes(chats[-1])["gen_ai.input.messages"])
    asked = [part["content"] for message in last if message["role"] == "user" for part in message["parts"]]
    assert asked == [turn.user for turn in session.turns]


def test_no_span_tells_the_truth_about_the_session(plan: list[PlannedSession], spans: Sequence[ReadableSpan]) -> None:
    told = {key for span in spans for key in attributes(span)}
    assert not [key for key in told if "fault" in key or "behaviour" in key]


def test_turns_are_played_in_the_order_of_their_ends(plan: list[PlannedSession]) -> None:
    waited: list[float] = []
    play(plan, TracerProvider().get_tracer("test"), SPEED, wait_until=waited.append)
    assert waited == sorted(waited)
    assert len(waited) == sum(len(session.turns) for session in plan)


def test_every_turn_is_reported(plan: list[PlannedSession]) -> None:
    played: list[tuple[str, int]] = []
    play(
        plan,
        TracerProvider().get_tracer("test"),
        SPEED,
        wait_until=lambda real_s: None,
        on_turn=lambda session, index: played.append((session.session_id, index)),
    )
    assert sorted(played) == sorted((s.session_id, index) for s in plan for index in range(len(s.turns)))
