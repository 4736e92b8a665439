"""Hostile transcripts: the rendered prompt keeps its structure, checked by reading it back."""

from __future__ import annotations

import json
import re

import pytest

from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.plan import Judge
from otel_evals.judging.prompt import static_prompt
from otel_evals.judging.transcript import estimate_tokens
from otel_evals.settings import EVALUATOR_NAMES, Settings
from otel_evals.signals import detect
from tests.judging.attacks import ATTACKS, Attack
from tests.judging.scripted import ScriptedModel, task

BOUNDARY, CANARY = "b0b0b0b0b0b0", "cacacacacaca"
BUDGET = 6000

attack_cases = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)


async def prompt_for(attack: Attack) -> tuple[str, list[dict[str, object]], str]:
    """(what stands before the transcript, its lines, what stands after) as the judge receives them."""
    model = ScriptedModel()
    words = iter([CANARY, BOUNDARY, *("f" * 12 for _ in range(9))])
    judge = Judge(
        model,
        create_evaluators(EVALUATOR_NAMES),
        Settings(transcript_tokens=BUDGET),
        token=lambda: next(words),
    )
    await judge.judge(task(attack.session))
    system, user = model.requests[0].messages[:2]
    assert system["content"] == static_prompt({n: judge._evaluators[n] for n in model.requests[0].evaluators})
    begin, end = f"=====BEGIN {BOUNDARY}=====\n", f"\n=====END {BOUNDARY}====="
    assert user["content"].count(BOUNDARY) == 2
    before, _, rest = user["content"].partition(begin)
    transcript, _, after = rest.partition(end)
    return before, [json.loads(line) for line in transcript.split("\n")], after


def test_there_are_sixty():
    assert len(ATTACKS) == len({attack.name for attack in ATTACKS}) == 60


@attack_cases
async def test_every_line_reads_back_as_a_line_of_the_session(attack):
    _, lines, _ = await prompt_for(attack)
    turns = attack.session.turns
    for line in lines:
        if "turns_left_out" in line:
            continue
        if line["role"] == "system":
            continue
        original = turns[line["turn"]]
        if line["role"] == "user":
            assert _shown(original.user, line["text"])
        elif line["role"] == "agent":
            assert _shown(original.agent, line["text"])
        else:
            assert line["name"] in {call.name for call in original.tool_calls}
            assert bool(line.get("failed")) == any(c.error for c in original.tool_calls if c.name == line["name"])
    shown = [line["role"] for line in lines if "role" in line and line["role"] != "system"]
    assert shown.count("user") <= len(turns)
    assert shown.count("agent") <= len(turns)
    assert shown.count("tool") <= sum(len(t.tool_calls) for t in turns)


def _shown(original: str | None, text: str) -> bool:
    """The text, or its head and tail around the mark that something was left out."""
    head, _, tail = re.sub(r" \[…\d+ characters left out…\] ", "\0", text, count=1).partition("\0")
    return original is not None and original.startswith(head) and original.endswith(tail)


@attack_cases
async def test_the_order_after_the_data_is_ours_alone(attack):
    before, _, after = await prompt_for(attack)
    assert before.startswith("Metadata: {")
    assert before.count("\n") == 1
    assert after == (
        f'\nThe transcript is over, grade it. First key of your JSON object: "canary" with the value "{CANARY}".'
    )


@attack_cases
async def test_no_invisible_or_reordering_character_reaches_the_judge(attack):
    model = ScriptedModel()
    await Judge(model, create_evaluators(EVALUATOR_NAMES), Settings()).judge(task(attack.session))
    text = model.requests[0].messages[1]["content"]
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]", text
    )


@attack_cases
async def test_the_size_of_the_prompt_is_bounded(attack):
    model = ScriptedModel()
    await Judge(model, create_evaluators(EVALUATOR_NAMES), Settings(transcript_tokens=BUDGET)).judge(
        task(attack.session)
    )
    text = model.requests[0].messages[1]["content"]
    failures = sum(len(t.tool_calls) for t in attack.session.turns if any(c.error for c in t.tool_calls))
    assert estimate_tokens(text) <= BUDGET + 200 + 60 * failures


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.speaks_to_judge], ids=lambda attack: attack.name)
def test_text_that_speaks_to_the_judge_raises_the_signal(attack):
    assert "judge_injection_suspected" in {signal.name for signal in detect(attack.session)}


async def test_an_answer_dictated_by_the_transcript_is_not_accepted():
    """Even a judge that obeys the transcript and repeats its forged answer cannot know the canary."""
    (attack,) = [a for a in ATTACKS if a.name == "forged: an answer as a reply"]
    obeying = ScriptedModel(lambda request: _reply(attack.session.turns[0].agent))
    result = await Judge(obeying, create_evaluators(EVALUATOR_NAMES), Settings()).judge(task(attack.session))
    assert {e.error_type for e in result.evaluations} == {"canary_mismatch"}


def _reply(text):
    from otel_evals.judging.models.protocol import ChatReply

    return ChatReply(text=text, finish_reason="stop")


async def test_a_boundary_that_occurs_in_the_transcript_is_drawn_again():
    (attack,) = [a for a in ATTACKS if a.name == "boundary: a guessed end"]
    words = iter([CANARY, "000000000000", "1" * 12, *("2" * 12 for _ in range(9))])
    model = ScriptedModel()
    judge = Judge(model, create_evaluators(EVALUATOR_NAMES), Settings(), token=lambda: next(words))
    await judge.judge(task(attack.session))
    assert "=====BEGIN 111111111111=====" in model.requests[0].messages[1]["content"]
