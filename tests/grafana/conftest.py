"""The filled Prometheus, once per test run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.grafana.filled import Filled, filled_prometheus


@pytest.fixture(scope="session")
def filled(
    collector_binary: Path, prometheus_binaries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    """2,100 scored sessions of two services and three agents in a real Prometheus, and 120 more that came later."""
    with filled_prometheus(collector_binary, prometheus_binaries, tmp_path_factory.mktemp("filled")) as made:
        yield made
