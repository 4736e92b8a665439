"""The OpenAI-compatible model against a real server that misbehaves."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from otel_evals.judging.models.protocol import ChatReply, ModelError
from otel_evals.suppression import is_internal
from tests.judging.models.conftest import API_KEY, PROMPT_SECRET, REPLY_SECRET, question
from tests.scripted_judge import ScriptedJudge, say

Leaked = Callable[..., None]


@pytest.fixture
async def model(scripted_judge: ScriptedJudge) -> AsyncIterator[OpenAICompatibleModel]:
    scripted_judge.answer(reasoning=REPLY_SECRET)
    judge = OpenAICompatibleModel("judge", scripted_judge.base_url, API_KEY)
    yield judge
    await judge.close()


async def failing(model: OpenAICompatibleModel, **changes: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.complete(question(**changes))
    return caught.value


# A good answer


async def test_an_answer_satisfies_the_schema(model: OpenAICompatibleModel) -> None:
    reply = await model.complete(question())
    assert json.loads(reply.text)["failure_rate"]["label"] == "honest_fallback"
    assert (reply.finish_reason, reply.refusal, reply.calls) == ("stop", None, 1)


async def test_the_request_carries_key_schema_and_limits(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    await model.complete(question())
    request = scripted_judge.requests[0]
    assert request.headers["authorization"] == f"Bearer {API_KEY}"
    assert request.body["response_format"]["json_schema"]["strict"] is True
    assert (request.body["temperature"], request.body["max_tokens"]) == (0, 500)


async def test_no_key_sends_no_authorisation(scripted_judge: ScriptedJudge) -> None:
    model = OpenAICompatibleModel("judge", scripted_judge.base_url)
    await model.complete(question())
    await model.close()
    assert "authorization" not in scripted_judge.requests[0].headers


async def test_tokens_are_reported_with_the_cached_part(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.cached_tokens = 7
    reply = await model.complete(question())
    assert reply.input_tokens > 7
    assert reply.output_tokens > 0
    assert reply.cached_tokens == 7


async def test_the_cost_is_unknown_without_a_price(model: OpenAICompatibleModel) -> None:
    assert (await model.complete(question())).cost_usd is None


async def test_the_cost_follows_the_configured_price(scripted_judge: ScriptedJudge) -> None:
    model = OpenAICompatibleModel("judge", scripted_judge.base_url, API_KEY, input_price=1.0, output_price=10.0)
    reply = await model.complete(question())
    await model.close()
    assert reply.cost_usd == pytest.approx((reply.input_tokens + 10 * reply.output_tokens) / 1e6)


async def test_lone_surrogates_in_the_transcript_can_be_sent(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    await model.complete(question(messages=[{"role": "user", "content": "half an emoji \ud83d"}]))
    assert scripted_judge.requests[0].body["messages"][0]["content"].endswith("\ud83d")


def test_a_base_url_without_a_host_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="give an http or https URL"):
        OpenAICompatibleModel("judge", "localhost:8000")


@pytest.mark.parametrize(
    ("base_url", "called"),
    [
        ("http://host/v1", "http://host/v1/chat/completions"),
        ("http://host/v1/", "http://host/v1/chat/completions"),
        ("http://host/v1/chat/completions", "http://host/v1/chat/completions"),
        ("https://host/openai?api-version=1", "https://host/openai/chat/completions?api-version=1"),
    ],
)
def test_the_endpoint_follows_from_the_base_url(base_url: str, called: str) -> None:
    assert OpenAICompatibleModel("judge", base_url)._url == called


# Failures by name: each is one call, and nothing of key, prompt or reply comes out

FAILURES = [
    ("rate_limited", {}, "rate_limited", True),
    ("quota", {}, "quota", False),
    ("auth", {}, "auth", False),
    ("forbidden", {}, "auth", False),
    ("not_found", {}, "not_found", False),
    ("server_error", {}, "server_error", True),
    ("html_502", {}, "unavailable", True),
    ("overloaded", {}, "unavailable", True),
    ("context_length", {}, "context_length", False),
    ("content_filter_400", {}, "content_filter", False),
    ("not_json", {}, "bad_response", True),
    ("not_a_completion", {}, "bad_response", True),
    ("dropped", {}, "unavailable", True),
]


@pytest.mark.parametrize(("fault", "options", "error_type", "retryable"), FAILURES, ids=[f[0] for f in FAILURES])
async def test_a_failed_call_is_named(
    model: OpenAICompatibleModel,
    scripted_judge: ScriptedJudge,
    assert_nothing_leaked: Leaked,
    fault: str,
    options: dict[str, Any],
    error_type: str,
    retryable: bool,
) -> None:
    scripted_judge.fault(fault, times=None, **options)
    error = await failing(model)
    assert (error.error_type, error.retryable, error.calls) == (error_type, retryable, 1)
    assert len(scripted_judge.requests) == 1
    assert_nothing_leaked(error)


async def test_a_refused_connection_is_named(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge, assert_nothing_leaked: Leaked
) -> None:
    with scripted_judge.refusing():
        error = await failing(model)
    assert (error.error_type, error.retryable) == ("refused", True)
    assert_nothing_leaked(error)


async def test_the_next_call_after_a_refused_one_succeeds(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    await model.complete(question())
    with scripted_judge.refusing():
        await failing(model)
    assert (await model.complete(question())).text


async def test_an_unknown_host_is_unavailable(assert_nothing_leaked: Leaked) -> None:
    model = OpenAICompatibleModel("judge", "http://no-such-host.invalid/v1", API_KEY)
    error = await failing(model)
    await model.close()
    assert error.error_type == "unavailable"
    assert_nothing_leaked(error)


async def test_a_call_that_hangs_ends_at_its_timeout(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge, assert_nothing_leaked: Leaked
) -> None:
    scripted_judge.fault("hang")
    error = await failing(model, timeout_s=0.2)
    assert (error.error_type, error.retryable) == ("timeout", True)
    assert_nothing_leaked(error)


async def test_a_call_can_be_cancelled(model: OpenAICompatibleModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("hang")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(model.complete(question()), 0.2)
    assert (await model.complete(question())).text


async def test_an_endless_reply_is_cut_off(model: OpenAICompatibleModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.script(say("x" * (5 * 2**20)))
    assert (await failing(model)).error_type == "bad_response"


async def test_a_redirect_is_not_followed_with_the_key(assert_nothing_leaked: Leaked) -> None:
    async with _server(302, b"", {"Location": "http://127.0.0.1:9/v1"}) as base_url:
        model = OpenAICompatibleModel("judge", base_url, API_KEY)
        error = await failing(model)
        await model.close()
    assert (error.error_type, error.retryable) == ("bad_request", False)
    assert_nothing_leaked(error)


async def test_a_gateway_error_with_status_200_is_named() -> None:
    body = b'{"error": {"code": 429, "message": "upstream rate limit"}}'
    async with _server(200, body, {"Content-Type": "application/json"}) as base_url:
        model = OpenAICompatibleModel("judge", base_url, API_KEY)
        error = await failing(model)
        await model.close()
    assert (error.error_type, error.retryable) == ("rate_limited", True)


async def test_a_key_that_no_header_can_carry_fails_without_showing_it(
    scripted_judge: ScriptedJudge, assert_nothing_leaked: Leaked
) -> None:
    model = OpenAICompatibleModel("judge", scripted_judge.base_url, f"{API_KEY}\r\nX: y")
    error = await failing(model)
    await model.close()
    assert error.error_type == "bad_request"
    assert_nothing_leaked(error)


@pytest.mark.parametrize(("as_date", "slack"), [(False, 0.0), (True, 1.1)], ids=["seconds", "date"])
async def test_retry_after_is_passed_on(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge, as_date: bool, slack: float
) -> None:
    scripted_judge.fault("rate_limited", retry_after=30, as_date=as_date)
    error = await failing(model)
    assert error.retry_after_s is not None
    assert 30 - slack <= error.retry_after_s <= 30


# Proxies

COMPLETION = b'{"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}'


async def test_the_environments_proxy_is_used_with_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    server = _server(200, COMPLETION, {"Content-Type": "application/json"})
    async with server as base_url:
        monkeypatch.setenv("http_proxy", base_url.replace("//", "//user:secret@").removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        model = OpenAICompatibleModel("judge", "http://judge.invalid/v1", API_KEY)
        assert (await model.complete(question())).text == "{}"
        await model.close()
    assert server.heads[0].startswith("POST http://judge.invalid/v1/chat/completions ")
    assert "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=" in server.heads[0]


async def test_no_proxy_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    server = _server(200, COMPLETION, {"Content-Type": "application/json"})
    async with server as base_url:
        monkeypatch.setenv("http_proxy", base_url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "judge.invalid")
        model = OpenAICompatibleModel("judge", "http://judge.invalid/v1", API_KEY)
        assert (await failing(model)).error_type == "unavailable"
        await model.close()
    assert server.heads == []


# Replies that are no good answer come back as they are: the plan decides


SPOILT = ["malformed", "prose", "fenced", "two_objects", "wrong_label", "wrong_case", "null_label", "list_label"]


@pytest.mark.parametrize("fault", [*SPOILT, "missing_field", "raw_newlines"])
async def test_a_spoilt_answer_comes_back_as_text(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge, fault: str, assert_nothing_leaked: Leaked
) -> None:
    scripted_judge.fault(fault)
    reply = await model.complete(question())
    assert "{" in reply.text
    assert len(scripted_judge.requests) == 1
    assert_nothing_leaked()


UNFINISHED = [
    ("truncated", "length", False),
    ("empty", "stop", False),
    ("content_filter", "content_filter", False),
    ("refusal", "stop", True),
]


@pytest.mark.parametrize(("fault", "finish_reason", "refused"), UNFINISHED)
async def test_an_unfinished_answer_says_why(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge, fault: str, finish_reason: str, refused: bool
) -> None:
    scripted_judge.fault(fault)
    reply = await model.complete(question())
    assert (reply.finish_reason, reply.refusal is not None) == (finish_reason, refused)


# The ladder


def formats(judge: ScriptedJudge) -> list[str]:
    return [request.answer_format for request in judge.requests]


async def test_a_refused_schema_leads_to_a_forced_tool(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge, assert_nothing_leaked: Leaked
) -> None:
    scripted_judge.fault("schema_rejected", times=None)
    reply = await model.complete(question())
    assert formats(scripted_judge) == ["json_schema", "tool"]
    assert json.loads(reply.text)["failure_rate"]
    assert (reply.calls, reply.finish_reason) == (2, "stop")
    assert_nothing_leaked()


async def test_refused_tools_lead_to_a_json_object(model: OpenAICompatibleModel, scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("schema_rejected", times=None)
    scripted_judge.fault("tools_rejected", times=None)
    assert json.loads((await model.complete(question())).text)["failure_rate"]
    assert formats(scripted_judge) == ["json_schema", "tool", "json_object"]


async def test_the_last_rung_is_plain_text_with_the_schema_in_the_prompt(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    for fault in ("schema_rejected", "tools_rejected", "json_object_rejected"):
        scripted_judge.fault(fault, times=None)
    assert json.loads((await model.complete(question())).text)["failure_rate"]
    assert formats(scripted_judge) == ["json_schema", "tool", "json_object", "plain"]
    last = scripted_judge.requests[-1].body["messages"][-1]["content"]
    assert '"hallucination"' in last
    assert PROMPT_SECRET in last


async def test_what_was_learned_holds_for_every_later_call_and_judge(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.fault("schema_rejected", times=None)
    await model.complete(question())
    second = OpenAICompatibleModel("judge", scripted_judge.base_url, API_KEY)
    await second.complete(question())
    await second.close()
    assert formats(scripted_judge) == ["json_schema", "tool", "tool"]


async def test_what_was_learned_of_one_model_does_not_hold_for_another(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.fault("schema_rejected", times=None, model="judge")
    await model.complete(question())
    other = OpenAICompatibleModel("other", scripted_judge.base_url, API_KEY)
    await other.complete(question())
    await other.close()
    assert formats(scripted_judge)[-1] == "json_schema"


async def test_a_refused_temperature_is_left_out_from_then_on(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.fault("parameter_rejected", times=None)
    await model.complete(question())
    await model.complete(question())
    assert ["temperature" in request.body for request in scripted_judge.requests] == [True, False, False]
    assert set(formats(scripted_judge)) == {"json_schema"}


async def test_a_refused_max_tokens_is_sent_by_its_newer_name(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.fault("parameter_rejected", times=None, parameter="max_tokens")
    await model.complete(question())
    body = scripted_judge.requests[-1].body
    assert ("max_tokens" in body, body["max_completion_tokens"]) == (False, 500)


async def test_openai_itself_is_asked_by_the_newer_name() -> None:
    model = OpenAICompatibleModel("gpt-4o", "https://api.openai.com/v1", API_KEY)
    assert model._ladder.lessons.token_parameter == "max_completion_tokens"


async def test_everything_refused_ends_after_bounded_calls(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    for fault in ("schema_rejected", "tools_rejected", "json_object_rejected"):
        scripted_judge.fault(fault, times=None)
    for parameter in ("temperature", "max_tokens", "max_completion_tokens", "messages"):
        scripted_judge.fault("parameter_rejected", times=None, parameter=parameter)
    error = await failing(model)
    assert (error.error_type, error.calls, len(scripted_judge.requests)) == ("bad_request", 6, 6)


async def test_a_rate_limit_on_a_lower_rung_is_reported_with_all_calls(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.fault("schema_rejected", times=None)
    scripted_judge.fault("rate_limited", times=None)
    error = await failing(model)
    assert (error.error_type, error.calls) == ("rate_limited", 2)


async def test_a_model_that_ignores_the_schema_is_asked_in_the_next_format(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.script(say("It went rather well, I think."), by="calls")
    await model.complete(question())
    await model.complete(question())
    assert formats(scripted_judge) == ["json_schema", "tool"]


async def test_one_reply_in_prose_does_not_unlearn_a_proven_format(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    await model.complete(question())
    scripted_judge.script(say("I would rather not say."))
    await model.complete(question())
    await model.complete(question())
    assert set(formats(scripted_judge)) == {"json_schema"}


async def test_thinking_before_the_answer_is_left_out(
    model: OpenAICompatibleModel, scripted_judge: ScriptedJudge
) -> None:
    scripted_judge.script(say('<think>{"maybe": 1}</think>\n{"failure_rate": {}}'))
    assert (await model.complete(question())).text == '{"failure_rate": {}}'


# Recursion


async def test_the_whole_call_is_hidden_from_instrumentation_and_nothing_else_is(
    model: OpenAICompatibleModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    opened = model._http.get

    async def watched() -> Any:
        seen.append(is_internal() and not is_instrumentation_enabled())
        return await opened()

    monkeypatch.setattr(model._http, "get", watched)
    await model.complete(question())
    assert seen == [True]
    assert not is_internal()
    assert is_instrumentation_enabled()


# Loops, threads, processes


def test_the_same_model_answers_on_one_loop_after_another(scripted_judge: ScriptedJudge) -> None:
    model = OpenAICompatibleModel("judge", scripted_judge.base_url, API_KEY)
    for _ in range(2):
        assert asyncio.run(model.complete(question())).text
    asyncio.run(model.close())


def test_a_call_leaves_neither_threads_nor_descriptors_behind(scripted_judge: ScriptedJudge) -> None:
    async def use() -> None:
        model = OpenAICompatibleModel("judge", scripted_judge.base_url, API_KEY)
        await asyncio.gather(*(model.complete(question()) for _ in range(10)))
        await model.close()

    asyncio.run(use())
    scripted_judge.stop()
    before = (threading.active_count(), len(os.listdir("/proc/self/fd")))
    scripted_judge.start()
    asyncio.run(use())
    scripted_judge.stop()
    # Fewer is no leak: what earlier tests left may be closed meanwhile.
    assert threading.active_count() <= before[0]
    assert len(os.listdir("/proc/self/fd")) <= before[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_its_own_connection_and_leaves_the_parents_alone(
    scripted_judge: ScriptedJudge,
) -> None:
    model = OpenAICompatibleModel("judge", scripted_judge.base_url, API_KEY)
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(model.complete(question())).text
    parents_session = model._http._session
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        answered = bool(asyncio.run(model.complete(question())).text)
        os._exit(0 if answered and model._http._session is not parents_session else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    reply: ChatReply = loop.run_until_complete(model.complete(question()))
    assert reply.text
    assert model._http._session is parents_session
    loop.run_until_complete(model.close())
    loop.close()


class _server:
    """A server with one fixed reply, for what the scripted judge does not say."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.heads: list[str] = []
        self._reply = f"HTTP/1.1 {status} X\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def __aenter__(self) -> str:
        self._listener = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}/v1"

    async def __aexit__(self, *exc: object) -> None:
        self._listener.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(self._reply)
        await writer.drain()
        writer.close()
