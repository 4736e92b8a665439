"""Every shape of message becomes the same message."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from otel_evals.dialects.blobs import read_blob
from otel_evals.dialects.chunks import join_chunks
from otel_evals.dialects.facts import Message
from otel_evals.dialects.messages import read_messages, system_text
from otel_evals.dialects.recall import read_history
from otel_evals.dialects.tool_calls import arguments_of

USER_HI = [
    pytest.param([{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}], id="parts"),
    pytest.param([{"role": "user", "content": "Hi"}], id="content-string"),
    pytest.param([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], id="content-parts"),
    pytest.param([{"role": "user", "content": [{"text": "Hi"}]}], id="bedrock"),
    pytest.param([{"role": "user", "content": '[{"text": "Hi"}]'}], id="parts-as-json"),
    pytest.param([{"role": "USER", "content": "Hi"}], id="upper-case"),
    pytest.param({"messages": [["user", "Hi"]]}, id="pairs"),
    pytest.param({"messages": [[{"type": "human", "data": {"content": "Hi"}}]]}, id="langchain-dict"),
    pytest.param(
        [{"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Hi"}}], id="lc"
    ),
    pytest.param({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}, id="gemini"),
    pytest.param([{"role": "user", "blocks": [{"block_type": "text", "text": "Hi"}]}], id="llama-index"),
    pytest.param(["ChatMessage(role=<Role.USER: 'user'>, blocks=[TextBlock(text='Hi')])"], id="object-repr"),
    pytest.param(["ChatMessage(_role=<R.USER: 'user'>, _content=[TextContent(text='Hi')])"], id="private-fields"),
    pytest.param(["id='1' source='user' content='Hi' type='TextMessage'"], id="printed-model"),
    pytest.param([{"source": "user", "content": "Hi", "type": "TextMessage"}], id="autogen"),
    pytest.param("[{'role': 'user', 'content': 'Hi'}]", id="python-repr"),
    pytest.param(orjson.dumps(orjson.dumps([{"role": "user", "content": "Hi"}]).decode()).decode(), id="json-in-json"),
    pytest.param(
        [{"message": {"role": "user", "contents": [{"message_content": {"text": "Hi"}}]}}], id="openinference"
    ),
    pytest.param(
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], id="responses"
    ),
    pytest.param("Hi", id="plain-text"),
]


@pytest.mark.parametrize("value", USER_HI)
def test_what_the_person_said(value: Any) -> None:
    [message] = read_messages(value)
    assert (message.role, message.text, message.calls, message.results) == ("user", "Hi", (), ())


CALL = {"id": "c1", "name": "search", "arguments": {"q": "x"}}
CALLS = [
    pytest.param({"role": "assistant", "parts": [{"type": "tool_call", **CALL}]}, id="parts"),
    pytest.param(
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function",
         "function": {"name": "search", "arguments": '{"q": "x"}'}}]}, id="openai"),
    pytest.param({"role": "assistant", "tool_calls": [{"name": "search", "args": {"q": "x"}, "id": "c1"}]}, id="langchain"),
    pytest.param({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "x"}}]},
                 id="anthropic"),
    pytest.param({"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "search", "input": {"q": "x"}}}]},
                 id="bedrock"),
    pytest.param({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "search",
                                                    "input": {"q": "x"}}]}, id="vercel"),
    pytest.param({"role": "model", "parts": [{"function_call": {"id": "c1", "name": "search", "args": {"q": "x"}}}]},
                 id="gemini"),
    pytest.param({"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "x"}'}, id="responses"),
    pytest.param({"role": "assistant", "parts": [{"type": "tool_call", **CALL}],
                  "tool_calls": [{"id": "c1", "function": {"name": "search", "arguments": "{}"}}]}, id="twice"),
    pytest.param({"message": {"role": "assistant", "tool_calls": [
        {"tool_call": {"id": "c1", "function": {"name": "search", "arguments": '"{\\"q\\": \\"x\\"}"'}}}]}},
        id="openinference-double-encoded"),
    pytest.param({"role": "assistant", "content": "ToolCall(name='search', arguments={'q': 'x'}, id='c1', type='function')"},
                 id="object-repr"),
]  # fmt: skip


@pytest.mark.parametrize("value", CALLS)
def test_a_call_with_its_arguments_as_an_object(value: Any) -> None:
    [message] = read_messages([value], "assistant")
    [call] = message.calls
    assert (message.role, message.text, call.id, call.name, call.arguments) == (
        "assistant",
        "",
        "c1",
        "search",
        {"q": "x"},
    )


RESULTS = [
    pytest.param({"role": "tool", "tool_call_id": "c1", "content": "found"}, id="openai"),
    pytest.param({"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": "found"}]}, id="parts-user"),
    pytest.param({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]}, id="parts"),
    pytest.param({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]}, id="anthropic"),
    pytest.param({"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "found"}]}}]}, id="bedrock"),
    pytest.param({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "search",
                                               "output": {"type": "text", "value": "found"}}]}, id="vercel"),
    pytest.param({"type": "function_call_output", "call_id": "c1", "output": "found"}, id="responses"),
    pytest.param({"role": "user", "tool_call_id": "c1", "content": "found"}, id="flat-user"),
    pytest.param({"type": "tool", "data": {"content": "found", "tool_call_id": "c1"}}, id="langchain"),
]  # fmt: skip


@pytest.mark.parametrize("value", RESULTS)
def test_a_result_is_a_tools_whoever_is_said_to_say_it(value: Any) -> None:
    [message] = read_messages([value])
    [result] = message.results
    assert (message.text, result.call_id, result.content, result.failure) == ("", "c1", "found", None)


FAILED = [
    pytest.param({"role": "tool", "tool_call_id": "c1", "content": "Error: no route"}, id="wording"),
    pytest.param({"role": "tool", "tool_call_id": "c1", "content": "no route", "status": "error"}, id="status"),
    pytest.param({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "no route",
                                               "is_error": True}]}, id="flag"),
    pytest.param({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "s",
                                               "output": {"type": "error-text", "value": "no route"}}]}, id="vercel"),
    pytest.param({"role": "user", "parts": [{"function_response": {"id": "c1", "response":
                  {"status": "error", "error_message": "no route"}}}]}, id="gemini"),
    pytest.param({"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "status": "error",
                                                              "content": [{"text": "no route"}]}}]}, id="bedrock"),
]  # fmt: skip


@pytest.mark.parametrize("value", FAILED)
def test_a_failed_result_says_so_with_its_reason(value: Any) -> None:
    [message] = read_messages([value])
    failure = message.results[0].failure
    assert failure is not None
    assert "no route" in str(failure.message)


@pytest.mark.parametrize(
    "content",
    [
        "No errors found",
        '{"error": null, "flights": [1]}',
        "The failure rate is 3 %",
        '{"errors": 0}',
        "Errors: none so far?",
    ],
)
def test_a_good_result_that_speaks_of_errors_has_not_failed(content: str) -> None:
    [message] = read_messages([{"role": "tool", "tool_call_id": "c1", "content": content}])
    assert message.results[0].failure is None


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "parts": [{"type": "text"}]}],
        [{"role": "user", "content": "[REDACTED]"}],
        "__REDACTED__",
        [{"role": "user", "content": None}],
        {},
        [],
        "",
        None,
        [{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}]}],
    ],
)
def test_what_was_removed_or_never_there_is_no_text(value: Any) -> None:
    assert [m.text for m in read_messages(value) if m.text] == []


def test_a_persons_json_stays_as_they_wrote_it() -> None:
    [message] = read_messages([{"role": "user", "content": '{"flight": "UA 1"}'}])
    assert message.text == '{"flight": "UA 1"}'


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("{'a': 1}", {"a": 1}),
        ({"args": [], "kwargs": {"a": 1}}, {"a": 1}),
        ({"args": [], "sanitize": True, "kwargs": {"a": 1}}, {"a": 1}),
        ({"input_str": "{'a': 1}", "inputs": {"a": 1}, "tags": []}, {"a": 1}),
        ("Berlin", "Berlin"),
        ("", None),
        ("[REDACTED]", None),
        ({"kwargs": {}, "args": []}, {}),
        ({"input": {"a": 1}, "options": None}, {"a": 1}),
        ({"input": {"a": 1}, "limit": 3}, {"input": {"a": 1}, "limit": 3}),
        ({"args": ['{"a": 1}']}, {"a": 1}),
    ],
)
def test_arguments_become_an_object_where_they_can(raw: Any, read: Any) -> None:
    assert arguments_of(raw) == read


def test_streamed_pieces_followed_by_the_whole_become_one_answer() -> None:
    pieces = [Message("assistant", piece) for piece in ("I found ", "two ", "flights", "I found two flights")]
    assert [m.text for m in join_chunks(pieces)] == ["I found two flights"]


def test_streamed_pieces_alone_are_put_together() -> None:
    pieces = [Message("assistant", piece) for piece in ("I ", "found ", "two ", "flights")]
    assert [m.text for m in join_chunks(pieces)] == ["I found two flights"]


def test_system_instructions_are_read_from_parts_text_and_messages() -> None:
    assert system_text('[{"type":"text","content":"Be kind."}]') == "Be kind."
    assert system_text("Be kind.") == "Be kind."
    assert system_text([{"role": "system", "content": "Be kind."}]) == "Be kind."
    assert system_text("[REDACTED]") is None


@pytest.mark.parametrize("role", [["user"], {"name": "user"}, 7])
def test_a_role_that_is_no_word_does_not_hide_what_is_said(role: Any) -> None:
    assert [m.text for m in read_messages([{"role": role, "content": "Hello."}])] == ["Hello."]


CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "function": {"name": "search"}}]}


def test_a_role_that_names_a_called_tool_is_the_tools() -> None:
    found = read_messages([CALL, {"role": "search", "content": "Error: timed out"}])
    assert [m.role for m in found] == ["assistant", "tool"]
    [result] = found[1].results
    assert (result.name, result.content) == ("search", "Error: timed out")
    assert result.failure is not None


def test_it_is_so_too_where_only_the_end_of_a_grown_history_is_read() -> None:
    memory: dict[Any, Any] = {}
    filler = {"role": "user", "content": "Find me a flight to Oslo, please. " * 10}
    read_history(orjson.dumps([filler, CALL]).decode(), "messages", "user", memory)
    grown = orjson.dumps([filler, CALL, {"role": "search", "content": "SK 4412"}]).decode()
    assert [m.role for m in read_history(grown, "messages", "user", memory)] == ["user", "assistant", "tool"]


def test_a_role_that_names_nobody_known_stays_the_persons() -> None:
    assert [m.role for m in read_messages([CALL, {"role": "planner", "content": "Go on."}])] == ["assistant", "user"]


def test_genkits_requests_and_responses_are_calls_and_results() -> None:
    found = read_messages(
        {
            "messages": [
                {"role": "model", "content": [{"toolRequest": {"name": "search", "ref": "1", "input": {"to": "OSL"}}}]},
                {"role": "tool", "content": [{"toolResponse": {"name": "search", "ref": "1", "output": "SK 4412"}}]},
            ]
        }
    )
    [call] = found[0].calls
    [result] = found[1].results
    assert (call.id, call.name, call.arguments) == ("1", "search", {"to": "OSL"})
    assert (result.call_id, result.content) == ("1", "SK 4412")


def test_requests_whose_parts_say_whose_words_they_are() -> None:
    def part(kind: str, **more: Any) -> dict[str, Any]:
        return {"part_kind": kind, "timestamp": "2026-11-30 20:36:54.950527+00:00", **more}

    request = {
        "kind": "request",
        "parts": [part("system-prompt", content="Be brief."), part("user-prompt", content="Hi")],
    }
    called = part("tool-call", tool_name="search", args='{"to": "OSL"}', tool_call_id="1")
    response = {"kind": "response", "parts": [part("text", content="One moment."), called]}
    answer = {"kind": "request", "parts": [part("tool-return", tool_name="search", content="SK 1", tool_call_id="1")]}
    found = read_blob({"messages": [request, response, answer]}, "user")
    assert [(m.role, m.text) for m in found[:3]] == [
        ("system", "Be brief."),
        ("user", "Hi"),
        ("assistant", "One moment."),
    ]
    [call] = found[2].calls
    [result] = found[3].results
    assert (call.id, call.name, call.arguments) == ("1", "search", {"to": "OSL"})
    assert (result.call_id, result.content) == ("1", "SK 1")


def test_a_time_is_nobodys_words() -> None:
    assert read_blob({"when": "2026-11-30 20:36:54.950527+00:00", "ok": True}, "assistant") == []


def test_a_dump_that_an_exporter_cut_is_nobodys_words() -> None:
    dump = orjson.dumps({"messages": [{"role": "user", "content": "Find me a flight. " * 50}]}).decode()
    assert read_blob(dump[:600], "assistant") == []
    assert read_messages([{"role": "assistant", "content": dump[:600]}])[0].text == ""
    assert [m.text for m in read_blob('{"messages": maybe?', "user")] == ['{"messages": maybe?']


def test_the_answers_of_several_tools_in_one_message_are_results() -> None:
    answers = [
        {"role": "tool", "tool_call_id": "1", "content": "SK 1"},
        {"role": "tool", "tool_call_id": "2", "content": "rain"},
    ]
    [message] = read_messages([{"role": "tool", "content": "SK 1\nrain", "tool_responses": answers}])
    assert [(r.call_id, r.content) for r in message.results] == [("1", "SK 1"), ("2", "rain")]


@pytest.mark.parametrize(
    "history", [[{"question": "One?", "answer": "Yes."}], {"messages": [{"user": "One?", "ai": "Yes."}]}]
)
def test_a_history_of_fields_is_what_was_said_before(history: Any) -> None:
    found = read_blob({"question": "Two?", "history": history}, "user")
    assert [(m.role, m.text) for m in found] == [("user", "One?"), ("assistant", "Yes."), ("user", "Two?")]


def test_a_history_of_something_else_is_left_out() -> None:
    assert [m.text for m in read_blob({"question": "Two?", "history": [{"price": 3}]}, "user")] == ["Two?"]


def test_what_a_serialiser_did_not_follow_is_not_exported() -> None:
    cut = {"id": "1", "type": "function", "function": {"name": "[MaxDepth]", "arguments": "[MaxDepth]"}}
    [message] = read_messages([{"role": "assistant", "content": "[object Object]", "tool_calls": [cut]}])
    [call] = message.calls
    assert (message.text, call.id, call.name, call.arguments) == ("", "1", None, None)


def test_results_of_the_responses_api_are_read_in_both_spellings() -> None:
    for kind, key in (("function_call_output", "call_id"), ("function_call_result", "callId")):
        items = [{"type": "function_call", key: "1", "name": "search", "arguments": "{}"},
                 {"type": kind, key: "1", "output": {"type": "text", "text": "SK 1"}}]  # fmt: skip
        found = read_messages(items)
        assert [m.role for m in found] == ["assistant", "tool"]
        assert (found[1].results[0].call_id, found[1].results[0].content) == ("1", "SK 1")
