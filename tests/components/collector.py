"""The real OpenTelemetry Collector with the configurations of `collector-config/`.

What it received is read from the files of its file exporters: one OTLP/JSON export request per line.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tests.components.process import ComponentFailed, Process, free_ports, get_text

__all__ = ["CONFIG_FOLDER", "Collector", "Signal", "find_collector"]

CONFIG_FOLDER = Path(__file__).parents[2] / "collector-config"
Signal = Literal["traces", "logs", "metrics"]

_START_ATTEMPTS = 3
_POLL_SECONDS = 0.05


def find_collector() -> Path:
    """The collector that `make components` has found or built.

    Raises:
        FileNotFoundError: there is none; the message names the remedy.
    """
    found = subprocess.run(
        [CONFIG_FOLDER / "get-collector.sh", "--no-build"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise FileNotFoundError(found.stderr.strip())
    return Path(found.stdout.strip())


class Collector:
    """One running collector on its own ports, writing into its own folder."""

    def __init__(
        self,
        binary: Path,
        folder: Path,
        configs: Sequence[str | Path] = ("otelcol.yaml",),
        *,
        environment: Mapping[str, str] | None = None,
        overrides: Sequence[str] = ("processors::batch::timeout=50ms",),
    ) -> None:
        """Starts it and waits until it is healthy.

        Args:
            binary: from `find_collector`.
            folder: an empty folder for its files.
            configs: names in `collector-config/` or paths, later ones laid over earlier ones.
            environment: values for `${env:…}` in the configurations, besides the endpoints.
            overrides: `section::key=value` settings on top; the default makes batches leave at once.

        Raises:
            ComponentFailed: it did not become healthy; the message holds the end of its log.
        """
        self.binary = binary
        self.output = folder / "output"
        self.log = folder / "collector.log"
        command: list[str | Path] = [binary]
        for config in configs:
            command += ["--config", CONFIG_FOLDER / config]
        for override in overrides:
            command += ["--set", override]
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                self._start(command, environment or {})
                return
            except ComponentFailed as error:
                taken = "address already in use" in str(error)
                if not taken or attempt == _START_ATTEMPTS:
                    raise

    def _start(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        grpc, http, health, prometheus, telemetry = free_ports(5)
        self.grpc_endpoint = f"http://127.0.0.1:{grpc}"
        """For OTLP over gRPC."""
        self.http_endpoint = f"http://127.0.0.1:{http}"
        """For OTLP over HTTP: the base, without `/v1/traces`."""
        self.prometheus_target = f"127.0.0.1:{prometheus}"
        """For a scrape configuration; the path is `/metrics`."""
        self.process = Process(
            command,
            output=self.log,
            environment={
                "COLLECTOR_GRPC_ENDPOINT": f"127.0.0.1:{grpc}",
                "COLLECTOR_HTTP_ENDPOINT": f"127.0.0.1:{http}",
                "COLLECTOR_HEALTH_ENDPOINT": f"127.0.0.1:{health}",
                "COLLECTOR_PROMETHEUS_ENDPOINT": self.prometheus_target,
                "COLLECTOR_TELEMETRY_PORT": str(telemetry),
                "COLLECTOR_OUTPUT": str(self.output),
                **environment,
            },
        )
        self.process.wait_until_serving(f"http://127.0.0.1:{health}/")

    def file(self, signal: Signal) -> Path:
        """The JSON lines file of one signal; it may not exist yet."""
        return self.output / f"{signal}.jsonl"

    def received(self, signal: Signal) -> list[dict[str, Any]]:
        """The export requests so far, oldest first (`resourceSpans`, `resourceLogs` or `resourceMetrics`)."""
        path = self.file(signal)
        if not path.exists():
            return []
        # The last line may be half written; what follows the last newline waits for the next look.
        complete, _, _ = path.read_text().rpartition("\n")
        return [json.loads(line) for line in complete.splitlines()]

    def spans(self) -> list[dict[str, Any]]:
        """Every span received, as OTLP/JSON."""
        return [
            span
            for request in self.received("traces")
            for resource in request["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def log_records(self) -> list[dict[str, Any]]:
        """Every log record received, as OTLP/JSON."""
        return [
            record
            for request in self.received("logs")
            for resource in request["resourceLogs"]
            for scope in resource["scopeLogs"]
            for record in scope["logRecords"]
        ]

    def metrics(self) -> list[dict[str, Any]]:
        """Every metric received, as OTLP/JSON, once per export."""
        return [
            metric
            for request in self.received("metrics")
            for resource in request["resourceMetrics"]
            for scope in resource["scopeMetrics"]
            for metric in scope["metrics"]
        ]

    def wait_for(self, condition: Callable[[Collector], bool], *, seconds: float = 15.0) -> None:
        """Returns as soon as `condition(self)` holds.

        Raises:
            AssertionError: it does not after `seconds`; the message counts what has arrived.
        """
        deadline = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {seconds:g} s: the collector has {len(self.spans())} spans, "
                    f"{len(self.log_records())} log records, {len(self.metrics())} metrics; see {self.log}"
                )
            time.sleep(_POLL_SECONDS)

    def scrape(self) -> str:
        """What Prometheus would read now, in the OpenMetrics format (with exemplars)."""
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        return get_text(f"http://{self.prometheus_target}/metrics", headers=accept)

    def stop(self) -> None:
        """Ends it and waits; what it held is in the files afterwards."""
        self.process.stop()
