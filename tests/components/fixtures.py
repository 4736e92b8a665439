"""pytest fixtures for the real components.

Where a component cannot be had, its tests are skipped with one line that names the remedy; in CI they fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.components.collector import Collector, find_collector
from tests.components.jaeger import Jaeger, find_jaeger
from tests.components.prometheus import Prometheus, find_prometheus

__all__ = [
    "collector",
    "collector_binary",
    "jaeger_binary",
    "prometheus_binaries",
    "start_collector",
    "start_jaeger",
    "start_prometheus",
]


def _find(find: Callable[[], Path]) -> Path:
    try:
        return find()
    except FileNotFoundError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def collector_binary() -> Path:
    """Path of a real collector."""
    return _find(find_collector)


@pytest.fixture
def start_collector(collector_binary: Path, tmp_path: Path) -> Iterator[Callable[..., Collector]]:
    """Starts collectors with the arguments of `Collector` after `folder`; all are stopped after the test."""
    with ExitStack() as running:

        def start(*args: Any, **kwargs: Any) -> Collector:
            started = Collector(collector_binary, _new_folder(tmp_path, "collector"), *args, **kwargs)
            running.callback(started.stop)
            return started

        yield start


@pytest.fixture
def collector(start_collector: Callable[..., Collector]) -> Collector:
    """A running collector with `otelcol.yaml`."""
    return start_collector()


@pytest.fixture(scope="session")
def prometheus_binaries() -> Path:
    """Folder with a real `prometheus` and `promtool`."""
    return _find(find_prometheus)


@pytest.fixture
def start_prometheus(prometheus_binaries: Path, tmp_path: Path) -> Iterator[Callable[..., Prometheus]]:
    """Starts Prometheus with the arguments of `Prometheus` after `folder`; all are stopped after the test."""
    with ExitStack() as running:

        def start(*args: Any, **kwargs: Any) -> Prometheus:
            started = Prometheus(prometheus_binaries, _new_folder(tmp_path, "prometheus"), *args, **kwargs)
            running.callback(started.stop)
            return started

        yield start


@pytest.fixture(scope="session")
def jaeger_binary() -> Path:
    """Path of a real Jaeger 2."""
    return _find(find_jaeger)


@pytest.fixture
def start_jaeger(jaeger_binary: Path, tmp_path: Path) -> Iterator[Callable[..., Jaeger]]:
    """Starts Jaeger with the arguments of `Jaeger` after `folder`; all are stopped after the test."""
    with ExitStack() as running:

        def start(*args: Any, **kwargs: Any) -> Jaeger:
            started = Jaeger(jaeger_binary, _new_folder(tmp_path, "jaeger"), *args, **kwargs)
            running.callback(started.stop)
            return started

        yield start


def _new_folder(parent: Path, name: str) -> Path:
    folder = parent / f"{name}-{len(list(parent.glob(f'{name}-*')))}"
    folder.mkdir()
    return folder
