"""`otel-evals demo`, run as a command."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import pytest

from otel_evals.simulation.planner import plan_sessions
from tests.cli.command import otel_evals, started
from tests.cli.otlp_sink import otlp_sink
from tests.scripted_judge import ScriptedJudge

SMALL = ("--sessions", 40, "--speed", 300)


@pytest.fixture(scope="module")
def output() -> str:
    return otel_evals("demo", *SMALL).stdout


def test_every_session_is_completed_and_judged(output: str) -> None:
    assert "Sessions: 40 completed (40 judged)" in output


def test_the_judge_is_labelled_as_rules(output: str) -> None:
    assert "Judge: rules (deterministic checks, no language model)" in output


@pytest.mark.parametrize(
    "measure",
    [
        r"Failure rate\s.*\d+\.\d %\s.*\d+\.\d – \d+\.\d %",
        r"Goal achievement, mean score\s.*\d\.\d\d\s.*\d\.\d\d – \d\.\d\d",
        r"Goal achievement, passed\s.*\d+\.\d %\s.*\d+\.\d – \d+\.\d %",
        r"Failure communication, mean score\s.*\d\.\d\d\s.*\d\.\d\d – \d\.\d\d",
        r"Failure communication, passed\s.*\d+\.\d %\s.*\d+\.\d – \d+\.\d %",
    ],
)
def test_every_measure_has_its_interval(output: str, measure: str) -> None:
    assert re.search(measure, output)


def test_the_worst_three_sessions_are_quoted(output: str) -> None:
    worst = output[output.index("Worst 3 sessions") : output.index("What the simulator injected")]
    assert len(re.findall(r"^\d\. sim-7-", worst, re.M)) == 3
    assert re.search(r'turn \d, agent: ".+"', worst)


def test_what_was_injected_is_told_honestly(output: str) -> None:
    plan = plan_sessions(40, seed=7)
    fabricated = sum(session.behaviour == "fabricated" for session in plan)
    assert re.search(rf"made the answer up\s+\S?\s+{fabricated} ", output)
    faults = sum(session.fault is not None for session in plan)
    told = output[output.index("  Faults:") :].splitlines()[0]
    assert sum(map(int, re.findall(r" (\d+)", told))) == faults


def test_output_without_a_terminal_is_plain(output: str) -> None:
    assert "\x1b" not in output
    assert max(map(len, output.splitlines())) <= 100


def test_the_picture_for_the_readme_is_drawn_from_a_real_run(tmp_path: Path) -> None:
    target = tmp_path / "demo.svg"
    script = Path(__file__).parents[2] / "docs" / "render_demo.py"
    subprocess.run([sys.executable, script, "--sessions", "5", "--target", target], check=True, timeout=120)
    text = "".join(ElementTree.parse(target).getroot().itertext()).replace("\xa0", " ")
    assert "Sessions: 5 completed (5 judged)" in text


def test_the_same_seed_gives_the_same_output(output: str) -> None:
    assert otel_evals("demo", *SMALL).stdout == output


def test_a_lower_rate_judges_fewer_sessions_and_accounts_for_the_others() -> None:
    found = re.search(
        r"40 completed \((\d+) judged, (\d+) sampled_out\)", otel_evals("demo", *SMALL, "--rate", 0.5).stdout
    )
    assert found
    assert int(found[1]) + int(found[2]) == 40


def test_with_otlp_spans_events_and_metrics_arrive() -> None:
    with otlp_sink() as sink:
        output = otel_evals("demo", *SMALL, "--otlp", sink.url).stdout
    assert f"sent to {sink.url}" in output
    assert sum(span.name == "evaluate session" for span in sink.spans) == 40
    assert sum(span.name.startswith("invoke_agent") for span in sink.spans) > 40
    assert sum(record.event_name == "gen_ai.evaluation.result" for record in sink.logs) == 3 * 40
    assert {"gen_ai.evaluation.score", "otel_evals.sessions"} <= {metric.name for metric in sink.metrics}


def test_a_language_model_can_be_the_judge(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.answer(label="mostly")
    output = otel_evals("demo", *SMALL, "--model", "scripted", "--base-url", scripted_judge.base_url).stdout
    assert re.search(r"Judge: scripted; \d+ model calls, \d+ tokens, cost unknown", output)
    assert "Goal achievement: mostly 40" in output


def test_a_judge_that_never_answers_ends_with_exit_code_1_and_the_reason() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        output = otel_evals("demo", "--sessions", 5, "--speed", 2000, "--model", "gone", "--base-url", url, expect=1)
    assert "5 unscorable" in output.stdout or "unscorable: " in output.stdout


def test_an_interrupted_demo_reports_what_it_has() -> None:
    with otlp_sink() as sink, started("demo", "--sessions", 2000, "--otlp", sink.url) as process:
        sink.wait_for(lambda: any(span.name == "evaluate session" for span in sink.spans))
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert re.search(r"Sessions: [1-9]\d* completed", output)
    assert errors == ""


def refused(*arguments: object) -> str:
    """The one line on standard error of a run that is refused."""
    done = otel_evals("demo", *SMALL, *arguments, expect=2)
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line


def test_an_unreachable_endpoint_is_one_line() -> None:
    with socket.socket() as held:  # bound but not listening: connections are refused
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        assert re.search(rf"{url}: cannot be reached \(Connection refused\); start a collector", refused("--otlp", url))


def test_an_endpoint_that_is_no_receiver_is_one_line() -> None:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        line = refused("--otlp", f"http://127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()
    assert "/v1/traces answered HTTP 501" in line


def test_an_endpoint_without_scheme_is_one_line() -> None:
    assert "e.g. http://localhost:4318" in refused("--otlp", "localhost:4318")


@pytest.mark.parametrize("rate", ["-0.1", "1.5", "nan"])
def test_a_rate_out_of_bounds_is_one_line(rate: str) -> None:
    assert "rate=" in refused(f"--rate={rate}")
