"""The judging side: an event loop in a daemon thread, which takes sessions from the queue so many at once.

It starts with the first session to judge. Whatever it runs is marked as ours, and knows nothing of the application's
current span.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from otel_evals.pipeline import Pipeline
from otel_evals.suppression import internal_work, mark_context

__all__ = ["JudgeThread"]


class JudgeThread:
    """An event loop in a daemon thread that judges what is in the queue, so many at once as configured."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        # Callbacks run in the caller's context by default, and with it inside the application's current span.
        self._context = contextvars.Context()
        self._context.run(mark_context)

    def wake(self) -> None:
        """There may be work. Starts the thread when there is."""
        if not self._stopped and self._pipeline.queue.size():
            self._call_soon(self._dispatch)

    def run_beside(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine on this loop until the thread stops."""

        def start(loop: asyncio.AbstractEventLoop) -> None:
            task = loop.create_task(work())
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)

        self._call_soon(start)

    def _call_soon(self, call: Callable[[asyncio.AbstractEventLoop], None]) -> None:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="otel-evals-judge", daemon=True)
            self._thread.start()
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(call, self._loop, context=self._context)

    def wait_idle(self, deadline: float) -> bool:
        """Wait until nothing waits or runs; `deadline` on the monotonic clock. False if time ran out.

        What waits for a provider beyond the deadline is not waited for.
        """
        while self._pipeline.ledger.pending:
            now = time.monotonic()
            wait_s = 0.0 if self._pipeline.judging else self._pipeline.wait_s() or 0.0
            if now + wait_s >= deadline:
                return False
            time.sleep(0.005)
        return True

    def stop(self) -> None:
        """Cancel what runs (it is accounted for as expired), close clients and loop, end the thread."""
        self._stopped = True
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: loop.create_task(self._finish()))
        thread.join(5.0)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        # Work that clients hand to threads (name resolution) must count as ours too.
        executor = ThreadPoolExecutor(4, thread_name_prefix="otel-evals-io", initializer=mark_context)
        loop.set_default_executor(executor)
        asyncio.set_event_loop(loop)
        mark_context()
        try:
            loop.run_forever()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            loop.close()

    def _dispatch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._stopped:
            return
        free = self._pipeline.settings.judge_concurrency - len(self._running)
        for _ in range(min(free, self._pipeline.queue.size())):
            task = loop.create_task(self._consume())
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _consume(self) -> None:
        with internal_work():
            while await self._pipeline.judge_next():
                await asyncio.sleep(0)  # a judge without I/O must not keep the loop to itself
                if self._stopped:
                    return
        self._dispatch_when_due(asyncio.get_running_loop())

    def _dispatch_when_due(self, loop: asyncio.AbstractEventLoop) -> None:
        """Come back when the first of the sessions that wait for their provider may be judged."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wait_s = self._pipeline.wait_s()
        if wait_s is not None:
            self._timer = loop.call_later(wait_s, self._dispatch, loop, context=self._context)

    async def _finish(self) -> None:
        tasks = [*self._running, *self._beside]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(Exception):  # closing a broken client is not worth an error
            await asyncio.wait_for(self._pipeline.close(), 2.0)
        asyncio.get_running_loop().stop()
