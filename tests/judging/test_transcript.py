"""The transcript: parsed back it is the session, cut it says so, and errors are never left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_evals.judging.transcript import encode_line, estimate_tokens, render_transcript
from otel_evals.sessions.model import ToolFailure
from tests.evaluators.conversations import failed_call, session, turn, worked_call


def lines(transcript):
    return [json.loads(line) for line in transcript.text.split("\n")]


def test_tools_are_shown_with_name_arguments_and_result_and_failures_are_marked():
    shown = lines(render_transcript(session(turn("q", "a", worked_call("x", {"r": 1}, k="v"), failed_call("y"))), 5000))
    assert shown[1:3] == [
        {"turn": 0, "role": "tool", "name": "x", "arguments": {"k": "v"}, "result": {"r": 1}},
        {
            "turn": 0,
            "role": "tool",
            "name": "y",
            "arguments": {},
            "failed": True,
            "failure": 1,
            "error": {"type": "TimeoutError", "message": "timed out after 30s"},
        },
    ]


def test_failures_carry_the_numbers_that_answers_refer_to():
    two = session(turn("q", "a", failed_call("x"), failed_call("x")), turn("q", "a", failed_call("y")))
    shown = [line["failure"] for line in lines(render_transcript(two, 5000)) if line.get("failed")]
    assert shown == [1, 1, 2]


def test_a_crashed_turn_and_a_missing_answer_are_visible():
    broken = session(turn("q", None, error=ToolFailure(type="APIError", message="model is down")), turn("hello?", None))
    shown = lines(render_transcript(broken, 5000))
    assert shown[1]["crashed"] is True
    assert shown[1]["error"]["message"] == "model is down"
    assert shown[3]["note"] == "no answer recorded"


@given(st.text())
def test_any_text_is_one_line_and_reads_back_as_it_was(text):
    line = encode_line({"text": text})
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"text": text}


@pytest.mark.parametrize(
    "character",
    [*"\n\r\u2028\u2029\x00\x1b\x85\u202e\u2066\u200b\u200d\ufeff\U000e0041\u00ad\u3164\ue000\U000e0100\u180e"],
)
def test_control_bidi_and_zero_width_characters_are_escaped(character):
    line = encode_line({"text": f"a{character}b"})
    assert character not in line
    assert json.loads(line)["text"] == f"a{character}b"


@pytest.mark.parametrize("text", ["Schöne Grüße", "日本語", "😀 ❤️", "עברית"])
def test_ordinary_writing_is_left_readable(text):
    assert text in encode_line({"text": text})


def circular():
    value: dict[str, object] = {}
    value["self"] = value
    return value


def deep():
    value: object = 1
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("build", [circular, deep, lambda: {(1, 2): 3}, lambda: {"x": object()}, lambda: b"\xff"])
def test_tool_data_that_is_no_json_still_gives_one_readable_line(build):
    assert json.loads(encode_line({"result": build()}))


def test_a_short_session_is_complete_and_not_marked():
    transcript = render_transcript(session(turn("q", "a" * 5000)), 5000)
    assert not transcript.truncated
    assert "a" * 5000 in transcript.text


def test_a_session_cut_before_it_came_here_is_marked():
    assert render_transcript(session(turn("q", "a"), truncated=True), 5000).truncated


def test_tool_results_shrink_first_and_keep_head_and_tail():
    result = "HEAD" + "x" * 100_000 + "TAIL"
    transcript = render_transcript(session(turn("question " * 50, "answer " * 50, worked_call(result=result))), 2000)
    assert transcript.truncated
    assert "question " * 50 in transcript.text
    assert "answer " * 50 in transcript.text
    assert "HEADx" in transcript.text
    assert "xTAIL" in transcript.text
    assert "characters left out" in transcript.text


def test_the_system_prompt_shrinks_before_what_was_said():
    long = session(turn("question " * 50, "answer " * 200), system_prompt="rule " * 4000)
    transcript = render_transcript(long, 1500)
    assert "answer " * 200 in transcript.text
    assert transcript.tokens <= 1500


def many_turns(count=400, failing=(150,)):
    return session(
        *(
            turn(
                f"question {i} " * 10,
                f"reply {i} " * 20,
                *([failed_call(message=f"broken {i}")] if i in failing else []),
            )
            for i in range(count)
        )
    )


def test_middle_turns_are_left_out_last_with_a_visible_marker():
    transcript = render_transcript(many_turns(), 3000)
    shown = lines(transcript)
    assert transcript.tokens <= 3000
    assert {line["turn"] for line in shown if "turn" in line} >= {0, 150, 399}
    gaps = [line["turns_left_out"] for line in shown if "turns_left_out" in line]
    left_out = [t for gap in gaps for t in range(gap["from"], gap["to"] + 1)]
    kept = {line["turn"] for line in shown if "turn" in line}
    assert sorted([*left_out, *kept]) == list(range(400))


@pytest.mark.parametrize("budget", [500, 1000, 3000, 12_000])
def test_an_error_and_the_reply_after_it_are_never_left_out(budget):
    failing = (5, 100, 150, 398)
    shown = lines(render_transcript(many_turns(failing=failing), budget))
    assert [line["turn"] for line in shown if line.get("failed")] == list(failing)
    replies = {line["turn"] for line in shown if line.get("role") == "agent" and line.get("text")}
    assert replies >= set(failing)


def test_a_reply_that_comes_turns_later_is_kept_as_well():
    turns = list(many_turns().turns)
    for silent in (150, 151, 152):
        turns[silent] = turns[silent].model_copy(update={"agent": None})
    shown = lines(render_transcript(session(*turns), 2000))
    assert 153 in {line["turn"] for line in shown if line.get("role") == "agent"}


@pytest.mark.parametrize("budget", [500, 2000, 12_000])
def test_budgets_hold_for_long_conversations(budget):
    assert render_transcript(many_turns(failing=()), budget).tokens <= budget


def test_megabytes_of_tool_results_are_cut_within_the_budget():
    huge = session(*(turn("q", "a", worked_call(result="x" * 1_000_000)) for _ in range(5)))
    assert render_transcript(huge, 2000).tokens <= 2000


@pytest.mark.parametrize(("text", "least", "most"), [("", 0, 2), ("word " * 100, 100, 180), ("漢" * 100, 80, 120)])
def test_the_token_estimate_is_of_the_right_size(text, least, most):
    assert least <= estimate_tokens(text) <= most


def test_json_in_a_string_is_shown_as_data():
    shown = lines(render_transcript(session(turn("q", "a", worked_call(result='{"flights": ["UA 1"]}'))), 5000))
    assert shown[1]["result"] == {"flights": ["UA 1"]}


@pytest.mark.parametrize("text", ["{not json", "[1, 2", "plain", "", "{" * 5000])
def test_what_only_looks_like_json_stays_text(text):
    shown = lines(render_transcript(session(turn("q", "a", worked_call(result=text))), 5000))
    assert shown[1]["result"] == text
