"""Any object with `async chat_complete(messages, temperature) -> (text, cost)` and `get_model_name()` as a
judge.

This is the `CustomLLMClient` shape of eval-ai-library, so clients written for it work unchanged.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Sequence
from typing import Any, Protocol

from otel_evals.judging.models.protocol import ChatMessage, ChatReply, ChatRequest, ModelError
from otel_evals.suppression import internal_work

__all__ = ["CallableModel", "ChatClient"]


_TEMPERATURE = 0.0


class ChatClient(Protocol):
    """What is expected of the object."""

    async def chat_complete(self, messages: Sequence[dict[str, str]], temperature: float) -> tuple[str, float | None]:
        """The reply and its cost in USD, None if unknown."""
        ...

    def get_model_name(self) -> str: ...


class CallableModel:
    """A judge model over somebody's client. The answer format is described in words, as it cannot be enforced."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client
        self.name = str(client.get_model_name())

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One call. A client without `async` runs in a thread, so that it does not hold up the other judgings."""
        messages = [dict(message) for message in _with_schema(request)]
        try:
            with internal_work():  # the client may well be instrumented
                result = await _called(self._client.chat_complete, messages)
        except ModelError:
            raise
        except Exception as error:  # somebody's client may raise anything; its message may hold keys or prompts
            passing = isinstance(error, (OSError, asyncio.TimeoutError))
            raise ModelError("unavailable" if passing else "bad_response", retryable=passing) from None
        return _reply(result)

    async def close(self) -> None:
        """The client belongs to its maker."""


async def _called(function: Any, messages: list[dict[str, Any]]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(messages, _TEMPERATURE)
    result = await asyncio.to_thread(function, messages, _TEMPERATURE)
    return await result if inspect.isawaitable(result) else result


def _with_schema(request: ChatRequest) -> list[ChatMessage]:
    schema = json.dumps(request.schema, ensure_ascii=False, separators=(",", ":"))
    order = f"The JSON object has to satisfy this JSON schema: {schema}"
    *before, last = request.messages
    return [*before, {"role": last["role"], "content": f"{last['content']}\n{order}"}]


def _reply(result: Any) -> ChatReply:
    text, cost = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
    if not isinstance(text, str):
        raise ModelError("bad_response", retryable=False)
    if isinstance(cost, bool) or not isinstance(cost, (int, float)):
        cost = None
    return ChatReply(text=text, cost_usd=None if cost is None else float(cost))
