"""OpenTelemetry providers for a command: silent, or exporting everything to one OTLP/HTTP endpoint."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

__all__ = ["EndpointError", "Providers", "check_endpoint", "providers"]

SIGNALS = ("traces", "logs", "metrics")
METRIC_INTERVAL_MS = 5_000
PROBE_TIMEOUT_S = 5.0


class EndpointError(Exception):
    """The OTLP endpoint cannot be used; the message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class Providers:
    """One provider for each signal, of the same resource."""

    tracers: TracerProvider
    loggers: LoggerProvider
    meters: MeterProvider


def check_endpoint(url: str) -> None:
    """Send an empty export request of each signal, so that a wrong endpoint is known before the work begins.

    Raises:
        EndpointError: nothing answers there, or what answers is no OTLP/HTTP receiver.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EndpointError(f"--otlp {url}: give the base URL of an OTLP/HTTP receiver, e.g. http://localhost:4318")
    for signal in SIGNALS:
        status = _probe(url, f"{parts.path.rstrip('/')}/v1/{signal}")
        if status >= 300:
            raise EndpointError(
                f"--otlp {url}: /v1/{signal} answered HTTP {status}; give the base URL of an "
                "OTLP/HTTP receiver that takes traces, logs and metrics"
            )


def _probe(url: str, path: str) -> int:
    """HTTP status of an empty OTLP request (an empty protobuf message has no bytes)."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=PROBE_TIMEOUT_S)
        try:
            connection.request("POST", path, body=b"", headers={"Content-Type": "application/x-protobuf"})
            return connection.getresponse().status
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise EndpointError(
            f"--otlp {url}: cannot be reached ({reason}); start a collector (see collector-config/) or leave --otlp out"
        ) from None


@contextmanager
def providers(service_name: str, otlp: str | None) -> Iterator[Providers]:
    """Providers that are flushed and shut down at the end.

    Args:
        service_name: `service.name` of the resource.
        otlp: base URL of an OTLP/HTTP receiver; None: nothing leaves the process.
    """
    resource = Resource.create({"service.name": service_name})
    made = _exporting(resource, otlp.rstrip("/")) if otlp else _silent(resource)
    try:
        yield made
    finally:
        for provider in (made.tracers, made.loggers, made.meters):
            provider.shutdown()


def _silent(resource: Resource) -> Providers:
    return Providers(
        TracerProvider(resource=resource, shutdown_on_exit=False),
        LoggerProvider(resource=resource, shutdown_on_exit=False),
        MeterProvider(resource=resource, shutdown_on_exit=False),
    )


def _exporting(resource: Resource, url: str) -> Providers:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    # Room for a burst: the simulation makes more spans per second than the default queue is meant for.
    tracers.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces"), max_queue_size=65_536, schedule_delay_millis=500)
    )
    loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs")))
    exporter: Any = OTLPMetricExporter(f"{url}/v1/metrics")
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=METRIC_INTERVAL_MS)
    return Providers(tracers, loggers, MeterProvider([reader], resource=resource, shutdown_on_exit=False))
