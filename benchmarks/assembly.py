"""What it costs to turn spans into sessions: CPU beside exporting the same spans, memory beside the text itself.

CPU: a stream of sessions made from the capture corpus, every copy with ids and strings of its own and many sessions
open at once, goes through the assembler; the same spans, as SDK spans, go through the OTLP/HTTP exporter to a server
in another process. Both in alternating chunks of one run; figures are process CPU per span.

Memory: conversations whose every model span repeats the whole history, held open by the assembler, against the bytes
of what was said, and against holding the SDK spans.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from benchmarks.report import goal, report
from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.spans.otlp_json import records_from_json
from otel_evals.spans.record import LogRecord_, SpanRecord
from tests.captures.corpus import files, rows
from tests.captures.renaming import renamed

SESSIONS_PER_CHUNK = 250
EXPORT_BATCH = 512
"""Spans per request, as BatchSpanProcessor has it."""
LIMITS = AssemblerLimits(idle_s=1e6, max_age_s=1e9)

SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def chunks(sessions: int, seed: int) -> Iterator[list[SpanRecord | LogRecord_]]:
    """Records of `sessions` sessions, interleaved span by span within each chunk."""
    rng = random.Random(seed)
    paths = [row["file"] for row in rows()]
    made = 0
    while made < sessions:
        queues: list[list[SpanRecord | LogRecord_]] = []
        while len(queues) < SESSIONS_PER_CHUNK:
            path = paths[rng.randrange(len(paths))]
            made += 1
            queues.append(list(copy_of(path, f"-{made}")))
        yield interleaved(queues, rng)


def copy_of(path: str, suffix: str) -> Iterator[SpanRecord | LogRecord_]:
    """One capture with ids of its own; its strings are fresh objects, as they are from the network."""
    contents = [files()[path]]
    if (logs := path.replace(".jsonl", ".logs.jsonl")) in files():
        contents.append(files()[logs])
    for content in contents:
        for line in content.splitlines():
            for record in records_from_json(orjson.loads(line)):
                yield renamed(record, suffix)


def interleaved(queues: list[list[SpanRecord | LogRecord_]], rng: random.Random) -> list[SpanRecord | LogRecord_]:
    out: list[SpanRecord | LogRecord_] = []
    places = [index for index, queue in enumerate(queues) for _ in queue]
    rng.shuffle(places)
    iterators = [iter(queue) for queue in queues]
    for index in places:
        out.append(next(iterators[index]))
    return out


def assemble(assembler: SessionAssembler, records: Sequence[SpanRecord | LogRecord_]) -> tuple[float, int]:
    """(CPU seconds, sessions) from record to session."""
    begin = time.process_time()
    for record in records:
        if isinstance(record, SpanRecord):
            assembler.add_span(record, 1)
        else:
            assembler.add_log(record, 1)
    sessions = sum(1 for _ in assembler.flush(2))
    return time.process_time() - begin, sessions


def sdk_span(record: SpanRecord, resource: Resource) -> ReadableSpan:
    """The record as the SDK span that it was."""
    return ReadableSpan(
        record.name,
        SpanContext(record.trace_id, record.span_id, False, TraceFlags(1)),
        SpanContext(record.trace_id, record.parent_id, False) if record.parent_id else None,
        resource,
        {key: sdk_value(value) for key, value in record.attributes.items()},
        [Event(e.name, {k: sdk_value(v) for k, v in e.attributes.items()}, e.time_ns) for e in record.events],
        (),
        SpanKind.INTERNAL,
        InstrumentationScope(record.scope.name, record.scope.version),
        Status(StatusCode.ERROR if record.status == "error" else StatusCode.UNSET),
        record.start_ns,
        record.end_ns,
    )


def sdk_value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return "" if value is None or isinstance(value, (dict, bytes)) else value


def export(exporter: OTLPSpanExporter, spans: Sequence[ReadableSpan]) -> float:
    """CPU seconds to encode and export."""
    begin = time.process_time()
    for at in range(0, len(spans), EXPORT_BATCH):
        exporter.export(spans[at : at + EXPORT_BATCH])
    return time.process_time() - begin


def measure_cpu(sessions: int) -> dict[str, Any]:
    """CPU µs per span both ways."""
    resource = Resource({"service.name": "travel-agent"})
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            exporter = OTLPSpanExporter(f"http://127.0.0.1:{int(server.stdout.readline())}/v1/traces")
            ours: list[float] = []
            theirs: list[float] = []
            spans = found = 0
            for chunk in chunks(sessions, seed=7):
                gc.collect()
                gc.freeze()  # the waiting records are the benchmark's, not the application's
                assembler = SessionAssembler(LIMITS)
                seconds, count = assemble(assembler, chunk)
                exported = [sdk_span(r, resource) for r in chunk if isinstance(r, SpanRecord)]
                ours.append(seconds / len(exported) * 1e6)
                theirs.append(export(exporter, exported) / len(exported) * 1e6)
                spans += len(exported)
                found += count
        finally:
            server.kill()
    cpu, beside = statistics.median(ours), statistics.median(theirs)
    return {
        "sessions": found,
        "spans": spans,
        "assembly_us_per_span": round(cpu, 1),
        "export_us_per_span": round(beside, 1),
        "ratio": round(cpu / beside, 3),
    }


# Memory


def conversation(turns: int, session: int) -> tuple[list[SpanRecord], int]:
    """(spans, bytes of unique text) of a conversation with a tool call and two model calls in every turn."""
    rng = random.Random(session)
    history: list[dict[str, Any]] = []
    spans: list[SpanRecord] = []
    said = 0
    for turn in range(turns):
        trace = rng.getrandbits(128)
        root = rng.getrandbits(64)
        start = turn * 10**9
        user, result, answer = words(rng, 200), words(rng, 3000), words(rng, 800)
        arguments = {"query": words(rng, 60)}
        said += len(user) + len(result) + len(answer) + 60
        history.append({"role": "user", "parts": [{"type": "text", "content": user}]})
        call = {"type": "tool_call", "id": f"call_{turn}", "name": "search", "arguments": arguments}
        asked = {"role": "assistant", "parts": [call]}
        spans.append(model(session, trace, root, rng, start + 1, history, asked))
        history.append(asked)
        response = {"type": "tool_call_response", "id": f"call_{turn}", "response": result}
        history.append({"role": "tool", "parts": [response]})
        final = {"role": "assistant", "parts": [{"type": "text", "content": answer}]}
        spans.append(model(session, trace, root, rng, start + 3, history, final))
        history.append(final)
        spans.append(tool(session, trace, root, rng, start + 2, turn, arguments, result))
        spans.append(agent(session, trace, root, start, user, answer))
    return spans, said


def words(rng: random.Random, length: int) -> str:
    text = " ".join(f"{rng.getrandbits(24):x}" for _ in range(length // 6))
    return text[:length].ljust(length, "x")


def model(
    session: int,
    trace: int,
    root: int,
    rng: random.Random,
    start: int,
    history: list[dict[str, Any]],
    out: dict[str, Any],
) -> SpanRecord:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": f"conversation-{session}",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.input.messages": json.dumps(history),
        "gen_ai.output.messages": json.dumps([out]),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
    }
    return SpanRecord(trace, rng.getrandbits(64), root, "chat gpt-4o", start, start + 1, attributes, 3)


def tool(
    session: int,
    trace: int,
    root: int,
    rng: random.Random,
    start: int,
    turn: int,
    arguments: dict[str, Any],
    result: str,
) -> SpanRecord:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": f"conversation-{session}",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": f"call_{turn}",
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": result,
    }
    return SpanRecord(trace, rng.getrandbits(64), root, "execute_tool search", start, start + 1, attributes)


def agent(session: int, trace: int, root: int, start: int, user: str, answer: str) -> SpanRecord:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": f"conversation-{session}",
        "gen_ai.agent.name": "travel",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": user}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]),
    }
    return SpanRecord(trace, root, None, "invoke_agent travel", start, start + 5, attributes)


def held(turns: int, sessions: int) -> dict[str, Any]:
    """Bytes held per open session by the assembler, and by keeping the SDK spans."""
    resource = Resource({"service.name": "travel-agent"})
    gc.collect()
    tracemalloc.start()
    assembler = SessionAssembler(LIMITS)
    before = tracemalloc.get_traced_memory()[0]
    said = 0
    for session in range(sessions):
        spans, size = conversation(turns, session)
        said += size
        for span in spans:
            assembler.add_span(span, 1)
        del spans, span
    gc.collect()
    ours = (tracemalloc.get_traced_memory()[0] - before) / sessions
    counted = assembler.buffered_bytes / sessions
    del assembler
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    kept = [sdk_span(span, resource) for session in range(sessions) for span in conversation(turns, session)[0]]
    gc.collect()
    theirs = (tracemalloc.get_traced_memory()[0] - before) / sessions
    assert kept
    tracemalloc.stop()
    unique = said / sessions
    return {
        "turns": turns,
        "unique_text_bytes": round(unique),
        "held_bytes": round(ours),
        "counted_bytes": round(counted),
        "readable_spans_bytes": round(theirs),
        "ratio": round(ours / unique, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=5000)
    given = parser.parse_args()
    memory = [held(5, 20), held(20, 8), held(80, 3)]
    cpu = measure_cpu(given.sessions)
    goals = {"assembly CPU beside export": goal(cpu["ratio"], "<= 0.25")}
    for entry in memory:
        goals[f"bytes held beside unique text, {entry['turns']} turns"] = goal(entry["ratio"], "<= 2")
    report("assembly", {"cpu": cpu, "memory": memory}, goals)


if __name__ == "__main__":
    main()
