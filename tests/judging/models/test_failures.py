"""Providers' error replies, as they are worded in the wild, to names."""

from __future__ import annotations

import datetime
from email.utils import format_datetime
from typing import Any

import pytest

from otel_evals.judging.models.failures import Failure, from_status, retry_after_seconds


def openai(message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code, "param": param}}


NAMED = {
    "OpenAI, too long": (
        400,
        openai("This model's maximum context length is 128000 tokens.", "context_length_exceeded", "messages"),
        Failure("context_length"),
    ),
    "Anthropic, too long": (
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens"}},
        Failure("context_length"),
    ),
    "llama.cpp, too long": (
        400,
        {"error": {"code": 400, "message": "the request exceeds the available context size"}},
        Failure("context_length"),
    ),
    "too large a body": (413, None, Failure("context_length")),
    "Anthropic, no credit": (
        400,
        {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
        Failure("quota"),
    ),
    "OpenAI, no credit": (429, openai("You exceeded your current quota", "insufficient_quota"), Failure("quota")),
    "payment required": (402, None, Failure("quota")),
    "Gemini, wrong key": (400, openai("API key not valid. Please pass a valid API key."), Failure("auth")),
    "Azure, filtered": (
        400,
        openai("triggered Azure OpenAI's content management policy", "content_filter", "prompt"),
        Failure("content_filter"),
    ),
    "Ollama, unknown model": (404, {"error": "model 'x' not found"}, Failure("not_found")),
    "vLLM, unknown model": (
        404,
        {"object": "error", "message": "The model `x` does not exist.", "code": 404},
        Failure("not_found"),
    ),
    "Anthropic, overloaded": (
        529,
        {"error": {"type": "overloaded_error", "message": "Overloaded"}},
        Failure("unavailable", retryable=True),
    ),
    "Cloudflare, unreachable origin": (521, None, Failure("server_error", retryable=True)),
    "a page": (502, None, Failure("unavailable", retryable=True)),
    "redirect": (302, None, Failure("bad_request")),
}


@pytest.mark.parametrize("row", NAMED)
def test_an_error_reply_is_named(row: str) -> None:
    status, body, expected = NAMED[row]
    assert from_status(status, body) == expected


REJECTED = {
    "OpenAI, temperature": (400, openai("Unsupported value: 'temperature'", "unsupported_value", "temperature")),
    "OpenAI, token limit": (400, openai("Unsupported parameter: 'max_tokens'", "unsupported_parameter", "max_tokens")),
    "OpenAI, schema": (400, openai("Invalid schema for response_format 'evaluation'", None, "response_format")),
    "vLLM, tools": (400, {"message": '"auto" tool choice requires --enable-auto-tool-choice'}),
    "OpenRouter, tools": (404, openai("No endpoints found that support tool use.")),
    "OpenRouter, parameters": (404, openai("No endpoints found that can handle the requested parameters.")),
    "Mistral, schema": (422, {"detail": [{"loc": ["body", "response_format"], "msg": "extra fields not permitted"}]}),
    "DeepSeek, schema": (400, openai("This response_format type is unavailable now")),
    "LM Studio": (400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}),
    "not implemented": (501, {"error": "grammar is not supported"}),
    "no reason": (400, openai("Bad request")),
    "no body": (400, None),
}
WHAT = ["temperature", "token_limit", *["format"] * 8, "unnamed", "unnamed"]


@pytest.mark.parametrize(("row", "part"), zip(REJECTED, WHAT, strict=True))
def test_a_rejected_part_of_the_request_is_named(row: str, part: str) -> None:
    failure = from_status(*REJECTED[row])
    assert (failure.error_type, failure.rejected, failure.retryable) == ("bad_request", part, False)


def test_what_a_reply_quotes_of_the_request_does_not_decide() -> None:
    body = {"detail": [{"loc": ["body"], "msg": "invalid", "input": {"text": "insufficient_quota, temperature"}}]}
    assert from_status(422, body).rejected == "unnamed"


def test_a_wait_is_passed_on_only_where_waiting_helps() -> None:
    assert from_status(429, None, retry_after_s=5).retry_after_s == 5
    assert from_status(401, None, retry_after_s=5).retry_after_s is None


def in_seconds(seconds: float) -> str:
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return format_datetime(when, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": in_seconds(-60)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


def test_retry_after_as_a_date_counts_from_now() -> None:
    seconds = retry_after_seconds({"retry-after": in_seconds(90)})
    assert seconds is not None
    assert 85 < seconds <= 90
