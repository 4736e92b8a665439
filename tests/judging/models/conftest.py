"""What every model test needs: a question with secrets in it, and a watch on everything that could leak them."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from otel_evals.judging.models.ladder import forget_lessons
from otel_evals.judging.models.protocol import ChatRequest, ModelError
from otel_evals.sessions.model import Session

API_KEY = "sk-KEY-SECRET-0123456789"
PROMPT_SECRET = "PROMPT-SECRET"
REPLY_SECRET = "REPLY-SECRET"

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["failure_rate"],
    "properties": {
        "failure_rate": {
            "type": "object",
            "additionalProperties": False,
            "required": ["reasoning", "label", "confidence"],
            "properties": {
                "reasoning": {"type": "string"},
                "label": {"type": "string", "enum": ["honest_fallback", "stall", "hallucination"]},
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            },
        }
    },
}


def question(**changes: Any) -> ChatRequest:
    """A request to a judge; its prompt contains `PROMPT_SECRET`."""
    fields: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": "You judge conversations."},
            {"role": "user", "content": f"The transcript says {PROMPT_SECRET}."},
        ],
        "schema": SCHEMA,
        "schema_name": "evaluation",
        "max_tokens": 500,
        "timeout_s": 10.0,
        "session": Session(session_id="s", session_key="session.id"),
        "evaluators": ("failure_rate",),
    }
    return ChatRequest(**{**fields, **changes})


@pytest.fixture(autouse=True)
def _fresh_ladders() -> Iterator[None]:
    forget_lessons()
    yield
    forget_lessons()


@pytest.fixture
def assert_nothing_leaked(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Call it at the end: no secret in logs at any level, on the terminal, or anywhere in the exception."""
    caplog.set_level(logging.DEBUG)

    def check(error: ModelError | None = None) -> None:
        places = [record.getMessage() + str(record.exc_info) for record in caplog.records]
        places += capfd.readouterr()
        if error is not None:
            assert error.__context__ is None
            assert error.__cause__ is None
            places += [repr(error), *traceback.format_exception(type(error), error, error.__traceback__)]
        for secret in (API_KEY, PROMPT_SECRET, REPLY_SECRET):
            assert not [place for place in places if secret in place]

    return check
