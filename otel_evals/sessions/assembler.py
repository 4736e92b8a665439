"""Joins spans and log records into sessions and says when each is complete.

One object, one thread; time is passed in, so that replay can use event time. Nothing here judges or samples.
"""

from __future__ import annotations

import heapq
import logging
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from otel_evals.dialects.facts import Facts, Kind
from otel_evals.dialects.reader import Reader
from otel_evals.dialects.session_keys import rank_of
from otel_evals.sessions.build import SessionHead, build_session
from otel_evals.sessions.continuations import Concluded, Continuations
from otel_evals.sessions.histories import Histories, unpack
from otel_evals.sessions.light import EarlyDecision, LightMemory, Reduction, known_early
from otel_evals.sessions.log_messages import same_words, size_of
from otel_evals.sessions.membership import members
from otel_evals.sessions.model import CompletionReason, Session
from otel_evals.sessions.open import OpenSession, Trace
from otel_evals.spans.record import LogRecord_, SpanRecord

__all__ = ["AssemblerLimits", "SessionAssembler"]

logger = logging.getLogger(__name__)

SECOND = 1_000_000_000
OWN = "otel_evals.internal"
"""Attribute of everything that otel-evals itself emits."""
REMEMBERED = 50_000
"""Completed sessions and traces that are remembered, to tell late spans and resumed sessions."""
READ_PER_POLL = 50
"""Traces without a session id that one poll reads ahead, for finding out whom they continue."""
RANKS: dict[Kind, int] = {"agent": 3, "chain": 2, "model": 2, "tool": 1, "other": 1, "pseudo": 1}
"""How much a kind of span says whose a trace is: tools may run elsewhere."""
ROOT = 3
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


class SessionAssembler:
    """Spans and logs in, completed sessions out."""

    def __init__(self, limits: AssemblerLimits = AssemblerLimits(), early: EarlyDecision | None = None) -> None:
        """An assembler that keeps all content, or, given an early decision, that of sessions that may be judged."""
        self._limits = limits
        self._early = early
        self._reduction = Reduction(early.reduce) if early is not None else None
        self._reader = Reader(
            session_keys=limits.session_keys,
            goal_attributes=limits.goal_attributes,
            keep_attributes=limits.keep_attributes,
            explain=limits.explain,
        )
        self._idle = int(limits.idle_s * SECOND)
        self._grace = int(limits.grace_s * SECOND)
        self._max_age = int(limits.max_age_s * SECOND)
        self._traces: dict[int, Trace] = {}
        self._open: OrderedDict[str, OpenSession] = OrderedDict()
        """By id (derived: `trace:<hex>`), the longest idle first."""
        self._heap: list[tuple[int, int, OpenSession]] = []
        self._sequence = 0
        self._ready: deque[tuple[OpenSession, CompletionReason]] = deque()
        self._done: OrderedDict[str, int] = OrderedDict()
        """Completed session → its generation."""
        self._concluded = Concluded()
        self._done_traces: OrderedDict[int, int] = OrderedDict()
        """Trace of a completed session → end of its last span."""
        self._unclaimed: dict[Any, Any] = {}
        self._continuations = Continuations()
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
        try:
            if OWN in record.attributes:
                self.ignored += 1  # our own evaluations, come back through a collector
            else:
                self._add_span(record, now_ns)
        except Exception as error:
            self._skip(error)

    def add_log(self, record: LogRecord_, now_ns: int) -> None:
        """Takes in one log record; it may come before or after its span. Never raises."""
        try:
            if OWN in record.attributes:
                self.ignored += 1
            else:
                self._add_log(record, now_ns)
        except Exception as error:
            self._skip(error)

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
        yield from self._yield_ready(now_ns)
        self._continuations.read_quiet(now_ns - SECOND, READ_PER_POLL)
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
            yield from self._yield_ready(now_ns)

    def flush(self, now_ns: int) -> Iterator[Session]:
        """Completes everything that is open."""
        yield from self._yield_ready(now_ns)
        for session in list(self._open.values()):
            if self._open.get(session.id) is session and session.derived:
                self._join_derived(session, now_ns, waiting=False)
        for session in sorted(self._open.values(), key=lambda s: s.first_ns):
            self._complete(session, "flush")
            yield from self._yield_ready(now_ns)

    # Taking in

    def _skip(self, error: Exception) -> None:
        """One poisonous record must not stop the sessions of everyone else."""
        self.poisoned += 1
        logger.debug("record skipped: %s", type(error).__name__)

    def _add_span(self, record: SpanRecord, now_ns: int) -> None:
        if not record.trace_id or not record.span_id:
            self.ignored += 1  # no valid span: nothing tells whose it is
            return
        facts = self._reader.read_span(record, self._recall)
        if facts is None:
            self.ignored += 1
            return
        done = self._done_traces.get(facts.trace_id)
        trace = self._traces.get(facts.trace_id)
        if trace is None and done is not None and facts.start_ns <= done:
            self.late_spans += 1
            self._unclaimed = {}
            return
        if trace is None:
            trace = self._new_trace(facts.trace_id, now_ns)
        elif facts.span_id in trace.spans:
            return
        trace.spans[facts.span_id] = facts
        facts.trace_id = trace.id
        if not trace.start_ns or facts.start_ns < trace.start_ns:
            trace.start_ns = facts.start_ns
        trace.claim(record.resource, RANKS[facts.kind] + (ROOT if facts.parent_id is None else 0))
        self._settle(trace, facts.sessions, now_ns)
        self._touch(trace, facts, now_ns)

    def _recall(self, trace_id: int, sessions: tuple[tuple[str, str], ...]) -> dict[Any, Any]:
        """What the reader remembers of the session that a span seems to belong to."""
        trace = self._traces.get(trace_id)
        if trace is not None and trace.homes:
            home = trace.homes[0]
            # Of a trace that several sessions share, a light one may not remember what the others keep.
            return home.histories.recent if home.chance > 0.0 or trace.light else {}
        for rank, (_, session_id) in enumerate(sessions):
            session = self._open.get(session_id)
            if session is not None and (session.chance > 0.0 or rank == 0):
                return session.histories.recent
        self._unclaimed = {}
        return self._unclaimed

    def _add_log(self, record: LogRecord_, now_ns: int) -> None:
        read = self._reader.read_log(record)
        if read is None:
            self.ignored += 1
            return
        spoken, sessions = read
        trace_id = record.trace_id or _trace_of(sessions)
        if not trace_id:
            self.ignored += 1  # outside any span and without a session id: nothing tells whose it is
            return
        trace = self._traces.get(trace_id)
        if trace is None:
            done = self._done_traces.get(trace_id)
            if done is not None and record.time_ns <= done:
                self.late_spans += 1
                return
            trace = self._new_trace(trace_id, now_ns)
        if trace.logs is None:
            trace.logs = {}
        if trace.light and self._reduction is not None:
            self._reduction.spoken(spoken)
        known = trace.logs.setdefault(record.span_id, [])
        if any(time_ns == record.time_ns and time_ns and same_words(item, spoken) for time_ns, item in known):
            return
        known.append((record.time_ns, spoken))
        trace.claim(record.resource, 0)
        self._settle(trace, sessions, now_ns)
        size = sum(size_of(m) for m in (*spoken.inputs, *spoken.outputs))
        self._grow(trace, size, now_ns)

    def _new_trace(self, trace_id: int, now_ns: int) -> Trace:
        trace = Trace(trace_id)
        trace.first_ns = now_ns
        self._traces[trace_id] = trace
        return trace

    def _settle(self, trace: Trace, sessions: tuple[tuple[str, str], ...], now_ns: int) -> None:
        """Puts a trace into the session, or sessions, that its spans name, whenever they name another."""
        news = not trace.homes
        if sessions and sessions != trace.ids:
            fresh = tuple([pair for pair in sessions if pair not in trace.ids])
            if fresh:
                trace.ids = trace.ids + fresh if trace.ids else sessions
                news = True
        if news:
            self._rehome(trace, now_ns)

    def _rehome(self, trace: Trace, now_ns: int) -> None:
        _, values = trace.names()
        wanted = values or (f"trace:{trace.id:032x}",)
        if [home.id for home in trace.homes] == list(wanted) or (not values and trace.homes):
            return
        for home in trace.homes:
            if home.id not in wanted:
                self._leave(home, trace)
        for session_id in wanted:
            session = self._open.get(session_id)
            if session is None:
                session = self._new_session(session_id, trace, not values, now_ns)
            if trace.id not in session.traces:
                session.traces[trace.id] = trace
                session.size += trace.size
                session.first_ns = min(session.first_ns, trace.first_ns)
                trace.homes = (*trace.homes, session) if trace.homes else session.alone
        if len(trace.homes) > 1:
            trace.homes = tuple(sorted(trace.homes, key=lambda home: wanted.index(home.id)))
        for home in trace.homes if trace.light else ():
            self._lose_content(home)
        self._repack(trace)

    def _repack(self, trace: Trace) -> None:
        """Moves what a trace said into the storage of its session, reduced where all its sessions are light."""
        reduction = self._reduction
        newly = reduction is not None and not trace.light and all(home.chance <= 0.0 for home in trace.homes)
        histories = trace.homes[0].histories
        size = 0
        for facts in trace.spans.values():
            if facts.heard is not None:
                unpack(facts)
                if newly and reduction is not None:
                    reduction.facts(facts)
                size += SPAN_OVERHEAD + histories.pack(facts)
        if newly and reduction is not None:
            trace.light = True
            for _, spoken in [item for logs in (trace.logs or {}).values() for item in logs]:
                reduction.spoken(spoken)
                size += sum(size_of(m) for m in (*spoken.inputs, *spoken.outputs))
            self._resize(trace, size)

    def _resize(self, trace: Trace, size: int) -> None:
        self.buffered_bytes += size - trace.size
        for home in trace.homes:
            home.size += size - trace.size
        trace.size = size

    def _lose_content(self, session: OpenSession) -> None:
        """Makes a session light: content that it should have was reduced before a span named it."""
        if session.chance <= 0.0 or self._reduction is None:
            return
        session.chance = 0.0
        session.histories = Histories()
        session.histories.recent = LightMemory(self._reduction)
        for trace in session.traces.values():
            self._repack(trace)

    def _leave(self, home: OpenSession, trace: Trace) -> None:
        trace.homes = tuple([other for other in trace.homes if other is not home])
        if home.derived:
            self._continuations.forget(trace)
        home.traces.pop(trace.id, None)
        home.size -= trace.size
        if not home.traces:
            self._open.pop(home.id, None)
            home.release()

    def _new_session(self, session_id: str, trace: Trace, derived: bool, now_ns: int) -> OpenSession:
        session = OpenSession(session_id, derived, now_ns)
        session.generation = self._done.get(session_id, 0) + 1
        session.histories.recent, self._unclaimed = self._unclaimed, {}
        if self._early is not None and self._reduction is not None and not derived:
            session.chance = self._early.chance(session_id, known_early(trace))
            if session.chance <= 0.0:
                session.histories.recent = LightMemory(self._reduction)
        self._open[session_id] = session
        self._schedule(session)
        if len(self._open) > self._limits.max_open_sessions:
            self._evict("open_sessions")
        return session

    def _touch(self, trace: Trace, facts: Facts, now_ns: int) -> None:
        if trace.light and self._reduction is not None:
            self._reduction.facts(facts)
        histories = trace.homes[0].histories
        size = SPAN_OVERHEAD + histories.pack(facts)
        if facts.sessions:
            if facts.sessions != trace.ids:
                facts.sessions = histories.names(facts.sessions)
            else:
                if len(trace.spans) == 1:
                    trace.ids = histories.names(trace.ids)
                facts.sessions = trace.ids
        if facts.end_ns > trace.last_ns:
            trace.last_ns = facts.end_ns
        self._grow(trace, size, now_ns)

    def _grow(self, trace: Trace, size: int, now_ns: int) -> None:
        trace.size += size
        self.buffered_bytes += size
        for session in trace.homes:
            if session.derived:
                self._continuations.changed(trace, session.histories, now_ns)
            session.size += size
            if now_ns > session.last_ns:
                session.last_ns = now_ns
            if session.id in self._open:
                self._open.move_to_end(session.id)
            if session.size > self._limits.max_session_bytes:
                self._complete(session, "bytes")
            elif len(session.traces) > self._limits.max_turns:
                self._complete(session, "turns")
        while self.buffered_bytes > self._limits.max_open_bytes and self._open:
            self._evict("open_bytes")

    # Completing

    def _due(self, session: OpenSession) -> int:
        due = session.last_ns + self._idle
        if session.ended is not None:
            due = min(due, session.ended + self._grace)
        return min(due, session.first_ns + self._max_age)

    def _schedule(self, session: OpenSession, at_least: int = 0) -> None:
        due = max(self._due(session), at_least)
        if session.queued and session.due_ns <= due:
            return
        session.due_ns = due
        session.queued = True
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, session))

    def _reason(self, session: OpenSession, now_ns: int, open_traces: Collection[int]) -> CompletionReason | None:
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

    def _complete(self, session: OpenSession, reason: CompletionReason) -> None:
        """Takes a session out of the open ones; it is built when the consumer asks for it."""
        if self._open.pop(session.id, None) is None:
            return
        self._done[session.id] = session.generation
        self._done.move_to_end(session.id)
        for trace in session.traces.values():
            trace.homes = tuple([other for other in trace.homes if other is not session])
            if session.derived:
                self._continuations.forget(trace)
            if not trace.homes:
                self._traces.pop(trace.id, None)
                self.buffered_bytes -= trace.size
                end = max(self._done_traces.get(trace.id, 0), trace.last_ns)
                self._done_traces[trace.id] = end
        for memory in (self._done, self._done_traces):
            while len(memory) > REMEMBERED:
                memory.popitem(last=False)
        self._ready.append((session, reason))

    def _yield_ready(self, now_ns: int) -> Iterator[Session]:
        while self._ready:
            session, reason = self._ready.popleft()
            built = self._build(session, reason, now_ns)
            session.release()
            if built is not None:
                yield built

    def _build(self, session: OpenSession, reason: CompletionReason, now_ns: int) -> Session | None:
        traces = sorted(session.traces.values(), key=Trace.started)
        facts = [f for trace in traces for f in members(trace, session)]
        if not any(f.kind != "pseudo" and (f.kind != "other" or f.inputs) for f in facts):
            return None
        session_id, generation = self._identity(session, traces, now_ns)
        head = SessionHead(
            session_id=session_id,
            session_key=min((trace.names()[0] for trace in traces), key=rank_of),
            derived=session.derived,
            generation=generation,
            completion=reason,
            resource=next((trace.resource for trace in traces if trace.resource), {}),
            goal=self._limits.goal,
            truncated=reason == "bytes",
            max_turns=self._limits.max_turns,
            chance=session.chance,
        )
        try:
            return build_session(head, facts)
        except Exception as error:  # one poisonous session must not stop the others; it is accounted for like them
            self.poisoned += 1
            logger.warning("otel-evals: a session cannot be read (%s)", type(error).__name__)
            return Session(
                session_id=session_id,
                session_key=head.session_key,
                derived=session.derived,
                generation=generation,
                completion=reason,
                evaluable=False,
                not_evaluable_reason="unreadable",
                chance=session.chance,
            )

    def _identity(self, session: OpenSession, traces: list[Trace], now_ns: int) -> tuple[str, int]:
        """Id and generation; without an id of its own a session has its first trace's, or that of what it resumes."""
        if not session.derived:
            return session.id, session.generation
        resumed = self._concluded.resumed_by(traces)
        session_id, generation = (
            (resumed[0], resumed[1] + 1) if resumed else (f"{traces[0].id:032x}", session.generation)
        )
        self._concluded.add(traces, session_id, generation, now_ns)
        return session_id, generation

    # Sessions without an id

    def _join_derived(self, session: OpenSession, now_ns: int, waiting: bool = True) -> bool:
        """Joins sessions without an id that are proved to be one conversation.

        Returns whether this session, as it then is, may complete now.
        """
        for later, earlier in self._continuations.pairs():
            if later.homes and earlier.homes and later.homes[0] is not earlier.homes[0]:
                self._merge(earlier.homes[0], later.homes[0])
        if self._open.get(session.id) is not session:
            return False
        if waiting and now_ns < self._due(session):
            self._schedule(session)
            return False
        return True

    def _merge(self, first: OpenSession, second: OpenSession) -> None:
        for trace in second.traces.values():
            first.traces[trace.id] = trace
            first.size += trace.size
            trace.homes = tuple([first if home is second else home for home in trace.homes])
            for facts in trace.spans.values():
                first.histories.pack(unpack(facts))
        second.release()
        self._open.pop(second.id, None)
        first.first_ns = min(first.first_ns, second.first_ns)
        first.last_ns = max(first.last_ns, second.last_ns)
        self._schedule(first)


def _trace_of(sessions: tuple[tuple[str, str], ...]) -> int:
    """A trace id for log records outside any span: one per session, 0 where no session is named."""
    if not sessions:
        return 0
    name = "\x1f".join(sessions[0]).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=16).digest(), "big")
