"""The real Jaeger 2 with `collector-config/jaeger/jaeger.yaml`: the trace store of the tests, and the standard server for remote sampling rates."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from tests.components.collector import CONFIG_FOLDER
from tests.components.process import ComponentFailed, Process, free_ports, get_text

__all__ = ["Jaeger", "find_jaeger"]

_START_ATTEMPTS = 3
_POLL_SECONDS = 0.1


def find_jaeger() -> Path:
    """The Jaeger that `make jaeger` has found or built.

    Raises:
        FileNotFoundError: there is none; the message names the remedy.
    """
    script = Path(__file__).with_name("get-jaeger.sh")
    found = subprocess.run([script, "--no-build"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise FileNotFoundError(found.stderr.strip())
    return Path(found.stdout.strip())


class Jaeger:
    """One running Jaeger on its own ports, with an empty store."""

    def __init__(self, binary: Path, folder: Path, rates: Path | None = None) -> None:
        """Starts it and waits until it is healthy.

        Args:
            binary: from `find_jaeger`.
            folder: an empty folder for its log.
            rates: sampling strategies to serve instead of those in `collector-config/`; read anew within a second
                of a change.

        Raises:
            ComponentFailed: it did not become healthy; the message holds the end of its log.
        """
        self.log = folder / "jaeger.log"
        for attempt in range(1, _START_ATTEMPTS + 1):
            health, query, query_grpc, sampling, sampling_grpc, otlp = free_ports(6)
            self.otlp_endpoint = f"http://127.0.0.1:{otlp}"
            """For OTLP over HTTP: the base, without `/v1/traces`."""
            self.query_url = f"http://127.0.0.1:{query}"
            self.sampling_url = f"http://127.0.0.1:{sampling}/api/sampling"
            """Answers `?service=NAME`."""
            self.process = Process(
                [binary, "--config", CONFIG_FOLDER / "jaeger" / "jaeger.yaml"],
                output=self.log,
                environment={
                    "JAEGER_HEALTH_PORT": str(health),
                    "JAEGER_QUERY_PORT": str(query),
                    "JAEGER_QUERY_GRPC_PORT": str(query_grpc),
                    "JAEGER_SAMPLING_PORT": str(sampling),
                    "JAEGER_SAMPLING_GRPC_PORT": str(sampling_grpc),
                    "JAEGER_OTLP_PORT": str(otlp),
                    "JAEGER_RATES": str(rates or CONFIG_FOLDER / "jaeger" / "rates.json"),
                },
            )
            try:
                self.process.wait_until_serving(f"http://127.0.0.1:{health}/status")
                return
            except ComponentFailed as error:
                if "address already in use" not in str(error) or attempt == _START_ATTEMPTS:
                    raise

    def spans(self, trace_id: str) -> list[dict[str, Any]]:
        """The stored spans of a trace as OTLP/JSON; none if Jaeger does not know it.

        Args:
            trace_id: 32 hexadecimal digits.
        """
        try:
            answer = json.loads(get_text(f"{self.query_url}/api/v3/traces/{trace_id}"))
        except HTTPError as error:
            if error.code == 404:
                return []
            raise
        return [
            span
            for resource in answer["result"]["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def wait_for_spans(self, trace_id: str, *names: str, seconds: float = 15.0) -> list[dict[str, Any]]:
        """The spans of a trace as soon as there is one of each name.

        Raises:
            AssertionError: one is missing after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while True:
            spans = self.spans(trace_id)
            missing = set(names) - {span["name"] for span in spans}
            if not missing:
                return spans
            if time.monotonic() > deadline:
                raise AssertionError(f"Jaeger has no {sorted(missing)} in trace {trace_id}; see {self.log}")
            time.sleep(_POLL_SECONDS)

    def sampling(self, service: str) -> dict[str, Any]:
        """What a remote sampler of `service` is told now."""
        answer: dict[str, Any] = json.loads(get_text(f"{self.sampling_url}?service={service}"))
        return answer

    def stop(self) -> None:
        """Ends it at once: the store is in memory, and an orderly end takes ten seconds."""
        self.process.kill()
