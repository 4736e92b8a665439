"""The telemetry contract, read back from real SDK providers with in-memory exporters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_evals import Evaluation, Evidence, JudgedSession, Judgement
from otel_evals.telemetry.emitter import Emitter
from tests.agents import a_session

SECOND = 1_000_000_000


class Backend:
    """What a collector would have received."""

    def __init__(self, **emitter_options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._logs = InMemoryLogRecordExporter()
        logger_provider = LoggerProvider()
        logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        self._reader = InMemoryMetricReader()
        self.emitter = Emitter(
            tracer_provider=self.tracer_provider,
            logger_provider=logger_provider,
            meter_provider=MeterProvider([self._reader]),
            **emitter_options,
        )

    def emit(self, result: JudgedSession) -> None:
        self.emitter.judged(result, started_ns=SECOND, ended_ns=3 * SECOND)

    @property
    def spans(self) -> Any:
        return self._spans.get_finished_spans()

    @property
    def events(self) -> list[Any]:
        return [data.log_record for data in self._logs.get_finished_logs()]

    def collect(self) -> dict[str, list[Any]]:
        """Data points by metric. Exemplars are handed out once: read all that is wanted of one collection."""
        data = self._reader.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def points(self, name: str) -> list[Any]:
        return self.collect().get(name, [])


@pytest.fixture
def backend() -> Backend:
    return Backend()


def evaluation(name: str = "failure_rate", **changes: Any) -> Evaluation:
    values: dict[str, Any] = {
        "evaluator": name,
        "evaluator_version": "1",
        "outcome": "scored",
        "score": 0.4,
        "label": "stall",
        "passed": False,
        "probability": 0.25,
        "explanation": "It kept asking.",
        "evidence": (Evidence(turn=0, role="agent", quote="Shall I try again", verified=True),),
        **changes,
    }
    return Evaluation(**values)


def judged(*evaluations: Evaluation, judgement: dict[str, Any] | None = None, **session: Any) -> JudgedSession:
    return JudgedSession(
        session=a_session(**session),
        evaluations=evaluations or (evaluation(),),
        judgement=Judgement(
            model="judge-1",
            calls=1,
            input_tokens=900,
            output_tokens=80,
            prompt_hash="abc",
            **(judgement or {}),
        ),
        rule="default",
    )


def test_the_span_joins_the_trace_of_the_last_turn_below_its_root(backend: Backend) -> None:
    backend.emit(judged())
    (span,) = backend.spans
    assert span.name == "evaluate session"
    assert span.context.trace_id == 2
    assert span.parent.span_id == 2
    assert (span.start_time, span.end_time) == (SECOND, 3 * SECOND)


def test_the_span_links_to_the_roots_of_the_other_turns(backend: Backend) -> None:
    backend.emit(judged())
    (link,) = backend.spans[0].links
    assert (link.context.trace_id, link.context.span_id) == (1, 1)
    assert dict(link.attributes) == {"otel_evals.turn.index": 0}


def test_the_span_of_an_unsampled_trace_is_a_root_with_links_only(backend: Backend) -> None:
    session = a_session()
    turns = tuple(turn.model_copy(update={"sampled": False}) for turn in session.turns)
    backend.emit(judged(turns=turns))
    (span,) = backend.spans
    assert span.parent is None
    assert span.context.trace_id not in (1, 2)
    assert [link.context.trace_id for link in span.links] == [1, 2]


def test_the_span_carries_session_sampling_scores_and_judge(backend: Backend) -> None:
    backend.emit(judged(judgement={"cost_usd": 0.002}))
    attributes = backend.spans[0].attributes
    assert attributes == {
        "otel_evals.internal": True,
        "otel_evals.session.id": "s-1",
        "otel_evals.session.key": "gen_ai.conversation.id",
        "otel_evals.session.turns": 2,
        "otel_evals.session.generation": 1,
        "otel_evals.session.incomplete": False,
        "otel_evals.session.truncated": False,
        "otel_evals.sampling.rule": "default",
        "otel_evals.sampling.probability": 0.25,
        "otel_evals.sampling.weight": 4.0,
        "otel_evals.judge.model": "judge-1",
        "otel_evals.judge.calls": 1,
        "otel_evals.judge.cost_usd": 0.002,
        "otel_evals.judge.prompt_hash": "abc",
        "otel_evals.judge.plan": "single",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 80,
        "gen_ai.conversation.id": "s-1",
        "gen_ai.agent.name": "travel-agent",
        "otel_evals.failure_rate.score": 0.4,
        "otel_evals.failure_rate.label": "stall",
        "otel_evals.failure_rate.passed": False,
        "otel_evals.failure_rate.applicable": True,
    }


def test_a_derived_session_id_never_poses_as_a_conversation_id(backend: Backend) -> None:
    backend.emit(judged(conversation_id=None, derived=True, session_key="trace"))
    assert "gen_ai.conversation.id" not in backend.spans[0].attributes


def test_an_unknown_price_is_absent_not_zero(backend: Backend) -> None:
    backend.emit(judged())
    assert "otel_evals.judge.cost_usd" not in backend.spans[0].attributes
    assert backend.points("otel_evals.judge.cost") == []


def test_one_event_per_evaluator_in_the_context_of_the_turns_root(backend: Backend) -> None:
    backend.emit(judged(evaluation(), evaluation("goal_achievement", label="fully", score=1.0, passed=True)))
    assert [event.event_name for event in backend.events] == ["gen_ai.evaluation.result"] * 2
    assert {(event.trace_id, event.span_id) for event in backend.events} == {(2, 2)}
    names = [event.attributes["gen_ai.evaluation.name"] for event in backend.events]
    assert names == ["failure_rate", "goal_achievement"]


def test_the_event_carries_score_label_reason_and_verified_evidence(backend: Backend) -> None:
    result = judged()
    backend.emit(result)
    (event,) = backend.events
    assert event.severity_text == "INFO"
    assert event.timestamp
    attributes = dict(event.attributes)
    evidence = json.loads(attributes.pop("otel_evals.evidence"))
    assert evidence == [{"turn": 0, "role": "agent", "quote": "Shall I try again", "verified": True}]
    assert attributes["gen_ai.evaluation.score.value"] == 0.4
    assert attributes["gen_ai.evaluation.score.label"] == "stall"
    assert attributes["gen_ai.evaluation.explanation"] == "It kept asking."
    assert attributes["otel_evals.passed"] is False
    assert attributes["otel_evals.sampling.weight"] == 4.0
    assert attributes["otel_evals.evaluation.id"] == result.evaluation_id(result.evaluations[0])


def test_an_unscorable_event_warns_and_has_no_score(backend: Backend) -> None:
    backend.emit(judged(evaluation(outcome="unscorable", score=None, label=None, passed=None, error_type="timeout")))
    (event,) = backend.events
    assert event.severity_text == "WARN"
    assert event.attributes["error.type"] == "timeout"
    assert "gen_ai.evaluation.score.value" not in event.attributes
    assert backend.spans[0].attributes["error.type"] == "timeout"


def test_an_unscorable_evaluation_moves_no_score_and_no_weight(backend: Backend) -> None:
    backend.emit(judged(evaluation(outcome="unscorable", score=None, label=None, passed=None, error_type="timeout")))
    assert backend.points("gen_ai.evaluation.score") == []
    assert backend.points("otel_evals.evaluations.weight") == []
    (point,) = backend.points("otel_evals.evaluations")
    assert point.attributes["otel_evals.outcome"] == "unscorable"


def test_a_not_applicable_evaluation_stays_out_of_scores_and_weights(backend: Backend) -> None:
    gated = evaluation(outcome="not_applicable", score=1.0, label="not_applicable", passed=True, applicable=False)
    backend.emit(judged(gated))
    assert backend.points("gen_ai.evaluation.score") == []
    assert backend.points("otel_evals.evaluations.weight") == []
    (point,) = backend.points("otel_evals.evaluations")
    assert point.attributes["otel_evals.outcome"] == "not_applicable"


def test_weights_and_their_squares_are_summed(backend: Backend) -> None:
    backend.emit(judged(evaluation(probability=0.25), session_id="a"))
    backend.emit(judged(evaluation(probability=0.5), session_id="b"))
    (weight,) = backend.points("otel_evals.evaluations.weight")
    (squared,) = backend.points("otel_evals.evaluations.weight_squared")
    assert (weight.value, squared.value) == (6.0, 20.0)


def test_metric_points_carry_exemplars_with_the_judged_trace(backend: Backend) -> None:
    backend.emit(judged())
    points = backend.collect()
    (score,), (count,) = points["gen_ai.evaluation.score"], points["otel_evals.evaluations"]
    assert [(e.trace_id, e.span_id) for e in score.exemplars] == [(2, 2)]
    assert [(e.trace_id, e.span_id) for e in count.exemplars] == [(2, 2)]


def test_no_metric_attribute_identifies_a_session(backend: Backend) -> None:
    backend.emit(judged(session_id="unique-session-id"))
    backend.emitter.completed(a_session("unique-session-id"), ["tool_error"])
    backend.emitter.decided(a_session("unique-session-id"), "judged", "default")
    collected = backend.collect()
    assert {"gen_ai.evaluation.score", "otel_evals.evaluations", "otel_evals.sessions"} <= collected.keys()
    for name, points in collected.items():
        for point in points:
            assert "unique-session-id" not in point.attributes.values(), name


def test_every_score_value_of_the_built_in_labels_has_its_own_bucket(backend: Backend) -> None:
    values = [0.0, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.9, 1.0]
    for value in values:
        backend.emit(judged(evaluation(score=value, label="x"), session_id=f"s-{value}"))
    (point,) = backend.points("gen_ai.evaluation.score")
    assert [count for count in point.bucket_counts if count] == [1] * len(values)


def test_a_resumed_session_counts_as_update_and_not_as_another_score(backend: Backend) -> None:
    backend.emit(judged())
    backend.emit(judged(generation=2))
    counts = {p.attributes["otel_evals.session.generation"]: p.value for p in backend.points("otel_evals.evaluations")}
    assert counts == {"first": 1, "update": 1}
    (score,) = backend.points("gen_ai.evaluation.score")
    assert score.count == 1
    assert len(backend.spans) == 2


def test_the_evaluation_id_tells_generations_apart_and_repeats_for_the_same_one() -> None:
    first, again, second = judged(), judged(), judged(generation=2)
    assert first.evaluation_id(first.evaluations[0]) == again.evaluation_id(again.evaluations[0])
    assert first.evaluation_id(first.evaluations[0]) != second.evaluation_id(second.evaluations[0])


def test_explanations_and_quotes_can_be_kept_out() -> None:
    backend = Backend(explanations=False)
    backend.emit(judged())
    (event,) = backend.events
    assert "gen_ai.evaluation.explanation" not in event.attributes
    assert "otel_evals.evidence" not in event.attributes


def test_the_ledger_counters_name_decision_and_rule(backend: Backend) -> None:
    backend.emitter.completed(a_session(), ["tool_error"])
    backend.emitter.decided(a_session(), "sampled_out", "default")
    (completed,) = backend.points("otel_evals.sessions.completed")
    (decided,) = backend.points("otel_evals.sessions")
    (signal,) = backend.points("otel_evals.signals")
    assert completed.value == decided.value == signal.value == 1
    assert decided.attributes["otel_evals.decision"] == "sampled_out"
    assert decided.attributes["otel_evals.sampling.rule"] == "default"
    assert signal.attributes["otel_evals.signal"] == "tool_error"
