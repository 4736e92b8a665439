"""Attaching without touching the code: `opentelemetry-instrument python app.py` with `OTEL_EVALS_*` variables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

APP = """
from opentelemetry import trace
from tests.agents import run_conversation

run_conversation(trace.get_tracer_provider(), "c-1")
"""


@pytest.fixture
def run_app(tmp_path: Path):  # type: ignore[no-untyped-def]
    (tmp_path / "app.py").write_text(APP)

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "OTEL_EVALS_"))}
        return subprocess.run(
            [Path(sys.executable).with_name("opentelemetry-instrument"), "python", str(tmp_path / "app.py")],
            env={
                **environment,
                "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}",
                "PYTHONPATH": os.getcwd(),
                "OTEL_TRACES_EXPORTER": "console",
                "OTEL_LOGS_EXPORTER": "none",
                "OTEL_METRICS_EXPORTER": "none",
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=90,
            check=True,
        )

    return run


def test_variables_attach_and_score(run_app) -> None:  # type: ignore[no-untyped-def]
    done = run_app(OTEL_EVALS_MODEL="rules", OTEL_EVALS_RATE="1.0")
    assert done.stdout.count('"name": "evaluate session"') == 1
    assert '"otel_evals.session.id": "c-1"' in done.stdout


def test_without_variables_nothing_is_attached(run_app) -> None:  # type: ignore[no-untyped-def]
    done = run_app()
    assert "invoke_agent" in done.stdout
    assert "evaluate session" not in done.stdout


def test_a_refused_variable_is_explained_and_the_application_runs(run_app) -> None:  # type: ignore[no-untyped-def]
    done = run_app(OTEL_EVALS_RATE="1.5")
    assert "invoke_agent" in done.stdout
    assert "OTEL_EVALS_RATE" in done.stderr
    assert "1.5" in done.stderr
