"""The ladder of answer formats: JSON schema, forced tool, JSON object, plain text.

What a model behind an endpoint does not support (a format, a parameter) is learned from its first rejection
and remembered for the process, so that later calls cost one request.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from otel_evals.judging.models.failures import Failure
from otel_evals.judging.models.protocol import ChatReply, ChatRequest

__all__ = ["FORMATS", "AnswerFormat", "AnswerLadder", "Lessons", "Send", "forget_lessons"]

AnswerFormat: TypeAlias = Literal["json_schema", "tool", "json_object", "plain"]

FORMATS: tuple[AnswerFormat, ...] = ("json_schema", "tool", "json_object", "plain")
"""From the strictest to what every model can do."""

MAX_CALLS = 6
"""Requests for one answer: three steps down and both parameters dropped."""

TokenParameter: TypeAlias = Literal["max_tokens", "max_completion_tokens"]

Send: TypeAlias = Callable[[dict[str, Any], float], Awaitable[Mapping[str, Any] | Failure]]
"""One request: (body, seconds) → the chat completion as OpenAI shapes it, or how it failed."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """What is known of one model behind one endpoint."""

    rung: int = 0
    """Index into `FORMATS`."""
    proven: bool = False
    """An answer in this format has come back: a rejection without a reason is then not about the format."""
    temperature: bool = True
    """False: the parameter is refused."""
    token_parameter: TokenParameter | None = "max_tokens"
    """None: both names are refused."""
    swapped: bool = False
    """The other name of the token limit was tried already."""
    doubts: int = 3
    """How often a rejection without a reason may still send a call down the ladder."""

    @property
    def format(self) -> AnswerFormat:
        return FORMATS[self.rung]

    def after(self, failure: Failure) -> Lessons | None:
        """What to try next; None: nothing is left that could help."""
        if failure.rejected == "temperature" and self.temperature:
            return dataclasses.replace(self, temperature=False)
        if failure.rejected == "token_limit" and self.token_parameter is not None:
            return dataclasses.replace(self, token_parameter=self._other_token_parameter(), swapped=True)
        lower = self.rung + 1 < len(FORMATS)
        if lower and (failure.rejected == "format" or (failure.rejected == "unnamed" and self._may_doubt())):
            return dataclasses.replace(self, rung=self.rung + 1, proven=False)
        return None

    def _other_token_parameter(self) -> TokenParameter | None:
        if self.swapped:
            return None
        return "max_completion_tokens" if self.token_parameter == "max_tokens" else "max_tokens"

    def _may_doubt(self) -> bool:
        return not self.proven and self.doubts > 0


# Process-wide on purpose: several judges of one process may share a model.
_lessons: dict[tuple[str, str], Lessons] = {}


def forget_lessons() -> None:
    """Start from the top of the ladder again, for every model."""
    _lessons.clear()


class AnswerLadder:
    """Asks one model behind one endpoint in the strictest format that it is known to support."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        token_parameter: TokenParameter = "max_tokens",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key = (endpoint, model)
        self._model = model
        self._start = Lessons(token_parameter=token_parameter)
        self._clock = clock

    @property
    def lessons(self) -> Lessons:
        """What is known of the model so far."""
        return _lessons.get(self._key, self._start)

    async def ask(self, request: ChatRequest, send: Send) -> ChatReply:
        """One answer; a rejected format or parameter is the only reason to send twice.

        Returns:
            The reply, with the provider's own figure of the cost where it gave one.

        Raises:
            ModelError: the last failure, with the number of calls made.
        """
        deadline = self._clock() + request.timeout_s
        trial: Lessons | None = self.lessons
        calls, doubted = 0, False
        failure = Failure("timeout", retryable=True)
        while trial is not None and calls < MAX_CALLS and (calls == 0 or self._clock() < deadline):
            outcome = await send(request_body(self._model, request, trial), deadline - self._clock())
            calls += 1
            if not isinstance(outcome, Failure):
                return self._accepted(outcome, trial, calls)
            failure = outcome
            doubted = doubted or failure.rejected == "unnamed"
            trial = trial.after(failure)
        if doubted:
            self._remember(dataclasses.replace(self.lessons, doubts=self.lessons.doubts - 1))
        raise failure.to_error(calls)

    def _accepted(self, completion: Mapping[str, Any], trial: Lessons, calls: int) -> ChatReply:
        reply = read_completion(completion, calls)
        if reply is None:
            raise Failure("bad_response", retryable=True).to_error(calls)
        if "{" in reply.text:
            trial = dataclasses.replace(trial, proven=True)
        elif _ignores_format(reply, trial):
            trial = dataclasses.replace(trial, rung=trial.rung + 1)
        self._remember(trial)
        return reply

    def _remember(self, lessons: Lessons) -> None:
        # Calls run concurrently: a later, lower step is never undone by one that began before it.
        known = self.lessons
        if lessons != known and lessons.rung >= known.rung:
            _lessons[self._key] = lessons


def _ignores_format(reply: ChatReply, trial: Lessons) -> bool:
    """Prose where an object was asked for, from a model that has never given one in this format."""
    complete = bool(reply.text) and reply.finish_reason in (None, "stop") and reply.refusal is None
    return complete and not trial.proven and trial.rung + 1 < len(FORMATS)


def request_body(model: str, request: ChatRequest, lessons: Lessons) -> dict[str, Any]:
    """The JSON body of one chat completion request."""
    body: dict[str, Any] = {"model": model, "messages": [dict(message) for message in request.messages]}
    if lessons.temperature:
        body["temperature"] = 0
    if lessons.token_parameter is not None:
        body[lessons.token_parameter] = request.max_tokens
    schema = dict(request.schema)
    if lessons.format == "json_schema":
        named = {"name": request.schema_name, "schema": schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif lessons.format == "tool":
        function = {"name": request.schema_name, "description": "Hand in the answer.", "parameters": schema}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": request.schema_name}}
    else:
        body["messages"] = _with_schema(body["messages"], schema)
        if lessons.format == "json_object":
            body["response_format"] = {"type": "json_object"}
    return body


def _with_schema(messages: list[dict[str, Any]], schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The schema goes last, so that the rubrics before it stay a prefix that the provider can cache."""
    order = (
        "Reply with one JSON object that satisfies this JSON schema, and with nothing else:\n"
        f"{json.dumps(schema, ensure_ascii=False)}"
    )
    if messages and messages[-1]["role"] == "user":
        last = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{order}"}
        return [*messages[:-1], last]
    return [*messages, {"role": "user", "content": order}]


_FINISH_REASONS = {
    "tool_calls": "stop",
    "function_call": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
    "safety": "content_filter",
}


def read_completion(completion: Mapping[str, Any], calls: int) -> ChatReply | None:
    """The reply in a chat completion; None: it is not one."""
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        return None
    reason = str(choice["finish_reason"]).lower() if choice.get("finish_reason") else None
    refusal = message.get("refusal")
    usage = completion.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return ChatReply(
        text=_arguments(message) or _content(message.get("content")),
        finish_reason=_FINISH_REASONS.get(reason, reason) if reason else None,
        refusal=refusal if isinstance(refusal, str) and refusal else None,
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_cached_tokens(usage),
        cost_usd=_amount(usage.get("cost")),
        calls=calls,
    )


def _arguments(message: Mapping[str, Any]) -> str:
    """The arguments of the forced tool, as text."""
    tool_calls = message.get("tool_calls")
    if not isinstance(tool_calls, list) or not tool_calls or not isinstance(tool_calls[0], Mapping):
        return ""
    function = tool_calls[0].get("function")
    arguments: Any = function.get("arguments") if isinstance(function, Mapping) else None
    if isinstance(arguments, Mapping):  # Ollama sends an object where OpenAI sends text
        return json.dumps(arguments, ensure_ascii=False)
    return arguments if isinstance(arguments, str) else ""


def _content(content: Any) -> str:
    """Text of a message, without the thinking that some open models put before the answer."""
    text = content if isinstance(content, str) else ""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        text = "".join(part for part in parts if isinstance(part, str))
    if text.lstrip().startswith("<think>") and "</think>" in text:
        text = text.split("</think>", 1)[1]
    return text.strip()


def _cached_tokens(usage: Mapping[str, Any]) -> int:
    details = usage.get("prompt_tokens_details")
    if isinstance(details, Mapping) and (cached := _count(details.get("cached_tokens"))):
        return cached
    return _count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _amount(value: Any) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and value >= 0 else None
