"""One group of questions about one session, put to one model: an answer, at most one more, then an outcome.

All plans are made of this. Two answers are the limit, whatever is wrong with them: unreadable, cut short,
empty, contradictory, or resting on quotes that nobody said.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from otel_evals.evaluation import Evaluation
from otel_evals.evaluators.outcome import unscorable
from otel_evals.evaluators.protocol import Answer, Evaluator
from otel_evals.judging.answer_schema import combined_schema
from otel_evals.judging.answers import parse_answers
from otel_evals.judging.calls import Caller, Spent
from otel_evals.judging.complaints import Complaints
from otel_evals.judging.evidence import verify
from otel_evals.judging.models.protocol import ChatReply, ChatRequest, ModelError
from otel_evals.judging.prompt import judge_messages, repair_messages
from otel_evals.judging.transcript import render_transcript
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings

__all__ = ["Asked", "Asker"]

logger = logging.getLogger(__name__)

Evaluators = Mapping[str, Evaluator]

_SCHEMA_NAME = "evaluation"
_MORE_ROOM = 2
"""Factor on the output tokens after an answer that was cut short."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One evaluation for each evaluator that was asked."""

    evaluations: dict[str, Evaluation]
    truncated: bool = False
    """The transcript had to be shortened."""


@dataclass(frozen=True, slots=True)
class _Open:
    """An evaluator whose answer is not good enough yet."""

    error_type: str
    problems: tuple[str, ...]
    fallback: Evaluation | None = None
    """What the answer gives if no better one comes; None if it gives nothing."""


@dataclass
class _Reading:
    """What one reply settled and what it left open."""

    settled: dict[str, Evaluation] = field(default_factory=dict)
    open: dict[str, _Open] = field(default_factory=dict)
    final: bool = False
    """Asking again would change nothing (refusal, content filter)."""

    @property
    def rewritable(self) -> bool:
        """There is an answer to correct, rather than none or half of one."""
        return all(o.error_type not in ("truncated_answer", "empty_answer") for o in self.open.values())


class _Size(NamedTuple):
    """Of a rendered transcript."""

    estimate: int = 0
    """Tokens."""
    shortened: bool = False


class Asker:
    """Asks one model."""

    def __init__(self, caller: Caller, settings: Settings, token: Callable[[], str]) -> None:
        self.caller = caller
        self._settings = settings
        self._token = token
        self._complaints = Complaints(logger)
        # Models that read the session itself get no prompt and know no canary.
        self._reader: bool = getattr(caller.model, "reads_session", False)

    async def ask(self, evaluators: Evaluators, session: Session, spent: Spent, deadline: float) -> Asked:
        """Evaluations of a redacted session, by `deadline` (the clock's seconds)."""
        canary = None if self._reader else self._token()
        request, tokens = self._request(evaluators, session, canary, self._settings.transcript_tokens)
        truncated = session.truncated or tokens.shortened
        try:
            try:
                reply = await self.caller.ask(request, deadline, spent)
            except ModelError as error:
                if error.error_type != "context_length" or self._reader:
                    raise
                request, tokens = self._request(evaluators, session, canary, tokens.estimate // 2)
                truncated = True
                reply = await self.caller.ask(request, deadline, spent)
        except ModelError as error:
            return Asked(_all_unscorable(evaluators, error.error_type), truncated)
        reading = _read(reply, evaluators, session, canary, self._complaints)
        if not reading.open:
            return Asked(reading.settled, truncated)
        if reading.final:
            return Asked(reading.settled | _closed(evaluators, reading.open), truncated)
        second = await self._second(evaluators, session, request, canary, reply, reading, spent, deadline)
        return Asked({name: (reading.settled | second)[name] for name in evaluators}, truncated)

    async def _second(
        self,
        evaluators: Evaluators,
        session: Session,
        request: ChatRequest,
        canary: str | None,
        reply: ChatReply,
        reading: _Reading,
        spent: Spent,
        deadline: float,
    ) -> dict[str, Evaluation]:
        """The last answer, to the questions that are still open."""
        still = {name: evaluators[name] for name in reading.open}
        if reading.rewritable:
            canary = None if self._reader else self._token()
            request = _repair(request, reply.text, still, reading, canary)
        else:
            request = replace(request, max_tokens=request.max_tokens * _MORE_ROOM)
        try:
            reply = await self.caller.ask(request, deadline, spent)
        except ModelError as error:
            logger.debug("the second call failed: %s", error.error_type)
            if error.error_type == "session_limit":  # it was never made: what was wrong before stays the reason
                return _closed(still, reading.open)
            failed = {n: replace(o, error_type=error.error_type) for n, o in reading.open.items()}
            return _closed(still, failed)
        last = _read(reply, still, session, canary, self._complaints)
        left = {n: replace(o, fallback=o.fallback or reading.open[n].fallback) for n, o in last.open.items()}
        return last.settled | _closed(still, left)

    def _request(
        self, evaluators: Evaluators, session: Session, canary: str | None, budget: int
    ) -> tuple[ChatRequest, _Size]:
        request = ChatRequest(
            messages=(),
            schema=combined_schema(evaluators, canary=not self._reader),
            schema_name=_SCHEMA_NAME,
            max_tokens=self._settings.judge_max_tokens,
            timeout_s=self._settings.judge_timeout,
            session=session,
            evaluators=tuple(evaluators),
        )
        if canary is None:
            return request, _Size()
        transcript = render_transcript(_needed(evaluators, session), budget)
        boundary = self._token()
        while boundary in transcript.text:
            boundary = self._token()
        messages = judge_messages(evaluators, session, transcript, boundary=boundary, canary=canary)
        return replace(request, messages=messages), _Size(transcript.tokens, transcript.truncated)


def _repair(request: ChatRequest, answer: str, still: Evaluators, reading: _Reading, canary: str | None) -> ChatRequest:
    """The same conversation with the judge, with what is wrong with its answer, about the open questions only."""
    problems = {name: item.problems for name, item in reading.open.items()}
    return replace(
        request,
        messages=repair_messages(request.messages, answer, problems, canary) if canary else (),
        schema=combined_schema(still, canary=canary is not None),
        evaluators=tuple(still),
    )


def _needed(evaluators: Evaluators, session: Session) -> Session:
    """Without the system prompt and the tools where no question needs them. Evaluators without `needs` need all."""
    needs: set[str] = set().union(*(getattr(e, "needs", _ALL_NEEDS) for e in evaluators.values()))
    if "system_prompt" not in needs:
        session = session.model_copy(update={"system_prompt": None})
    if "tools" not in needs:
        turns = tuple(turn.model_copy(update={"tool_calls": ()}) for turn in session.turns)
        session = session.model_copy(update={"turns": turns})
    return session


_ALL_NEEDS = frozenset({"system_prompt", "tools"})


def _read(
    reply: ChatReply, evaluators: Evaluators, session: Session, canary: str | None, complaints: Complaints
) -> _Reading:
    if reply.refusal or reply.finish_reason == "refusal":
        return _refused(evaluators, "refusal")
    if reply.finish_reason == "content_filter":
        return _refused(evaluators, "content_filter")
    parsed = parse_answers(reply.text, evaluators, canary)
    reading = _Reading()
    for name, answer in parsed.answers.items():
        _settle(reading, evaluators[name], answer, session, complaints)
    for name, problems in parsed.problems.items():
        cut = reply.finish_reason == "length"
        reading.open[name] = _Open("truncated_answer" if cut else parsed.error_types[name], problems)
    return reading


def _settle(reading: _Reading, evaluator: Evaluator, answer: Answer, session: Session, complaints: Complaints) -> None:
    """Derive the evaluation; leave it open where the answer contradicts itself or its quotes do not occur."""
    try:
        problems = evaluator.check(answer, session)
        evaluation = verify(evaluator.score(answer, session), session)
    except Exception as error:  # evaluators may be anybody's code; one must not take the others with it
        complaints.warn("evaluator %s raised %s", evaluator.name, type(error).__name__)
        reading.settled[evaluator.name] = unscorable(evaluator, "evaluator_error")
        return
    if evaluation.evidence_verified is False:
        turns = sorted({item.turn for item in evaluation.evidence if not item.verified})
        problems += (f"these quotes do not occur in the turn they name: {', '.join(map(str, turns))}",)
    if not problems:
        reading.settled[evaluator.name] = evaluation
        return
    if evaluation.outcome == "unscorable":
        reading.open[evaluator.name] = _Open(evaluation.error_type or "incomplete_answer", problems)
        return
    fallback = evaluation.model_copy(update={"evidence_verified": False})
    reading.open[evaluator.name] = _Open("contradictory_answer", problems, fallback)


def _refused(evaluators: Evaluators, error_type: str) -> _Reading:
    return _Reading(open={name: _Open(error_type, ()) for name in evaluators}, final=True)


def _closed(evaluators: Evaluators, left_open: Mapping[str, _Open]) -> dict[str, Evaluation]:
    return {name: item.fallback or unscorable(evaluators[name], item.error_type) for name, item in left_open.items()}


def _all_unscorable(evaluators: Evaluators, error_type: str) -> dict[str, Evaluation]:
    return {name: unscorable(evaluator, error_type) for name, evaluator in evaluators.items()}
