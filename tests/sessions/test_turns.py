"""Turns from any structure of traces."""

from __future__ import annotations

from typing import Any

from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.sessions.model import Session, Turn
from otel_evals.spans.record import EventRecord, LinkRecord, SpanRecord
from tests.sessions.spans import agent, call, log, model, result, span, text, tool

LIMITS = AssemblerLimits(idle_s=1e6, max_age_s=1e9)


def session_of(*records: Any) -> Session:
    assembler = SessionAssembler(LIMITS)
    for record in records:
        if isinstance(record, SpanRecord):
            assembler.add_span(record, 1)
        else:
            assembler.add_log(record, 1)
    [session] = assembler.flush(2)
    return session


def said(session: Session) -> list[tuple[str | None, str | None]]:
    return [(turn.user, turn.agent) for turn in session.turns]


def tools(turn: Turn) -> list[tuple[Any, ...]]:
    return [(c.name, c.arguments, c.result, c.error.message if c.error else None) for c in turn.tool_calls]


U1, A1, U2, A2 = text("user", "one"), text("assistant", "first"), text("user", "two"), text("assistant", "second")


def test_a_root_without_content_takes_it_from_its_models() -> None:
    session = session_of(
        agent(None, None, span_id=10, end=9),
        model([U1], [call("c", "search", q="x")], parent=10, start=1, end=2),
        tool("search", {"q": "x"}, "found", parent=10, start=3, end=4),
        model([U1, call("c", "search", q="x"), result("c", "found")], [A1], parent=10, start=5, end=6),
    )
    assert said(session) == [("one", "first")]
    assert tools(session.turns[0]) == [("search", {"q": "x"}, "found", None)]
    assert session.turns[0].root_span_id == f"{10:016x}"


def test_model_calls_in_traces_of_their_own_are_one_turn_until_the_next_question() -> None:
    history = [U1, call("c", "search", q="x"), result("c", "found")]
    session = session_of(
        model([U1], [call("c", "search", q="x")], trace=1, start=1),
        model(history, [A1], trace=2, start=3),
        model([*history, A1, U2], [A2], trace=3, start=5),
    )
    assert said(session) == [("one", "first"), ("two", "second")]
    assert tools(session.turns[0]) == [("search", {"q": "x"}, "found", None)]
    assert tools(session.turns[1]) == []


def test_a_whole_conversation_in_one_trace_is_cut_by_its_histories() -> None:
    session = session_of(
        span("websocket", {"session.id": "s", "gen_ai.operation.name": "unknown"}, span_id=10, end=50),
        model([U1], [A1], parent=10, start=1),
        model([U1, A1, U2], [A2], parent=10, start=5),
    )
    assert said(session) == [("one", "first"), ("two", "second")]


def test_the_same_question_twice_is_two_turns() -> None:
    session = session_of(
        model([U1], [A1], trace=1, start=1),
        model([U1, A1, U1], [A2], trace=2, start=5),
    )
    assert said(session) == [("one", "first"), ("one", "second")]


def test_a_turn_whose_spans_were_never_seen_is_restored_from_a_later_history() -> None:
    session = session_of(model([U1, A1, U2], [A2], start=5))
    assert said(session) == [("one", "first"), ("two", "second")]
    assert [turn.trace_id is None for turn in session.turns] == [True, False]
    assert not session.turns[0].sampled


def test_an_answer_that_only_the_next_history_has_is_filled_in() -> None:
    session = session_of(model([U1], [], trace=1, start=1), model([U1, A1, U2], [A2], trace=2, start=5))
    assert said(session) == [("one", "first"), ("two", "second")]


def test_histories_cut_to_a_window_repeat_nothing() -> None:
    u3, a3 = text("user", "three"), text("assistant", "third")
    session = session_of(
        model([U1], [A1], trace=1, start=1),
        model([U1, A1, U2], [A2], trace=2, start=3),
        model([U2, A2, u3], [a3], trace=3, start=5),
    )
    assert said(session) == [("one", "first"), ("two", "second"), ("three", "third")]


def test_traces_joined_by_links_are_one_turn() -> None:
    link = (LinkRecord(1, 10),)
    session = session_of(
        agent("one", None, span_id=10, trace=1, end=2),
        model([U1], [A1], trace=2, start=1.5, links=link),
    )
    assert said(session) == [("one", "first")]


def test_a_lost_root_costs_nothing_that_its_children_tell() -> None:
    session = session_of(
        model([U1], [call("c", "search", q="x")], parent=99, start=1, end=2),
        tool("search", {"q": "x"}, "found", parent=99, start=3, end=4),
        model([U1, call("c", "search", q="x"), result("c", "found")], [A1], parent=99, start=5, end=6),
    )
    assert said(session) == [("one", "first")]
    assert len(session.turns[0].tool_calls) == 1


def test_a_missing_parent_beside_other_wrappers_flags_the_session_incomplete() -> None:
    whole = session_of(agent("one", "first", span_id=10, end=5), model([U1], [A1], parent=10, start=1))
    lost = session_of(
        agent("one", "first", span_id=10, trace=1, end=5),
        model([U1, A1, U2], [A2], parent=99, trace=2, start=6),
    )
    assert (whole.incomplete, lost.incomplete) == (False, True)


def test_children_under_a_span_that_was_not_kept_are_not_missing_anything() -> None:
    session = session_of(agent("one", "first", span_id=10, end=5), model([U1], [A1], parent=77, start=1))
    assert not session.incomplete
    assert len(session.turns) == 1


def test_a_call_that_two_instrumentations_export_is_one_call() -> None:
    session = session_of(
        agent("one", "first", span_id=10, end=9),
        model([U1], [call("c", "search", q="x")], parent=10, start=1, end=2),
        tool("search", {"q": "x"}, "found", parent=10, span_id=20, start=3, end=4),
        span(
            "search",
            {"openinference.span.kind": "TOOL", "tool.name": "search", "input.value": '{"q": "x"}', "output.value": "found"},
            parent=20, start=3.1, end=3.9,
        ),
    )  # fmt: skip
    assert tools(session.turns[0]) == [("search", {"q": "x"}, "found", None)]


def test_the_same_call_made_twice_is_two_calls() -> None:
    first, second = call("c1", "search", q="x"), call("c2", "search", q="x")
    session = session_of(
        agent("one", "first", span_id=10, end=9),
        model([U1, first, result("c1", "Error: busy"), second, result("c2", "found")], [A1], parent=10, start=5),
        tool("search", {"q": "x"}, None, parent=10, start=1, end=2, status="error", message="busy"),
        tool("search", {"q": "x"}, "found", parent=10, start=3, end=4),
    )
    assert [(c.id, c.error is not None) for c in session.turns[0].tool_calls] == [("c1", True), ("c2", False)]


def test_a_handled_tool_error_is_the_tools_and_not_the_turns() -> None:
    failed = EventRecord("exception", 0, {"exception.type": "TimeoutError", "exception.message": "30 s"})
    session = session_of(
        agent("one", "first", span_id=10, end=9, status="error", message="30 s"),
        tool("search", {"q": "x"}, None, parent=10, start=1, end=2, status="error", events=(failed,)),
    )
    [turn] = session.turns
    assert tools(turn)[0][3] == "30 s"
    assert turn.error is None


def test_the_span_knows_the_reason_that_the_model_was_not_told() -> None:
    failed = EventRecord("exception", 0, {"exception.type": "StockError", "exception.message": "none left"})
    session = session_of(
        agent("one", "first", span_id=10, end=9),
        model([U1, call("c", "buy"), result("c", "An error occurred. Please try again.")], [A1], parent=10, start=5),
        tool("buy", {}, None, parent=10, start=1, end=2, status="error", events=(failed,)),
    )
    [found] = session.turns[0].tool_calls
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("StockError", "none left")
    assert found.result == "An error occurred. Please try again."


def test_sub_agents_are_part_of_the_turn_and_named() -> None:
    session = session_of(
        agent("one", "first", span_id=10, end=9),
        tool("ask_expert", {"q": "x"}, "expert says", parent=10, span_id=20, start=1, end=6),
        span("invoke_agent expert", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "expert"},
             parent=20, span_id=30, start=2, end=5),
        model([text("user", "x")], [text("assistant", "expert says")], parent=30, start=3, end=4),
    )  # fmt: skip
    assert said(session) == [("one", "first")]
    assert session.agents == ("travel", "expert")
    assert [c.name for c in session.turns[0].tool_calls] == ["ask_expert"]


def test_bookkeeping_spans_are_no_turns() -> None:
    session = session_of(
        span("create_agent travel", {"gen_ai.operation.name": "create_agent", "gen_ai.conversation.id": "s"}, trace=5),
        agent("one", "first", start=2, end=5),
        span("execute_tool (merged)", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"}),
    )
    assert said(session) == [("one", "first")]
    assert session.turns[0].tool_calls == ()


def test_an_answer_spoken_through_a_tool_is_the_answer() -> None:
    session = session_of(model([U1], [call("c", "final_answer", answer="first")], start=1))
    assert said(session) == [("one", "first")]
    assert session.turns[0].tool_calls == ()


def test_what_the_agent_says_between_calls_is_interim() -> None:
    speaking = {
        "role": "assistant",
        "parts": [{"type": "text", "content": "Let me look."}, *call("c", "search")["parts"]],
    }
    session = session_of(
        model([U1], [speaking], parent=10, start=1),
        model([U1, speaking, result("c", "found")], [A1], parent=10, start=3),
        agent(None, None, span_id=10, end=9),
    )
    assert session.turns[0].interim == ("Let me look.",)
    assert session.turns[0].agent == "first"


def test_a_model_call_exported_twice_counts_its_tokens_once() -> None:
    first = model([U1], [A1], parent=10, span_id=20, start=1, end=5)
    inner = span(
        "ChatCompletion",
        {"openinference.span.kind": "LLM", "llm.token_count.prompt": 10, "llm.token_count.completion": 5},
        parent=20, start=2, end=4,
    )  # fmt: skip
    session = session_of(agent("one", "first", span_id=10, end=9), first, inner)
    assert (session.usage.input_tokens, session.usage.output_tokens) == (10, 5)


def test_without_content_the_session_is_counted_and_says_why_it_is_not_evaluable() -> None:
    session = session_of(agent(None, None, span_id=10, end=9), tool("search", {"q": "x"}, "found", parent=10, start=1))
    assert said(session) == [(None, None)]
    assert (session.evaluable, session.not_evaluable_reason) == (False, "no_content")


def test_wrappers_that_speak_of_objects_are_not_the_person() -> None:
    junk = {"openinference.span.kind": "CHAIN", "session.id": "s",
            "input.value": '{"ctx": "<workflows.Context object at 0x7f8f>", "ev": "StartEvent()"}'}  # fmt: skip
    session = session_of(
        span("run", junk, span_id=10, end=9),
        model([U1], [A1], parent=10, start=1),
    )
    assert said(session) == [("one", "first")]


def test_every_message_labelled_user_is_told_apart_by_who_is_known_to_have_said_it() -> None:
    everyone = [text("user", t) for t in ("Be kind.", "one", "found", "first", "two")]
    session = session_of(
        model([text("user", "one")], [A1], None, trace=1, parent=10, start=2),
        tool("search", {}, "found", "s", trace=1, parent=10, start=1, end=1.5),
        agent(None, None, "s", trace=1, span_id=10, end=4),
        model(everyone[1:], [A2], "s", trace=2, start=5),
    )
    assert said(session) == [("one", "first"), ("two", "second")]


def test_events_of_several_model_calls_on_one_span_are_several_calls() -> None:
    root = span("handle", {"session.id": "s", "gen_ai.operation.name": "unknown"}, span_id=10, end=9)
    asked = [{"id": "c", "function": {"name": "search", "arguments": '{"q": "x"}'}, "type": "function"}]
    session = session_of(
        root,
        log("gen_ai.user.message", {"content": "one"}, trace=1, span_id=10, at=1),
        log("gen_ai.choice", {"message": {"content": None}, "tool_calls": asked}, trace=1, span_id=10, at=2),
        log("gen_ai.user.message", {"content": "one"}, trace=1, span_id=10, at=3),
        log("gen_ai.assistant.message", {"tool_calls": asked}, trace=1, span_id=10, at=4),
        log("gen_ai.tool.message", {"id": "c", "content": "found"}, trace=1, span_id=10, at=5),
        log("gen_ai.choice", {"message": {"content": "first"}}, trace=1, span_id=10, at=6),
    )
    assert said(session) == [("one", "first")]
    assert tools(session.turns[0]) == [("search", {"q": "x"}, "found", None)]


def test_log_bodies_in_json_text_are_read() -> None:
    chat = span("chat", {"gen_ai.operation.name": "chat", "session.id": "s"}, span_id=10)
    session = session_of(
        chat,
        log("", '{"role": "user", "content": "one"}', trace=1, span_id=10, at=1, **{"event.name": "gen_ai.user.message"}),
        log("", '{"message": {"role": "assistant", "content": "first"}, "index": 0}', trace=1, span_id=10, at=2,
            **{"event.name": "gen_ai.choice"}),
    )  # fmt: skip
    assert said(session) == [("one", "first")]


def test_the_spans_of_a_ring_of_parents_are_still_read() -> None:
    session = session_of(
        agent("one", "first", span_id=10, parent=11, end=5),
        agent(None, None, span_id=11, parent=10, end=5),
    )
    assert ("one", "first") in said(session)


def test_a_conversation_that_leaks_into_an_ended_root_is_a_turn_of_its_own() -> None:
    session = session_of(
        agent("one", "first", span_id=10, end=5),
        agent("two", "second", parent=10, start=6, end=8),
    )
    assert said(session) == [("one", "first"), ("two", "second")]


def test_a_model_call_exported_by_two_libraries_side_by_side_counts_its_tokens_once() -> None:
    tokens = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "gen_ai.operation.name": "chat"}
    session = session_of(
        agent("one", "first", span_id=10, end=9),
        model([U1], [A1], parent=10, start=1, end=5),
        span("messages.create", {**tokens, "gen_ai.response.id": "msg_1"}, parent=10, start=2, end=4),
        span("messages.create", {**tokens, "gen_ai.response.id": "msg_2"}, parent=10, start=6, end=8),
    )
    assert (session.usage.input_tokens, session.usage.output_tokens) == (20, 10)


def test_where_only_the_run_reports_tokens_they_are_the_runs() -> None:
    root = agent("one", "first", span_id=10, end=9)
    tokens = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 7}
    session = session_of(span(root.name, {**root.attributes, **tokens}, span_id=10, end=9))
    assert (session.usage.input_tokens, session.usage.output_tokens) == (30, 7)


def test_a_tool_offered_to_the_model_is_not_called() -> None:
    schema = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}
    session = session_of(model([U1, {"role": "tool", "content": schema}], [A1], start=1))
    assert session.turns[0].tool_calls == ()


def test_a_tool_told_by_two_layers_is_one_call() -> None:
    given = {"q": "x"}
    session = session_of(
        agent("one", "first", span_id=10, end=9),
        tool("search", given, None, span_id=11, parent=10, start=1, end=4, status="error", message="timed out"),
        tool("error", {"input": given, "error": "Tool Error"}, None, parent=11, start=2, end=3, status="error"),
        tool("call_tool", given, "nothing", parent=11, start=2, end=3),
    )
    assert tools(session.turns[0]) == [("search", given, "nothing", "timed out")]


def test_a_tool_span_named_after_a_class_is_the_one_call_with_its_arguments() -> None:
    asked = [call("c", "search", q="x"), call("d", "weather", city="Oslo")]
    session = session_of(
        agent(None, None, span_id=10, end=9),
        model([U1], asked, parent=10, start=1, end=2),
        tool("DynamicStructuredTool", {"q": "x"}, "found", parent=10, start=3, end=4),
        model([U1, *asked, result("c", "found"), result("d", "rain")], [A1], parent=10, start=5, end=6),
    )
    assert tools(session.turns[0]) == [
        ("search", {"q": "x"}, "found", None),
        ("weather", {"city": "Oslo"}, "rain", None),
    ]


def test_a_tool_with_the_arguments_of_two_calls_is_neither() -> None:
    asked = [call("c", "search", q="x"), call("d", "lookup", q="x")]
    session = session_of(
        agent(None, None, span_id=10, end=9),
        model([U1], asked, parent=10, start=1, end=2),
        tool("audit", {"q": "x"}, "noted", parent=10, start=3, end=4),
        model([U1, *asked, result("c", "found"), result("d", "seen")], [A1], parent=10, start=5, end=6),
    )
    assert [name for name, *_ in tools(session.turns[0])] == ["search", "lookup", "audit"]


def test_a_result_flagged_only_in_the_request_as_it_was_sent_has_failed() -> None:
    flat = {
        "openinference.span.kind": "LLM",
        "session.id": "s",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "one",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "search",
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": "no route",
        "llm.input_messages.2.message.tool_call_id": "c",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "first",
    }
    sent = (
        '[{"role": "user", "content": [{"text": "one"}]},'
        ' {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "search", "input": {}}}]},'
        ' {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "status": "error",'
        ' "content": [{"text": "no route"}]}}]}]'
    )
    assert tools(session_of(span("x", flat)).turns[0]) == [("search", None, "no route", None)]
    assert tools(session_of(span("x", {**flat, "input.value": sent})).turns[0]) == [
        ("search", None, "no route", "no route")
    ]


HOME_MADE = {"input": "one", "output": "first"}


def test_names_without_a_prefix_are_read_where_a_session_or_a_kind_is_named() -> None:
    for named in ({"session.id": "s"}, {"span.type": "agent"}):
        assert said(session_of(span("handle", {**HOME_MADE, **named}))) == [("one", "first")]


def test_names_without_a_prefix_alone_are_nobodys_conversation() -> None:
    assembler = SessionAssembler(LIMITS)
    assembler.add_span(span("handle", HOME_MADE), 1)
    assert list(assembler.flush(2)) == []
    assert assembler.ignored == 1


def sessions_of(*records: SpanRecord) -> list[Session]:
    assembler = SessionAssembler(LIMITS)
    for record in records:
        assembler.add_span(record, 1)
    return sorted(assembler.flush(2), key=lambda s: s.start_ns)


def answered(user: str, answer: str, response: str, follows: str | None = None, **where: Any) -> SpanRecord:
    known = model([text("user", user)], [text("assistant", answer)], follows, **where)
    return span(known.name, {**known.attributes, "gen_ai.response.id": response}, **where)


def test_a_conversation_that_names_the_response_before_continues_it() -> None:
    [session] = sessions_of(
        answered("one", "first", "resp_a", trace=1, start=1),
        answered("two", "second", "resp_b", "resp_a", trace=2, start=3),
    )
    assert said(session) == [("one", "first"), ("two", "second")]
    assert session.derived


def test_one_that_names_another_response_is_another_conversation() -> None:
    found = sessions_of(
        answered("one", "first", "resp_a", trace=1, start=1),
        answered("two", "second", "resp_b", "resp_z", trace=2, start=3),
    )
    assert [said(session) for session in found] == [[("one", "first")], [("two", "second")]]


def test_the_service_is_the_agents_not_its_tools_whichever_comes_first() -> None:
    shop = {"resource": {"service.name": "shop"}}
    tools_ = {"resource": {"service.name": "flights-server"}}
    spans = [
        tool("search", {"q": "x"}, "found", span_id=12, parent=11, start=2, end=3, **tools_),
        model([U1], [A1], span_id=11, parent=10, start=1, end=4, **shop),
        agent("one", "first", span_id=10, start=0, end=5, **shop),
    ]
    for order in (spans, spans[::-1]):
        assert session_of(*order).service_name == "shop"


def test_a_model_call_that_was_given_results_goes_on_with_the_turn_before() -> None:
    session = session_of(
        model([U1], [], trace=1, start=1),
        model([U1, result("c", "found")], [A1], trace=2, start=3),
    )
    assert said(session) == [("one", "first")]


def tool_alone(call_id: str, **where: Any) -> SpanRecord:
    known = tool("search", {"q": "x"}, "found", None, **where)
    return span(known.name, {**known.attributes, "gen_ai.tool.call.id": call_id}, **where)


def test_a_tool_in_a_trace_of_its_own_belongs_to_the_trace_that_called_it() -> None:
    [session] = sessions_of(
        model([U1], [call("call_a", "search", q="x")], None, trace=1, start=1),
        tool_alone("call_a", trace=2, start=2, status="error", message="timed out"),
        model([U1, call("call_a", "search", q="x"), result("call_a", "no")], [A1], None, trace=3, start=3),
    )
    assert said(session) == [("one", "first")]
    assert tools(session.turns[0]) == [("search", {"q": "x"}, "no", "timed out")]


def test_a_tool_that_two_traces_may_have_called_is_nobodys() -> None:
    found = sessions_of(
        model([U1], [call("0", "search", q="x")], None, trace=1, start=1),
        model([U2], [call("0", "search", q="y")], None, trace=2, start=1),
        tool_alone("0", trace=3, start=2),
    )
    assert len(found) == 3
