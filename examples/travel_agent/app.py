"""Runs seeded conversations with the travel agent and has otel_evals score them while they happen.

    python -m examples.travel_agent.app --conversations 20 --faults 0.3

With `OTEL_EXPORTER_OTLP_ENDPOINT` traces, events and metrics go to that collector; without it nothing leaves
the process. `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL` name a real model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.instrumented import InstrumentationSettings

import otel_evals
from examples.travel_agent.agent import build_agent
from examples.travel_agent.faults import FAULTS, FaultInjector
from examples.travel_agent.scripted_model import scripted_model
from examples.travel_agent.travellers import last_word, requests


@contextmanager
def telemetry() -> Iterator[tuple[TracerProvider, LoggerProvider, MeterProvider]]:
    """The providers of any instrumented application; exporters only if the environment names a collector."""
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "travel-agent")})
    tracers, loggers, readers = TracerProvider(resource=resource), LoggerProvider(resource=resource), []
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    meters = MeterProvider(metric_readers=readers, resource=resource)
    try:
        yield tracers, loggers, meters
    finally:
        for provider in (tracers, loggers, meters):
            provider.shutdown()


@contextmanager
def model_endpoint() -> Iterator[tuple[str, str, str]]:
    """(model, base URL, key) from the environment, or a scripted model on loopback."""
    model = os.environ.get("OPENAI_MODEL")
    if base_url := os.environ.get("OPENAI_BASE_URL"):
        yield model or "gpt-4o-mini", base_url, os.environ.get("OPENAI_API_KEY", "none")
    else:
        with scripted_model() as base_url:
            yield model or "scripted", base_url, "none"


async def converse(agent: Agent[str, str], conversation: str, seed: int) -> None:
    """One traveller from the first request to the last word."""
    rng = random.Random(f"{seed}/{conversation}")
    history: list[ModelMessage] = []
    answer = ""
    for text in requests(rng):
        result = await agent.run(text, deps=conversation, message_history=history, conversation_id=conversation)
        history, answer = result.all_messages(), result.output
    await agent.run(last_word(answer, rng), deps=conversation, message_history=history, conversation_id=conversation)


async def serve(agent: Agent[str, str], handle: otel_evals.EvaluationHandle, options: argparse.Namespace) -> None:
    """All conversations, a few at a time, as in a web server."""
    slots = asyncio.Semaphore(options.concurrency)

    async def one(number: int) -> None:
        conversation = f"trip-{options.seed}-{number:04d}"
        async with slots:
            await converse(agent, conversation, options.seed)
        handle.end_session(conversation)

    await asyncio.gather(*(one(number) for number in range(1, options.conversations + 1)))


def show(judged: otel_evals.JudgedSession) -> None:
    """One line for each scored session; runs on the judge's thread."""
    scores = "  ".join(f"{item.evaluator}={item.label or item.error_type}" for item in judged.evaluations)
    print(f"{judged.session.session_id}  {scores}", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Travel agent with failing tools, scored by otel_evals.")
    parser.add_argument("--conversations", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=4, help="conversations at a time")
    parser.add_argument("--faults", type=float, default=0.3, help="share of tool calls that go wrong, 0 to 1")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="only this fault (repeatable)")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    os.environ.setdefault("OTEL_EVALS_RATE", "1.0")  # few conversations: judge all, unless told otherwise
    faults = FaultInjector(options.faults, options.seed, kinds=options.fault or FAULTS)
    with ExitStack() as stack:
        model, base_url, key = stack.enter_context(model_endpoint())
        tracers, loggers, meters = stack.enter_context(telemetry())
        handle = otel_evals.attach(
            tracer_provider=tracers,
            logger_provider=loggers,
            meter_provider=meters,
            on_result=show,
        )
        Agent.instrument_all(InstrumentationSettings(tracer_provider=tracers, meter_provider=meters))
        agent = build_agent(model, base_url, key, faults)
        asyncio.run(serve(agent, handle, options))
        handle.force_flush(60_000)
        handle.shutdown()
    print(f"{options.conversations} conversations, {len(faults.injected)} faults injected")


if __name__ == "__main__":
    main()
