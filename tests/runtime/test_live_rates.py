"""Changing rates while it runs, by file and by budget; the remote endpoint has a test with a real Jaeger."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest

from otel_evals import Settings, SettingsError
from tests.agents import run_conversation, run_turn
from tests.runtime.conftest import App


def wait_for_rate(app: App, rate: float) -> None:
    deadline = time.monotonic() + 10
    while set(app.handle.stats()["rates"].values()) != {rate}:
        assert time.monotonic() < deadline, app.handle.stats()["rates"]
        time.sleep(0.01)


def test_an_edited_file_changes_the_probability_on_the_results(
    make_app: Callable[..., App], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "evals.yaml"
    path.write_text("rate: 1.0\n")
    monkeypatch.setenv("OTEL_EVALS_CONFIG", str(path))
    app = make_app(rate=1.0)
    path.write_text("rate: 0.0\n")
    wait_for_rate(app, 0.0)
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"sampled_out": 1}
    path.write_text("rate: 0.9\n")
    wait_for_rate(app, 0.9)
    for number in range(20):
        run_conversation(app.tracer_provider, f"d-{number}")
    assert app.complete()
    assert {evaluation.probability for result in app.results for evaluation in result.evaluations} == {0.9}


def test_a_refused_edit_keeps_the_old_rates(
    make_app: Callable[..., App],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "evals.yaml"
    path.write_text("rate: 0.5\n")
    monkeypatch.setenv("OTEL_EVALS_CONFIG", str(path))
    app = make_app(rate=0.5)
    path.write_text("rate: 7\n")
    assert app.handle.reload() is False
    assert set(app.handle.stats()["rates"].values()) == {0.5}
    assert "refused" in caplog.text


def test_rates_come_from_a_remote_sampling_endpoint(make_app: Callable[..., App]) -> None:
    asked: list[str] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            names = ("failure_rate", "goal_achievement", "failure_communication")
            strategies = [{"operation": name, "probabilisticSampling": {"samplingRate": 0.25}} for name in names]
            answer = {
                "strategyType": "PROBABILISTIC",
                "operationSampling": {"defaultSamplingProbability": 1.0, "perOperationStrategies": strategies},
            }
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        app = make_app(
            remote_sampling_url=f"http://127.0.0.1:{server.server_port}/api/sampling", remote_sampling_interval=0.05
        )
        wait_for_rate(app, 0.25)
        assert asked[0].startswith("/api/sampling?service=")
        app.handle.shutdown()
        deadline = time.monotonic() + 10
        while [thread for thread in threading.enumerate() if thread.name.startswith("otel-evals")]:
            assert time.monotonic() < deadline, "a thread of ours outlives the shutdown"
            time.sleep(0.01)
    finally:
        server.shutdown()
        server.server_close()


def test_what_a_budget_refuses_is_counted_and_the_ledger_holds(make_app: Callable[..., App]) -> None:
    app = make_app(budget_evaluations_per_minute=6)
    for number in range(40):
        run_conversation(app.tracer_provider, f"c-{number}")
    assert app.complete()
    decisions = app.handle.stats()["decisions"]
    assert decisions["judged"] <= 7
    assert decisions["over_budget"] >= 1
    assert sum(decisions.values()) == app.handle.stats()["sessions_completed"] == 40


def test_a_shutdown_closes_the_file_of_a_shared_budget(make_app: Callable[..., App], tmp_path: Path) -> None:
    path = tmp_path / "budget.sqlite"
    app = make_app(budget_evaluations_per_minute=60, budget_file=str(path))
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    app.handle.shutdown()
    assert not [file.path for file in psutil.Process().open_files() if file.path.startswith(str(path))]
    assert app.handle.stats()["decisions"] == {"judged": 1}


def test_a_money_budget_with_a_judge_of_unknown_price_is_refused_at_start(make_app: Callable[..., App]) -> None:
    with pytest.raises(SettingsError, match="price"):
        make_app(model="gpt-4o", api_key="k", budget_usd_per_day=5)


def test_experiments_are_filtered_by_default(app: App) -> None:
    run_turn(app.tracer_provider, "c-1", "Hello", "Hi, how can I help?", attributes={"otel_evals.experiment": "e-1"})
    assert app.complete()
    assert app.handle.stats()["decisions"] == {"filtered": 1}


def test_evidence_of_trouble_is_always_judged_while_nobody_set_a_rate(make_app: Callable[..., App]) -> None:
    quiet = make_app(unset_rate=True)
    for number in range(10):
        run_turn(
            quiet.tracer_provider, f"c-{number}", "Find me a flight.", "SK 4412 leaves at 08:05.", tool_error="timed out"
        )  # fmt: skip
    assert quiet.complete()
    assert {result.rule for result in quiet.results} == {"evidence"}
    assert quiet.handle.stats()["decisions"] == {"judged": 10}
    assert Settings().rate == 0.1
