"""Which traces without a session id continue one another: joined on proof only, each trace continued at most once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from otel_evals.sessions.histories import Histories
from otel_evals.sessions.log_messages import with_logs
from otel_evals.sessions.open import Trace
from otel_evals.sessions.proof import Evidence, evidence

__all__ = ["Concluded", "Continuations"]

_OF_INSTANCE = ("service.instance.", "host.", "process.", "container.", "k8s.", "os.", "faas.instance", "cloud.")
"""Resource attributes in which instances of one application differ."""
REMEMBERED = 50_000
"""Last words of completed conversations that are remembered."""


class Continuations:
    """Open traces without a session id, by what they said and what their histories had heard.

    Only what changed since the last look is read again, and only traces that share words with it are compared.
    """

    def __init__(self) -> None:
        self._changed: dict[int, tuple[Trace, Histories, int]] = {}
        """By the time of the last change, the longest unchanged first."""
        self._news: dict[int, Trace] = {}
        """Read, but not yet compared."""
        self._said: dict[bytes, dict[int, Trace]] = {}
        self._heard: dict[bytes, dict[int, Trace]] = {}

    def changed(self, trace: Trace, histories: Histories, now_ns: int) -> None:
        """A trace is new or has grown."""
        self._changed.pop(trace.id, None)
        self._changed[trace.id] = (trace, histories, now_ns)
        if trace.evidence is not None:
            trace.evidence.service = None

    def read_quiet(self, before_ns: int, limit: int) -> None:
        """Reads up to `limit` traces that have not changed since some time, so that `pairs` has little left to read."""
        for _ in range(limit):
            first = next(iter(self._changed.values()), None)
            if first is None or first[2] > before_ns:
                return
            self._read(first[0], first[1])

    def forget(self, trace: Trace) -> None:
        """A trace is complete, or has turned out to belong to a session with an id."""
        self._changed.pop(trace.id, None)
        self._news.pop(trace.id, None)
        self._withdraw(trace)

    def pairs(self) -> list[tuple[Trace, Trace]]:
        """(later, earlier) pairs among what changed and what shares words with it.

        Of several earlier traces the one with the longest common history, then the latest.
        """
        if not self._changed and not self._news:
            return []
        for trace, histories, _ in list(self._changed.values()):
            self._read(trace, histories)
        found = sorted(self._related(list(self._news.values())), key=Trace.started)
        self._news.clear()
        pairs: list[tuple[Trace, Trace]] = []
        continued: set[int] = set()
        for later in found:
            earlier = self._continued_by(later, continued)
            if earlier is not None:
                continued.add(earlier.id)
            else:
                earlier = self._asked_by(later)
            if earlier is not None:
                pairs.append((later, earlier))
        return pairs

    def _read(self, trace: Trace, histories: Histories) -> None:
        self._changed.pop(trace.id, None)
        self._withdraw(trace)
        self._news[trace.id] = trace
        told = _read(trace, histories)
        trace.evidence = told
        for index, digests in ((self._said, told.offers()), (self._heard, told.needs())):
            for digest in digests:
                index.setdefault(digest, {})[trace.id] = trace

    def _withdraw(self, trace: Trace) -> None:
        told = trace.evidence
        if told is None:
            return
        for index, digests in ((self._said, told.offers()), (self._heard, told.needs())):
            for digest in digests:
                known = index.get(digest)
                if known is not None:
                    known.pop(trace.id, None)
                    if not known:
                        del index[digest]

    def _related(self, traces: list[Trace]) -> list[Trace]:
        """The traces, and all that are joined to them by common words, however many steps away."""
        found = {trace.id: trace for trace in traces}
        queue = list(traces)
        while queue:
            told = queue.pop().evidence
            if told is None:
                continue
            for index, digests in ((self._heard, told.offers()), (self._said, told.needs())):
                for digest in digests:
                    for trace in index.get(digest, {}).values():
                        if trace.id not in found:
                            found[trace.id] = trace
                            queue.append(trace)
        return list(found.values())

    def _continued_by(self, later: Trace, continued: set[int]) -> Trace | None:
        best: Trace | None = None
        best_rank = (0, (0, 0))
        assert later.evidence is not None
        for digest, weight in later.evidence.heard.items():
            for earlier in self._said.get(digest, {}).values():
                if earlier is later or earlier.id in continued:
                    continue
                rank = (weight, earlier.started())
                if best_rank < rank and rank[1] < later.started() and _service(earlier) == _service(later):
                    best, best_rank = earlier, rank
        return best

    def _asked_by(self, tool: Trace) -> Trace | None:
        """The only trace that made the call which a trace of nothing but a tool answers."""
        called = tool.evidence.called if tool.evidence is not None else None
        if called is None:
            return None
        asking = list(self._said.get(called, {}).values())
        return asking[0] if len(asking) == 1 and _service(asking[0]) == _service(tool) else None


class Concluded:
    """The last words of completed conversations without an id, so that one that resumes is known again."""

    def __init__(self) -> None:
        self._by_words: OrderedDict[tuple[bytes, bytes], tuple[str, int, int]] = OrderedDict()

    def add(self, traces: Iterable[Trace], session_id: str, generation: int, now_ns: int) -> None:
        """Remembers how a conversation ended."""
        for service, told in _told(traces):
            for digest in told.said:
                self._by_words[service, digest] = (session_id, generation, now_ns)
        while len(self._by_words) > REMEMBERED:
            self._by_words.popitem(last=False)

    def resumed_by(self, traces: Sequence[Trace]) -> tuple[str, int] | None:
        """(id, generation) of the conversation whose last words the first trace's histories contain; None: a new one.

        Each conversation is resumed once, by a trace that began to arrive after its end: who comes next with the same
        words, or came while it was open, is somebody else.
        """
        best: tuple[int, tuple[bytes, bytes]] | None = None
        for service, told in _told(traces)[:1]:
            for digest, weight in told.heard.items():
                known = self._by_words.get((service, digest))
                if known is not None and known[2] <= traces[0].first_ns and (best is None or weight > best[0]):
                    best = (weight, (service, digest))
        return self._by_words.pop(best[1])[:2] if best else None


def _told(traces: Iterable[Trace]) -> list[tuple[bytes, Evidence]]:
    """(service, evidence) of a conversation's traces, without the words that continue one another within it."""
    known = [(_service(trace), trace.evidence) for trace in traces if trace.evidence is not None]
    if len(known) == 1:
        return known  # nothing within a trace continues another part of it
    said = {digest for _, told in known for digest in told.said}
    heard = {digest for _, told in known for digest in told.heard}
    out = []
    for service, told in known:
        outer = Evidence()
        outer.said = told.said - heard
        outer.heard = {digest: weight for digest, weight in told.heard.items() if digest not in said}
        out.append((service, outer))
    return out


def _read(trace: Trace, histories: Histories) -> Evidence:
    """What a trace says; its spans stay in shared storage."""
    packed = [(facts, facts.heard, facts.said) for facts in trace.spans.values() if facts.heard is not None]
    told = evidence(with_logs(trace))
    for facts, heard, said in packed:
        facts.inputs = facts.outputs = ()
        facts.heard, facts.said = heard, said
    if len(packed) < len(trace.spans):
        for facts in trace.spans.values():
            if facts.heard is None:
                histories.pack(facts)
    return told


def _service(trace: Trace) -> bytes:
    """Digest of the application that a trace is from, whichever of its instances made it."""
    told = trace.evidence
    if told is not None and told.service is not None:
        return told.service
    stable = [item for item in trace.resource.items() if not str(item[0]).startswith(_OF_INSTANCE)]
    service = blake2b(repr(sorted(stable, key=str)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if told is not None:
        told.service = service
    return service
