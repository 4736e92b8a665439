"""What a provider can do wrong, row by row: the outcome, the answers asked for, and that nothing leaks."""

from __future__ import annotations

import json

import pytest

from otel_evals.judging.models.protocol import ChatReply, ChatRequest, ModelError
from tests.judging.scripted import FAILED, FakeClock, ScriptedModel, answers, canary_of, judge_with, reply, task

SECRET_TEXT = "the search timed out"


def text(build):
    """A step whose text is built from the right answer's JSON."""
    return lambda request: ChatReply(text=build(right(request), request), finish_reason="stop")


def right(request: ChatRequest) -> str:
    return json.dumps({"canary": canary_of(request), **answers(request.evaluators)})


def changed(**fields):
    """A step whose failure-rate answer has these fields changed; None removes a field."""

    def step(request: ChatRequest) -> ChatReply:
        body = {"canary": canary_of(request), **answers(request.evaluators)}
        entry = {**body["failure_rate"], **fields}
        body["failure_rate"] = {k: v for k, v in entry.items() if v is not REMOVED}
        return ChatReply(text=json.dumps(body), finish_reason="stop")

    return step


REMOVED = object()

MENDED_WITHOUT_ASKING = {
    "fenced": text(lambda t, _: f"```json\n{t}\n```"),
    "fence never closed": text(lambda t, _: f"```json\n{t}"),
    "prose around": text(lambda t, _: f"Sure! Here is my {{honest}} grading:\n{t}\nLet me know if you need more."),
    "thinking before": text(lambda t, _: f"<think>{{'maybe': 1}} no...</think>{t}"),
    "raw newlines in strings": text(lambda t, _: t.replace("It said so.", "It\nsaid\tso.")),
    "trailing commas": text(lambda t, _: t.replace("]", ",]").replace("[,]", "[]").replace("}}", "},}")),
    "python literals": text(lambda t, _: str(json.loads(t))),
    "byte order mark": text(lambda t, _: "\ufeff" + t),
    "the same object twice": text(lambda t, _: t + "\n" + t),
    "corrects itself": text(lambda t, _: t.replace("alternative_proposed", "stall") + "\nCorrection:\n" + t),
    "a broken object first": text(lambda t, _: '{"canary": "x", ' + t),
    "wrong case of the label": changed(label="Alternative_Proposed"),
    "spaces in the label": changed(label="alternative proposed"),
    "list for the label": changed(label=["alternative_proposed"]),
    "confidence in words": changed(confidence="high"),
    "turn number in words": changed(turns=[{"turn": "turn 0", "quote": SECRET_TEXT, "label": "alternative_proposed"}]),
    "one object for a list": changed(turns={"turn": 0, "quote": SECRET_TEXT, "label": "alternative_proposed"}),
    "surplus fields": changed(remark="surplus"),
    "keys in another case": text(lambda t, _: t.replace('"failure_rate"', '"Failure Rate"')),
    "null reasoning": changed(reasoning=None),
}


@pytest.mark.parametrize("row", MENDED_WITHOUT_ASKING)
async def test_differences_of_form_are_read_without_asking_again(row):
    model = ScriptedModel(MENDED_WITHOUT_ASKING[row])
    result = await judge_with(model).judge(task())
    assert [(e.outcome, e.label) for e in result.evaluations] == [
        ("scored", "alternative_proposed"),
        ("scored", "minor"),
        ("scored", "Excellent"),
    ]
    assert len(model.requests) == 1


ASKED_ONCE_MORE = {
    "malformed": (ChatReply(text='{"failure_rate": {"turns": ['), "malformed_answer"),
    "no JSON": (ChatReply(text="The agent did well."), "malformed_answer"),
    "a JSON list": (ChatReply(text="[1, 2]"), "malformed_answer"),
    "nested without end": (ChatReply(text='{"a":' * 100_000), "malformed_answer"),
    "empty": (ChatReply(text=""), "empty_answer"),
    "white space": (ChatReply(text=" \n"), "empty_answer"),
    "an empty object": (ChatReply(text="{}"), "malformed_answer"),
    "unknown label": (changed(label="splendid"), "unknown_label"),
    "null label": (changed(label=None), "unknown_label"),
    "two labels": (changed(label=["stall", "honest_fallback"]), "unknown_label"),
    "number for the label": (changed(label=1), "unknown_label"),
    "missing field": (changed(confidence=REMOVED), "missing_field"),
    "missing label": (changed(label=REMOVED), "missing_field"),
    "text for a list": (changed(turns="none"), "malformed_answer"),
    "cut by the token limit": (ChatReply(text='{"canary": "x', finish_reason="length"), "truncated_answer"),
    "nothing but the token limit": (ChatReply(text="", finish_reason="length"), "truncated_answer"),
}


@pytest.mark.parametrize("row", ASKED_ONCE_MORE)
async def test_what_cannot_be_read_is_asked_once_more_and_then_read(row):
    bad, _ = ASKED_ONCE_MORE[row]
    model = ScriptedModel(bad, reply())
    result = await judge_with(model).judge(task())
    assert {e.outcome for e in result.evaluations} == {"scored"}
    assert len(model.requests) == 2


@pytest.mark.parametrize("row", ASKED_ONCE_MORE)
async def test_what_stays_unreadable_is_unscorable_with_its_reason_and_no_score(row):
    bad, error_type = ASKED_ONCE_MORE[row]
    model = ScriptedModel(bad)
    result = await judge_with(model).judge(task())
    first = result.evaluations[0]
    assert (first.outcome, first.error_type, first.score, first.passed) == ("unscorable", error_type, None, None)
    assert len(model.requests) == 2


async def test_an_answer_cut_short_is_asked_again_with_more_room():
    model = ScriptedModel(ChatReply(text='{"canary', finish_reason="length"), reply())
    await judge_with(model, judge_max_tokens=500).judge(task())
    assert [r.max_tokens for r in model.requests] == [500, 1000]
    assert len(model.requests[1].messages) == 2


FINAL = {
    "refusal": (ChatReply(text="", refusal="I can't help with that."), "refusal"),
    "refusal by finish reason": (ChatReply(text="", finish_reason="refusal"), "refusal"),
    "content filter": (ChatReply(text="", finish_reason="content_filter"), "content_filter"),
    "content filter as an error": (ModelError("content_filter", retryable=False), "content_filter"),
    "quota": (ModelError("quota", retryable=False), "quota"),
    "auth": (ModelError("auth", retryable=False), "auth"),
    "unknown model": (ModelError("not_found", retryable=False), "not_found"),
    "schema rejected": (ModelError("bad_request", retryable=False), "bad_request"),
}


@pytest.mark.parametrize("row", FINAL)
async def test_what_would_not_change_is_not_asked_again(row):
    step, error_type = FINAL[row]
    model = ScriptedModel(step)
    result = await judge_with(model).judge(task())
    assert {(e.outcome, e.error_type) for e in result.evaluations} == {("unscorable", error_type)}
    assert len(model.requests) == 1


PASSING = ["rate_limited", "server_error", "unavailable", "timeout"]


@pytest.mark.parametrize("error_type", PASSING)
async def test_a_passing_error_is_retried_and_reported(error_type):
    model = ScriptedModel(ModelError(error_type, retryable=True), reply())
    result = await judge_with(model).judge(task())
    assert {e.outcome for e in result.evaluations} == {"scored"}
    assert result.judgement.errors == (error_type,)


@pytest.mark.parametrize("error_type", PASSING)
async def test_a_lasting_error_ends_after_the_configured_attempts(error_type):
    model = ScriptedModel(ModelError(error_type, retryable=True))
    result = await judge_with(model, judge_attempts=4).judge(task())
    assert {(e.outcome, e.error_type) for e in result.evaluations} == {("unscorable", error_type)}
    assert len(model.requests) == result.judgement.calls == 4


async def test_gated_results_stay_when_the_model_fails():
    from tests.judging.scripted import PLAIN

    result = await judge_with(ScriptedModel(ModelError("auth", retryable=False))).judge(task(PLAIN))
    assert [e.outcome for e in result.evaluations] == ["unscorable", "unscorable", "not_applicable"]


async def test_a_context_overflow_is_asked_again_with_a_shorter_transcript():
    long = FAILED.model_copy(update={"system_prompt": "word " * 8000})
    model = ScriptedModel(ModelError("context_length", retryable=False), reply())
    result = await judge_with(model, transcript_tokens=20_000).judge(task(long))
    first, second = (len(r.messages[1]["content"]) for r in model.requests)
    assert second < first
    assert result.judgement.truncated
    assert {e.outcome for e in result.evaluations} == {"scored"}


async def test_a_context_overflow_that_stays_is_unscorable():
    model = ScriptedModel(ModelError("context_length", retryable=False))
    result = await judge_with(model).judge(task())
    assert {e.error_type for e in result.evaluations} == {"context_length"}
    assert len(model.requests) == 2


async def test_an_unexpected_exception_is_an_outcome_and_its_text_stays_out_of_the_log(caplog):
    model = ScriptedModel(lambda request: KeyError("sk-secret-key-in-the-message"))
    result = await judge_with(model).judge(task())
    assert {e.error_type for e in result.evaluations} == {"unexpected"}
    assert "KeyError" in caplog.text
    assert "sk-secret" not in caplog.text


@pytest.mark.parametrize("row", [*ASKED_ONCE_MORE, *FINAL])
async def test_no_content_reaches_log_or_error(row, caplog):
    caplog.set_level("DEBUG")
    step = {**ASKED_ONCE_MORE, **FINAL}[row][0]
    await judge_with(ScriptedModel(step), FakeClock()).judge(task())
    assert SECRET_TEXT not in caplog.text
    assert "Find me a flight" not in caplog.text
