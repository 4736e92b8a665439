"""Prefork servers: attached before the fork, each worker scores its own sessions once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components.process import free_ports

APP = """
import json, os
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
import otel_evals
from tests.agents import run_conversation

class FileExporter(SpanExporter):
    def export(self, spans):
        with open(os.environ["SPANS"], "a") as out:
            for span in spans:
                if span.name == "evaluate session":
                    session = span.attributes["otel_evals.session.id"]
                    out.write(json.dumps({"pid": os.getpid(), "session": session}) + "\\n")
        return SpanExportResult.SUCCESS

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(FileExporter()))
handle = otel_evals.attach(
    provider, settings=otel_evals.Settings(rate=1.0, idle_timeout=0.2, poll_interval=0.02)
)
run_conversation(provider, "before-the-fork")

def app(environ, start_response):
    session = environ["PATH_INFO"].strip("/")
    run_conversation(provider, session)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, subprocess.Popen[bytes]]]:
    (tmp_path / "prefork_app.py").write_text(APP)
    spans = tmp_path / "spans.jsonl"
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [
            sys.executable, "-m", "gunicorn", "--preload", "--workers", "4", "--bind", f"127.0.0.1:{port}",
            "--pythonpath", str(tmp_path), "prefork_app:app",
        ],
        env={**os.environ, "SPANS": str(spans), "PYTHONPATH": os.getcwd()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}", spans, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def test_four_prefork_workers_score_their_own_sessions_once(
    server: tuple[str, Path, subprocess.Popen[bytes]],
) -> None:
    url, spans, _ = server
    served: dict[str, int] = {}
    deadline = time.monotonic() + 60
    number = 0
    # Until every worker has served at least one session.
    while len(set(served.values())) < 4 or number < 12:
        assert time.monotonic() < deadline, f"only workers {set(served.values())} answered"
        try:
            with urllib.request.urlopen(f"{url}/session-{number}", timeout=5) as response:
                served[f"session-{number}"] = int(response.read())
            number += 1
        except OSError:
            time.sleep(0.1)  # not up yet
    expected = len(served) + 1
    while not spans.exists() or len(spans.read_text().splitlines()) < expected:
        assert time.monotonic() < deadline, "not all sessions were scored"
        time.sleep(0.05)
    time.sleep(0.5)  # a second score of the same session would come now
    scored = [json.loads(line) for line in spans.read_text().splitlines()]
    assert Counter(row["session"] for row in scored) == Counter([*served, "before-the-fork"])
    assert {row["session"]: row["pid"] for row in scored if row["session"] in served} == served


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_that_runs_no_fork_hooks_is_noticed_by_its_process_id(tmp_path: Path) -> None:
    """uwsgi forks from C without Python's hooks: simulated by a child whose buffer still has the parent's pid."""
    program = f"""
import os, sys
from opentelemetry.sdk.trace import TracerProvider
import otel_evals
from tests.agents import run_conversation
provider = TracerProvider()
handle = otel_evals.attach(provider, settings=otel_evals.Settings(rate=1.0))
run_conversation(provider, "parent")
runtime = handle._runtime
after_fork, runtime.after_fork = runtime.after_fork, lambda: None
child = os.fork()
if child == 0:
    del runtime.after_fork
    runtime.buffer.pid = os.getppid()
    run_conversation(provider, "child")
    assert handle.force_flush(10_000, complete=True)
    open({str(tmp_path / "child")!r}, "w").write(repr(handle.stats()["decisions"]))
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert handle.force_flush(10_000, complete=True)
assert handle.stats()["decisions"] == {{"judged": 1}}
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert (tmp_path / "child").read_text() == "{'judged': 1}"
