"""The stages joined: records become sessions, sessions get one decision each, sampled ones are judged and emitted.

Holds no thread and asks no clock of its own accord: the runtime drives it in the application, `replay` in event
time. Whatever goes wrong with one session stays with that session and is counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator
from typing import Protocol, TypeAlias

from otel_evals.evaluation import Decision, JudgedSession, JudgeTask
from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.calls import Postponed
from otel_evals.judging.models.protocol import JudgeModel
from otel_evals.judging.plan import Judge
from otel_evals.judging.redact import Redactor
from otel_evals.judging.select import create_model
from otel_evals.ledger import Ledger
from otel_evals.queues.memory import MemoryQueue
from otel_evals.queues.protocol import SessionQueue
from otel_evals.sampling.sampler import Sampler
from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.sessions.light import EarlyDecision
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings, SettingsError
from otel_evals.signals import detect, reduce
from otel_evals.spans.record import LogRecord_, SpanRecord
from otel_evals.telemetry.emitter import Emitter

__all__ = ["DecisionCallback", "Pipeline", "RedactorLike", "ResultCallback", "assembler_limits"]

logger = logging.getLogger(__name__)

ResultCallback = Callable[[JudgedSession], None]
DecisionCallback = Callable[[Session, Decision, str], None]
RedactorLike: TypeAlias = "Redactor | Callable[[str], str]"
"""What is taken out of sessions, or a callable that every text goes through after the configured patterns."""

UNMATCHED_RULE = "none"
"""Rule shown for sessions that were decided before sampling was asked."""


class Clock(Protocol):
    def __call__(self) -> int:
        """Epoch nanoseconds."""
        ...


def assembler_limits(settings: Settings, sampler: Sampler) -> AssemblerLimits:
    return AssemblerLimits(
        idle_s=settings.idle_timeout,
        grace_s=settings.grace,
        max_age_s=settings.max_session_age,
        max_turns=settings.max_turns,
        max_session_bytes=settings.max_session_bytes,
        max_open_sessions=settings.max_open_sessions,
        max_open_bytes=settings.max_open_bytes,
        session_keys=settings.session_keys,
        goal=settings.goal,
        goal_attributes=settings.goal_attributes,
        keep_attributes=(*settings.keep_attributes, *sorted(sampler.attributes)),
    )


def _create_judge(
    settings: Settings, model: JudgeModel | object | None, redactor: RedactorLike | None, clock: Clock
) -> Judge:
    try:
        evaluators = create_evaluators(settings.evaluators, settings)
        return Judge(create_model(settings, model), evaluators, settings, redactor=redactor, now_ns=clock)
    except SettingsError:
        raise
    except ValueError as error:  # an unknown evaluator or model: settings that only their rooms can check
        raise SettingsError(str(error)) from None


class Pipeline:
    """From records to emitted scores.

    The assembling side (`add`, `complete`, `flush`) belongs to one thread, the judging side (`judge_next`, `close`)
    to one event loop; the queue and the ledger are what they share.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        emitter: Emitter | None = None,
        sampler: Sampler | None = None,
        model: JudgeModel | object | None = None,
        redactor: RedactorLike | None = None,
        queue: SessionQueue | None = None,
        clock: Clock = time.time_ns,
        on_result: ResultCallback | None = None,
        on_decision: DecisionCallback | None = None,
    ) -> None:
        """A pipeline.

        Raises:
            SettingsError: an evaluator or a judge model is unknown, or the redactor is none.
        """
        self.settings = settings
        self.sampler = sampler or Sampler(settings)
        self.queue: SessionQueue = queue or MemoryQueue(settings.queue_capacity)
        self.ledger = Ledger()
        early = EarlyDecision(self.sampler.chance, reduce) if settings.early_decision else None
        self.assembler = SessionAssembler(assembler_limits(settings, self.sampler), early)
        self._emitter = emitter
        self._clock = clock
        self._on_result = on_result
        self._on_decision = on_decision
        self._judge = _create_judge(settings, model, redactor, clock)
        self.judging = 0
        """Sessions with a judge right now."""
        self.tokens = 0
        self.cost_usd: float | None = None
        """Known cost so far; None until a call had a known price."""

    # --- the assembling side ----------------------------------------------------------------------------------

    def add(self, record: SpanRecord | LogRecord_, now_ns: int) -> None:
        """Feed one record."""
        if isinstance(record, SpanRecord):
            self.assembler.add_span(record, now_ns)
        else:
            self.assembler.add_log(record, now_ns)

    def complete(self, now_ns: int, open_traces: Collection[int] = ()) -> Iterator[Session]:
        """Decide on each session that is complete by now; yields them one by one, so that the caller can pause."""
        for session in self.assembler.poll(now_ns, open_traces):
            yield self._decide(session)

    def flush(self, now_ns: int) -> Iterator[Session]:
        """Complete and decide on all open sessions."""
        for session in self.assembler.flush(now_ns):
            yield self._decide(session)

    def _decide(self, session: Session) -> Session:
        self.ledger.complete()
        signals = self._signals(session)
        if not session.content_kept:
            session = session.without_content()
        if self._emitter is not None:
            self._isolated("count", lambda: self._emit_completed(session, signals))
        decision: Decision | None
        try:
            decision, rule = self._offer(session, signals)
        except Exception as error:  # whatever it is, a completed session gets its decision
            logger.warning("otel-evals: a session could not be decided on (%s)", type(error).__name__)
            decision, rule = "unscorable", UNMATCHED_RULE
        if decision is not None:
            self._record(session, decision, rule)
        return session

    def _offer(self, session: Session, signals: tuple[str, ...]) -> tuple[Decision | None, str]:
        """The decision, or None when the session now waits for a judge; and the sampling rule."""
        if not session.evaluable:
            return "not_evaluable", UNMATCHED_RULE
        sampled = self.sampler.decide(session, signals)
        if sampled.outcome != "chosen":
            return sampled.outcome, sampled.rule
        task = JudgeTask(
            session=session,
            probabilities=dict(sampled.chosen),
            rule=sampled.rule,
            signals=signals,
            enqueued_ns=self._clock(),
        )
        if self.queue.put(task):
            return None, sampled.rule
        self.sampler.release(session)
        return "queue_full", sampled.rule

    # --- the judging side -------------------------------------------------------------------------------------

    async def judge_next(self) -> bool:
        """Judge the oldest waiting session and emit its scores. False when none waits that may be judged now."""
        task = self.queue.take(self._clock())
        if task is None:
            return False
        self.judging += 1
        decision: Decision | None = "expired"
        try:
            if self._expired(task):
                self.sampler.release(task.session)
            else:
                decision = await self._judge_task(task)
        except Postponed as pause:
            decision = None
            self.queue.put_back(self._later(task, pause))
        except Exception as error:  # one poisonous session must not stop the judging of the others
            decision = "unscorable"
            logger.warning("otel-evals: a session could not be judged (%s)", type(error).__name__)
        finally:
            # Also when cancelled at shutdown: the session was accepted, so it is accounted for.
            self.judging -= 1
            if decision is not None:
                self._record(task.session, decision, task.rule)
        return True

    def _later(self, task: JudgeTask, pause: Postponed) -> JudgeTask:
        """The same task after a pause that the provider asked for, with what it has cost so far."""
        not_before_ns = self._clock() + int(pause.wait_s * 1e9)
        return task.model_copy(update={"not_before_ns": not_before_ns, "calls": pause.calls, "errors": pause.errors})

    def wait_s(self) -> float | None:
        """Seconds until a waiting session may be judged, 0.0 for at once; None when none waits."""
        next_ns = self.queue.next_ns()
        return None if next_ns is None else max(0.0, (next_ns - self._clock()) / 1e9)

    async def judge_all(self) -> None:
        """Judge all that wait, at the configured concurrency, also those that have to wait for a provider first."""

        async def worker() -> None:
            while await self.judge_next():
                pass

        while (wait_s := self.wait_s()) is not None:
            await asyncio.sleep(wait_s)
            await asyncio.gather(*(worker() for _ in range(self.settings.judge_concurrency)))

    def expire_all(self) -> None:
        """Account for all that wait as expired: there is no time left to judge them."""
        while (task := self.queue.take()) is not None:
            self.sampler.release(task.session)
            self._record(task.session, "expired", task.rule)

    async def close(self) -> None:
        await self._judge.close()

    def _expired(self, task: JudgeTask) -> bool:
        return self._clock() - task.enqueued_ns > self.settings.judge_deadline * 1e9

    async def _judge_task(self, task: JudgeTask) -> Decision:
        started = time.time_ns()
        try:
            result = await self._judge.judge(task, postponable=True)
        except Postponed:
            raise
        except BaseException:  # also when cancelled: its place in the budget is given back
            self.sampler.release(task.session)
            raise
        self.sampler.settle(result)
        self.tokens += result.judgement.input_tokens + result.judgement.output_tokens
        if result.judgement.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + result.judgement.cost_usd
        emitter = self._emitter
        if emitter is not None:
            self._isolated("emit", lambda: emitter.judged(result, started_ns=started, ended_ns=time.time_ns()))
        on_result = self._on_result
        if on_result is not None:
            self._isolated("hand over", lambda: on_result(result))
        outcomes = {evaluation.outcome for evaluation in result.evaluations}
        # What the trace alone decided (not applicable) does not make a session judged whose judge failed.
        return "unscorable" if "unscorable" in outcomes and "scored" not in outcomes else "judged"

    # --- both -------------------------------------------------------------------------------------------------

    def _signals(self, session: Session) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(signal.name for signal in detect(session)))
        except Exception as error:  # evidence is optional: the session is decided on without it
            logger.warning("otel-evals: no signals for a session (%s)", type(error).__name__)
            return ()

    def _emit_completed(self, session: Session, signals: tuple[str, ...]) -> None:
        if self._emitter is not None:
            self._emitter.completed(session, signals)

    def _record(self, session: Session, decision: Decision, rule: str) -> None:
        emitter, on_decision = self._emitter, self._on_decision
        if emitter is not None:
            self._isolated("count", lambda: emitter.decided(session, decision, rule))
        if on_decision is not None:
            self._isolated("hand over", lambda: on_decision(session, decision, rule))
        # Last, because a flush waits for the ledger: by then all is counted and handed over.
        self.ledger.decide(decision)

    @staticmethod
    def _isolated(what: str, action: Callable[[], None]) -> None:
        """Run the code of exporters and callbacks: their errors are named in the log, never passed on."""
        try:
            action()
        except Exception as error:  # foreign code
            logger.warning("otel-evals: could not %s a result (%s)", what, type(error).__name__)
