"""What a judge model is: one coroutine from a request to a reply, errors by name.

Models make one attempt per call. Attempts, deadlines and concurrency are decided in one place above them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypedDict

from otel_evals.sessions.model import Session

__all__ = ["ChatMessage", "ChatReply", "ChatRequest", "JudgeModel", "ModelError"]


class ChatMessage(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a judge."""

    messages: Sequence[ChatMessage]
    schema: Mapping[str, Any]
    """JSON schema of the answer; every property required, no further ones allowed."""
    schema_name: str
    max_tokens: int
    timeout_s: float
    session: Session
    """The session in question, for models that read it instead of the messages (`rules`)."""
    evaluators: tuple[str, ...]
    """Names of the evaluators asked, in schema order."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The model's answer as text, and what it took."""

    text: str
    finish_reason: str | None = None
    """`stop`, `length`, `content_filter`, … normalised to OpenAI's words; None: not reported."""
    refusal: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    """None: unknown; never 0 for unknown."""
    calls: int = 1
    """HTTP calls made, including those refused for an unsupported parameter or answer format."""


class ModelError(Exception):
    """A call failed. The message is safe to log: no key, prompt or raw reply is in it."""

    def __init__(self, error_type: str, *, retryable: bool, retry_after_s: float | None = None, calls: int = 1) -> None:
        super().__init__(error_type)
        self.error_type = error_type
        """Low cardinality: `rate_limited`, `quota`, `auth`, `not_found`, `timeout`, `unavailable`, `refused`,
        `server_error`, `context_length`, `content_filter`, `bad_request`, `bad_response`."""
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.calls = calls


class JudgeModel(Protocol):
    """One judge model."""

    @property
    def name(self) -> str:
        """As it appears in `otel_evals.judge.model`."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One attempt.

        Raises:
            ModelError: always this type, whatever the client library raised.
        """
        ...

    async def close(self) -> None: ...
