"""From a provider's error to its name: which kind it is, whether it may pass, and which feature it rejects.

Providers' texts are looked at here and nowhere else; none of them travels further.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from otel_evals.judging.models.protocol import ModelError

__all__ = ["Failure", "Rejected", "from_error_text", "from_status", "retry_after_seconds"]

Rejected: TypeAlias = Literal["format", "temperature", "token_limit", "unnamed"]
"""The part of a request that the provider does not support; `unnamed`: it does not say which."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that gave no reply."""

    error_type: str
    """One of `ModelError.error_type`."""
    retryable: bool = False
    retry_after_s: float | None = None
    rejected: Rejected | None = None

    def to_error(self, calls: int) -> ModelError:
        """The exception for callers, after this number of calls."""
        return ModelError(self.error_type, retryable=self.retryable, retry_after_s=self.retry_after_s, calls=calls)


_FEATURE_STATUSES = frozenset({400, 404, 405, 415, 422, 501})
"""With these, servers refuse a feature of the request; OpenRouter uses 404, some local servers 501."""

_BY_STATUS: dict[int, Failure] = {
    401: Failure("auth"),
    402: Failure("quota"),
    403: Failure("auth"),
    404: Failure("not_found"),
    408: Failure("timeout", retryable=True),
    413: Failure("context_length"),
    429: Failure("rate_limited", retryable=True),
    500: Failure("server_error", retryable=True),
    502: Failure("unavailable", retryable=True),
    503: Failure("unavailable", retryable=True),
    504: Failure("unavailable", retryable=True),
    529: Failure("unavailable", retryable=True),
}

_QUOTA = ("insufficient_quota", "exceeded your current quota", "credit balance", "billing", "out of credits")
_CONTEXT = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "string_above_max_length",
)
_FILTER = ("content_filter", "content_policy", "content management policy", "content policy", "responsibleai")
_AUTH = ("invalid_api_key", "api key not valid", "incorrect api key", "invalid x-api-key")
_NOT_FOUND = (
    "model_not_found",
    "model not found",
    "no such model",
    "unknown model",
    "llm provider not provided",  # litellm
)
_FORMAT = (
    "response_format",
    "json_schema",
    "json_object",
    "json mode",
    "structured output",
    "schema",
    "tool",
    "function call",
    "grammar",
    "requested parameters",
)


def from_status(status: int, body: Any, *, retry_after_s: float | None = None) -> Failure:
    """The failure that an HTTP error reply means.

    Args:
        status: HTTP status, 300 to 599.
        body: parsed JSON of the reply, or None.
        retry_after_s: what the headers say, see `retry_after_seconds`.
    """
    text = " ".join(_error_words(body)).lower()
    if status == 429 and _any(_QUOTA, text):
        return Failure("quota")
    if status in _FEATURE_STATUSES and (named := from_error_text(text)) is not None:
        return named
    known = _BY_STATUS.get(status)
    if known is None and status >= 500:
        known = Failure("server_error", retryable=True)
    if known is None:
        return Failure("bad_request", rejected="unnamed" if status in _FEATURE_STATUSES else None)
    return Failure(known.error_type, known.retryable, retry_after_s if known.retryable else None, known.rejected)


def from_error_text(text: str) -> Failure | None:
    """What a refused request's error text (lower case) says; None: nothing that is known."""
    if _any(_CONTEXT, text):
        return Failure("context_length")
    if _any(_FILTER, text):
        return Failure("content_filter")
    if _any(_QUOTA, text):
        return Failure("quota")
    if _any(_AUTH, text):
        return Failure("auth")
    if _any(_NOT_FOUND, text):
        return Failure("not_found")
    if "temperature" in text:
        return Failure("bad_request", rejected="temperature")
    if "max_tokens" in text or "max_completion_tokens" in text:
        return Failure("bad_request", rejected="token_limit")
    if _any(_FORMAT, text):
        return Failure("bad_request", rejected="format")
    return None


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: `retry-after-ms`, or `retry-after` (seconds or HTTP date, RFC 9110 section 10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else math.nan
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


def _error_words(body: Any) -> Iterator[str]:
    """Message, code, type and parameter of an error body; never what it quotes of the request.

    OpenAI: `error.{message,code,type,param}`; FastAPI servers: `detail[].{loc,msg}`; others: a text.
    """
    if not isinstance(body, Mapping):
        return
    error = body.get("error", body)
    if isinstance(error, str):
        yield error
    elif isinstance(error, Mapping):
        for key in ("message", "code", "type", "param"):
            if error.get(key) is not None:
                yield str(error[key])
    detail = body.get("detail")
    if isinstance(detail, str):
        yield detail
    elif isinstance(detail, list):
        for item in detail:
            if isinstance(item, Mapping):
                yield " ".join(str(part) for part in item.get("loc") or ())
                yield str(item.get("msg", ""))
