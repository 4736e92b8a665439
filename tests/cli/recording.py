"""Simulated sessions as an OTLP/JSON file: what a collector's file exporter would have written."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_evals.simulation.model import PlannedSession
from otel_evals.simulation.player import play

__all__ = ["record"]

BATCH = 16


def record(plan: list[PlannedSession], path: Path) -> Path:
    """Write the spans of the plan, at the pace of the plan, one export request a line."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "recorded"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    play(plan, provider.get_tracer("recorded"), speed=1.0, wait_until=lambda real_s: None)
    spans = exporter.get_finished_spans()
    batches = [spans[start : start + BATCH] for start in range(0, len(spans), BATCH)]
    path.write_text("".join(json.dumps(_hex_ids(MessageToDict(encode_spans(batch)))) + "\n" for batch in batches))
    return path


def _hex_ids(node: Any) -> Any:
    """OTLP/JSON has ids in hex where protobuf's own JSON has base64."""
    if isinstance(node, list):
        return [_hex_ids(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: base64.b64decode(value).hex() if key in ("traceId", "spanId", "parentSpanId") else _hex_ids(value)
        for key, value in node.items()
    }
