"""The ladder of answer formats, with a scripted `send`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from otel_evals.judging.models.failures import Failure
from otel_evals.judging.models.ladder import AnswerLadder, read_completion
from otel_evals.judging.models.protocol import ChatReply, ModelError
from tests.judging.models.conftest import question

GOOD = {"choices": [{"message": {"content": '{"a": 1}'}, "finish_reason": "stop"}]}
UNNAMED = Failure("bad_request", rejected="unnamed")
NO_FORMAT = Failure("bad_request", rejected="format")


class Endpoint:
    """Notes the format of each request, and answers by a function of it."""

    def __init__(self, answer: Any) -> None:
        self.asked: list[str] = []
        self._answer = answer

    async def send(self, body: dict[str, Any], timeout_s: float) -> Mapping[str, Any] | Failure:
        response_format = body.get("response_format", {}).get("type")
        self.asked.append("tool" if "tools" in body else response_format or "plain")
        answer = self._answer(body) if callable(self._answer) else self._answer
        await asyncio.sleep(0)
        return answer


def only_plain(body: dict[str, Any]) -> Mapping[str, Any] | Failure:
    """A server that refuses everything else and does not say why."""
    return UNNAMED if "response_format" in body or "tools" in body else GOOD


async def ask(endpoint: Endpoint, **changes: Any) -> ChatReply:
    return await AnswerLadder("http://endpoint", "model").ask(question(**changes), endpoint.send)


async def failing(endpoint: Endpoint) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(endpoint)
    return caught.value


async def test_a_rejection_without_a_reason_leads_down_the_ladder() -> None:
    endpoint = Endpoint(only_plain)
    reply = await ask(endpoint)
    assert endpoint.asked == ["json_schema", "tool", "json_object", "plain"]
    assert (reply.text, reply.calls) == ('{"a": 1}', 4)


async def test_a_proven_format_is_not_given_up_for_a_rejection_without_a_reason() -> None:
    await ask(Endpoint(GOOD))
    endpoint = Endpoint(UNNAMED)
    assert (await failing(endpoint)).calls == 1
    assert endpoint.asked == ["json_schema"]


async def test_a_proven_format_is_given_up_when_it_is_named() -> None:
    await ask(Endpoint(GOOD))
    endpoint = Endpoint(lambda body: NO_FORMAT if "response_format" in body else GOOD)
    await ask(endpoint)
    assert endpoint.asked == ["json_schema", "tool"]


async def test_an_endpoint_that_refuses_everything_is_soon_asked_only_once() -> None:
    calls = [(await failing(Endpoint(UNNAMED))).calls for _ in range(5)]
    assert calls == [4, 4, 4, 1, 1]


async def test_nothing_is_learned_from_a_ladder_that_failed() -> None:
    await failing(Endpoint(UNNAMED))
    endpoint = Endpoint(GOOD)
    await ask(endpoint)
    assert endpoint.asked == ["json_schema"]


async def test_calls_at_once_learn_the_same() -> None:
    endpoint = Endpoint(only_plain)
    await asyncio.gather(*(ask(endpoint) for _ in range(5)))
    endpoint.asked.clear()
    await ask(endpoint)
    assert endpoint.asked == ["plain"]


async def test_a_refusal_is_not_taken_for_an_ignored_format() -> None:
    refusal = {"choices": [{"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}]}
    assert (await ask(Endpoint(refusal))).refusal == "No."
    endpoint = Endpoint(GOOD)
    await ask(endpoint)
    assert endpoint.asked == ["json_schema"]


async def test_the_time_limit_holds_for_all_rungs_together() -> None:
    now = [0.0]

    def slow(body: dict[str, Any]) -> Failure:
        now[0] += 6.0
        return NO_FORMAT

    endpoint = Endpoint(slow)
    ladder = AnswerLadder("http://endpoint", "model", clock=lambda: now[0])
    with pytest.raises(ModelError):
        await ladder.ask(question(timeout_s=10.0), endpoint.send)
    assert endpoint.asked == ["json_schema", "tool"]


# Reading replies


def message(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": fields, "finish_reason": "stop"}]}


READ = {
    "text": (message(content=" yes "), "yes"),
    "parts": (message(content=[{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]), "ab"),
    "tool arguments": (message(tool_calls=[{"function": {"name": "x", "arguments": '{"a": 1}'}}]), '{"a": 1}'),
    "tool arguments as an object": (message(tool_calls=[{"function": {"arguments": {"a": "ä"}}}]), '{"a": "ä"}'),
    "thinking": (message(content="<think>hm</think>\nyes"), "yes"),
    "thinking without end": (message(content="<think>hm"), "<think>hm"),
    "nothing": (message(content=None), ""),
    "something else": (message(content=5, tool_calls="x"), ""),
}


@pytest.mark.parametrize("row", READ)
def test_the_answer_is_found_in_every_shape_of_message(row: str) -> None:
    completion, text = READ[row]
    reply = read_completion(completion, 1)
    assert reply is not None
    assert reply.text == text


@pytest.mark.parametrize("completion", [{}, {"choices": []}, {"choices": None}, {"choices": [{}]}, {"choices": ["x"]}])
def test_what_is_no_completion_is_none(completion: dict[str, Any]) -> None:
    assert read_completion(completion, 1) is None


FINISH_REASONS = {
    "tool_calls": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
    "SAFETY": "content_filter",
    "length": "length",
    "content_filter": "content_filter",
    None: None,
}


@pytest.mark.parametrize(("reported", "normalised"), FINISH_REASONS.items())
def test_finish_reasons_are_put_into_openais_words(reported: str | None, normalised: str | None) -> None:
    reply = read_completion({"choices": [{"message": {"content": "x"}, "finish_reason": reported}]}, 1)
    assert reply is not None
    assert reply.finish_reason == normalised


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None, "cost": None}, {"prompt_tokens": -1, "cost": True}]
)
def test_usage_that_is_not_reported_is_zero_at_unknown_cost(usage: Any) -> None:
    reply = read_completion({**GOOD, "usage": usage}, 1)
    assert reply is not None
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens, reply.cost_usd) == (0, 0, 0, None)


def test_cached_tokens_and_cost_are_read_where_the_provider_reports_them() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4, "cost": 0.002}
    reply = read_completion({**GOOD, "usage": usage}, 1)
    assert reply is not None
    assert (reply.cached_tokens, reply.cost_usd) == (4, 0.002)
