"""What the hooks cost the application: CPU that `on_start` + `on_end` add to a span's life, beside BatchSpanProcessor.

The same spans are started and ended through three providers in alternating rounds of one run: one without a processor,
one with ours, one with a BatchSpanProcessor whose exporter does nothing, and one whose hooks are empty: the floor. A
figure is the thread CPU time per span (lower quartile of the rounds) beyond that of the provider without a processor;
so it has what the hooks do, and what it costs to keep a span's content alive beyond its end.
"""

from __future__ import annotations

import argparse
import gc
import random
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
    gc.collect()  # nobody pays for what the one before left behind
    begin = time.thread_time()
    for _ in range(SPANS_PER_ROUND):
        tracer.start_span("work", context=parent, attributes=attributes).end()
    return (time.thread_time() - begin) / SPANS_PER_ROUND


def undisturbed(values: list[float]) -> float:
    """The lower quartile: disturbances by neighbours only ever add."""
    return statistics.quantiles(values, n=4)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=80)
    rounds = parser.parse_args().rounds
    providers = {name: TracerProvider() for name in ("bare", "empty_hooks", "otel_evals", "batch_span_processor")}
    ours = EvaluationSpanProcessor(Settings(rate=0.0, poll_interval=10.0), tracer_provider=providers["otel_evals"])
    batch = BatchSpanProcessor(NoExport())
    providers["empty_hooks"].add_span_processor(SpanProcessor())
    providers["otel_evals"].add_span_processor(ours)
    providers["batch_span_processor"].add_span_processor(batch)
    gc.collect()
    gc.freeze()  # what was imported is not the subject
    figures: dict[str, Any] = {}
    for kind, (attributes, root) in KINDS.items():
        span_context = SpanContext(1, 1, is_remote=root, trace_flags=TraceFlags(1))
        parent = set_span_in_context(NonRecordingSpan(span_context))
        seconds: dict[str, list[float]] = {name: [] for name in providers}
        for _ in range(rounds):
            for name, provider in random.sample(list(providers.items()), len(providers)):
                seconds[name].append(cpu_per_span(provider, attributes, parent))
                ours.runtime.buffer.items.clear()  # what the worker does with them is another benchmark's subject
                batch.force_flush()
        micros = {name: undisturbed(values) * 1e6 for name, values in seconds.items()}
        added = {name: micros[name] - micros["bare"] for name in providers if name != "bare"}
        ratio = added["otel_evals"] / added["batch_span_processor"]
        figures[kind] = {**{f"{name}_us": round(value, 3) for name, value in added.items()}, "ratio": round(ratio, 3)}
        print(
            f"{kind:13s} otel-evals {added['otel_evals']:6.3f} µs   "
            f"BatchSpanProcessor {added['batch_span_processor']:6.3f} µs   ratio {ratio:.3f}   "
            f"empty hooks {added['empty_hooks']:6.3f} µs   (a span without hooks {micros['bare']:.1f} µs)"
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
