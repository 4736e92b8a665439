"""Sends results back through the application's own providers: one span, events, and metrics with exemplars.

Contract: one `evaluate session` span per judged session in the trace of its last turn, one
`gen_ai.evaluation.result` event per evaluator, counters that add up to the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry._logs import LoggerProvider, SeverityNumber, get_logger_provider
from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, TraceFlags, TracerProvider

from otel_evals.evaluation import Decision, Evaluation, JudgedSession
from otel_evals.sessions.model import Session, Turn
from otel_evals.telemetry import names
from otel_evals.telemetry.instruments import Instruments, instruments_of

__all__ = ["Emitter"]

Attributes = dict[str, Any]

FIRST, UPDATE = "first", "update"


class Emitter:
    """Emits results. Providers default to the global ones, looked up when first needed and never replaced."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        version: str = "",
        explanations: bool = True,
    ) -> None:
        self._tracer_provider = tracer_provider
        self._logger_provider = logger_provider
        self._meter_provider = meter_provider
        self._version = version
        self._explanations = explanations

    @property
    def instruments(self) -> Instruments:
        """Looked up each time: the global meter provider may be set after us."""
        return instruments_of(self._meter_provider or get_meter_provider(), self._version)

    # --- the ledger -------------------------------------------------------------------------------------------

    def completed(self, session: Session, signals: Sequence[str]) -> None:
        """Count a completed session and the deterministic evidence found on it."""
        base = _agent(session) | {names.SESSION_GENERATION: generation_of(session)}
        context = _turn_context(_last_traced_turn(session))
        self.instruments.completed.add(1, base, context=context)
        for signal in signals:
            self.instruments.signals.add(1, base | {names.SIGNAL: signal}, context=context)

    def decided(self, session: Session, decision: Decision, rule: str) -> None:
        """Count the one decision that a completed session gets."""
        attributes = _agent(session) | {
            names.DECISION: decision,
            names.SAMPLING_RULE: rule,
            names.SESSION_GENERATION: generation_of(session),
        }
        self.instruments.sessions.add(1, attributes, context=_turn_context(_last_traced_turn(session)))

    # --- results ----------------------------------------------------------------------------------------------

    def judged(self, result: JudgedSession, *, started_ns: int, ended_ns: int) -> None:
        """Emit span, events and metrics of one judged session. Times are epoch nanoseconds."""
        turn = _last_traced_turn(result.session)
        context = _turn_context(turn)
        self._span(result, turn, context, started_ns, ended_ns)
        self._events(result, context)
        self._metrics(result, context)

    def _span(
        self,
        result: JudgedSession,
        turn: Turn | None,
        context: otel_context.Context,
        started_ns: int,
        ended_ns: int,
    ) -> None:
        tracer = (self._tracer_provider or trace.get_tracer_provider()).get_tracer(names.SCOPE, self._version)
        joins_trace = turn is not None and turn.sampled
        span = tracer.start_span(
            names.SPAN_NAME,
            # An unsampled trace cannot take the span: it becomes a root of its own that links to the turns.
            context=context if joins_trace else otel_context.Context(),
            kind=SpanKind.INTERNAL,
            attributes=_span_attributes(result),
            links=_links(result.session, besides=turn if joins_trace else None),
            start_time=started_ns,
        )
        span.end(end_time=ended_ns)

    def _events(self, result: JudgedSession, context: otel_context.Context) -> None:
        logger = (self._logger_provider or get_logger_provider()).get_logger(names.SCOPE, self._version)
        now = time.time_ns()
        for evaluation in result.evaluations:
            unscorable = evaluation.outcome == "unscorable"
            logger.emit(
                timestamp=now,
                observed_timestamp=now,
                context=context,
                severity_number=SeverityNumber.WARN if unscorable else SeverityNumber.INFO,
                severity_text="WARN" if unscorable else "INFO",
                event_name=names.EVENT_NAME,
                attributes=self._event_attributes(result, evaluation),
            )

    def _event_attributes(self, result: JudgedSession, evaluation: Evaluation) -> Attributes:
        attributes: Attributes = {
            names.GEN_AI_EVALUATION_NAME: evaluation.evaluator,
            names.EVALUATION_ID: result.evaluation_id(evaluation),
            names.EVALUATOR_VERSION: evaluation.evaluator_version,
            names.APPLICABLE: evaluation.applicable,
            names.SESSION_ID: result.session.session_id,
            names.SESSION_GENERATION: result.session.generation,
            names.SAMPLING_WEIGHT: evaluation.weight,
            names.SAMPLING_RULE: result.rule,
            names.JUDGE_MODEL: result.judgement.model,
            names.INTERNAL: True,
        }
        optional: Attributes = {
            names.GEN_AI_EVALUATION_SCORE_VALUE: _float(evaluation.score),
            names.GEN_AI_EVALUATION_SCORE_LABEL: evaluation.label,
            names.PASSED: evaluation.passed,
            names.ERROR_TYPE: evaluation.error_type,
            names.GEN_AI_CONVERSATION_ID: result.session.conversation_id,
            names.GEN_AI_AGENT_NAME: result.session.agent_name,
        }
        if self._explanations:
            optional[names.GEN_AI_EVALUATION_EXPLANATION] = evaluation.explanation
            if evaluation.evidence:
                optional[names.EVIDENCE] = _json([item.model_dump() for item in evaluation.evidence])
        return attributes | _present(optional)

    def _metrics(self, result: JudgedSession, context: otel_context.Context) -> None:
        instruments, judgement = self.instruments, result.judgement
        agent = _agent(result.session)
        generation = {names.SESSION_GENERATION: generation_of(result.session)}
        for evaluation in result.evaluations:
            outcome = outcome_of(evaluation)
            named = agent | {names.GEN_AI_EVALUATION_NAME: evaluation.evaluator}
            if evaluation.label is not None:
                named[names.GEN_AI_EVALUATION_SCORE_LABEL] = evaluation.label
            counted = named | generation | {names.OUTCOME: outcome, names.SAMPLING_RULE: result.rule}
            instruments.evaluations.add(1, counted, context=context)
            if evaluation.score is None or not evaluation.applicable:
                continue
            instruments.weight.add(evaluation.weight, counted, context=context)
            instruments.weight_squared.add(evaluation.weight**2, counted, context=context)
            if result.session.generation == 1:
                instruments.score.record(evaluation.score, named, context=context)
        judge = {names.JUDGE_MODEL: judgement.model}
        asked = judge | {names.JUDGE_PROMPT_HASH: judgement.prompt_hash}
        instruments.judge_duration.record(judgement.duration_s, asked, context=context)
        tokens = {
            "input": judgement.input_tokens,
            "output": judgement.output_tokens,
        }
        for kind, number in tokens.items():
            if number:
                instruments.judge_tokens.add(number, judge | {names.GEN_AI_TOKEN_TYPE: kind}, context=context)
        if judgement.cost_usd is not None:
            instruments.judge_cost.add(judgement.cost_usd, judge, context=context)
        for error in judgement.errors:
            instruments.judge_errors.add(1, judge | {names.ERROR_TYPE: error}, context=context)


def generation_of(session: Session) -> str:
    """`first`, or `update` for a session that was judged before and resumed: counted apart, never twice."""
    return FIRST if session.generation == 1 else UPDATE


def outcome_of(evaluation: Evaluation) -> str:
    """passed, failed, not_applicable or unscorable, as counted in `otel_evals.evaluations`."""
    if evaluation.outcome != "scored":
        return evaluation.outcome
    return "passed" if evaluation.passed else "failed"


def _last_traced_turn(session: Session) -> Turn | None:
    """The last turn whose own trace is known; turns restored from a later history have none."""
    return next((turn for turn in reversed(session.turns) if turn.trace_id and turn.root_span_id), None)


def _span_context(turn: Turn) -> SpanContext:
    return SpanContext(
        trace_id=int(turn.trace_id or "0", 16),
        span_id=int(turn.root_span_id or "0", 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if turn.sampled else TraceFlags.DEFAULT),
    )


def _turn_context(turn: Turn | None) -> otel_context.Context:
    """An otherwise empty context whose current span is the turn's root, so that exemplars carry its trace id."""
    context = otel_context.Context()
    if turn is None:
        return context
    return trace.set_span_in_context(NonRecordingSpan(_span_context(turn)), context)


def _links(session: Session, besides: Turn | None) -> list[Link]:
    return [
        Link(_span_context(turn), {names.TURN_INDEX: index})
        for index, turn in enumerate(session.turns)
        if turn.trace_id and turn.root_span_id and turn is not besides
    ]


def _span_attributes(result: JudgedSession) -> Attributes:
    session, judgement = result.session, result.judgement
    probability = max((e.probability for e in result.evaluations), default=1.0)
    attributes: Attributes = {
        names.INTERNAL: True,
        names.SESSION_ID: session.session_id,
        names.SESSION_KEY: session.session_key,
        names.SESSION_TURNS: len(session.turns),
        names.SESSION_GENERATION: session.generation,
        names.SESSION_INCOMPLETE: session.incomplete,
        names.SESSION_TRUNCATED: session.truncated or judgement.truncated,
        names.SAMPLING_RULE: result.rule,
        names.SAMPLING_PROBABILITY: probability,
        names.SAMPLING_WEIGHT: 1.0 / probability,
        names.JUDGE_MODEL: judgement.model,
        names.JUDGE_CALLS: judgement.calls,
        names.JUDGE_PROMPT_HASH: judgement.prompt_hash,
        names.JUDGE_PLAN: judgement.plan,
        names.GEN_AI_USAGE_INPUT_TOKENS: judgement.input_tokens,
        names.GEN_AI_USAGE_OUTPUT_TOKENS: judgement.output_tokens,
    }
    optional: Attributes = {
        names.GEN_AI_CONVERSATION_ID: session.conversation_id,
        names.GEN_AI_AGENT_NAME: session.agent_name,
        names.JUDGE_COST: _float(judgement.cost_usd),
        names.ERROR_TYPE: next((e.error_type for e in result.evaluations if e.outcome == "unscorable"), None),
    }
    for evaluation in result.evaluations:
        fields: Mapping[str, Any] = {
            "score": _float(evaluation.score),
            "label": evaluation.label,
            "passed": evaluation.passed,
            "applicable": evaluation.applicable,
        }
        for field, value in fields.items():
            optional[names.evaluator_attribute(evaluation.evaluator, field)] = value
    return attributes | _present(optional)


def _agent(session: Session) -> Attributes:
    return _present({names.GEN_AI_AGENT_NAME: session.agent_name})


def _present(attributes: Mapping[str, Any]) -> Attributes:
    return {key: value for key, value in attributes.items() if value is not None}


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
