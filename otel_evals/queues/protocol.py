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

    def take(self) -> JudgeTask | None:
        """The oldest task, or None."""
        ...

    def size(self) -> int: ...

    def oldest_ns(self) -> int | None:
        """`enqueued_ns` of the longest waiting task; None when empty."""
        ...
