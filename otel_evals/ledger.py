"""Every completed session gets exactly one decision; this is where that is counted and checked."""

from __future__ import annotations

import threading
from collections import Counter

from otel_evals.evaluation import Decision

__all__ = ["Ledger"]


class Ledger:
    """Counts of completed sessions and their decisions.

    Written by the assembling and the judging thread, so guarded by a lock; no hook touches it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._completed = 0
        self._decisions: Counter[Decision] = Counter()

    def complete(self) -> None:
        with self._lock:
            self._completed += 1

    def decide(self, decision: Decision) -> None:
        with self._lock:
            self._decisions[decision] += 1

    @property
    def completed(self) -> int:
        return self._completed

    @property
    def pending(self) -> int:
        """Completed sessions without a decision yet: in the queue or with a judge."""
        with self._lock:
            return self._completed - sum(self._decisions.values())

    def decisions(self) -> dict[Decision, int]:
        """Decision to number of sessions; decisions that did not occur are absent."""
        with self._lock:
            return dict(self._decisions)
