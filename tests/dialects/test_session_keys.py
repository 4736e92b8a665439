"""What names a conversation, and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from otel_evals.dialects import view
from otel_evals.dialects.shapes import Shapes


def session_ids(attributes: Mapping[str, Any], configured: tuple[str, ...] = ()) -> tuple[tuple[str, str], ...]:
    return view.session_ids(attributes, Shapes((), configured).of(tuple(attributes)))


@pytest.mark.parametrize(
    "key",
    [
        "gen_ai.conversation.id", "session.id", "langfuse.session.id", "traceloop.association.properties.session_id",
        "traceloop.association.properties.chat_session_id", "ai.telemetry.metadata.sessionId",
        "ai.settings.context.sessionId", "metadata.sessionId", "langsmith.metadata.session_id",
        "langsmith.metadata.thread_id", "mastra.metadata.sessionId", "mastra.metadata.threadId", "threadId",
        "gcp.vertex.agent.session_id", "langfuse.observation.metadata.langfuse_session_id",
        "agento11y.framework.thread_id", "app.conversationId",
    ],
)  # fmt: skip
def test_known_and_alike_attributes_name_the_session(key: str) -> None:
    assert session_ids({key: "conv-7"}) == ((key, "conv-7"),)


@pytest.mark.parametrize(
    "metadata", ['{"session_id": "conv-7"}', {"thread_id": "conv-7"}, '{"a": 1, "sessionId": "conv-7"}']
)
def test_an_id_inside_metadata_is_found(metadata: object) -> None:
    assert [value for _, value in session_ids({"metadata": metadata})] == ["conv-7"]


def test_a_quoted_id_loses_its_quotes() -> None:
    assert session_ids({"langfuse.observation.metadata.langfuse_session_id": '"conv-7"'})[0][1] == "conv-7"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "null",
        "default",
        "[Scrubbed due to 'session']",
        "resp_0a1b",
        "chatcmpl-9",
        "[REDACTED]",
        None,
        True,
        1.5,
        [],
    ],
)
def test_placeholders_and_ids_of_single_calls_are_refused(value: object) -> None:
    assert session_ids({"gen_ai.conversation.id": value}) == ()


@pytest.mark.parametrize(
    "key", ["langsmith.trace.session_name", "http.request.id", "gen_ai.response.id", "sessionizer"]
)
def test_other_attributes_name_no_session(key: str) -> None:
    assert session_ids({key: "conv-7"}) == ()


def test_configured_attributes_come_first_then_the_more_deliberate_ones() -> None:
    found = session_ids({"thread_id": "t", "session.id": "s", "shop.chat": "c"}, configured=("shop.chat",))
    assert [value for _, value in found] == ["c", "s", "t"]


def test_numbers_are_ids_too() -> None:
    assert session_ids({"session.id": 42}) == (("session.id", "42"),)
