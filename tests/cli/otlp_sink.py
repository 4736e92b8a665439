"""An OTLP/HTTP receiver on loopback that keeps what it gets."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["OtlpSink", "otlp_sink"]


@dataclass
class OtlpSink:
    """What arrived, as protobuf messages."""

    url: str = ""
    spans: list[Any] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    metrics: list[Any] = field(default_factory=list)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Return as soon as the condition holds; it is looked at whenever something arrives.

        Raises:
            TimeoutError: it did not hold in time.
        """
        with self.arrived:
            if not self.arrived.wait_for(condition, timeout_s):
                raise TimeoutError(f"not after {timeout_s} s; {len(self.spans)} spans arrived")

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            request: Any = ExportTraceServiceRequest.FromString(body)
            self.spans += [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
        elif path == "/v1/logs":
            request = ExportLogsServiceRequest.FromString(body)
            self.logs += [g for r in request.resource_logs for c in r.scope_logs for g in c.log_records]
        else:
            request = ExportMetricsServiceRequest.FromString(body)
            self.metrics += [m for r in request.resource_metrics for c in r.scope_metrics for m in c.metrics]
        with self.arrived:
            self.arrived.notify_all()


@contextmanager
def otlp_sink() -> Iterator[OtlpSink]:
    """Serve on a free port."""
    sink = OtlpSink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sink.take(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sink.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
