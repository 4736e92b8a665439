"""What the hooks cost the application: CPU that `on_start` + `on_end` add to a span's life, beside BatchSpanProcessor.

The same spans are started and ended through three providers in alternating rounds of one run: one without a processor,
one with ours, one with a BatchSpanProcessor whose exporter does nothing, and one whose hooks are empty: the floor. A
figure is the median over the rounds of the thread CPU time per span beyond the provider without a processor; so it has
what the hooks do, and what it costs to keep a span's content alive beyond its end.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from benchmarks.report import goal, report
from otel_evals import EvaluationSpanProcessor, Settings

SPANS_PER_ROUND = 1000


class NoExport(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def foreign_attributes() -> dict[str, Any]:
    return {
        "http.request.method": "GET",
        "url.path": "/orders",
        "http.response.status_code": 200,
        "server.address": "shop",
        "network.protocol.version": "1.1",
    }


def genai_attributes() -> dict[str, Any]:
    text = "x" * 1900
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.conversation.id": "conversation-0001",
        "gen_ai.agent.name": "travel-agent",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.input.messages": f'[{{"role":"user","parts":[{{"type":"text","content":"{text}"}}]}}]',
        "gen_ai.output.messages": f'[{{"role":"assistant","parts":[{{"type":"text","content":"{text}"}}]}}]',
        "server.address": "127.0.0.1",
        "server.port": 443,
    }


KINDS: dict[str, tuple[dict[str, Any], bool]] = {
    "foreign": (foreign_attributes(), False),
    "foreign_root": (foreign_attributes(), True),
    "kept_bare": ({"gen_ai.operation.name": "invoke_agent"}, False),
    "kept_genai": (genai_attributes(), False),
}


def cpu_per_span(provider: TracerProvider, attributes: dict[str, Any], parent: Context) -> float:
    """Thread CPU seconds from the start of a span to its end."""
    tracer = provider.get_tracer("benchmark")
    begin = time.thread_time()
    for _ in range(SPANS_PER_ROUND):
        tracer.start_span("work", context=parent, attributes=attributes).end()
    return (time.thread_time() - begin) / SPANS_PER_ROUND


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    bare, with_ours, with_batch, with_empty = (TracerProvider() for _ in range(4))
    with_empty.add_span_processor(SpanProcessor())
    ours = EvaluationSpanProcessor(Settings(rate=0.0, poll_interval=10.0), tracer_provider=with_ours)
    with_ours.add_span_processor(ours)
    batch = BatchSpanProcessor(NoExport())
    with_batch.add_span_processor(batch)
    figures: dict[str, Any] = {}
    for kind, (attributes, root) in KINDS.items():
        span_context = SpanContext(1, 1, is_remote=root, trace_flags=TraceFlags(1))
        parent = set_span_in_context(NonRecordingSpan(span_context))
        added: dict[str, list[float]] = {"otel_evals": [], "batch_span_processor": [], "empty_hooks": []}
        for _ in range(rounds):
            base = cpu_per_span(bare, attributes, parent)
            added["otel_evals"].append(cpu_per_span(with_ours, attributes, parent) - base)
            ours.runtime.buffer.items.clear()  # what the worker does with them is another benchmark's subject
            added["batch_span_processor"].append(cpu_per_span(with_batch, attributes, parent) - base)
            batch.force_flush()
            added["empty_hooks"].append(cpu_per_span(with_empty, attributes, parent) - base)
        micros = {name: statistics.median(values) * 1e6 for name, values in added.items()}
        ratio = micros["otel_evals"] / micros["batch_span_processor"]
        figures[kind] = {**{f"{name}_us": round(value, 3) for name, value in micros.items()}, "ratio": round(ratio, 3)}
        print(
            f"{kind:13s} otel-evals {micros['otel_evals']:6.3f} µs   "
            f"BatchSpanProcessor {micros['batch_span_processor']:6.3f} µs   ratio {ratio:.3f}   "
            f"empty hooks {micros['empty_hooks']:6.3f} µs"
        )
    ours.shutdown()
    batch.shutdown()
    report(
        "hot_path",
        figures,
        {
            "foreign_ratio": goal(figures["foreign"]["ratio"], "<= 0.05"),
            "kept_bare_ratio": goal(figures["kept_bare"]["ratio"], "<= 0.5"),
            "kept_genai_ratio": goal(figures["kept_genai"]["ratio"], "<= 0.5"),
        },
    )


if __name__ == "__main__":
    main()
