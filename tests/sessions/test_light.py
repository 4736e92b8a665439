"""Sessions that nobody will judge: no content is held, and all else is as if it were."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import pytest

from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.sessions.light import EarlyDecision
from otel_evals.sessions.model import Session
from otel_evals.signals import detect, reduce
from otel_evals.spans.record import LogRecord_, SpanRecord
from tests.captures.corpus import UNLIMITED, add, records, rows
from tests.sessions.spans import agent, call, log, model, result, text, tool

KEPT = AssemblerLimits(idle_s=60, keep_attributes=("tenant", "note"))


def deciding(chance: Callable[[str, Mapping[str, Any]], float], limits: AssemblerLimits = KEPT) -> SessionAssembler:
    return SessionAssembler(limits, EarlyDecision(chance, reduce))


def nobody(_: str, __: Mapping[str, Any]) -> float:
    return 0.0


def reachable(start: object) -> str:
    """All text that an object holds, however deep."""
    seen: set[int] = set()
    queue, texts = [start], []
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, (type, ModuleType, FunctionType, BuiltinFunctionType)):
            continue
        seen.add(id(item))
        if isinstance(item, (str, bytes)):
            texts.append(str(item))
        queue.extend(gc.get_referents(item))
    return "\n".join(texts)


def confidential() -> list[SpanRecord | LogRecord_]:
    """A conversation that says `secret…` wherever a span or log record can."""
    asked = [text("system", "secretsystem " * 30), text("user", "secretquestion please " * 30)]
    called = call("c1", "search", query="secretargument", deep={"secretkey": ["secretitem"]})
    answered = [*asked, called, result("c1", {"error": "secretreason in the result"})]
    root = agent("secretquestion please " * 30, "secretanswer", parent=None, trace=1, span_id=10)
    root.attributes.update({"otel_evals.goal": "secretgoal", "note": "secretnote " * 30, "tenant": "acme"})
    failed = {"trace": 1, "parent": 10, "status": "error", "message": "secretfailure"}
    return [
        model(asked, [called], trace=1, parent=10, start=0.1),
        tool(
            "search",
            {"query": "secretargument", "deep": {"secretkey": ["secretitem"]}},
            '{"secretkey": "secretresult"}',
            start=0.2,
            **failed,
        ),
        log("gen_ai.user.message", {"content": "secretlog"}, trace=1, span_id=10),
        model(answered, [text("assistant", "secretanswer")], trace=1, parent=10, start=0.3),
        root,
    ]


def without_id(record: SpanRecord | LogRecord_) -> SpanRecord | LogRecord_:
    record.attributes.pop("gen_ai.conversation.id", None)
    return record


def test_no_text_of_a_light_session_is_held() -> None:
    assembler = deciding(nobody)
    add(assembler, confidential())
    assert assembler.open_sessions == 1
    assert assembler.poisoned == 0
    assert "secret" not in reachable(assembler)
    assert "acme" in reachable(assembler)


def test_nor_what_came_before_its_id_was_known() -> None:
    *children, root = confidential()
    assembler = deciding(nobody)
    add(assembler, map(without_id, children))
    assert "secret" in reachable(assembler)
    add(assembler, [root])
    assert "secret" not in reachable(assembler)


def test_the_text_of_others_is_held() -> None:
    assembler = deciding(lambda session_id, _: 0.1)
    add(assembler, confidential())
    [session] = assembler.flush(2)
    assert (session.content_kept, session.chance) == (True, 0.1)
    assert session.turns[0].agent == "secretanswer"


def test_without_an_early_decision_all_is_kept() -> None:
    assembler = SessionAssembler(KEPT)
    add(assembler, confidential())
    [session] = assembler.flush(2)
    assert (session.content_kept, session.chance) == (True, 1.0)


def test_a_light_session_counts_the_bytes_that_it_holds() -> None:
    full, light, late = SessionAssembler(KEPT), deciding(nobody), deciding(nobody)
    for assembler in (full, light):
        add(assembler, confidential())
    *children, root = confidential()
    add(late, [*map(without_id, children), root])
    assert light.buffered_bytes < full.buffered_bytes
    assert late.buffered_bytes < full.buffered_bytes
    for assembler in (full, light, late):
        assert len(list(assembler.flush(2))) == 1
        assert assembler.buffered_bytes == 0


def test_the_decision_is_asked_once_when_a_span_names_the_session() -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def chance(session_id: str, known: Mapping[str, Any]) -> float:
        asked.append((session_id, dict(known)))
        return 0.0

    assembler = deciding(chance)
    *children, root = confidential()
    add(assembler, map(without_id, children))
    assert asked == []
    root = replace(root, resource={"service.name": "travel", "deployment.environment": "prod"})
    add(assembler, [root, agent("More?", "No.", trace=2)])
    [(session_id, known)] = asked
    assert session_id == "s"
    assert (known["service"], known["environment"], known["attribute:tenant"]) == ("travel", "prod", "acme")
    assert "version" not in known


def test_a_session_without_an_id_is_not_asked_and_keeps_its_content() -> None:
    assembler = deciding(nobody)
    add(assembler, [agent("Hi", "Hello", session=None)])
    [session] = assembler.flush(2)
    assert session.derived
    assert session.content_kept


def test_a_resumed_session_is_asked_again() -> None:
    chances = iter((0.0, 0.5))
    assembler = deciding(lambda *_: next(chances))
    add(assembler, [agent("Hi", "Hello", trace=1)])
    [first] = assembler.flush(2)
    add(assembler, [agent("More?", "No.", trace=2, start=5)])
    [second] = assembler.flush(3)
    assert [(s.generation, s.content_kept) for s in (first, second)] == [(1, False), (2, True)]


def test_a_session_that_takes_over_reduced_spans_is_light_itself() -> None:
    assembler = deciding(lambda session_id, _: 0.0 if session_id == "weak" else 1.0)
    weak = model([text("user", "Hi")], [text("assistant", "Hello")], session=None, trace=1)
    weak.attributes["thread_id"] = "weak"
    add(assembler, [agent("Before", "Yes", session="strong", trace=2), weak])
    assert "Before" in reachable(assembler)
    add(assembler, [agent("Hi", "Hello", session="strong", trace=1)])
    assert "Before" not in reachable(assembler)
    [session] = assembler.flush(2)
    assert (session.session_id, session.content_kept) == ("strong", False)


def test_left_out_content_leaves_what_happened() -> None:
    assembler = deciding(nobody)
    add(assembler, confidential())
    [session] = assembler.flush(2)
    bare = session.without_content()
    [turn] = bare.turns
    [one] = turn.tool_calls
    assert (turn.user, turn.agent, turn.interim, one.arguments, one.result) == (None, None, (), None, None)
    assert (one.name, one.error is not None, bare.evaluable) == ("search", True, True)
    assert bare.attributes["tenant"] == "acme"
    assert (bare.system_prompt, bare.goal) == (None, None)


@pytest.mark.parametrize("content", ["on", "off"])
def test_signals_and_turns_are_those_of_the_content(content: str) -> None:
    light = 0
    for row in rows():
        if (row["check"] == "content_off") != (content == "off"):
            continue
        given = records(row["file"])
        for full, bare in zip(sessions(given), sessions(given, EarlyDecision(nobody, reduce)), strict=True):
            light += not bare.content_kept
            assert outline(bare) == outline(full), row["file"]
    assert light > (500 if content == "on" else 0)


def sessions(given: list[SpanRecord | LogRecord_], early: EarlyDecision | None = None) -> list[Session]:
    assembler = SessionAssembler(UNLIMITED, early)
    add(assembler, given)
    assert assembler.poisoned == 0
    return list(assembler.flush(2))


def outline(session: Session) -> Any:
    """What is known of a session apart from its words."""
    turns = [
        (bool(turn.user), bool(turn.agent), len(turn.interim), [(c.id, c.name, bool(c.error)) for c in turn.tool_calls])
        for turn in session.turns
    ]
    signals = [(signal.name, signal.turn) for signal in detect(session)]
    head = (session.session_id, session.evaluable, session.not_evaluable_reason, session.usage, session.agents)
    return head, turns, signals
