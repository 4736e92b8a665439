"""How fast and at what CPU cost sessions are judged: 200 sessions, a judge that takes 200 ms, 50 calls at once.

The judge is the scripted server in its own process. The whole judging side of the pipeline runs: queue, transcript,
call, parsing, evidence check, scores; only telemetry is left out. The ideal wall time is that of the judge alone.
With `--peers PYTHON` two released libraries do the same work with the interpreter of an environment of theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.report import goal, report
from otel_evals import Session, Settings, ToolCall, ToolFailure, Turn
from otel_evals.evaluation import JudgedSession, JudgeTask
from otel_evals.judging.models.litellm_model import LiteLLMModel
from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from otel_evals.judging.models.protocol import JudgeModel
from otel_evals.pipeline import Pipeline

ROOT = Path(__file__).parent.parent
KEY = "sk-benchmark"

DIALOGUE = [
    ("Find me a flight from SFO to JFK on May 20.", "I could not search: the flight service timed out. Shall I retry?"),
    ("Yes please.", "Found three flights. The cheapest is NW212 at 09:40 for $212."),
    ("Is there one in the evening?", "Yes, NW218 leaves at 18:05 and costs $245."),
    ("Great, book that one.", "Booked: NW218 on May 20, confirmation code QX7R2P."),
]


QUOTE = "I could not search: the flight service timed out."
ANSWERS: dict[str, Any] = {
    "failure_rate.turns": [{"turn": 0, "quote": QUOTE, "label": "honest_fallback"}],
    "failure_rate.label": "honest_fallback",
    "goal_achievement.label": "fully",
    "goal_achievement.negative_signals": [],
    "failure_communication.failures": [
        {
            "failure": 1,
            "turn": 0,
            "quote": QUOTE,
            "told": "explained",
            "cause": True,
            "next_step": "generic",
            "internals": False,
            "tone": "fitting",
        }
    ],
}


def session(number: int) -> Session:
    """Four turns of an agent with tools, one of which failed."""
    turns = []
    for index, (user, agent) in enumerate(DIALOGUE):
        failure = ToolFailure(type="TimeoutError", message="no reply within 30 s") if index == 0 else None
        call = ToolCall(
            id=f"call_{index}",
            name="search_flights" if index < 3 else "book_flight",
            arguments={"origin": "SFO", "destination": "JFK", "date": "2027-05-20"},
            result=None if failure else {"flights": [{"number": "NW212", "price": 212}] * 3},
            error=failure,
        )
        turns.append(Turn(user=user, agent=agent, tool_calls=(call,), trace_id=f"{number + 1:032x}"))
    return Session(session_id=f"session-{number}", session_key="session.id", turns=tuple(turns), agents=("travel",))


@contextmanager
def judge_process(delay_s: float) -> Iterator[str]:
    """The scripted judge in a process of its own; gives its base URL."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        json.dump({"answers": ANSWERS, "delay_s": delay_s}, script)
        script.flush()
        command = [sys.executable, "-m", "tests.scripted_judge", "--script", script.name]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
    try:
        yield base_url
    finally:
        process.terminate()
        process.wait()


def judge(model: JudgeModel, sessions: int, concurrency: int, rounds: int) -> dict[str, Any]:
    """Median wall and CPU seconds of judging so many sessions, after one that loads and connects."""
    settings = Settings(rate=1.0, judge_concurrency=concurrency, queue_capacity=sessions)
    results: list[JudgedSession] = []
    wall, cpu = [], []

    async def run() -> None:
        pipeline = Pipeline(settings, model=model, on_result=results.append)
        for count in [1, *[sessions] * rounds]:
            results.clear()
            for number in range(count):
                probabilities = dict.fromkeys(settings.evaluators, 1.0)
                task = JudgeTask(session=session(number), probabilities=probabilities, enqueued_ns=time.time_ns())
                assert pipeline.queue.put(task)
            began, used = time.perf_counter(), time.process_time()
            await pipeline.judge_all()
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
            assert len(results) == count
        await pipeline.close()

    asyncio.run(run())
    outcomes = collections.Counter(e.outcome for judged in results for e in judged.evaluations)
    calls = sum(judged.judgement.calls for judged in results)
    return {
        "first_session_s": round(wall[0], 2),
        "wall_s": round(statistics.median(wall[1:]), 3),
        "cpu_ms_per_session": round(statistics.median(cpu[1:]) * 1000 / sessions, 2),
        "calls_per_session": calls / sessions,
        "outcomes": dict(outcomes),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--delay", type=float, default=0.2, help="seconds that the judge takes")
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    ideal_s = -(-arguments.sessions // arguments.concurrency) * arguments.delay
    figures: dict[str, Any] = {
        "sessions": arguments.sessions,
        "judge_s": arguments.delay,
        "concurrency": arguments.concurrency,
        "ideal_s": ideal_s,
    }
    with judge_process(arguments.delay) as base_url:
        # aiohttp first: its memory is then measured without litellm's.
        for name, model in (
            ("aiohttp", OpenAICompatibleModel("judge", base_url, KEY)),
            ("litellm", LiteLLMModel("openai/judge", KEY, base_url)),
        ):
            figures[name] = judge(model, arguments.sessions, arguments.concurrency, arguments.rounds)
            ratio = figures[name]["wall_s"] / ideal_s
            figures[name]["wall_to_ideal"] = round(ratio, 3)
            print(f"{name:8s} {json.dumps(figures[name])}")
    report(
        "judge_throughput",
        figures,
        {
            "aiohttp_wall_to_ideal": goal(figures["aiohttp"]["wall_to_ideal"], "<= 1.25"),
            "litellm_wall_to_ideal": goal(figures["litellm"]["wall_to_ideal"], "<= 1.25"),
        },
    )


if __name__ == "__main__":
    main()
