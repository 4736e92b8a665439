"""The recursion guard: our work is invisible to instrumentation, the application's never is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import openai
import pytest
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.instrumentation.utils import is_http_instrumentation_enabled, is_instrumentation_enabled
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_evals.suppression import internal_work, is_internal
from tests.scripted_judge import ScriptedJudge


def test_outside_nothing_is_suppressed() -> None:
    assert not is_internal()
    assert is_instrumentation_enabled()


def test_inside_all_instrumentation_is_suppressed() -> None:
    with internal_work():
        assert is_internal()
        assert not is_instrumentation_enabled()
        assert not is_http_instrumentation_enabled()


def test_suppression_ends_with_the_block_even_when_it_raises() -> None:
    with pytest.raises(RuntimeError), internal_work():
        raise RuntimeError
    assert not is_internal()
    assert is_instrumentation_enabled()


def test_an_inner_block_does_not_end_the_outer_one() -> None:
    with internal_work():
        with internal_work():
            pass
        assert is_internal()
        assert not is_instrumentation_enabled()


def test_other_threads_are_not_suppressed() -> None:
    seen: list[bool] = []
    with internal_work():
        thread = threading.Thread(target=lambda: seen.append(is_internal() or not is_instrumentation_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


async def test_other_tasks_are_not_suppressed() -> None:
    entered, looked = asyncio.Event(), asyncio.Event()

    async def ours() -> None:
        with internal_work():
            entered.set()
            await looked.wait()

    task = asyncio.create_task(ours())
    await entered.wait()
    assert not is_internal()
    assert is_instrumentation_enabled()
    looked.set()
    await task


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    """The openai package instrumented by OpenInference."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


def _call_openai(judge: ScriptedJudge) -> None:
    with openai.OpenAI(base_url=judge.base_url, api_key="sk-x") as client:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])


def test_an_instrumented_client_makes_no_span_of_our_call(
    scripted_judge: ScriptedJudge, exported: InMemorySpanExporter
) -> None:
    with internal_work():
        _call_openai(scripted_judge)
    assert exported.get_finished_spans() == ()


def test_an_instrumented_client_still_makes_a_span_of_the_applications_call(
    scripted_judge: ScriptedJudge, exported: InMemorySpanExporter
) -> None:
    with internal_work():
        _call_openai(scripted_judge)
    _call_openai(scripted_judge)
    assert len(exported.get_finished_spans()) == 1
