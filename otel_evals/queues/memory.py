"""The queue in memory: a bounded deque, whose operations are atomic, so that neither side needs a lock."""

from __future__ import annotations

from collections import deque

from otel_evals.evaluation import JudgeTask

__all__ = ["MemoryQueue"]


class MemoryQueue:
    """A bounded first-in first-out queue. One writer, any number of readers."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._tasks: deque[JudgeTask] = deque()

    @property
    def capacity(self) -> int:
        return self._capacity

    def put(self, task: JudgeTask) -> bool:
        if len(self._tasks) >= self._capacity:
            return False
        self._tasks.append(task)
        return True

    def take(self) -> JudgeTask | None:
        try:
            return self._tasks.popleft()
        except IndexError:
            return None

    def size(self) -> int:
        return len(self._tasks)

    def oldest_ns(self) -> int | None:
        try:
            return self._tasks[0].enqueued_ns
        except IndexError:
            return None
