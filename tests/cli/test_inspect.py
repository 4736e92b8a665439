"""`otel-evals inspect`: which sessions are in recorded files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.captures.corpus import files

CAPTURE = "otel_genai__openai-v2/default_log_events/tool_error_honest.jsonl"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A capture whose content is all in log records, with its log file beside it."""
    path = tmp_path / "capture.jsonl"
    path.write_bytes(files()[CAPTURE])
    path.with_name("capture.logs.jsonl").write_bytes(files()[CAPTURE.replace(".jsonl", ".logs.jsonl")])
    return path


def inspect(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from otel_evals.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "inspect", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_json_has_one_line_per_session_and_reads_the_logs_beside_the_spans(recorded: Path) -> None:
    done = inspect("--json", "--isolate", str(recorded))
    assert done.returncode == 0
    [line] = done.stdout.splitlines()
    found = orjson.loads(line)
    assert found["file"] == str(recorded)
    turns = found["session"]["turns"]
    assert [turn["user"] for turn in turns] == [
        "Find me a flight from SFO to JFK on May 20.",
        "OK, I will try again later. Thank you.",
    ]
    assert turns[0]["tool_calls"][0]["error"]["message"] == "Tool call timed out after 30s"


def test_isolated_files_are_assembled_each_on_its_own(recorded: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(recorded.read_bytes())
    other.with_name("other.logs.jsonl").write_bytes(recorded.with_name("capture.logs.jsonl").read_bytes())
    together = inspect("--json", str(recorded), str(other))
    apart = inspect("--json", "--isolate", str(recorded), str(other))
    assert len(together.stdout.splitlines()) == 1
    assert len(apart.stdout.splitlines()) == 2


def test_the_transcript_shows_turns_and_marks_failures(recorded: Path) -> None:
    done = inspect(str(recorded))
    assert "Find me a flight from SFO to JFK" in done.stdout
    assert "FAILED" in done.stdout
    assert "timed out after 30s" in done.stdout


def test_explanations_name_the_attribute_of_each_fact(recorded: Path) -> None:
    done = inspect("--explain", str(recorded))
    assert "tool_arguments from gen_ai.tool.call.arguments" in done.stdout


def test_a_file_that_is_no_otlp_json_is_named_with_the_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"resourceSpans": []}\nnonsense\n')
    done = inspect(str(broken))
    assert done.returncode == 1
    assert f"{broken}, line 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_with_json_a_broken_file_is_a_line_and_the_others_are_read(recorded: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("nonsense\n")
    done = inspect("--json", "--isolate", str(broken), str(recorded))
    first, second = (orjson.loads(line) for line in done.stdout.splitlines())
    assert (first["file"], first["session"]) == (str(broken), None)
    assert second["session"]["evaluable"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    done = inspect(str(tmp_path / "nowhere.jsonl"))
    assert done.returncode == 1
    assert "nowhere.jsonl" in done.stderr


def test_inspect_loads_no_judge(recorded: Path) -> None:
    code = (
        "import sys\n"
        "from otel_evals.cli import main\n"
        "try: main()\n"
        "finally: sys.stderr.write(' '.join(m for m in ('litellm', 'aiohttp', 'aiokafka') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "inspect", "--json", str(recorded)], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""


def test_explain_says_what_the_hooks_would_leave_out(tmp_path: Path) -> None:
    def attribute(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "value": {"stringValue": value}}

    attributes = [attribute("acme.type", "agent"), attribute("acme.input", "Hi"), attribute("acme.output", "Hello.")]
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "turn", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    recorded = tmp_path / "acme.jsonl"
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": attributes}]}]}]}
    recorded.write_bytes(orjson.dumps(request) + b"\n")
    shown = inspect("--explain", str(recorded)).stdout
    assert "Hello." in shown
    assert "OTEL_EVALS_MARKER_ATTRIBUTES=acme.type lets 1 of them in" in shown
    assert "OTEL_EVALS_MARKER_ATTRIBUTES" not in inspect(str(recorded)).stdout
