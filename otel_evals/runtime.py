"""The threads around a pipeline: a worker that assembles in short slices, and an event loop that judges.

Both are daemon threads of ours; the judging one starts with the first session to judge. Fork, flush and shutdown
are here. One runtime per set of providers: attaching twice judges once.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from otel_evals.buffer import SpanBuffer
from otel_evals.judge_thread import JudgeThread
from otel_evals.pipeline import DecisionCallback, Pipeline, RedactorLike, ResultCallback
from otel_evals.sampling.budget import budget_of
from otel_evals.sampling.file import RatesFile
from otel_evals.sampling.remote import RemoteRates
from otel_evals.sampling.sampler import Sampler
from otel_evals.settings import CONFIG_VARIABLE, Settings, load_settings
from otel_evals.spans.sdk import END, SPAN, SdkReader, end_marker
from otel_evals.suppression import is_internal, mark_context
from otel_evals.telemetry.emitter import Emitter
from otel_evals.version import __version__

__all__ = ["Runtime", "runtime_for"]

logger = logging.getLogger(__name__)

_SLICE_S = 0.0002
"""Longest uninterrupted work: a thread that keeps the GIL busy multiplies the latency of its neighbours."""
_PAUSE_S = 0.0005


class Runtime:
    """Runs one pipeline inside an application's process."""

    def __init__(
        self,
        settings: Settings,
        *,
        emitter: Emitter,
        service: str = "",
        model: object | None = None,
        redactor: RedactorLike | None = None,
        on_result: ResultCallback | None = None,
        on_decision: DecisionCallback | None = None,
    ) -> None:
        """Starts the worker.

        Args:
            settings: What to judge and how.
            emitter: Where results go.
            service: `service.name`, by which remote sampling knows this process.
            model: A judge model object instead of the one that the settings name.
            redactor: What is taken out before the judge, see `Judge`.
            on_result: Called with each `JudgedSession`, on the judge thread.
            on_decision: Called with each completed session, its decision and sampling rule; a session that could
            not be picked from its first span on arrives without its texts.

        Raises:
            SettingsError: an evaluator, a model or a budget was refused.
        """
        self.settings = settings
        self.buffer = SpanBuffer(settings.buffer_spans, settings.buffer_bytes)
        self._budget = budget_of(settings, *_prices(settings))
        self.sampler = Sampler(settings, budget=self._budget)
        self._rates_file = _rates_file(self.sampler, settings)
        self._service = service
        self._emitter = emitter
        self._model = model
        self._redactor = redactor
        self._on_result = on_result
        self._on_decision = on_decision
        self._on_shutdown: list[Callable[[], None]] = []
        self._log_providers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._start()
        weak = weakref.WeakMethod(self.after_fork)

        def in_child() -> None:
            if after_fork := weak():
                after_fork()

        os.register_at_fork(after_in_child=in_child)

    def _start(self) -> None:
        self.pipeline = Pipeline(
            self.settings,
            emitter=self._emitter,
            sampler=self.sampler,
            model=self._model,
            redactor=self._redactor,
            on_result=self._on_result,
            on_decision=self._on_decision,
        )
        self._reader = SdkReader()
        self._judging = JudgeThread(self.pipeline)
        self._step_lock = threading.Lock()  # worker against flush and shutdown; no hook takes it
        self._stop = threading.Event()
        self._shut_down = False
        self._emitter.instruments.observe(self)
        self._worker = threading.Thread(target=self._work, name="otel-evals-worker", daemon=True)
        if not self.settings.enabled:
            self.buffer.close()
            return
        self._worker.start()
        if url := self.settings.remote_sampling_url:
            remote = RemoteRates(self.sampler, url, self._service, self.settings.remote_sampling_interval)
            self._judging.run_beside(remote.run)

    # --- the worker thread ------------------------------------------------------------------------------------

    def _work(self) -> None:
        mark_context()
        while not self._stop.wait(self.settings.poll_interval):
            try:
                if self._rates_file is not None:
                    self._rates_file.poll()
                self._step()
            except Exception as error:  # the worker outlives whatever one span or session does to it
                logger.warning("otel-evals: assembling failed (%s)", type(error).__name__)

    def _step(self) -> None:
        with self._step_lock:
            pace = _Pace(self.buffer)
            # Read before the drain: a root that ends later may have spans that this drain does not see.
            open_traces = self.buffer.open_traces(self.settings.max_session_age)
            self._drain(pace)
            for _ in self.pipeline.complete(time.time_ns(), open_traces):
                self._judging.wake()
                pace.breathe()

    def _drain(self, pace: _Pace | None = None) -> None:
        pipeline, reader = self.pipeline, self._reader
        while (item := self.buffer.take()) is not None:
            now = time.time_ns()
            if item[0] is END:
                pipeline.assembler.end_session(item[1], now)
                continue
            try:
                record = reader.span(item) if item[0] is SPAN else reader.log(item)
            except Exception:  # a span that no SDK would make; counted, the rest goes on
                self.buffer.dropped_error += 1
                continue
            pipeline.add(record, now)
            if pace is not None:
                pace.breathe()

    # --- what the handle offers -------------------------------------------------------------------------------

    def end_session(self, session_id: str) -> None:
        """The conversation is over: complete it after the grace for late spans, without waiting for idle time."""
        self.buffer.put(end_marker(session_id))

    def force_flush(self, timeout_millis: int = 30_000, *, complete: bool = False) -> bool:
        """Take in all ended spans and wait until the completed sessions are judged.

        Args:
            timeout_millis: Longest time to wait.
            complete: Also complete the sessions that are still open.

        Returns:
            False if time ran out.
        """
        if self._shut_down or is_internal():  # our own threads cannot wait for themselves
            return not self._shut_down
        deadline = time.monotonic() + timeout_millis / 1000
        if not self._step_lock.acquire(timeout=max(0.0, timeout_millis / 1000)):
            return False
        try:
            self._drain()
            now = time.time_ns()
            open_traces = self.buffer.open_traces(self.settings.max_session_age)
            for _ in self.pipeline.complete(now, open_traces):
                pass
            if complete:
                for _ in self.pipeline.flush(now):
                    pass
        finally:
            self._step_lock.release()
        self._judging.wake()
        return self._judging.wait_idle(deadline)

    def shutdown(self, timeout_millis: int = 30_000, *, judge: bool = True) -> None:
        """Complete all open sessions, judge them as time allows, account for the rest as expired, and stop.

        Args:
            timeout_millis: Longest time to wait for the judge.
            judge: False: judge nothing more (at interpreter exit no network call can run).
        """
        if self._shut_down:
            return
        self._shut_down = True
        deadline = time.monotonic() + timeout_millis / 1000
        self.buffer.close()
        self._stop.set()
        if self._worker.is_alive():
            self._worker.join(max(0.1, deadline - time.monotonic()))
        # A worker that hangs in a session keeps the lock; what it holds is then lost, the application is not.
        if self._step_lock.acquire(timeout=max(0.1, deadline - time.monotonic())):
            try:
                self._drain()
                for _ in self.pipeline.flush(time.time_ns()):
                    pass
            finally:
                self._step_lock.release()
        if judge:
            self._judging.wake()
            self._judging.wait_idle(deadline)
        self._judging.stop()
        self.pipeline.expire_all()
        if self._budget is not None:
            self._budget.close()  # other processes on the same budget get back what this one had reserved
        for action in self._on_shutdown:
            action()

    @property
    def closed(self) -> bool:
        return self._shut_down

    def tap_logs(self, provider: object) -> bool:
        """Whether this logger provider is not tapped yet; from now on it is."""
        new = provider not in self._log_providers
        self._log_providers.add(provider)
        return new

    def reload(self) -> bool:
        """Take rates and rules anew from the settings file. Returns whether sampling changed."""
        return self._rates_file is not None and self._rates_file.reload()

    def warn_of_change(self, settings: Settings | None, redactor: RedactorLike | None) -> None:
        """Attached again: what differs from the first time has no effect, and nobody may believe that it has."""
        other_settings = settings is not None and settings != self.settings
        if other_settings or (redactor is not None and redactor is not self._redactor):
            logger.warning(
                "otel-evals: already attached to this tracer provider; the first settings stay in force, and the first "
                "redactor; shut the first handle down to change them"
            )

    def on_shutdown(self, action: Callable[[], None]) -> None:
        """Run `action` after the shutdown."""
        self._on_shutdown.append(action)

    def shutdown_at_exit(self) -> None:
        """As `shutdown`, at interpreter exit: only a judge without a model can still work then."""
        self.shutdown(5_000, judge=self.settings.model == "rules" and self._model is None)

    def after_fork(self) -> None:
        """Begin anew in a forked child; the parent goes on with the sessions it has."""
        if self.buffer.pid == os.getpid() or self._shut_down:
            return
        self.buffer.reset()
        self._start()

    def stats(self) -> dict[str, Any]:
        """Current figures: spans by outcome, sessions by decision, queue, judge tokens and known cost (USD)."""
        pipeline = self.pipeline
        spans: dict[str, int] = {}
        for (outcome, _), number in self.buffer.counts().items():
            spans[outcome] = spans.get(outcome, 0) + number
        return {
            "spans": spans,
            "sessions_open": self.open_sessions(),
            "sessions_completed": pipeline.ledger.completed,
            "decisions": dict(pipeline.ledger.decisions()),
            "pending": pipeline.ledger.pending,
            "queue": {
                "size": self.queue_size(),
                "capacity": self.queue_capacity(),
                "oldest_age_s": self.queue_oldest_age(),
            },
            "judge": {"active": pipeline.judging, "tokens": pipeline.tokens, "cost_usd": pipeline.cost_usd},
            "late_spans": pipeline.assembler.late_spans,
            "unreadable": pipeline.assembler.poisoned,
            "evictions": dict(self.evictions()),
            "rates": {f"{rule}/{name}": rate for (rule, name), rate in self.sampling_rates().items()},
            "paused": self.sampler.paused,
        }

    # --- Gauges -----------------------------------------------------------------------------------------------

    def open_sessions(self) -> int:
        return self.pipeline.assembler.open_sessions

    def buffered_bytes(self) -> int:
        return self.pipeline.assembler.buffered_bytes + self.buffer.bytes()

    def queue_size(self) -> int:
        return self.pipeline.queue.size()

    def queue_capacity(self) -> int:
        return self.pipeline.queue.capacity

    def queue_oldest_age(self) -> float:
        oldest = self.pipeline.queue.oldest_ns()
        return 0.0 if oldest is None else max(0.0, (time.time_ns() - oldest) / 1e9)

    def span_counts(self) -> Mapping[tuple[str, str], int]:
        return self.buffer.counts()

    def evictions(self) -> Mapping[str, int]:
        return self.pipeline.assembler.evictions

    def sampling_rates(self) -> Mapping[tuple[str, str], float]:
        return self.sampler.effective_rates()


class _Pace:
    """Keeps the worker's slices short, unless the buffer fills faster than it drains."""

    def __init__(self, buffer: SpanBuffer) -> None:
        self._buffer = buffer
        self._since = time.perf_counter()

    def breathe(self) -> None:
        if time.perf_counter() - self._since < _SLICE_S:
            return
        if len(self._buffer.items) * 2 < self._buffer.max_items:
            time.sleep(_PAUSE_S)
        self._since = time.perf_counter()


def _prices(settings: Settings) -> tuple[float | None, float | None]:
    """USD per million input and output tokens of the judge, as far as known before its first call."""
    if settings.model == "rules":
        return 0.0, 0.0
    return settings.input_price, settings.output_price


def _rates_file(sampler: Sampler, settings: Settings) -> RatesFile | None:
    path = os.environ.get(CONFIG_VARIABLE)
    return RatesFile(path, sampler, settings) if path else None


def _service_name(provider: object) -> str:
    resource = getattr(provider, "resource", None)
    return str(getattr(resource, "attributes", {}).get("service.name", ""))


_runtimes: dict[int, Runtime] = {}


def runtime_for(
    settings: Settings | None,
    *,
    tracer_provider: TracerProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    model: object | None = None,
    redactor: RedactorLike | None = None,
    on_result: ResultCallback | None = None,
    on_decision: DecisionCallback | None = None,
) -> Runtime:
    """The running runtime for a tracer provider, or a new one.

    Raises:
        SettingsError: a setting was refused.
    """
    provider = tracer_provider or trace.get_tracer_provider()
    key = id(provider)
    running = _runtimes.get(key)
    if running is not None:
        running.warn_of_change(settings, redactor)
        return running
    settings = settings or load_settings()
    runtime = Runtime(
        settings,
        emitter=Emitter(
            tracer_provider=tracer_provider,
            logger_provider=logger_provider,
            meter_provider=meter_provider,
            version=__version__,
            explanations=settings.explanations,
        ),
        service=_service_name(provider),
        model=model,
        redactor=redactor,
        on_result=on_result,
        on_decision=on_decision,
    )
    _runtimes[key] = runtime
    # Last in, first out: this runs before the exporters of providers that were made earlier are shut down.
    atexit.register(runtime.shutdown_at_exit)

    def forget() -> None:
        _runtimes.pop(key, None)
        atexit.unregister(runtime.shutdown_at_exit)

    runtime.on_shutdown(forget)
    return runtime
