"""The queue in memory: a bounded deque and a heap, whose operations are atomic, so that neither side needs a lock."""

from __future__ import annotations

import contextlib
import heapq
from collections import deque

from otel_evals.evaluation import JudgeTask

__all__ = ["MemoryQueue"]


class MemoryQueue:
    """A bounded first-in first-out queue: one thread puts, one thread takes and puts back."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._tasks: deque[JudgeTask] = deque()
        self._later: list[tuple[int, int, JudgeTask]] = []
        """Tasks that were put back, as a heap: not before, and a number that keeps equal ones in order."""
        self._put_back = 0

    @property
    def capacity(self) -> int:
        return self._capacity

    def put(self, task: JudgeTask) -> bool:
        if self.size() >= self._capacity:
            return False
        self._tasks.append(task)
        return True

    def put_back(self, task: JudgeTask) -> None:
        self._put_back += 1
        heapq.heappush(self._later, (task.not_before_ns, self._put_back, task))

    def take(self, now_ns: int | None = None) -> JudgeTask | None:
        if self._later and (now_ns is None or self._later[0][0] <= now_ns):
            return heapq.heappop(self._later)[2]
        try:
            return self._tasks.popleft()
        except IndexError:
            return None

    def next_ns(self) -> int | None:
        if self._tasks:
            return 0
        with contextlib.suppress(IndexError):  # taken meanwhile, when another thread asks
            return self._later[0][0]
        return None

    def size(self) -> int:
        return len(self._tasks) + len(self._later)

    def oldest_ns(self) -> int | None:
        waiting = [task.enqueued_ns for _, _, task in self._later.copy()]
        with contextlib.suppress(IndexError):
            waiting.append(self._tasks[0].enqueued_ns)
        return min(waiting, default=None)
