"""What the hooks write and the worker reads: a bounded deque, the local roots that have started, plain counters.

Appending to a deque is atomic, so nothing here locks: a lock could deadlock when the garbage collector ends a span
inside it. Counters written by several threads may miss an increment; the one of accepted spans is exact, because the
worker counts what it drains.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

__all__ = ["WEIGH_MASK", "SpanBuffer"]

WEIGH_MASK = 31
"""Spans whose (random) id has these bits at 0 are weighed: one in 32, since weighing costs as much as all the rest."""

_MAX_ROOTS = 65_536


class SpanBuffer:
    """Bounded by count, and by bytes as far as a sample of the sizes tells: the limit follows the mean size."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self.max_items = max_items
        self.max_bytes = max_bytes
        self.reset()

    def reset(self) -> None:
        """Start empty: at first, and in a forked child, whose parent keeps what it had."""
        self.items: deque[tuple[Any, ...]] = deque()
        """Snapshots, see `otel_evals.spans.sdk`."""
        self.limit = self.max_items
        """Longest the deque may be now."""
        self.mean_size = 0.0
        """Mean size in characters of recent snapshots; 0 until the first is weighed."""
        self.roots: deque[Any] = deque(maxlen=_MAX_ROOTS)
        """Weak references to the local root spans that have started; the worker takes out those that have ended.
        Weak, because keeping a span alive beyond its end costs the application more than the hooks do."""
        self.drained = 0
        self.ignored = 0
        self.internal = 0
        self.dropped_full = 0
        self.dropped_bytes = 0
        self.dropped_error = 0
        self.closed = False
        self.pid = os.getpid()

    def weigh(self, size: int) -> None:
        """Let the limit follow the sizes: an exponential mean over the last 8 or so."""
        self.mean_size = self.mean_size + (size - self.mean_size) / 8 if self.mean_size else float(size)
        limit = max(1, min(self.max_items, int(self.max_bytes / max(self.mean_size, 1.0))))
        self.limit = 0 if self.closed else limit

    def refuse(self) -> None:
        """Count a snapshot that found no place."""
        if self.closed:
            return
        if self.limit < self.max_items:
            self.dropped_bytes += 1
        else:
            self.dropped_full += 1

    def close(self) -> None:
        """Accept nothing more."""
        self.closed = True
        self.limit = 0
        self.roots.clear()

    def put(self, item: tuple[Any, ...]) -> None:
        """Append if there is room; what hooks that are not in a hurry use."""
        if len(self.items) < self.limit:
            self.items.append(item)
        else:
            self.refuse()

    def take(self) -> tuple[Any, ...] | None:
        """The oldest item, or None."""
        try:
            item = self.items.popleft()
        except IndexError:
            return None
        self.drained += 1
        return item

    def bytes(self) -> int:
        """Estimated content of the deque."""
        return int(len(self.items) * self.mean_size)

    def open_traces(self, max_age_s: float) -> set[int]:
        """Trace ids with a local root still open; roots older than `max_age_s` are forgotten as leaked.

        Called by the worker only.
        """
        oldest = time.time_ns() - int(max_age_s * 1e9)
        traces: set[int] = set()
        for _ in range(len(self.roots)):
            reference = self.roots.popleft()
            span = reference()
            try:
                if span is not None and span._end_time is None and (span._start_time or 0) >= oldest:
                    traces.add(span._context.trace_id)
                    self.roots.append(reference)
            except Exception:  # no span that an SDK would make; it holds up nothing
                self.dropped_error += 1
        return traces

    def counts(self) -> dict[tuple[str, str], int]:
        """(outcome, reason or "") to number of spans and log records."""
        return {
            ("accepted", ""): self.drained + len(self.items),
            ("ignored", ""): self.ignored,
            ("ignored", "internal"): self.internal,
            ("dropped", "buffer_full"): self.dropped_full,
            ("dropped", "buffer_bytes"): self.dropped_bytes,
            ("dropped", "unreadable"): self.dropped_error,
        }
