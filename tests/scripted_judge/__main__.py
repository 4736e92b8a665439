"""Run the server by hand: `python -m tests.scripted_judge --port 0 --script FILE`.

The script is JSON: `{"delay_s": 0.2, "answers": {"failure_rate.label": "stall"},
"scripts": [{"model": "agent", "contains": "Lisbon", "steps": [{"tool": "search", "arguments": {}}, {"text": "…"}]}],
"faults": [{"kind": "rate_limited", "times": 2, "retry_after": 1}]}`. The base URL is printed on the first line.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.scripted_judge.server import ScriptedJudge
from tests.scripted_judge.steps import Step, call_tool, fail, say


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripted_judge", description="An OpenAI-compatible server that answers by script"
    )
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--script", type=Path, help="JSON file; default: valid answers to every schema")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds that every answer takes")
    arguments = parser.parse_args()
    judge = ScriptedJudge(port=arguments.port, delay_s=arguments.delay)
    if arguments.script:
        load(judge, json.loads(arguments.script.read_text("utf-8")))
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with judge:
        print(judge.base_url, flush=True)
        stopped.wait()


def load(judge: ScriptedJudge, script: dict[str, Any]) -> None:
    """Apply a script file."""
    judge.delay_s = script.get("delay_s", judge.delay_s)
    for path, value in script.get("answers", {}).items():
        judge.label(path, value)
    for entry in script.get("scripts", ()):
        contains = entry.get("contains")
        steps = [_step(step) for step in entry["steps"]]
        judge.script(*steps, model=entry.get("model"), when=_says(contains) if contains else None)
    for fault in script.get("faults", ()):
        judge.fault(**fault)


def _step(entry: dict[str, Any]) -> Step:
    if "fault" in entry:
        return fail(entry["fault"], **entry.get("options", {}))
    if "tool" in entry:
        return call_tool(entry["tool"], entry.get("arguments"), text=entry.get("text"))
    return say(entry["text"])


def _says(text: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: any(text in json.dumps(m, ensure_ascii=False) for m in body.get("messages", ()))


if __name__ == "__main__":
    main()
