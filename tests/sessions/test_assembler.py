"""When a session is complete, what belongs to it, and what happens to what comes too late or is too much."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.sessions.model import Session
from otel_evals.sessions.open import Trace
from tests.sessions.spans import SECOND, agent, call, log, model, result, span, text, tool

IDLE = AssemblerLimits(idle_s=60, grace_s=5)


def at(seconds: float) -> int:
    return int(seconds * SECOND)


def said(session: Session) -> list[tuple[str | None, str | None]]:
    return [(turn.user, turn.agent) for turn in session.turns]


def poll(assembler: SessionAssembler, seconds: float, open_traces: tuple[int, ...] = ()) -> list[Session]:
    return list(assembler.poll(at(seconds), open_traces))


# Completion


def test_a_session_completes_after_the_idle_time() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello"), at(0))
    assert poll(assembler, 59) == []
    [session] = poll(assembler, 60)
    assert said(session) == [("Hi", "Hello")]
    assert session.completion == "idle"


def test_idle_time_counts_from_the_last_span() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", trace=1), at(0))
    assembler.add_span(agent("More?", "No.", trace=2, start=50), at(50))
    assert poll(assembler, 61) == []
    [session] = poll(assembler, 110)
    assert said(session) == [("Hi", "Hello"), ("More?", "No.")]


def test_an_open_local_root_keeps_its_session_open() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(model([text("user", "Hi")], [text("assistant", "Hello")], trace=7), at(0))
    assert poll(assembler, 600, open_traces=(7,)) == []
    [session] = poll(assembler, 700)
    assert said(session) == [("Hi", "Hello")]


def test_an_ended_session_completes_after_the_grace_with_the_late_spans() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", trace=1), at(0))
    assembler.end_session("s", at(1))
    assembler.add_span(agent("Bye", "Bye!", trace=2, start=2), at(3))
    assert poll(assembler, 5.9) == []
    [session] = poll(assembler, 6)
    assert said(session) == [("Hi", "Hello"), ("Bye", "Bye!")]
    assert session.completion == "ended"


def test_a_session_completes_at_its_greatest_age_however_busy_it_is() -> None:
    assembler = SessionAssembler(AssemblerLimits(idle_s=60, max_age_s=100))
    for second in range(0, 120, 20):
        assembler.add_span(agent(f"q{second}", "a", trace=second + 1, start=second), at(second))
    [session] = poll(assembler, 120)
    assert session.completion == "age"


def test_flush_completes_everything_now() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", "a", trace=1), at(0))
    assembler.add_span(agent("Hi", "Hello", "b", trace=2), at(0))
    assert {session.session_id for session in assembler.flush(at(0))} == {"a", "b"}
    assert assembler.open_sessions == 0
    assert assembler.buffered_bytes == 0


def test_ending_an_unknown_session_does_nothing() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.end_session("nobody", at(0))
    assert poll(assembler, 100) == []


# What comes late, again, or afterwards


def test_a_span_after_completion_is_counted_and_changes_nothing() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", trace=1, end=2), at(2))
    assert len(poll(assembler, 100)) == 1
    assembler.add_span(tool("search", {}, "x", trace=1, start=1), at(101))
    assert assembler.late_spans == 1
    assert poll(assembler, 1000) == []


def test_a_resumed_session_is_the_next_generation_and_holds_only_what_is_new() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", trace=1), at(0))
    [first] = poll(assembler, 100)
    assembler.add_span(agent("Again", "Hello again", trace=2, start=200), at(200))
    [second] = poll(assembler, 300)
    assert (first.generation, second.generation) == (1, 2)
    assert said(second) == [("Again", "Hello again")]


def test_a_resumed_session_has_the_whole_conversation_where_its_history_tells_it() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", trace=1), at(0))
    assert len(poll(assembler, 100)) == 1
    history = [text("user", "Hi"), text("assistant", "Hello"), text("user", "Again")]
    assembler.add_span(model(history, [text("assistant", "Sure")], trace=2, start=200), at(200))
    [second] = poll(assembler, 300)
    assert said(second) == [("Hi", "Hello"), ("Again", "Sure")]
    assert [turn.trace_id is None for turn in second.turns] == [True, False]


def test_a_trace_that_goes_on_after_its_session_completed_is_the_next_generation() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", trace=1, end=2), at(2))
    assert len(poll(assembler, 100)) == 1
    assembler.add_span(agent("Again", "Yes", trace=1, start=200), at(201))
    [session] = poll(assembler, 300)
    assert session.generation == 2


def test_redelivered_spans_and_logs_change_nothing() -> None:
    once, twice = SessionAssembler(IDLE), SessionAssembler(IDLE)
    spans = [
        agent(None, None, trace=3, span_id=30),
        span("chat", {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "s"}, trace=3, span_id=31, parent=30),
    ]
    logs = [
        log("gen_ai.user.message", {"content": "Hi"}, trace=3, span_id=31, at=1),
        log("gen_ai.choice", {"message": {"content": "Hello"}}, trace=3, span_id=31, at=2),
    ]
    for assembler, times in ((once, 1), (twice, 3)):
        for _ in range(times):
            for item in spans:
                assembler.add_span(item, at(0))
            for event in logs:
                assembler.add_log(event, at(0))
    assert list(once.flush(1)) == list(twice.flush(1))


@pytest.mark.parametrize("logs_first", [True, False])
def test_logs_join_their_span_whichever_comes_first(logs_first: bool) -> None:
    assembler = SessionAssembler(IDLE)
    chat = span("chat", {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "s"}, trace=3, span_id=31)
    logs = [
        log("gen_ai.user.message", {"content": "Hi"}, trace=3, span_id=31),
        log("gen_ai.choice", {"message": {"content": "Hello"}}, trace=3, span_id=31),
    ]
    if not logs_first:
        assembler.add_span(chat, at(0))
    for event in logs:
        assembler.add_log(event, at(0))
    if logs_first:
        assembler.add_span(chat, at(0))
    [session] = assembler.flush(1)
    assert said(session) == [("Hi", "Hello")]
    assert session.session_id == "s"


# Which spans belong together


def test_an_id_on_the_root_alone_is_lifted_to_the_whole_trace() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(tool("search", {"q": "x"}, "found", None, trace=1, parent=10, start=1), at(1))
    assembler.add_span(agent("Hi", "Hello", "s", trace=1, span_id=10, end=5), at(5))
    [session] = assembler.flush(1)
    assert session.session_id == "s"
    assert [c.name for c in session.turns[0].tool_calls] == ["search"]


def test_an_id_on_the_children_alone_is_lifted_to_the_whole_trace() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(
        model([text("user", "Hi")], [text("assistant", "Hello")], "s", trace=1, parent=10, start=1), at(1)
    )
    assembler.add_span(agent(None, None, None, trace=1, span_id=10, end=5), at(5))
    [session] = assembler.flush(1)
    assert session.session_id == "s"


def test_two_ids_in_one_trace_are_two_sessions() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", "a", trace=1, span_id=10, end=2), at(2))
    leaked = agent("Other", "Person", "b", trace=1, span_id=20, parent=10, start=5)
    assembler.add_span(leaked, at(6))
    assembler.add_span(tool("search", {}, "x", None, trace=1, parent=20, start=5.1, end=5.2), at(6))
    sessions = {session.session_id: session for session in assembler.flush(1)}
    assert said(sessions["a"]) == [("Hi", "Hello")]
    assert said(sessions["b"]) == [("Other", "Person")]
    assert [c.name for c in sessions["b"].turns[0].tool_calls] == ["search"]


@pytest.mark.parametrize(
    "placeholder", ["", "default", "None", "[Scrubbed due to 'session']", "resp_68af", "[REDACTED]"]
)
def test_placeholders_are_no_session_ids(placeholder: str) -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", placeholder, trace=1), at(0))
    assembler.add_span(agent("Hi there", "Good day", placeholder, trace=2, start=5), at(5))
    sessions = list(assembler.flush(1))
    assert [session.derived for session in sessions] == [True, True]


def test_without_an_id_one_trace_is_one_session() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", None, trace=0xA), at(0))
    assembler.add_span(agent("Find a flight", "Here", None, trace=0xB, start=5), at(5))
    sessions = list(assembler.flush(1))
    assert [session.session_id for session in sessions] == [f"{0xA:032x}", f"{0xB:032x}"]
    assert all(session.derived and session.session_key == "trace" for session in sessions)


def test_without_an_id_traces_are_joined_when_a_later_history_contains_the_earlier_turn() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(model([text("user", "Hi")], [text("assistant", "Hello")], None, trace=1), at(0))
    history = [text("user", "Hi"), text("assistant", "Hello"), text("user", "Thanks")]
    assembler.add_span(model(history, [text("assistant", "Welcome")], None, trace=2, start=5), at(5))
    [session] = assembler.flush(1)
    assert said(session) == [("Hi", "Hello"), ("Thanks", "Welcome")]
    assert session.derived


def test_a_history_that_differs_in_one_word_joins_nothing() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(model([text("user", "Hi")], [text("assistant", "Hello")], None, trace=1), at(0))
    history = [text("user", "Hi"), text("assistant", "Hello!"), text("user", "Thanks")]
    assembler.add_span(model(history, [text("assistant", "Welcome")], None, trace=2, start=5), at(5))
    assert len(list(assembler.flush(1))) == 2


def test_two_people_who_say_the_same_are_not_joined_into_one_conversation() -> None:
    assembler = SessionAssembler(IDLE)
    for trace in (1, 2):
        assembler.add_span(
            model([text("user", "Hi")], [text("assistant", "Hello")], None, trace=trace, start=trace), at(trace)
        )
    history = [text("user", "Hi"), text("assistant", "Hello"), text("user", "Thanks")]
    assembler.add_span(model(history, [text("assistant", "Welcome")], None, trace=3, start=5), at(5))
    assert sorted(len(session.turns) for session in assembler.flush(1)) == [1, 2]


def test_a_joined_conversation_without_an_id_waits_for_its_latest_trace() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(model([text("user", "Hi")], [text("assistant", "Hello")], None, trace=1), at(0))
    history = [text("user", "Hi"), text("assistant", "Hello"), text("user", "Thanks")]
    assembler.add_span(model(history, [text("assistant", "Welcome")], None, trace=2, start=50), at(50))
    assert poll(assembler, 61) == []
    [session] = poll(assembler, 110)
    assert len(session.turns) == 2


# Limits


def test_too_many_open_sessions_evict_the_longest_idle_one() -> None:
    assembler = SessionAssembler(AssemblerLimits(max_open_sessions=2))
    for number, name in enumerate(("a", "b", "c"), 1):
        assembler.add_span(agent("Hi", "Hello", name, trace=number), at(number))
    [session] = poll(assembler, 4)
    assert (session.session_id, session.completion) == ("a", "evicted")
    assert assembler.evictions == {"open_sessions": 1}
    assert assembler.open_sessions == 2


def test_too_many_bytes_evict_sessions_until_the_rest_fits() -> None:
    assembler = SessionAssembler(AssemblerLimits(max_open_bytes=2**20, max_session_bytes=2**20))
    for number in range(1, 8):
        assembler.add_span(agent("Hi", str(number) * 300_000, f"s{number}", trace=number), at(number))
    assert assembler.buffered_bytes <= 2**20
    assert assembler.evictions["open_bytes"] >= 4
    assert len(poll(assembler, 9)) == assembler.evictions["open_bytes"]


def test_a_session_over_its_bytes_completes_truncated() -> None:
    assembler = SessionAssembler(AssemblerLimits(max_session_bytes=10_000))
    assembler.add_span(agent("Hi", "x" * 20_000), at(0))
    [session] = poll(assembler, 0)
    assert (session.completion, session.truncated) == ("bytes", True)


def test_a_session_over_its_turns_completes() -> None:
    assembler = SessionAssembler(AssemblerLimits(max_turns=3))
    for number in range(1, 6):
        assembler.add_span(agent(f"q{number}", "a", trace=number, start=number), at(number))
    [session] = poll(assembler, 6)
    assert session.completion == "turns"


def test_repeated_history_takes_no_memory() -> None:
    def size(turns: int) -> int:
        assembler = SessionAssembler(IDLE)
        history: list[Any] = []
        for number in range(turns):
            history.append(text("user", f"question {number} " * 20))
            answer = text("assistant", f"answer {number} " * 20)
            assembler.add_span(model(history, [answer], trace=number + 1, start=number), at(number))
            history.append(answer)
        return assembler.buffered_bytes

    assert size(80) < 17 * size(5)


# Hostile input


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": None, "gen_ai.input.messages": [1, {"role": None}]},
        {"gen_ai.operation.name": "chat", "gen_ai.input.messages": "[" * 5000},
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": {"role": {"x": 1}},
            "gen_ai.usage.input_tokens": float("nan"),
        },
        {"gen_ai.operation.name": ["chat"], "gen_ai.conversation.id": b"\xff"},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": "\ud800", "gen_ai.tool.name": 7},
    ],
)
def test_a_poisonous_span_is_isolated(attributes: dict[str, Any]) -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(span("odd", attributes, trace=1), at(0))
    assembler.add_span(agent("Hi", "Hello", "good", trace=2), at(0))
    assert "good" in {session.session_id for session in assembler.flush(1)}


def test_a_session_that_cannot_be_built_is_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Session:
        raise RecursionError

    monkeypatch.setattr("otel_evals.sessions.assembler.build_session", broken)
    assembler = SessionAssembler(IDLE)
    assembler.add_span(agent("Hi", "Hello", "odd", trace=1), at(0))
    [session] = assembler.flush(1)
    assert (session.session_id, session.evaluable, session.not_evaluable_reason) == ("odd", False, "unreadable")
    assert assembler.poisoned == 1


def test_what_is_no_record_at_all_is_counted_and_skipped() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(None, at(0))  # type: ignore[arg-type]
    assembler.add_log("nonsense", at(0))  # type: ignore[arg-type]
    assert assembler.poisoned == 2


def test_spans_without_anything_about_agents_make_no_session() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(span("GET /", {"http.request.method": "GET", "session.id": "web-1"}), at(0))
    assert list(assembler.flush(1)) == []


# What is collected beside the talk


def test_metadata_is_collected_once() -> None:
    assembler = SessionAssembler(AssemblerLimits(keep_attributes=("shop.tenant",)))
    extra = {"user.id": "u1", "shop.tenant": "acme", "otel_evals.goal": "book a flight"}
    root = agent("Hi", "Hello", trace=1, span_id=10, end=9)
    assembler.add_span(span(root.name, {**root.attributes, **extra}, trace=1, span_id=10, end=9), at(9))
    asked = [text("user", "Hi")]
    assembler.add_span(model(asked, [call("c1", "search", q="x")], trace=1, parent=10, start=1), at(2))
    history = [*asked, call("c1", "search", q="x"), result("c1", "found")]
    assembler.add_span(model(history, [text("assistant", "Hello")], trace=1, parent=10, start=3), at(4))
    [session] = assembler.flush(10)
    assert (session.user_id, session.goal, session.attributes) == ("u1", "book a flight", {"shop.tenant": "acme"})
    assert (session.agents, session.models) == (("travel",), ("gpt-4o",))
    assert (session.usage.input_tokens, session.usage.output_tokens) == (20, 10)
    assert session.turns[0].root_span_id == f"{10:016x}"


def test_a_configured_session_key_comes_before_all_others() -> None:
    assembler = SessionAssembler(AssemblerLimits(session_keys=("shop.chat",)))
    root = agent("Hi", "Hello", "other", trace=1)
    assembler.add_span(span(root.name, {**root.attributes, "shop.chat": "c-9"}, trace=1), at(0))
    [session] = assembler.flush(1)
    assert (session.session_id, session.session_key) == ("c-9", "shop.chat")


def test_a_conversation_without_an_id_that_resumes_is_its_next_generation() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_span(model([text("user", "Hi")], [text("assistant", "Hello")], None, trace=1), at(0))
    [first] = poll(assembler, 100)
    history = [text("user", "Hi"), text("assistant", "Hello"), text("user", "Thanks")]
    assembler.add_span(model(history, [text("assistant", "Welcome")], None, trace=2, start=200), at(200))
    [second] = poll(assembler, 300)
    assert second.session_id == first.session_id
    assert (first.generation, second.generation) == (1, 2)


def test_log_records_outside_any_span_belong_to_the_session_they_name() -> None:
    assembler = SessionAssembler(IDLE)
    for session in ("a", "b"):
        named = {"gen_ai.conversation.id": session}
        assembler.add_log(
            log("gen_ai.user.message", {"content": f"I am {session}"}, trace=0, span_id=0, at=1, **named), 1
        )
        assembler.add_log(log("gen_ai.choice", {"message": {"content": "Hello"}}, trace=0, span_id=0, at=2, **named), 2)
    sessions = {session.session_id: session for session in assembler.flush(3)}
    assert said(sessions["a"]) == [("I am a", "Hello")]
    assert said(sessions["b"]) == [("I am b", "Hello")]


def test_log_records_that_name_neither_span_nor_session_are_ignored() -> None:
    assembler = SessionAssembler(IDLE)
    assembler.add_log(log("gen_ai.user.message", {"content": "Whose?"}, trace=0, span_id=0), 1)
    assert list(assembler.flush(2)) == []
    assert assembler.ignored == 1


def test_a_session_completed_before_its_time_holds_no_content_any_more() -> None:
    assembler = SessionAssembler(AssemblerLimits(max_open_sessions=1))
    assembler.add_span(agent("Hi", "x" * 100_000, "a", trace=0xABCD), at(0))
    assembler.add_span(agent("Hi", "Hello", "b", trace=2), at(1))
    assert [session.session_id for session in assembler.poll(at(2))] == ["a"]
    gc.collect()
    assert [found.id for found in gc.get_objects() if isinstance(found, Trace) and found.id == 0xABCD] == []
