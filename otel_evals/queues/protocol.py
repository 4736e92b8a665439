"""What a queue of judge tasks is: bounded, refusing instead of blocking, and honest about its age."""

from __future__ import annotations

from typing import Protocol

from otel_evals.evaluation import JudgeTask

__all__ = ["SessionQueue"]


class SessionQueue(Protocol):
    """Written by the assembling thread, read by the judging one."""

    @property
    def capacity(self) -> int: ...

    def put(self, task: JudgeTask) -> bool:
        """Accept a task at once, or refuse it (False) when full. Never blocks."""
        ...

    def put_back(self, task: JudgeTask) -> None:
        """Take back a task that was taken from here, until its `not_before_ns`. Never refused: it keeps its place."""
        ...

    def take(self, now_ns: int | None = None) -> JudgeTask | None:
        """The oldest task that may be judged at this time, or None. Without a time any task, to clear the queue."""
        ...

    def next_ns(self) -> int | None:
        """Epoch nanoseconds from which `take` gives a task: 0 for at once, None when empty."""
        ...

    def size(self) -> int:
        """Tasks inside, also those that may not be judged yet."""
        ...

    def oldest_ns(self) -> int | None:
        """`enqueued_ns` of the longest waiting task; None when empty."""
        ...
