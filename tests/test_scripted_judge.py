"""The scripted judge itself: other tests rely on it to fail exactly as it was told."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.scripted_judge import FAULTS, ScriptedJudge, call_tool, fail, say

SCHEMA = {
    "type": "object",
    "properties": {
        "canary": {"type": "string"},
        "verdict": {"$ref": "#/$defs/Verdict"},
    },
    "$defs": {
        "Verdict": {
            "type": "object",
            "properties": {
                "quotes": {"type": "array", "items": {"type": "string"}},
                "label": {"enum": ["honest", "stall"]},
                "goal": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            },
        }
    },
}
ASKS: dict[str, Any] = {
    "model": "judge",
    "messages": [{"role": "user", "content": "Judge this."}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": SCHEMA}},
}


def post(base_url: str, body: dict[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{base_url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, None


def answer(judge: ScriptedJudge, **changes: Any) -> Any:
    _, reply = post(judge.base_url, {**ASKS, **changes})
    return json.loads(reply["choices"][0]["message"]["content"])


def statuses(judge: ScriptedJudge, calls: int) -> list[int]:
    return [post(judge.base_url, ASKS)[0] for _ in range(calls)]


def test_the_default_answer_fits_the_schema(scripted_judge: ScriptedJudge) -> None:
    verdict = {"quotes": [], "label": "honest", "goal": "As scripted.", "confidence": 0.9}
    assert answer(scripted_judge)["verdict"] == verdict


def test_the_canary_of_a_judge_prompt_is_echoed(scripted_judge: ScriptedJudge) -> None:
    messages = [{"role": "user", "content": 'The first key is "canary" with the value "a1b2".'}]
    assert answer(scripted_judge, messages=messages)["canary"] == "a1b2"


def test_a_schema_in_the_prompt_is_answered_as_well(scripted_judge: ScriptedJudge) -> None:
    messages = [{"role": "user", "content": f"Reply with JSON that satisfies {json.dumps(SCHEMA)}"}]
    assert answer(scripted_judge, messages=messages, response_format=None)["verdict"]["label"] == "honest"


def test_labels_are_fixed_by_path(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.label("verdict.label", "stall")
    assert answer(scripted_judge)["verdict"]["label"] == "stall"


def test_a_fault_strikes_as_often_as_told(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("server_error", times=2)
    assert statuses(scripted_judge, 4) == [500, 500, 200, 200]


def test_a_fault_by_probability_repeats_with_its_seed() -> None:
    runs = []
    for _ in range(2):
        with ScriptedJudge() as judge:
            judge.fault("server_error", times=None, probability=0.5, seed=3)
            runs.append(statuses(judge, 12))
    assert runs[0] == runs[1]
    assert set(runs[0]) == {200, 500}


def test_a_fault_strikes_only_the_calls_that_are_meant(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("server_error", times=None, model="other")
    assert statuses(scripted_judge, 2) == [200, 200]


def test_an_unknown_fault_is_refused_with_the_known_ones(scripted_judge: ScriptedJudge) -> None:
    with pytest.raises(ValueError, match=r"choose one of .*rate_limited"):
        scripted_judge.fault("gremlins")


def test_every_fault_leaves_the_server_able_to_answer(scripted_judge: ScriptedJudge) -> None:
    for fault in sorted(FAULTS - {"hang", "dropped"}):
        scripted_judge.fault(fault)
        post_or_ignore(scripted_judge)
        scripted_judge.clear()
    assert answer(scripted_judge)


def post_or_ignore(judge: ScriptedJudge) -> None:
    with contextlib.suppress(json.JSONDecodeError):
        post(judge.base_url, ASKS)


def test_a_script_advances_with_the_history_of_each_conversation(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.script(call_tool("search", {"q": "Lisbon"}), say("Found it."), model="agent")
    client = openai.OpenAI(base_url=scripted_judge.base_url, api_key="sk-x", max_retries=0)
    for _ in range(2):  # two conversations, each from its own beginning
        messages: list[Any] = [{"role": "user", "content": "Find me a flight."}]
        first = client.chat.completions.create(model="agent", messages=messages).choices[0].message
        assert first.tool_calls is not None
        assert first.tool_calls[0].function.arguments == '{"q": "Lisbon"}'
        messages += [first, {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "TP 237"}]
        assert (
            client.chat.completions.create(model="agent", messages=messages).choices[0].message.content == "Found it."
        )
    client.close()


def test_a_step_may_be_a_failure(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.script(say("One."), fail("server_error"), by="calls")
    assert statuses(scripted_judge, 2) == [200, 500]


def test_a_reply_is_streamed_with_its_usage(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.script(call_tool("search", {"q": "Lisbon"}, text="Let me look for that right away."))
    client = openai.OpenAI(base_url=scripted_judge.base_url, api_key="sk-x")
    with client.chat.completions.stream(
        model="agent", messages=[{"role": "user", "content": "hi"}], stream_options={"include_usage": True}
    ) as stream:
        completion = stream.get_final_completion()
    client.close()
    message = completion.choices[0].message
    assert message.content == "Let me look for that right away."
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.arguments == '{"q": "Lisbon"}'
    assert completion.usage is not None
    assert completion.usage.completion_tokens > 0


def test_calls_at_once_are_counted(scripted_judge: ScriptedJudge) -> None:
    scripted_judge.fault("hang", times=None)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            pool.submit(post_or_fail, scripted_judge)
        scripted_judge.wait_for_requests(3)
        scripted_judge.release()
    assert scripted_judge.max_in_flight == 3


def post_or_fail(judge: ScriptedJudge) -> None:
    with contextlib.suppress(OSError):
        post(judge.base_url, ASKS)


def test_connections_are_refused_only_inside_the_block(scripted_judge: ScriptedJudge) -> None:
    with scripted_judge.refusing(), pytest.raises(urllib.error.URLError, match="refused"):
        post(scripted_judge.base_url, ASKS)
    assert statuses(scripted_judge, 1) == [200]


def test_it_runs_as_a_process_from_a_script_file(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            {
                "answers": {"verdict.label": "stall"},
                "scripts": [{"model": "agent", "contains": "Lisbon", "steps": [{"text": "Olá."}]}],
                "faults": [{"kind": "rate_limited", "times": 1, "retry_after": 1, "model": "judge"}],
            }
        )
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.scripted_judge", "--script", str(script)],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        assert post(base_url, ASKS)[0] == 429
        _, judged = post(base_url, ASKS)
        assert '"label": "stall"' in judged["choices"][0]["message"]["content"]
        _, said = post(base_url, {"model": "agent", "messages": [{"role": "user", "content": "To Lisbon"}]})
        assert said["choices"][0]["message"]["content"] == "Olá."
    finally:
        process.terminate()
        assert process.wait(10) == 0
