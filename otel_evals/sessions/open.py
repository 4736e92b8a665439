"""Sessions in progress, and the traces that they are made of."""

from __future__ import annotations

from typing import Any

from otel_evals.dialects.events import Spoken
from otel_evals.dialects.facts import Facts
from otel_evals.dialects.session_keys import rank_of
from otel_evals.sessions.histories import Histories
from otel_evals.sessions.proof import Evidence

__all__ = ["OpenSession", "Trace"]


class Trace:
    """Spans of one trace that belong to sessions still open."""

    __slots__ = (
        "evidence",
        "first_ns",
        "homes",
        "id",
        "ids",
        "last_ns",
        "light",
        "logs",
        "resource",
        "resource_rank",
        "size",
        "spans",
        "start_ns",
    )

    def __init__(self, trace_id: int) -> None:
        self.id = trace_id
        self.spans: dict[int, Facts] = {}
        self.logs: dict[int, list[tuple[int, Spoken]]] | None = None
        self.ids: tuple[tuple[str, str], ...] = ()
        """(attribute, session id) pairs seen, in order of arrival."""
        self.homes: tuple[OpenSession, ...] = ()
        self.resource: Any = {}
        self.resource_rank = -1
        """How much the span that the resource is from says whose the trace is."""
        self.size = 0
        self.first_ns = 0
        self.last_ns = 0
        self.start_ns = 0
        """Start of its first span."""
        self.evidence: Evidence | None = None
        self.light = False
        """All that it said has been reduced."""

    def started(self) -> tuple[int, int]:
        """Start of the first span, and the id to break ties."""
        return self.start_ns, self.id

    def claim(self, resource: Any, rank: int) -> None:
        """Takes a span's resource, if that span says more about whose the trace is than those before."""
        if rank > self.resource_rank and resource:
            self.resource = resource
            self.resource_rank = rank

    def names(self) -> tuple[str, tuple[str, ...]]:
        """The most deliberate attribute that names a session, and its values; ("trace", ()) without any."""
        if not self.ids:
            return "trace", ()
        best = self.ids[0][0] if len(self.ids) == 1 else min((key for key, _ in self.ids), key=rank_of)
        return best, tuple([value for key, value in self.ids if key == best])


class OpenSession:
    """A session in progress."""

    __slots__ = (
        "alone",
        "chance",
        "derived",
        "due_ns",
        "ended",
        "first_ns",
        "generation",
        "histories",
        "id",
        "last_ns",
        "queued",
        "size",
        "traces",
    )

    def __init__(self, session_id: str, derived: bool, now_ns: int) -> None:
        self.id = session_id
        self.alone: tuple[OpenSession, ...] = (self,)
        """The homes of a trace that is all this session's: one tuple for all of them."""
        self.derived = derived
        self.traces: dict[int, Trace] = {}
        self.histories = Histories()
        self.first_ns = now_ns
        self.last_ns = now_ns
        self.ended: int | None = None
        self.generation = 1
        self.size = 0
        self.chance = 1.0
        """The highest probability with which it may be judged; at 0.0 it is light: no content is kept."""
        self.due_ns = 0
        self.queued = False

    def release(self) -> None:
        """Lets go of all content: the schedule may hold the session itself until it would have been due."""
        self.alone = ()
        self.traces = {}
        self.histories.clear()
