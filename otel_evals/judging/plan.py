"""From a sampled session to its scores: redaction, gates, the questions as the plan puts them, what comes
out.

Whatever a provider or a transcript does, each evaluator ends as scored, not applicable or unscorable with a
reason; and nothing is asked of a judge that the trace already decides.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from otel_evals.evaluation import Evaluation, JudgedSession, Judgement, JudgeTask
from otel_evals.evaluators.outcome import unscorable
from otel_evals.evaluators.protocol import Evaluator
from otel_evals.judging.answer_schema import combined_schema
from otel_evals.judging.asking import Asker
from otel_evals.judging.calls import Caller, Postponed, Spent
from otel_evals.judging.complaints import Complaints
from otel_evals.judging.limits import CallLimiter
from otel_evals.judging.models.price import Price
from otel_evals.judging.models.protocol import JudgeModel
from otel_evals.judging.plans import Escalate, Jury, Plan, Separate, Single
from otel_evals.judging.prompt import prompt_hash, static_prompt
from otel_evals.judging.redact import Redaction, RedactionError, Redactor
from otel_evals.judging.select import further_models
from otel_evals.judging.session_limit import SessionLimit
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings, SettingsError

__all__ = ["Judge"]

logger = logging.getLogger(__name__)

Evaluators = Mapping[str, Evaluator]


class Judge:
    """Judges sessions with one model. Belongs to one event loop; many sessions may be judged at once."""

    def __init__(
        self,
        model: JudgeModel,
        evaluators: Evaluators,
        settings: Settings,
        *,
        redactor: Redactor | Callable[[str], str] | None = None,
        others: Sequence[JudgeModel] = (),
        clock: Callable[[], float] = time.monotonic,
        now_ns: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
        token: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        """A judge.

        Args:
            model: Answers the questions.
            evaluators: The questions, by name; a task names those to ask.
            settings: Attempts, timeouts, deadline and sizes.
            redactor: What is taken out before the judge and of what it says, or a callable that every text goes
                through after the patterns of the settings. Default: as the settings say.
            others: The stronger model of the plan `escalate`, the further jurors of `jury`. Default: as the
                settings say.
            clock: Monotonic seconds.
            now_ns: Epoch nanoseconds, the clock of `JudgeTask.enqueued_ns`.
            sleep: Waits between attempts.
            rng: Jitter of these waits.
            token: Gives unpredictable words for boundary and canary.

        Raises:
            SettingsError: an evaluator has no usable question, the plan lacks a model, or the redactor is none.
        """
        for name, evaluator in evaluators.items():
            _try_out(name, evaluator)
        self._evaluators = evaluators
        self._settings = settings
        self._redactor = _redactor(settings, redactor)
        self._complaints = Complaints(logger)
        self._clock = clock
        self._now_ns = now_ns

        def asker(asked: JudgeModel) -> Asker:
            limiter = CallLimiter(
                settings.judge_concurrency,
                requests_per_minute=settings.judge_requests_per_minute,
                tokens_per_minute=settings.judge_tokens_per_minute,
                clock=clock,
                sleep=sleep,
            )
            caller = Caller(
                asked,
                attempts=settings.judge_attempts,
                timeout_s=settings.judge_timeout,
                limiter=limiter,
                session_limit=SessionLimit(
                    settings.judge_session_tokens,
                    settings.judge_session_usd,
                    Price(settings.input_price, settings.output_price),
                ),
                clock=clock,
                sleep=sleep,
                rng=rng,
            )
            return Asker(caller, settings, token)

        self._plan = _plan(asker(model), [asker(m) for m in others or further_models(settings)], settings)

    async def judge(self, task: JudgeTask, *, postponable: bool = False) -> JudgedSession:
        """The session with one evaluation per evaluator that the task names.

        Evaluations carry `error_type` when unscorable: the session's own reason (`no_content`, …), that of
        the model (`ModelError.error_type`), `expired`, `breaker_open`, `session_limit`, `refusal`, `content_filter`,
        `empty_answer`, `truncated_answer`, `malformed_answer`, `missing_field`, `unknown_label`,
        `canary_mismatch`, `incomplete_answer`, `evaluator_error`, `unknown_evaluator` or `redaction_failed`.

        Args:
            task: What to judge; the calls that it has already cost are counted on.
            postponable: The caller can put the task back into a queue.

        Raises:
            Postponed: only if postponable: the provider asked for a pause, and nothing is answered yet. Else
            nothing but cancellation is raised.
        """
        started = self._clock()
        spent = Spent(
            calls=task.calls,
            errors=list(task.errors),
            postponable=postponable and self._plan.sequential,
            earlier_attempts=len(task.errors),
        )
        redaction = self._redactor.for_session()
        evaluators = {name: self._evaluators[name] for name in task.probabilities if name in self._evaluators}
        evaluations, truncated = await self._evaluate(task, evaluators, redaction, spent)
        return JudgedSession(
            session=task.session,
            evaluations=tuple(
                _finished(evaluations.get(name) or _unknown(name), probability, redaction)
                for name, probability in task.probabilities.items()
            ),
            judgement=Judgement(
                model=self._plan.model,
                plan=self._plan.name,
                calls=spent.calls,
                input_tokens=spent.input_tokens,
                output_tokens=spent.output_tokens,
                cached_tokens=spent.cached_tokens,
                cost_usd=spent.cost_usd,
                duration_s=max(0.0, self._clock() - started),
                prompt_hash=prompt_hash(evaluators),
                errors=tuple(spent.errors),
                truncated=truncated,
            ),
            rule=task.rule,
        )

    @property
    def left_alone(self) -> dict[str, str]:
        """Models that the breaker forbids to call at present, and the `error.type` that opened it."""
        breakers = {asker.caller.model.name: asker.caller.breaker for asker in self._plan.askers}
        return {name: breaker.reason for name, breaker in breakers.items() if breaker.reason}

    async def close(self) -> None:
        """Close the models' connections."""
        closing = (asker.caller.model.close() for asker in self._plan.askers)
        await asyncio.gather(*closing, return_exceptions=True)

    async def _evaluate(
        self, task: JudgeTask, evaluators: Evaluators, redaction: Redaction, spent: Spent
    ) -> tuple[dict[str, Evaluation], bool]:
        """Evaluations by name, and whether the transcript had to be shortened."""
        try:
            session = redaction.session(task.session)
        except RedactionError as error:
            self._complaints.warn("a session was not judged: redaction failed (%s)", str(error))
            return _all(evaluators, "redaction_failed"), False
        if reason := not_evaluable(session):
            return _all(evaluators, reason), False
        results = {name: gated for name, e in evaluators.items() if (gated := self._gate(e, session))}
        left = {name: e for name, e in evaluators.items() if name not in results}
        if not left:
            return results, session.truncated
        try:
            asked = await self._plan.ask(left, session, spent, self._deadline(task))
        except Postponed:
            raise
        except Exception as error:  # third parties' evaluators and models take part; the gated results stay
            self._complaints.warn("judging a session raised %s", type(error).__name__)
            return results | _all(left, "unexpected"), session.truncated
        return results | asked.evaluations, asked.truncated

    def _gate(self, evaluator: Evaluator, session: Session) -> Evaluation | None:
        try:
            return evaluator.gate(session)
        except Exception as error:  # evaluators may be anybody's code; one must not take the others with it
            self._complaints.warn("evaluator %s raised %s", evaluator.name, type(error).__name__)
            return unscorable(evaluator, "evaluator_error")

    def _deadline(self, task: JudgeTask) -> float:
        """When the task expires, in the clock's seconds."""
        waited_s = max(0, self._now_ns() - task.enqueued_ns) / 1e9 if task.enqueued_ns else 0.0
        return self._clock() + self._settings.judge_deadline - waited_s


def _try_out(name: str, evaluator: Evaluator) -> None:
    """Anybody's evaluator shows at the start, not in the middle of a session, that it can be asked."""
    try:
        static_prompt({name: evaluator})
        combined_schema({name: evaluator})
    except Exception as error:  # whatever a third party's property raises
        raise SettingsError(
            f"evaluators={name!r}: it has no usable rubric or answer schema ({type(error).__name__}: {error})"
        ) from error


def _plan(first: Asker, others: Sequence[Asker], settings: Settings) -> Plan:
    if settings.plan in ("escalate", "jury") and not others:
        missing = "escalate_model" if settings.plan == "escalate" else "jury"
        raise SettingsError(f"plan={settings.plan!r}: it needs a further model; set {missing}")
    if settings.plan == "escalate":
        return Escalate(first, others[0], settings.escalate_below)
    if settings.plan == "jury":
        return Jury([first, *others])
    return Separate(first) if settings.plan == "separate" else Single(first)


def _redactor(settings: Settings, given: Redactor | Callable[[str], str] | None) -> Redactor:
    if isinstance(given, Redactor):
        return given
    if given is not None and not callable(given):
        raise SettingsError(f"redactor={type(given).__name__}: give a Redactor, or a callable from text to text")
    return Redactor(settings.redact_patterns, given, built_in=settings.redact)


def not_evaluable(session: Session) -> str | None:
    """Why there is nothing to judge, or None."""
    if not session.evaluable:
        return session.not_evaluable_reason or "not_evaluable"
    if not session.turns:
        return "no_turns"
    if not any(turn.user or turn.agent for turn in session.turns):
        return "no_content"
    return None


def _all(evaluators: Evaluators, error_type: str) -> dict[str, Evaluation]:
    return {name: unscorable(evaluator, error_type) for name, evaluator in evaluators.items()}


def _unknown(name: str) -> Evaluation:
    """A task from a queue may name an evaluator that this process does not have."""
    return Evaluation(evaluator=name, evaluator_version="", outcome="unscorable", error_type="unknown_evaluator")


def _finished(evaluation: Evaluation, probability: float, redaction: Redaction) -> Evaluation:
    """With its probability, and redacted once more: a judge may write what it was never shown."""
    try:
        said = {
            "explanation": redaction.value(evaluation.explanation),
            "details": redaction.value(evaluation.details),
            "evidence": tuple(
                item.model_copy(update={"quote": redaction.value(item.quote)}) for item in evaluation.evidence
            ),
        }
    except RedactionError:
        said = {"explanation": None, "details": {}, "evidence": ()}
    return evaluation.model_copy(update={"probability": probability, **said})
