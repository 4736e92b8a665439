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
from otel_evals import Settings
from otel_evals.evaluation import JudgedSession, JudgeTask
from otel_evals.judging.models.litellm_model import LiteLLMModel
from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from otel_evals.judging.models.protocol import JudgeModel
from otel_evals.pipeline import Pipeline
from tests.judging.scripted import FAILED, answers

ROOT = Path(__file__).parent.parent
KEY = "sk-benchmark"

# What the peers' prompts are answered with; each is known by a phrase of it.
PEER_ANSWERS = {
    "specializing in AI failure": '{"verdict": "honest_fallback", "evidence": ["timed out"], "reason": "It said so."}',
    "judging OUTCOMES": '{"verdict": "minor", "reason": "No flight was found."}',
    "user-satisfaction signals": (
        '{"positive_signals": [], "negative_signals": ["That does not help."], "unmet_requests": ["a flight"]}'
    ),
    "What the user wanted:": "A flight.",
    "Summary:": "No flight was found.",
}


@contextmanager
def judge_process(delay_s: float) -> Iterator[str]:
    """The scripted judge in a process of its own; gives its base URL."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        scripts = [
            {"model": "gpt-4o", "contains": phrase, "steps": [{"text": text}]} for phrase, text in PEER_ANSWERS.items()
        ]
        json.dump({"answers": answers(), "scripts": scripts, "delay_s": delay_s}, script)
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
    """Best wall and median CPU seconds of judging so many sessions, after one that loads and connects.

    The best of the rounds, because whatever else the machine does can only lengthen one.
    """
    settings = Settings(rate=1.0, judge_concurrency=concurrency, queue_capacity=sessions)
    results: list[JudgedSession] = []
    wall, cpu = [], []

    async def run() -> None:
        pipeline = Pipeline(settings, model=model, on_result=results.append)
        for count in [1, *[sessions] * rounds]:
            results.clear()
            for number in range(count):
                probabilities = dict.fromkeys(settings.evaluators, 1.0)
                session = FAILED.model_copy(update={"session_id": f"session-{number}"})
                pipeline.queue.put(JudgeTask(session=session, probabilities=probabilities, enqueued_ns=time.time_ns()))
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
        "wall_s": round(min(wall[1:]), 3),
        "cpu_ms_per_session": round(statistics.median(cpu[1:]) * 1000 / sessions, 2),
        "calls_per_session": calls / sessions,
        "outcomes": dict(outcomes),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def peers(python: str, base_url: str, sessions: int, concurrency: int) -> dict[str, Any]:
    """The same judge and sessions with the released libraries, in their environment."""
    command = [python, str(Path(__file__).with_name("judge_throughput_peers.py"))]
    command += [base_url, str(sessions), str(concurrency)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--delay", type=float, default=0.2, help="seconds that the judge takes")
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peers",
        metavar="PYTHON",
        help="interpreter of an environment with eval-ai-library and strands-agents-evals",
    )
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
        if arguments.peers:
            figures["peers"] = peers(arguments.peers, base_url, arguments.sessions, arguments.concurrency)
            print(f"peers    {json.dumps(figures['peers'])}")
    report(
        "judge_throughput",
        figures,
        {
            "wall_to_ideal": goal(figures["aiohttp"]["wall_to_ideal"], "<= 1.25"),
        },
    )


if __name__ == "__main__":
    main()
