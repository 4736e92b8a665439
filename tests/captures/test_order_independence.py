"""The whole corpus in one stream: the same sessions come out, in whatever order and form the batches arrive."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import orjson
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_evals.sessions.assembler import SessionAssembler
from otel_evals.sessions.model import Session
from otel_evals.spans.otlp_json import records_from_json
from otel_evals.spans.otlp_protobuf import records_from_protobuf
from otel_evals.spans.record import LogRecord_, SpanRecord
from tests.captures.corpus import UNLIMITED, add, assemble, batches, rows
from tests.captures.renaming import renamed

pytestmark = pytest.mark.slow

Batch = list[SpanRecord | LogRecord_]


def stream() -> list[Batch]:
    """Every batch of every capture, the ids of each capture its own."""
    out: list[Batch] = []
    for number, row in enumerate(rows()):
        for batch in batches(row["file"]):
            out.append([renamed(record, f"-{number}") for record in records_from_json(batch)])
    return out


def essence(sessions: Iterable[Session]) -> Counter[str]:
    """What sessions say, as a multiset."""
    return Counter(
        orjson.dumps(session.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS).decode() for session in sessions
    )


@pytest.fixture(scope="module")
def one_by_one() -> Counter[str]:
    found: Counter[str] = Counter()
    for number, row in enumerate(rows()):
        given = [renamed(r, f"-{number}") for batch in batches(row["file"]) for r in records_from_json(batch)]
        found += essence(assemble(given))
    return found


def assembled_together(given: list[Batch]) -> list[Session]:
    limits = UNLIMITED
    assembler = SessionAssembler(limits)
    for batch in given:
        add(assembler, batch)
    sessions = list(assembler.flush(2))
    assert assembler.poisoned == 0
    return sessions


def test_all_captures_in_one_stream_give_the_same_sessions(one_by_one: Counter[str]) -> None:
    together = essence(assembled_together(stream()))
    assert not one_by_one - together
    assert not together - one_by_one


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_batches_does_not_matter(one_by_one: Counter[str], seed: int) -> None:
    shuffled = stream()
    random.Random(seed).shuffle(shuffled)
    together = essence(assembled_together(shuffled))
    assert not one_by_one - together
    assert not together - one_by_one


def test_a_redelivered_batch_changes_nothing(one_by_one: Counter[str]) -> None:
    twice = [batch for batch in stream() for _ in range(2)]
    random.Random(4).shuffle(twice)
    assert essence(assembled_together(twice)) == one_by_one


def test_protobuf_and_json_give_the_same_records() -> None:
    for row in rows():
        for batch in batches(row["file"]):
            kind = ExportLogsServiceRequest if "resourceLogs" in batch else ExportTraceServiceRequest
            request = json_format.ParseDict(_with_base64_ids(batch), kind(), ignore_unknown_fields=True)
            assert list(records_from_protobuf(request)) == list(records_from_json(batch)), row["file"]


def _with_base64_ids(value: object) -> object:
    """protobuf's own JSON mapping writes ids in base64 where OTLP/JSON has hex."""
    import base64

    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(item)).decode()
            if key in ("traceId", "spanId", "parentSpanId") and isinstance(item, str)
            else _with_base64_ids(item)
            for key, item in value.items()
        }
    return [_with_base64_ids(item) for item in value] if isinstance(value, list) else value
