"""Runs `otel-evals` as people do: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["otel_evals", "started"]

TIMEOUT_S = 150


@contextmanager
def started(*arguments: Any) -> Iterator[subprocess.Popen[str]]:
    """The command, running without a terminal and without settings from the environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    process = subprocess.Popen(
        [sys.executable, "-c", "from otel_evals.cli import main; main()", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "COLUMNS": "40"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def otel_evals(*arguments: Any, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; checks the exit code."""
    with started(*arguments) as process:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == expect, f"exit code {process.returncode}\n{output}\n{errors}"
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
