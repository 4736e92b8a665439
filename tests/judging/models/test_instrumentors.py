"""With the host's instrumentation of the openai package active: the host's calls make spans, ours make none."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import openai
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_evals.judging.models.callable import CallableModel
from otel_evals.judging.models.litellm_model import LiteLLMModel
from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from otel_evals.judging.models.protocol import ChatReply, JudgeModel
from tests.judging.models.conftest import API_KEY, question
from tests.scripted_judge import ScriptedJudge, say

INSTRUMENTORS = {
    "OpenInference": "openinference.instrumentation.openai",
    "OpenLLMetry": "opentelemetry.instrumentation.openai",
}

Spans = Callable[[], tuple[ReadableSpan, ...]]


@pytest.fixture(params=INSTRUMENTORS)
def spans(request: pytest.FixtureRequest) -> Iterator[Spans]:
    """The spans that the host's instrumentation has made so far."""
    instrumentor = importlib.import_module(INSTRUMENTORS[request.param]).OpenAIInstrumentor()
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor.instrument(tracer_provider=provider)
    try:
        yield exporter.get_finished_spans
    finally:
        instrumentor.uninstrument()


class OpenAIClient:
    """A judge client of the user's own, made with the openai package."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    async def chat_complete(self, messages: list[dict[str, Any]], temperature: float) -> tuple[str, None]:
        async with openai.AsyncOpenAI(api_key=API_KEY, base_url=self._base_url) as client:
            reply = await client.chat.completions.create(model="own", messages=messages, temperature=temperature)
        return reply.choices[0].message.content or "", None

    def get_model_name(self) -> str:
        return "own"


def openai_compatible(base_url: str) -> JudgeModel:
    return OpenAICompatibleModel("judge", base_url, API_KEY)


def litellm(base_url: str) -> JudgeModel:
    pytest.importorskip("litellm")
    return LiteLLMModel("openai/judge", API_KEY, base_url)


def own_client(base_url: str) -> JudgeModel:
    return CallableModel(OpenAIClient(base_url))


@pytest.fixture(params=[openai_compatible, litellm, own_client])
def model(request: pytest.FixtureRequest, scripted_judge: ScriptedJudge) -> JudgeModel:
    scripted_judge.script(say("Hello."), model="host")
    return request.param(scripted_judge.base_url)


def on_a_loop_of_its_own(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


def ask(model: JudgeModel, times: int = 1) -> list[ChatReply]:
    async def calls() -> list[ChatReply]:
        try:
            return await asyncio.gather(*(model.complete(question()) for _ in range(times)))
        finally:
            await model.close()

    return on_a_loop_of_its_own(calls)


def with_litellm(base_url: str, times: int = 1) -> None:
    """The host's own calls through litellm, which makes them with the openai package."""
    litellm_package = pytest.importorskip("litellm")

    async def calls() -> None:
        messages = [{"role": "user", "content": "Hello?"}]
        create = litellm_package.acompletion
        where = {"api_key": API_KEY, "base_url": base_url}
        await asyncio.gather(*(create(model="openai/host", messages=messages, **where) for _ in range(times)))

    on_a_loop_of_its_own(calls)


def with_openai(base_url: str, times: int = 1) -> None:
    """The host's own calls with the openai package."""

    async def calls() -> None:
        async with openai.AsyncOpenAI(api_key=API_KEY, base_url=base_url) as client:
            messages = [{"role": "user", "content": "Hello?"}]
            create = client.chat.completions.create
            await asyncio.gather(*(create(model="host", messages=messages) for _ in range(times)))

    on_a_loop_of_its_own(calls)


def test_the_judges_call_makes_no_span(spans: Spans, model: JudgeModel, scripted_judge: ScriptedJudge) -> None:
    (reply,) = ask(model)
    assert reply.text
    assert len(scripted_judge.requests) == 1
    assert spans() == ()


@pytest.mark.parametrize(
    ("spans", "host_calls"),
    # OpenLLMetry's instrumentation does not see the calls that litellm makes with the openai package, anybody's.
    [("OpenInference", with_openai), ("OpenInference", with_litellm), ("OpenLLMetry", with_openai)],
    indirect=["spans"],
)
def test_the_hosts_calls_make_spans_before_while_and_after_the_judge_calls(
    spans: Spans, model: JudgeModel, scripted_judge: ScriptedJudge, host_calls: Callable[..., None]
) -> None:
    host_calls(scripted_judge.base_url)
    host = threading.Thread(target=host_calls, args=(scripted_judge.base_url, 5))
    host.start()
    ask(model, times=5)
    host.join()
    host_calls(scripted_judge.base_url)
    assert len(scripted_judge.requests) == 12
    assert len(spans()) == 7
