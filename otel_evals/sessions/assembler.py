"""Joins spans and log records into sessions and says when each is complete.

One object, one thread; time is passed in, so that replay can use event time. Nothing here judges or samples.
"""

from __future__ import annotations

import heapq
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from otel_evals.dialects.events import Spoken
from otel_evals.dialects.facts import Facts, Message
from otel_evals.dialects.reader import Reader
from otel_evals.dialects.session_keys import rank_of
from otel_evals.sessions.build import SessionHead, build_session
from otel_evals.sessions.histories import Histories, unpack
from otel_evals.sessions.model import CompletionReason, Session
from otel_evals.sessions.proof import Evidence, evidence
from otel_evals.spans.record import LogRecord_, SpanRecord

__all__ = ["AssemblerLimits", "SessionAssembler"]

logger = logging.getLogger(__name__)

SECOND = 1_000_000_000
OWN = "otel_evals.internal"
"""Attribute of everything that otel-evals itself emits."""
REMEMBERED = 50_000
"""Completed sessions and traces that are remembered, to tell late spans and resumed sessions."""
SPAN_OVERHEAD = 400
"""Bytes held per span beside its text."""


@dataclass(frozen=True, slots=True)
class AssemblerLimits:
    """When a session is complete, what is read from its spans, and how much may be held."""

    idle_s: float = 300.0
    """Seconds without a span after which a session is complete."""
    grace_s: float = 5.0
    """Seconds for which late spans are waited for after an explicit end."""
    max_age_s: float = 14_400.0
    max_turns: int = 200
    max_session_bytes: int = 4 * 2**20
    max_open_sessions: int = 10_000
    max_open_bytes: int = 256 * 2**20
    session_keys: tuple[str, ...] = ()
    """Attributes to read the session id from, before the built-in list."""
    goal: str | None = None
    goal_attributes: tuple[str, ...] = ("otel_evals.goal",)
    keep_attributes: tuple[str, ...] = ()
    explain: bool = False
    """Remember which attribute each fact came from."""


class _Trace:
    """Spans of one trace that belong to sessions still open."""

    __slots__ = ("evidence", "first_ns", "homes", "id", "ids", "last_ns", "logs", "resource", "size", "spans", "start_ns")

    def __init__(self, trace_id: int) -> None:
        self.id = trace_id
        self.spans: dict[int, Facts] = {}
        self.logs: dict[int, list[tuple[int, Spoken]]] = {}
        self.ids: dict[str, dict[str, None]] = {}
        """Attribute → session ids seen in it, in order of arrival."""
        self.homes: list[_Open] = []
        self.resource: Any = {}
        self.size = 0
        self.first_ns = 0
        self.last_ns = 0
        self.start_ns = 0
        """Start of its first span."""
        self.evidence: Evidence | None = None

    def names(self) -> tuple[str, tuple[str, ...]]:
        """The most deliberate attribute that names a session, and its values; ("trace", ()) without any."""
        if not self.ids:
            return "trace", ()
        key = min(self.ids, key=rank_of)
        return key, tuple(self.ids[key])


class _Open:
    """A session in progress."""

    __slots__ = (
        "derived",
        "due_ns",
        "ended",
        "first_ns",
        "generation",
        "id",
        "key",
        "last_ns",
        "histories",
        "queued",
        "size",
        "traces",
    )

    def __init__(self, session_id: str, key: str, derived: bool, now_ns: int) -> None:
        self.id = session_id
        self.key = key
        self.derived = derived
        self.traces: dict[int, _Trace] = {}
        self.histories = Histories()
        self.first_ns = now_ns
        self.last_ns = now_ns
        self.ended: int | None = None
        self.generation = 1
        self.size = 0
        self.due_ns = 0
        self.queued = False


class SessionAssembler:
    """Spans and logs in, completed sessions out."""

    def __init__(self, limits: AssemblerLimits = AssemblerLimits()) -> None:
        self._limits = limits
        self._reader = Reader(
            session_keys=limits.session_keys,
            goal_attributes=limits.goal_attributes,
            keep_attributes=limits.keep_attributes,
            explain=limits.explain,
        )
        self._idle = int(limits.idle_s * SECOND)
        self._grace = int(limits.grace_s * SECOND)
        self._max_age = int(limits.max_age_s * SECOND)
        self._traces: dict[int, _Trace] = {}
        self._open: OrderedDict[str, _Open] = OrderedDict()
        """By id (derived: `trace:<hex>`), the longest idle first."""
        self._heap: list[tuple[int, int, _Open]] = []
        self._sequence = 0
        self._ready: deque[tuple[_Open, CompletionReason]] = deque()
        self._done: OrderedDict[str, int] = OrderedDict()
        """Completed session → its generation."""
        self._done_traces: OrderedDict[int, int] = OrderedDict()
        """Trace of a completed session → end of its last span."""
        self._unclaimed: dict[Any, Any] = {}
        self._unproved = False
        """Traces without a session id have changed since they were last compared."""
        self.buffered_bytes = 0
        self.evictions: dict[str, int] = {}
        self.late_spans = 0
        self.poisoned = 0
        self.ignored = 0

    @property
    def open_sessions(self) -> int:
        """Sessions in progress."""
        return len(self._open)

    def add_span(self, record: SpanRecord, now_ns: int) -> None:
        """Takes in one ended span. Never raises."""
        self._isolated(self._add_span, record, now_ns)

    def add_log(self, record: LogRecord_, now_ns: int) -> None:
        """Takes in one log record; it may come before or after its span. Never raises."""
        self._isolated(self._add_log, record, now_ns)

    def end_session(self, session_id: str, now_ns: int) -> None:
        """The application says that a conversation is over: it completes after the grace."""
        session = self._open.get(session_id)
        if session is not None and session.ended is None:
            session.ended = now_ns
            self._schedule(session)

    def poll(self, now_ns: int, open_traces: Collection[int] = ()) -> Iterator[Session]:
        """Yields each session completed by now.

        Args:
            now_ns: the time, by the clock that `add_span` is given.
            open_traces: ids of traces with a local root still open in this process; their sessions wait.
        """
        yield from self._yield_ready()
        while self._heap and self._heap[0][0] <= now_ns:
            _, _, session = heapq.heappop(self._heap)
            session.queued = False
            if session.id not in self._open or self._open[session.id] is not session:
                continue
            reason = self._reason(session, now_ns, open_traces)
            if reason is None:
                self._schedule(
                    session, at_least=now_ns + max(self._grace, SECOND) if self._due(session) <= now_ns else 0
                )
                continue
            if session.derived and not self._join_derived(session, now_ns):
                continue
            self._complete(session, reason)
            yield from self._yield_ready()

    def flush(self, now_ns: int) -> Iterator[Session]:
        """Completes everything that is open."""
        yield from self._yield_ready()
        for session in list(self._open.values()):
            if self._open.get(session.id) is session and session.derived:
                self._join_derived(session, now_ns, waiting=False)
        for session in sorted(self._open.values(), key=lambda s: s.first_ns):
            self._complete(session, "flush")
            yield from self._yield_ready()

    # Taking in

    def _isolated(self, add: Callable[[Any, int], None], record: Any, now_ns: int) -> None:
        try:
            if OWN in record.attributes:
                self.ignored += 1  # our own evaluations, come back through a collector
                return
            add(record, now_ns)
        except Exception as error:  # one poisonous record must not stop the sessions of everyone else
            self.poisoned += 1
            logger.debug("record skipped: %s", type(error).__name__)

    def _add_span(self, record: SpanRecord, now_ns: int) -> None:
        facts = self._reader.read_span(record, self._recall)
        if facts is None:
            self.ignored += 1
            return
        done = self._done_traces.get(facts.trace_id)
        trace = self._traces.get(facts.trace_id)
        if trace is None and done is not None and facts.start_ns <= done:
            self.late_spans += 1
            return
        if trace is None:
            trace = self._new_trace(facts.trace_id, now_ns)
        elif facts.span_id in trace.spans:
            return
        trace.spans[facts.span_id] = facts
        facts.trace_id = trace.id
        trace.start_ns = min(trace.start_ns or facts.start_ns, facts.start_ns)
        trace.resource = trace.resource or record.resource
        trace.evidence = None
        self._settle(trace, facts.sessions, now_ns)
        self._touch(trace, facts, now_ns)

    def _recall(self, trace_id: int, sessions: tuple[tuple[str, str], ...]) -> dict[Any, Any]:
        """What the reader remembers of the session that a span seems to belong to."""
        trace = self._traces.get(trace_id)
        if trace is not None and trace.homes:
            return trace.homes[0].histories.recent
        for _, session_id in sessions:
            session = self._open.get(session_id)
            if session is not None:
                return session.histories.recent
        self._unclaimed = {}
        return self._unclaimed

    def _add_log(self, record: LogRecord_, now_ns: int) -> None:
        read = self._reader.read_log(record)
        if read is None:
            self.ignored += 1
            return
        spoken, sessions = read
        trace_id = record.trace_id
        trace = self._traces.get(trace_id)
        if trace is None:
            done = self._done_traces.get(trace_id)
            if done is not None and record.time_ns <= done:
                self.late_spans += 1
                return
            trace = self._new_trace(trace_id, now_ns)
        known = trace.logs.setdefault(record.span_id, [])
        if any(time_ns == record.time_ns and time_ns and _same(item, spoken) for time_ns, item in known):
            return
        known.append((record.time_ns, spoken))
        trace.resource = trace.resource or record.resource
        trace.evidence = None
        self._settle(trace, sessions, now_ns)
        size = sum(_size(m) for m in (*spoken.inputs, *spoken.outputs))
        self._grow(trace, size, now_ns)

    def _new_trace(self, trace_id: int, now_ns: int) -> _Trace:
        trace = _Trace(trace_id)
        trace.first_ns = now_ns
        self._traces[trace_id] = trace
        return trace

    def _settle(self, trace: _Trace, sessions: tuple[tuple[str, str], ...], now_ns: int) -> None:
        """Puts a trace into the session, or sessions, that its spans name, whenever they name another."""
        news = not trace.homes
        for key, value in sessions:
            values = trace.ids.get(key)
            if values is None:
                trace.ids[key] = {value: None}
                news = True
            elif value not in values:
                values[value] = None
                news = True
        if news:
            self._rehome(trace, now_ns)

    def _rehome(self, trace: _Trace, now_ns: int) -> None:
        key, values = trace.names()
        wanted = values or (f"trace:{trace.id:032x}",)
        if [home.id for home in trace.homes] == list(wanted) or (not values and trace.homes):
            return
        for home in list(trace.homes):
            if home.id not in wanted:
                self._leave(home, trace)
        for session_id in wanted:
            session = self._open.get(session_id)
            if session is None:
                session = self._new_session(session_id, key, not values, now_ns)
            if trace.id not in session.traces:
                session.traces[trace.id] = trace
                session.size += trace.size
                session.first_ns = min(session.first_ns, trace.first_ns)
                trace.homes.append(session)
        trace.homes.sort(key=lambda home: wanted.index(home.id))
        histories = trace.homes[0].histories
        for facts in trace.spans.values():
            if facts.heard is not None:
                histories.pack(unpack(facts))

    def _leave(self, home: _Open, trace: _Trace) -> None:
        trace.homes.remove(home)
        home.traces.pop(trace.id, None)
        home.size -= trace.size
        if not home.traces:
            self._open.pop(home.id, None)

    def _new_session(self, session_id: str, key: str, derived: bool, now_ns: int) -> _Open:
        session = _Open(session_id, key, derived, now_ns)
        session.generation = self._done.get(session_id, 0) + 1
        session.histories.recent, self._unclaimed = self._unclaimed, {}
        self._open[session_id] = session
        self._schedule(session)
        if len(self._open) > self._limits.max_open_sessions:
            self._evict("open_sessions")
        return session

    def _touch(self, trace: _Trace, facts: Facts, now_ns: int) -> None:
        size = SPAN_OVERHEAD + trace.homes[0].histories.pack(facts)
        trace.last_ns = max(trace.last_ns, facts.end_ns)
        self._grow(trace, size, now_ns)

    def _grow(self, trace: _Trace, size: int, now_ns: int) -> None:
        trace.size += size
        self.buffered_bytes += size
        for session in list(trace.homes):
            self._unproved = self._unproved or session.derived
            session.size += size
            session.last_ns = max(session.last_ns, now_ns)
            if session.id in self._open:
                self._open.move_to_end(session.id)
            if session.size > self._limits.max_session_bytes:
                self._complete(session, "bytes")
            elif len(session.traces) > self._limits.max_turns:
                self._complete(session, "turns")
        while self.buffered_bytes > self._limits.max_open_bytes and self._open:
            self._evict("open_bytes")

    # Completing

    def _due(self, session: _Open) -> int:
        due = session.last_ns + self._idle
        if session.ended is not None:
            due = min(due, session.ended + self._grace)
        return min(due, session.first_ns + self._max_age)

    def _schedule(self, session: _Open, at_least: int = 0) -> None:
        due = max(self._due(session), at_least)
        if session.queued and session.due_ns <= due:
            return
        session.due_ns = due
        session.queued = True
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, session))

    def _reason(self, session: _Open, now_ns: int, open_traces: Collection[int]) -> CompletionReason | None:
        if now_ns >= session.first_ns + self._max_age:
            return "age"
        if session.ended is not None and now_ns >= session.ended + self._grace:
            return "ended"
        if now_ns < session.last_ns + self._idle:
            return None
        if open_traces and any(trace_id in open_traces for trace_id in session.traces):
            return None
        return "idle"

    def _evict(self, cause: str) -> None:
        session = next(iter(self._open.values()))
        self.evictions[cause] = self.evictions.get(cause, 0) + 1
        self._complete(session, "evicted")

    def _complete(self, session: _Open, reason: CompletionReason) -> None:
        """Takes a session out of the open ones; it is built when the consumer asks for it."""
        if self._open.pop(session.id, None) is None:
            return
        self._done[session.id] = session.generation
        self._done.move_to_end(session.id)
        for trace in session.traces.values():
            if session in trace.homes:
                trace.homes.remove(session)
            if not trace.homes:
                self._traces.pop(trace.id, None)
                self.buffered_bytes -= trace.size
                end = max(self._done_traces.get(trace.id, 0), trace.last_ns)
                self._done_traces[trace.id] = end
        for memory in (self._done, self._done_traces):
            while len(memory) > REMEMBERED:
                memory.popitem(last=False)
        self._ready.append((session, reason))

    def _yield_ready(self) -> Iterator[Session]:
        while self._ready:
            session, reason = self._ready.popleft()
            built = self._build(session, reason)
            if built is not None:
                yield built

    def _build(self, session: _Open, reason: CompletionReason) -> Session | None:
        resource: Any = {}
        facts: list[Facts] = []
        for trace in sorted(session.traces.values(), key=lambda t: (t.first_ns, t.id)):
            resource = resource or trace.resource
            facts += _members(trace, session)
        if not any(f.kind != "pseudo" and (f.kind != "other" or f.inputs) for f in facts):
            return None
        session_id = f"{min(session.traces.values(), key=_started).id:032x}" if session.derived else session.id
        head = SessionHead(
            session_id=session_id,
            session_key="trace" if session.derived else session.key,
            derived=session.derived,
            generation=session.generation,
            completion=reason,
            resource=resource,
            goal=self._limits.goal,
            truncated=reason == "bytes",
            max_turns=self._limits.max_turns,
        )
        try:
            return build_session(head, facts)
        except Exception as error:  # one poisonous session must not stop the others
            self.poisoned += 1
            logger.warning("session %s skipped: %s", session_id, type(error).__name__)
            return None

    # Sessions without an id

    def _join_derived(self, session: _Open, now_ns: int, waiting: bool = True) -> bool:
        """Joins a derived session with those its histories prove to be the same conversation.

        Returns whether the session, as it then is, may complete now.
        """
        if self._unproved:
            self._unproved = False
            derived = [s for s in self._open.values() if s.derived]
            for later, earlier in self._proofs(derived):
                first, second = self._open_of(earlier), self._open_of(later)
                if first is not None and second is not None and first is not second:
                    self._merge(first, second)
        if self._open.get(session.id) is not session:
            return False
        if waiting and now_ns < self._due(session):
            self._schedule(session)
            return False
        return True

    def _open_of(self, trace: _Trace) -> _Open | None:
        return trace.homes[0] if trace.homes else None

    def _proofs(self, derived: list[_Open]) -> list[tuple[_Trace, _Trace]]:
        """(later, earlier) pairs of traces, each earlier trace continued at most once."""
        traces = sorted((t for s in derived for t in s.traces.values()), key=_started)
        said: dict[bytes, list[_Trace]] = {}
        for trace in traces:
            if trace.evidence is None:
                trace.evidence = evidence(_with_logs(trace))
                for facts in trace.spans.values():
                    trace.homes[0].histories.pack(facts)
            for digest in trace.evidence.said:
                said.setdefault(digest, []).append(trace)
        pairs: list[tuple[_Trace, _Trace]] = []
        claimed: set[int] = set()
        for later in traces:
            assert later.evidence is not None
            best: tuple[int, int, int, _Trace] | None = None
            for digest, length in later.evidence.heard.items():
                for earlier in said.get(digest, ()):
                    if earlier is later or earlier.id in claimed or _started(earlier) >= _started(later):
                        continue
                    if earlier.resource != later.resource:
                        continue
                    rank = (length, *_started(earlier), earlier)
                    if best is None or rank[:3] > best[:3]:
                        best = rank
            if best is not None:
                claimed.add(best[3].id)
                pairs.append((later, best[3]))
        return pairs

    def _merge(self, first: _Open, second: _Open) -> None:
        for trace in list(second.traces.values()):
            self._leave(second, trace)
            first.traces[trace.id] = trace
            first.size += trace.size
            trace.homes.append(first)
            for facts in trace.spans.values():
                first.histories.pack(unpack(facts))
        first.first_ns = min(first.first_ns, second.first_ns)
        first.last_ns = max(first.last_ns, second.last_ns)
        self._schedule(first)


def _started(trace: _Trace) -> tuple[int, int]:
    return (trace.start_ns, trace.id)


def _members(trace: _Trace, session: _Open) -> list[Facts]:
    """The spans of a trace that belong to one session: all, unless the trace names several."""
    facts = _with_logs(trace)
    key, values = trace.names()
    if len(values) < 2 or session.derived:
        return facts
    owner: dict[int, str] = {}
    by_id = {f.span_id: f for f in facts}
    for item in facts:
        at: Facts | None = item
        for _ in range(1000):
            if at is None:
                break
            named = next((value for name, value in at.sessions if name == key), None)
            if named is not None:
                owner[item.span_id] = named
                break
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
    for item in sorted(facts, key=lambda f: -f.start_ns):
        if item.span_id in owner and item.parent_id is not None:
            owner.setdefault(item.parent_id, owner[item.span_id])
    first = values[0]
    return [f for f in facts if owner.get(f.span_id, first) == session.id]


def _with_logs(trace: _Trace) -> list[Facts]:
    """The trace's facts, unpacked, with what log records say about them."""
    for facts in trace.spans.values():
        unpack(facts)
    if not trace.logs:
        return list(trace.spans.values())
    out = [f for f in trace.spans.values() if f.span_id not in trace.logs]
    for span_id, logs in trace.logs.items():
        logs.sort(key=lambda item: item[0])
        rounds = _rounds(logs)
        owner = trace.spans.get(span_id)
        if owner is not None and owner.kind == "model" and len(rounds) == 1:
            out.append(_spoken(owner, rounds[0]))
            continue
        if owner is not None:
            out.append(owner)
        for number, said in enumerate(rounds):
            time_ns = said[0][0]
            # A model call of which only the events are known, below the span that they name.
            bare = Facts(
                trace.id, (span_id << 8) + number + (1 << 72), span_id, time_ns, said[-1][0], "model", "events"
            )
            out.append(_spoken(bare, said))
    return out


def _rounds(logs: list[tuple[int, Spoken]]) -> list[list[tuple[int, Spoken]]]:
    """Events of several model calls on one span: an input after an output begins the next call."""
    rounds: list[list[tuple[int, Spoken]]] = [[]]
    answered = False
    for item in logs:
        spoken = item[1]
        if answered and (spoken.inputs or spoken.system) and not spoken.outputs:
            rounds.append([])
            answered = False
        rounds[-1].append(item)
        answered = answered or bool(spoken.outputs)
    return rounds


def _spoken(facts: Facts, logs: list[tuple[int, Spoken]]) -> Facts:
    inputs: list[Message] = []
    outputs: list[Message] = []
    system: str | None = None
    for _, spoken in logs:
        if spoken.whole_inputs:
            inputs = spoken.inputs if len(spoken.inputs) >= len(inputs) else inputs
            outputs = spoken.outputs or outputs
        else:
            inputs = inputs + spoken.inputs
            outputs = outputs + spoken.outputs
        system = system or spoken.system
    return replace(
        facts,
        inputs=facts.inputs or tuple(m for m in inputs if m.role != "system"),
        outputs=facts.outputs or tuple(m for m in outputs if m.role != "system"),
        system=facts.system or system or next((m.text for m in inputs if m.role == "system"), None),
    )


def _same(first: Spoken, second: Spoken) -> bool:
    def keys(spoken: Spoken) -> tuple[Any, ...]:
        return (tuple(m.key() for m in spoken.inputs), tuple(m.key() for m in spoken.outputs), spoken.system)

    return keys(first) == keys(second)


def _size(message: Message) -> int:
    return len(message.text) + sum(len(repr(result.content)) for result in message.results)
