"""Collects a turn's tool calls from spans, messages and events: each call once, with its result and failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from otel_evals.dialects.decoding import decode, plain_text, serialisable, valid_text
from otel_evals.dialects.facts import Call, Facts, Result
from otel_evals.dialects.failures import merge_failures
from otel_evals.sessions.model import ToolCall, ToolFailure
from otel_evals.sessions.portions import ANSWER_TOOLS, Portion

__all__ = ["CallBook", "valid_failure"]


@dataclass(slots=True, eq=False)
class _Entry:
    id: str | None
    name: str | None
    arguments: Any
    result: Any = None
    failure: ToolFailure | None = None
    answered: bool = False
    span: Facts | None = None

    def build(self) -> ToolCall:
        span = self.span
        return ToolCall(
            id=valid_text(self.id) if self.id else self.id,
            name=valid_text(self.name) if self.name else self.name,
            arguments=serialisable(self.arguments),
            result=serialisable(self.result),
            error=valid_failure(self.failure),
            start_ns=span.start_ns if span else None,
            end_ns=span.end_ns if span else None,
            span_id=f"{span.span_id:016x}" if span else None,
        )


class CallBook:
    """The calls of one turn. Add what messages say first, then the tools' own spans."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._by_id: dict[str, _Entry] = {}
        self._portion: Portion | None = None
        """The history that is being added."""
        self._orphans: set[str] | None = None
        """Ids that only results of that history carry: its calls go by other ids. None: not looked for yet."""
        self._seen: dict[Any, int] | None = None
        """How often that history has named a call without an id, by name and arguments."""

    def add_portion(self, portion: Portion) -> None:
        """Calls and results of one history; a history that repeats known calls adds nothing."""
        self._portion = portion
        self._orphans = None
        self._seen = None
        pending: list[_Entry] = []
        for message in portion.messages:
            for call in message.calls:
                if call.name not in ANSWER_TOOLS:
                    pending.append(self._of_call(call))
            for result in message.results:
                self._settle(result, pending)

    def add_span(self, facts: Facts) -> None:
        """A tool's own span: it knows best what went in, what came out and whether it failed."""
        tool = facts.tool
        if tool is None or tool.name in ANSWER_TOOLS:
            return
        entry = self._of_span(facts)
        if entry is None:
            entry = _Entry(tool.id, tool.name, tool.arguments)
            self._entries.append(entry)
            if tool.id:
                self._by_id.setdefault(tool.id, entry)
        entry.span = entry.span or facts
        entry.name = entry.name or tool.name
        if not _worth(entry.arguments) or (not isinstance(entry.arguments, dict) and isinstance(tool.arguments, dict)):
            entry.arguments = tool.arguments if tool.arguments is not None else entry.arguments
        if (_worth(tool.result) and not (entry.answered and tool.failure)) or entry.result is None:
            entry.result = tool.result
        if tool.failure is not None:
            entry.failure = merge_failures(tool.failure, entry.failure)

    def build(self) -> tuple[ToolCall, ...]:
        """All calls, in the order in which they were first mentioned or started."""
        return tuple([entry.build() for entry in self._entries])

    def _of_call(self, call: Call) -> _Entry:
        """The entry of a call."""
        entry = self._known(call) if call.id else self._nameless(call)
        if entry is not None:
            return entry
        entry = _Entry(call.id, call.name, call.arguments)
        self._entries.append(entry)
        if call.id:
            self._by_id[call.id] = entry
        return entry

    def _known(self, call: Call) -> _Entry | None:
        """The entry of a call with an id, if it is not a new one."""
        assert call.id is not None
        entry = self._by_id.get(call.id)
        if entry is None:
            entry = self._renamed(call)
            if entry is None:
                return None
            entry.id = entry.id or call.id
            self._by_id[call.id] = entry
        if not _worth(entry.arguments) or (isinstance(entry.arguments, str) and isinstance(call.arguments, dict)):
            entry.arguments = call.arguments
        entry.name = entry.name or call.name
        return entry

    def _nameless(self, call: Call) -> _Entry | None:
        """The entry of a call without an id, if this history has not named it more often than those before."""
        if self._seen is None:
            self._seen = {}
        key = (call.name, plain_text(call.arguments))
        number = self._seen[key] = self._seen.get(key, 0) + 1
        for entry in self._entries:
            if entry.name == call.name and (plain_text(entry.arguments) == key[1] or not _worth(entry.arguments)):
                number -= 1
                if number == 0:
                    return entry
        return None

    def _renamed(self, call: Call) -> _Entry | None:
        """A call known without an id, or under another id, as some exporters rewrite them."""
        for entry in self._entries:
            if entry.name != call.name or not (entry.id is None or entry.id in self._only_answered()):
                continue
            if _same_arguments(entry.arguments, call.arguments) or not _worth(entry.arguments):
                return entry
        return None

    def _only_answered(self) -> set[str]:
        """Ids that only results of the history carry."""
        if self._orphans is None:
            assert self._portion is not None
            asked = {call.id for call in self._portion.calls() if call.id}
            self._orphans = {r.call_id for r in self._portion.results() if r.call_id and r.call_id not in asked}
        return self._orphans

    def _settle(self, result: Result, pending: list[_Entry]) -> None:
        entry = self._by_id.get(result.call_id) if result.call_id else None
        if entry is None:
            entry = self._answered_by(result, pending)
            if entry is None:
                return
            if result.call_id:
                entry.id = entry.id or result.call_id
                self._by_id.setdefault(result.call_id, entry)
        if not entry.answered or entry.result is None:
            entry.result = result.content if result.content is not None else entry.result
        entry.answered = True
        if result.failure is not None:
            entry.failure = merge_failures(entry.failure, result.failure)

    def _answered_by(self, result: Result, pending: list[_Entry]) -> _Entry | None:
        """The entry, perhaps a new one, of a result whose call's id is not known; None: nobody's."""
        for candidate in pending:
            if not candidate.answered and (result.name is None or candidate.name in (None, result.name)):
                return candidate
        if result.call_id and result.name:
            for candidate in self._entries:
                if candidate.id is None and not candidate.answered and candidate.name in (None, result.name):
                    return candidate
        if result.call_id is None:
            entry = next((e for e in pending if result.name in (None, e.name)), None)
            if entry is not None:
                return None if entry.answered else entry
        if not result.name or result.name in ANSWER_TOOLS:
            return None
        for candidate in self._entries if result.call_id is None else ():
            if candidate.name == result.name:
                if not candidate.answered:
                    return candidate
                if candidate.result == result.content:
                    return None
        entry = _Entry(result.call_id, result.name, None)
        self._entries.append(entry)
        return entry

    def _of_span(self, facts: Facts) -> _Entry | None:
        tool = facts.tool
        assert tool is not None
        if tool.id and (known := self._by_id.get(tool.id)) is not None:
            return known
        names = [e for e in self._entries if _same_name(e.name, tool.name)]
        for entry in names:
            if entry.span is not None and _encloses(entry.span, facts) and _compatible(entry.arguments, tool.arguments):
                return entry
        if tool.id is None and (within := self._within(facts)) is not None:
            return within
        free = [e for e in names if e.span is None]
        for entry in free:
            if _same_arguments(entry.arguments, tool.arguments):
                return entry
        for entry in free:
            if not _worth(entry.arguments) or not _worth(tool.arguments) or not isinstance(tool.arguments, dict):
                return entry
        return (self._nameless_call(facts) or self._alone_in_arguments(facts)) if not names else None

    def _nameless_call(self, facts: Facts) -> _Entry | None:
        """The one call without a name or a span, where messages have no more than its id, and perhaps its result."""
        result = facts.tool.result if facts.tool is not None else None
        found = [
            entry
            for entry in self._entries
            if entry.name is None
            and entry.span is None
            and (not _worth(result) or not entry.answered or _same_arguments(entry.result, result))
        ]
        return found[0] if len(found) == 1 else None

    def _within(self, facts: Facts) -> _Entry | None:
        """The call whose span is directly above, if it was called with the same: one call, told by two layers."""
        for entry in self._entries:
            span = entry.span
            if span is not None and span.span_id == facts.parent_id and span.trace_id == facts.trace_id:
                given = facts.tool.arguments if facts.tool is not None else None
                if _worth(given) and (_same_arguments(entry.arguments, given) or _holds(given, entry.arguments)):
                    return entry
        return None

    def _alone_in_arguments(self, facts: Facts) -> _Entry | None:
        """The one call with these arguments that has no span yet, where a span is named after a class, not a tool."""
        tool = facts.tool
        if tool is None or not isinstance(tool.arguments, dict) or not tool.arguments:
            return None
        same = [e for e in self._entries if e.span is None and _same_arguments(e.arguments, tool.arguments)]
        return same[0] if len(same) == 1 else None


def valid_failure(failure: ToolFailure | None) -> ToolFailure | None:
    """A failure whose texts can be written as UTF-8."""
    if failure is None or ((failure.message or "").isascii() and (failure.type or "").isascii()):
        return failure
    return ToolFailure(type=valid_text(failure.type or "") or None, message=valid_text(failure.message or "") or None)


def _worth(value: Any) -> bool:
    return bool(value) or (value is not None and value != "" and value != {} and value != [])


def _holds(outer: Any, inner: Any) -> bool:
    return isinstance(outer, dict) and isinstance(inner, dict) and bool(inner) and inner in outer.values()


def _same_name(first: str | None, second: str | None) -> bool:
    if first == second:
        return True
    return bool(first and second) and _bare(str(first)) == _bare(str(second))


def _bare(name: str) -> str:
    return name.split("__")[-1].rsplit(".", 1)[-1].replace("-", "_").lower()


def _encloses(first: Facts, second: Facts) -> bool:
    """Two spans of one call: one within the other in time, in one trace, and no siblings."""
    if first.trace_id != second.trace_id or first.parent_id == second.parent_id:
        return False
    outer, inner = (first, second) if first.start_ns <= second.start_ns else (second, first)
    return inner.end_ns <= outer.end_ns


def _same_arguments(first: Any, second: Any) -> bool:
    return first == second or (_worth(first) and plain_text(decode(first)) == plain_text(decode(second)))


def _compatible(first: Any, second: Any) -> bool:
    return not _worth(first) or not _worth(second) or _same_arguments(first, second) or not isinstance(second, dict)
