"""Which spans of a trace are which session's, where one trace names several: context leaks between conversations."""

from __future__ import annotations

from otel_evals.dialects.facts import Facts
from otel_evals.sessions.log_messages import with_logs
from otel_evals.sessions.open import OpenSession, Trace

__all__ = ["members"]


def members(trace: Trace, session: OpenSession) -> list[Facts]:
    """The spans of a trace that belong to one session: all, unless the trace names several."""
    facts = with_logs(trace)
    if len(trace.ids) < 2 or session.derived:
        return facts
    key, values = trace.names()
    if len(values) < 2:
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
