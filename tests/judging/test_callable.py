"""Somebody's own client as the judge."""

from __future__ import annotations

import json
import threading

import pytest

from otel_evals.judging.models.callable import CallableModel
from otel_evals.suppression import is_internal
from tests.judging.scripted import _CANARY, answers, judge_with, task


class Client:
    def __init__(self, build, cost=0.002):
        self.build, self.cost = build, cost
        self.messages = self.temperature = self.thread = None

    def get_model_name(self):
        return "in-house"

    async def chat_complete(self, messages, temperature):
        self.messages, self.temperature = messages, temperature
        return self.build(messages), self.cost


class BlockingClient(Client):
    def chat_complete(self, messages, temperature):
        self.thread = threading.current_thread()
        return self.build(messages), self.cost


def right(messages):
    canary = _CANARY.findall(messages[-1]["content"])[-1]
    return "Here you are: " + json.dumps({"canary": canary, **answers()})


async def judged(client):
    return await judge_with(CallableModel(client)).judge(task())


async def test_its_answer_is_scored_and_its_cost_reported():
    result = await judged(Client(right))
    assert {e.outcome for e in result.evaluations} == {"scored"}
    assert (result.judgement.model, result.judgement.cost_usd, result.judgement.calls) == ("in-house", 0.002, 1)


async def test_an_unknown_cost_stays_unknown():
    assert (await judged(Client(right, cost=None))).judgement.cost_usd is None


async def test_it_is_told_the_schema_in_words_and_asked_without_randomness():
    client = Client(right)
    await judged(client)
    assert '"additionalProperties":false' in client.messages[-1]["content"]
    assert client.temperature == 0.0
    assert [m["role"] for m in client.messages] == ["system", "user"]


async def test_a_blocking_client_does_not_hold_up_the_loop():
    client = BlockingClient(right)
    await judged(client)
    assert client.thread is not threading.main_thread()


def raising(error):
    def build(messages):
        raise error

    return build


@pytest.mark.parametrize(
    ("error", "error_type"),
    [(ConnectionError("key sk-1"), "unavailable"), (KeyError("choices sk-1"), "bad_response")],
)
async def test_what_it_raises_becomes_an_outcome_without_its_text(error, error_type, caplog):
    result = await judged(Client(raising(error)))
    assert {e.error_type for e in result.evaluations} == {error_type}
    assert "sk-1" not in caplog.text


async def test_a_reply_that_is_no_text_is_an_outcome():
    result = await judged(Client(lambda messages: None))
    assert {e.error_type for e in result.evaluations} == {"bad_response"}


async def test_its_calls_are_marked_as_ours_for_every_instrumentation():
    seen = []

    def build(messages):
        seen.append(is_internal())
        return right(messages)

    await judged(Client(build))
    await judged(BlockingClient(build))
    assert seen == [True, True]
