"""With `with-privacy.yaml` no content of a conversation leaves the collector, and the scores do."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Status, StatusCode

from tests.components.collector import Collector

pytestmark = pytest.mark.components

SECRET = "my card number is 4111"

CONTENT_ATTRIBUTES = (
    "ai.prompt",
    "ai.toolCall.args",
    "an.attribute.nobody.has.heard.of",
    "final_result",
    "gen_ai.completion.0.content",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "input.value",
    "langfuse.observation.input",
    "llm.input_messages.0.message.content",
    "mlflow.spanInputs",
    "otel_evals.evidence",
    "otel_evals.goal",
    "traceloop.entity.output",
)
KEPT_ATTRIBUTES = (
    "error.type",
    "gen_ai.agent.name",
    "gen_ai.conversation.id",
    "gen_ai.operation.name",
    "gen_ai.request.model",
    "gen_ai.tool.name",
    "gen_ai.usage.input_tokens",
    "openinference.span.kind",
    "otel_evals.failure_rate.score",
    "otel_evals.session.id",
)


@pytest.fixture
def private_collector(start_collector: Callable[..., Collector]) -> Collector:
    return start_collector(["otelcol.yaml", "with-privacy.yaml"])


def test_attributes_that_may_hold_content_are_dropped_and_the_harmless_stay(private_collector: Collector) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{private_collector.http_endpoint}/v1/traces")))
    attributes = dict.fromkeys(CONTENT_ATTRIBUTES, SECRET) | dict.fromkeys(KEPT_ATTRIBUTES, "kept")

    provider.get_tracer("app").start_span("chat", attributes=attributes).end()

    private_collector.wait_for(lambda c: bool(c.spans()))
    [span] = private_collector.spans()
    assert sorted(attribute["key"] for attribute in span["attributes"]) == sorted(KEPT_ATTRIBUTES)
    provider.shutdown()


def test_names_events_and_error_messages_of_spans_carry_no_content(private_collector: Collector) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{private_collector.http_endpoint}/v1/traces")))

    span = provider.get_tracer("app").start_span(f"task\n{SECRET}")
    span.record_exception(ValueError(SECRET))
    span.add_event("gen_ai.user.message", {"content": SECRET})
    span.set_status(Status(StatusCode.ERROR, SECRET))
    span.end()

    private_collector.wait_for(lambda c: bool(c.spans()))
    assert SECRET not in json.dumps(private_collector.received("traces"))
    [received] = private_collector.spans()
    exception = {a["key"]: a["value"]["stringValue"] for a in received["events"][0]["attributes"]}
    assert exception == {"exception.type": "ValueError"}
    assert received["status"] == {"code": 2}
    provider.shutdown()


def test_message_events_are_dropped_and_evaluation_events_lose_explanation_and_quotes(
    private_collector: Collector,
) -> None:
    provider = LoggerProvider()
    provider.add_log_record_processor(
        SimpleLogRecordProcessor(OTLPLogExporter(f"{private_collector.http_endpoint}/v1/logs"))
    )
    logger = provider.get_logger("app")

    logger.emit(LogRecord(event_name="gen_ai.user.message", body={"content": SECRET}))
    logger.emit(LogRecord(attributes={"event.name": "gen_ai.choice"}, body=SECRET))
    logger.emit(LogRecord(body="the app's own line", severity_number=SeverityNumber.INFO))
    logger.emit(
        LogRecord(
            event_name="gen_ai.evaluation.result",
            attributes={
                "gen_ai.evaluation.name": "failure_rate",
                "gen_ai.evaluation.score.value": 0.4,
                "gen_ai.evaluation.explanation": SECRET,
                "otel_evals.evidence": SECRET,
            },
        )
    )

    private_collector.wait_for(lambda c: len(c.log_records()) >= 2)
    assert SECRET not in json.dumps(private_collector.received("logs"))
    own, evaluation = private_collector.log_records()
    assert own["body"] == {"stringValue": "the app's own line"}
    kept = {attribute["key"] for attribute in evaluation["attributes"]}
    assert kept == {"gen_ai.evaluation.name", "gen_ai.evaluation.score.value"}
    provider.shutdown()
