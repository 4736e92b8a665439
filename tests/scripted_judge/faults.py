"""The faults that a provider can have, by name."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import format_datetime
from typing import Any

from tests.scripted_judge.answers import SPOILERS

__all__ = ["FAULTS", "Fault", "HttpError", "http_error"]

CONNECTION_FAULTS = frozenset({"hang", "dropped", "slow"})
REPLY_FAULTS = frozenset({"truncated", "empty", "refusal", "content_filter", *SPOILERS})
HTTP_FAULTS = frozenset(
    {
        "rate_limited",
        "quota",
        "auth",
        "forbidden",
        "not_found",
        "server_error",
        "html_502",
        "overloaded",
        "context_length",
        "content_filter_400",
        "schema_rejected",
        "tools_rejected",
        "json_object_rejected",
        "parameter_rejected",
        "not_json",
        "not_a_completion",
    }
)
FAULTS = CONNECTION_FAULTS | REPLY_FAULTS | HTTP_FAULTS


@dataclass
class Fault:
    """A fault and the calls that it strikes."""

    kind: str
    times: int | None = 1
    """Number of calls; None: every one."""
    probability: float = 1.0
    seed: int = 0
    model: str | None = None
    when: Callable[[dict[str, Any]], bool] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise ValueError(f"{self.kind!r} is no fault: choose one of {', '.join(sorted(FAULTS))}")
        self._random = random.Random(self.seed)

    def strikes(self, body: dict[str, Any]) -> bool:
        """Whether this call fails; a hit uses up one of `times`."""
        if self.times == 0 or (self.model is not None and body.get("model") != self.model):
            return False
        if not _provokes(self.kind, self.options, body) or (self.when is not None and not self.when(body)):
            return False
        if self._random.random() >= self.probability:
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass(frozen=True)
class HttpError:
    status: int
    body: Any
    """A JSON object, or text."""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


def _provokes(kind: str, options: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Rejections of a feature strike only requests that use it."""
    response_format = (body.get("response_format") or {}).get("type")
    if kind == "schema_rejected":
        return response_format == "json_schema"
    if kind == "json_object_rejected":
        return response_format == "json_object"
    if kind == "tools_rejected":
        return bool(body.get("tools"))
    if kind == "parameter_rejected":
        return options.get("parameter", "temperature") in body
    return True


def http_error(kind: str, options: Mapping[str, Any], body: Mapping[str, Any]) -> HttpError:
    """The error reply of an HTTP-level fault, in the words of the OpenAI API."""
    if kind == "rate_limited":
        return HttpError(429, _error("Rate limit reached", "requests", "rate_limit_exceeded"), _retry_after(options))
    if kind == "parameter_rejected":
        return HttpError(400, _parameter_error(options))
    if kind == "html_502":
        page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
        return HttpError(502, page, content_type="text/html")
    if kind == "not_json":
        return HttpError(200, "<html>Welcome to the hotel Wi-Fi</html>", content_type="text/html")
    if kind == "overloaded":
        return HttpError(503, _error("The engine is overloaded", "server_error", None), _retry_after(options))
    status, payload = _ERRORS[kind]
    # Providers quote the request back; a client must not pass that on.
    quoted = str((body.get("messages") or [{}])[-1].get("content"))[:200]
    return HttpError(status, {**payload, "echo": quoted})


def _error(message: str, type_: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}


_INVALID = "invalid_request_error"
_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "quota": (
        429,
        _error(
            "You exceeded your current quota, please check your plan",
            "insufficient_quota",
            "insufficient_quota",
        ),
    ),
    "auth": (401, _error("Incorrect API key provided: sk-secr***key", _INVALID, "invalid_api_key")),
    "forbidden": (403, _error("Country not supported", "request_forbidden", "unsupported_country")),
    "not_found": (404, _error("The model does not exist", _INVALID, "model_not_found")),
    "server_error": (500, _error("The server had an error", "server_error", None)),
    "context_length": (
        400,
        _error(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            _INVALID,
            "context_length_exceeded",
            "messages",
        ),
    ),
    "content_filter_400": (
        400,
        _error(
            "The response was filtered due to the content management policy",
            _INVALID,
            "content_filter",
            "prompt",
        ),
    ),
    "schema_rejected": (
        400,
        _error(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            _INVALID,
            None,
            "response_format",
        ),
    ),
    "json_object_rejected": (
        400,
        _error("'response_format' is not supported with this model.", _INVALID, None, "response_format"),
    ),
    "tools_rejected": (
        400,
        _error(
            '"auto" tool choice requires --enable-auto-tool-choice to be set',
            "BadRequestError",
            "400",
            "tools",
        ),
    ),
    "not_a_completion": (200, {"object": "list", "data": []}),
}


def _parameter_error(options: Mapping[str, Any]) -> dict[str, Any]:
    parameter = options.get("parameter", "temperature")
    if parameter == "max_tokens":
        text = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return _error(text, _INVALID, "unsupported_parameter", parameter)
    text = (
        f"Unsupported value: '{parameter}' does not support 0 with this model. Only the default (1) value is supported."
    )
    return _error(text, _INVALID, "unsupported_value", parameter if options.get("named", True) else None)


def _retry_after(options: Mapping[str, Any]) -> dict[str, str]:
    seconds = options.get("retry_after")
    if seconds is None:
        return {}
    if options.get("as_date"):
        when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
        return {"retry-after": format_datetime(when, usegmt=True)}
    return {"retry-after": str(seconds)}
