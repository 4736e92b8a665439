"""Which traces without a session id continue one another: joined on proof only, each trace continued at most once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from otel_evals.sessions.histories import Histories
from otel_evals.sessions.log_messages import with_logs
from otel_evals.sessions.open import Trace
from otel_evals.sessions.proof import Evidence, evidence

__all__ = ["Concluded", "continuations"]

_OF_INSTANCE = ("service.instance.", "host.", "process.", "container.", "k8s.", "os.", "faas.instance", "cloud.")
"""Resource attributes in which instances of one application differ."""
REMEMBERED = 50_000
"""Last words of completed conversations that are remembered."""


def continuations(traces: Iterable[tuple[Trace, Histories]]) -> list[tuple[Trace, Trace]]:
    """(later, earlier) pairs. Of several earlier traces the one with the longest common history, then the latest."""
    found = [(trace, _evidence(trace, histories)) for trace, histories in traces]
    found.sort(key=lambda item: item[0].started())
    said: dict[bytes, list[Trace]] = {}
    for trace, told in found:
        for digest in told.said:
            said.setdefault(digest, []).append(trace)
    pairs: list[tuple[Trace, Trace]] = []
    continued: set[int] = set()
    for later, told in found:
        earlier = _continued_by(later, told, said, continued)
        if earlier is not None:
            continued.add(earlier.id)
            pairs.append((later, earlier))
    return pairs


def _continued_by(later: Trace, told: Evidence, said: dict[bytes, list[Trace]], continued: set[int]) -> Trace | None:
    best: Trace | None = None
    best_rank = (0, (0, 0))
    for digest, weight in told.heard.items():
        for earlier in said.get(digest, ()):
            rank = (weight, earlier.started())
            if earlier is later or earlier.id in continued or rank[1] >= later.started():
                continue
            if rank > best_rank and _service(earlier) == _service(later):
                best, best_rank = earlier, rank
    return best


def _evidence(trace: Trace, histories: Histories) -> Evidence:
    if trace.evidence is None:
        trace.evidence = evidence(with_logs(trace))
        for facts in trace.spans.values():
            histories.pack(facts)
    return trace.evidence


class Concluded:
    """The last words of completed conversations without an id, so that one that resumes is known again."""

    def __init__(self) -> None:
        self._by_words: OrderedDict[tuple[str, bytes], tuple[str, int, int]] = OrderedDict()

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
        best: tuple[int, tuple[str, bytes]] | None = None
        for service, told in _told(traces)[:1]:
            for digest, weight in told.heard.items():
                known = self._by_words.get((service, digest))
                if known is not None and known[2] <= traces[0].first_ns and (best is None or weight > best[0]):
                    best = (weight, (service, digest))
        return self._by_words.pop(best[1])[:2] if best else None


def _told(traces: Iterable[Trace]) -> list[tuple[str, Evidence]]:
    """(service, evidence) of a conversation's traces, without the words that continue one another within it."""
    known = [(trace, trace.evidence) for trace in traces if trace.evidence is not None]
    said = {digest for _, told in known for digest in told.said}
    heard = {digest for _, told in known for digest in told.heard}
    out = []
    for trace, told in known:
        outer = Evidence()
        outer.said = told.said - heard
        outer.heard = {digest: weight for digest, weight in told.heard.items() if digest not in said}
        out.append((_service(trace), outer))
    return out


def _service(trace: Trace) -> str:
    """The application a trace is from, whichever of its instances made it."""
    stable = (item for item in trace.resource.items() if not str(item[0]).startswith(_OF_INSTANCE))
    return repr(sorted(stable, key=str))
