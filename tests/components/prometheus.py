"""The real Prometheus, scraping what a test names, and its HTTP API."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from tests.components.process import ComponentFailed, Process, free_ports, get_text

__all__ = ["Prometheus", "find_prometheus"]

_START_ATTEMPTS = 3
_POLL_SECONDS = 0.1


def find_prometheus() -> Path:
    """Folder with the `prometheus` and `promtool` that `make components` has found or fetched.

    Raises:
        FileNotFoundError: there is none; the message names the remedy.
    """
    script = Path(__file__).with_name("get-prometheus.sh")
    found = subprocess.run([script, "--no-fetch"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise FileNotFoundError(found.stderr.strip())
    return Path(found.stdout.strip())


class Prometheus:
    """One running Prometheus with exemplar storage, on its own port and folder."""

    def __init__(
        self,
        binaries: Path,
        folder: Path,
        targets: Sequence[str],
        *,
        scrape_interval: str = "250ms",
        rule_files: Sequence[Path] = (),
        evaluation_interval: str = "1s",
    ) -> None:
        """Starts it and waits until it is ready.

        Args:
            binaries: from `find_prometheus`.
            folder: an empty folder for its configuration and data.
            targets: `host:port` of each endpoint to scrape.

        Raises:
            ComponentFailed: it did not become ready; the message holds the end of its log.
        """
        self.log = folder / "prometheus.log"
        configuration = folder / "prometheus.yaml"
        configuration.write_text(
            yaml.safe_dump(
                {
                    "global": {
                        "scrape_interval": scrape_interval,
                        "evaluation_interval": evaluation_interval,
                    },
                    "rule_files": [str(path) for path in rule_files],
                    # `job` and `instance` come from service.name and service.instance.id of the app.
                    "scrape_configs": [
                        {
                            "job_name": "otelcol",
                            "honor_labels": True,
                            "static_configs": [{"targets": [*targets]}],
                        }
                    ],
                }
            )
        )
        for attempt in range(1, _START_ATTEMPTS + 1):
            [port] = free_ports(1)
            self.url = f"http://127.0.0.1:{port}"
            self.process = Process(
                [
                    binaries / "prometheus",
                    f"--config.file={configuration}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--enable-feature=exemplar-storage",
                    "--log.level=warn",
                ],
                output=self.log,
            )
            try:
                self.process.wait_until_serving(f"{self.url}/-/ready")
                return
            except ComponentFailed as error:
                if "address already in use" not in str(error) or attempt == _START_ATTEMPTS:
                    raise

    def query(self, expression: str, *, at: float | None = None) -> list[dict[str, Any]]:
        """Result of an instant query: series with `metric` and `value`.

        Args:
            at: epoch seconds; default now.

        Raises:
            OSError: Prometheus refused the expression.
        """
        result: list[dict[str, Any]] = self._get("query", query=expression, time=at or time.time())["result"]
        return result

    def exemplars(self, selector: str, *, seconds: float = 600.0) -> list[dict[str, Any]]:
        """Exemplars of the last `seconds`, per series: `seriesLabels` and `exemplars` with `labels.trace_id`."""
        now = time.time()
        found: list[dict[str, Any]] = self._get("query_exemplars", query=selector, start=now - seconds, end=now + 60)
        return found

    def wait_for(self, condition: Callable[[Prometheus], bool], *, seconds: float = 20.0) -> None:
        """Returns as soon as `condition(self)` holds.

        Raises:
            AssertionError: it does not after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > deadline:
                raise AssertionError(f"Prometheus did not get there within {seconds:g} s; see {self.log}")
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Ends it and waits."""
        self.process.stop()

    def _get(self, path: str, **parameters: Any) -> Any:
        return json.loads(get_text(f"{self.url}/api/v1/{path}?{urlencode(parameters)}"))["data"]
