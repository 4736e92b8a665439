"""What judging a session costs in calls and prompt tokens: one combined question against one question per score.

Counted in tokens of cl100k_base over everything that is sent, the answer schema included, with a model that records
and answers nothing wrong. Sessions: the two example conversations of the seed documents joined, with one failed tool
added; and the τ-bench sessions whose transcripts are of median and 90th percentile size. With `--peers PYTHON` two
released libraries score the first of these with the interpreter of an environment of theirs, counted in the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import goal, report
from otel_evals.evaluation import JudgeTask
from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.models.protocol import ChatReply, ChatRequest
from otel_evals.judging.models.rules import read
from otel_evals.judging.plan import Judge
from otel_evals.judging.transcript import render_transcript
from otel_evals.sessions.model import Session, ToolCall, ToolFailure, Turn
from otel_evals.settings import EVALUATOR_NAMES, Settings

PEERS = {"calls": 6, "prompt_tokens": 3700}
"""eval-ai-library and strands-agents-evals, for the same joined conversation and the same three scores, as given by the
issue that this benchmark belongs to. `--peers` measures it."""

SEED_CONVERSATION = Session(
    session_id="seed",
    session_key="session.id",
    turns=(
        Turn(
            user="What's the population of Atlantis in 2024?",
            agent="Atlantis is a mythical city — there is no real population figure. If you meant a real place, let me "
            "know which one.",
        ),
        Turn(
            user="OK, what about the Mariana Trench's exact depth today?",
            agent="Measurements vary, but around 10,935 meters based on recent sonar surveys. For the absolute current "
            "figure, check the NOAA dataset.",
            tool_calls=(
                ToolCall(
                    name="sonar_lookup",
                    arguments={"place": "Mariana Trench"},
                    error=ToolFailure(type="TimeoutError", message="Tool call timed out after 30s"),
                ),
            ),
        ),
        Turn(
            user="My script crashes with ModuleNotFoundError: requests",
            agent="Run `pip install requests` and re-run your script.",
        ),
        Turn(user="That worked, thanks!", agent="Glad it helped."),
    ),
)


class RecordingModel:
    """Answers as `rules` would, with the canary, and keeps what it was sent."""

    name = "recording"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        canary = request.messages[-1]["content"].rsplit('"', 2)[-2]
        known = read(request.session)
        return ChatReply(text=json.dumps({"canary": canary, **{n: known[n] for n in request.evaluators}}))

    async def close(self) -> None: ...


def tokenizer() -> Callable[[str], int]:
    """cl100k_base from the copy that litellm ships, so that nothing is downloaded."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise SystemExit("judge_cost counts tokens with litellm's tokenizer: pip install 'otel-evals[litellm]'")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(spec.origin).parent / "litellm_core_utils" / "tokenizers")
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def measure(session: Session, plan: str, count: Callable[[str], int]) -> dict[str, int]:
    """Calls and tokens of one session under one plan."""
    model = RecordingModel()
    settings = Settings(plan=plan, transcript_tokens=100_000, redact=False)
    word = random.Random(1)  # boundary and canary differ by a few tokens from session to session
    judge = Judge(model, create_evaluators(EVALUATOR_NAMES), settings, token=lambda: f"{word.getrandbits(32):08x}")
    asyncio.run(judge.judge(JudgeTask(session=session, probabilities=dict.fromkeys(EVALUATOR_NAMES, 1.0))))
    messages = sum(count(m["content"]) for r in model.requests for m in r.messages)
    schema = sum(count(json.dumps(r.schema, separators=(",", ":"))) for r in model.requests)
    transcript = count(render_transcript(session, 100_000).text)
    return {
        "calls": len(model.requests),
        "prompt_tokens": messages,
        "schema_tokens": schema,
        "transcript_tokens": transcript,
        "beyond_transcript": messages - transcript * len(model.requests),
    }


def dialogue_tokens(session: Session, count: Callable[[str], int]) -> int:
    return sum(count(text) for turn in session.turns for text in (turn.user, turn.agent) if text)


def quantile(sessions: Sequence[Session], share: float) -> Session:
    """The session at this place in the order of transcript sizes."""
    ordered = sorted(sessions, key=lambda s: render_transcript(s, 10**9).tokens)
    return ordered[int(share * (len(ordered) - 1))]


def measure_peers(python: str, session: Session, count: Callable[[str], int]) -> dict[str, int]:
    """Calls and tokens of the released libraries on one session, counted by the judge that they call."""
    from benchmarks.judge_throughput import PEER_ANSWERS
    from tests.scripted_judge import ScriptedJudge, say

    turns = [
        {
            "user": turn.user,
            "agent": turn.agent,
            "failed_tools": [
                {"name": call.name, "arguments": call.arguments, "error": call.error.message}
                for call in turn.tool_calls
                if call.error
            ],
        }
        for turn in session.turns
    ]
    with ScriptedJudge() as judge:
        for phrase, text in PEER_ANSWERS.items():
            judge.script(say(text), model="gpt-4o", when=_says(phrase))
        # A model that is offered the answer's schema as a tool uses it at once; one that does not costs a call more.
        judge.script(_fills_in, model="gpt-4o", when=lambda body: bool(body.get("tools")))
        command = [python, str(Path(__file__).with_name("judge_cost_peers.py")), judge.base_url]
        subprocess.run(
            command,
            input=json.dumps(turns),
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        bodies = [request.body for request in judge.requests]
    prompts = [str(part) for body in bodies for message in body["messages"] for part in _parts(message)]
    formats = [body[key] for body in bodies for key in ("tools", "response_format") if body.get(key)]
    return {
        "calls": len(bodies),
        "prompt_tokens": sum(map(count, prompts)),
        "schema_tokens": sum(count(json.dumps(item, separators=(",", ":"))) for item in formats),
    }


def _fills_in(body: dict[str, Any]) -> Any:
    from tests.scripted_judge import call_tool, schema_of, valid_answer

    return call_tool(body["tools"][0]["function"]["name"], valid_answer(schema_of(body) or {}))


def _says(phrase: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: any(phrase in part for message in body["messages"] for part in _parts(message))


def _parts(message: dict[str, Any]) -> list[str]:
    content = message.get("content") or ""
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content]


def main() -> None:
    from tests.tau_bench import tau_bench

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--peers",
        metavar="PYTHON",
        help="interpreter of an environment with eval-ai-library and strands-agents-evals",
    )
    arguments = parser.parse_args()
    count = tokenizer()
    recorded = [case.session for case in tau_bench() if case.session.failed_tools]
    everything = [case.session for case in tau_bench()]
    sessions = {
        "seed_conversation": SEED_CONVERSATION,
        "tau_bench_p50": quantile(everything, 0.5),
        "tau_bench_p90": quantile(everything, 0.9),
        "tau_bench_failed_tools_p50": quantile(recorded, 0.5),
    }
    peers = measure_peers(arguments.peers, SEED_CONVERSATION, count) if arguments.peers else PEERS
    print(f"{'seed_conversation':28} peers     {peers}")
    figures: dict[str, Any] = {"peers_on_seed_conversation": peers}
    for name, session in sessions.items():
        found = {plan: measure(session, plan, count) for plan in ("single", "separate")}
        figures[name] = {"dialogue_tokens": dialogue_tokens(session, count), **found}
        for plan, figure in found.items():
            print(f"{name:28} {plan:9} {figure}")
    single = figures["seed_conversation"]["single"]
    sent = single["prompt_tokens"] + single["schema_tokens"]
    figures["share_of_peers_tokens"] = round(sent / (peers["prompt_tokens"] + peers.get("schema_tokens", 0)), 4)
    report(
        "judge_cost",
        figures,
        {
            "calls_for_three_scores": goal(single["calls"], "<= 1"),
            # Stricter than asked: the answer schema counts, too, as providers bill it.
            "tokens_beyond_transcript_with_schema": goal(
                single["beyond_transcript"] + single["schema_tokens"], "<= 1200"
            ),
        },
    )


if __name__ == "__main__":
    main()
