"""A provider with the processor attached and everything it emits in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_evals import EvaluationHandle, JudgedSession, Settings, attach


class App:
    """An application with providers of its own and otel-evals attached."""

    def __init__(self, **settings: Any) -> None:
        model = settings.pop("judge_model", None)
        redactor = settings.pop("redactor", None)
        self.results: list[JudgedSession] = []
        self.spans = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.logs = InMemoryLogRecordExporter()
        self.logger_provider = LoggerProvider()
        self.logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        self._reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider([self._reader])
        rate = {} if settings.pop("unset_rate", False) else {"rate": 1.0}
        self.settings = Settings(**{**rate, "poll_interval": 0.01, "idle_timeout": 60.0, **settings})
        self.handle: EvaluationHandle = attach(
            self.tracer_provider,
            self.logger_provider,
            self.meter_provider,
            self.settings,
            model=model,
            redactor=redactor,
            on_result=self.results.append,
        )

    def complete(self, timeout_millis: int = 20_000) -> bool:
        return self.handle.force_flush(timeout_millis, complete=True)

    def evaluation_spans(self) -> list[Any]:
        return [span for span in self.spans.get_finished_spans() if span.name == "evaluate session"]

    def metric_total(self, name: str) -> float:
        data = self._reader.get_metrics_data()
        return sum(
            point.value
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        )


@pytest.fixture
def make_app() -> Iterator[Callable[..., App]]:
    apps: list[App] = []

    def make(**settings: Any) -> App:
        apps.append(App(**settings))
        return apps[-1]

    yield make
    for app in apps:
        app.handle.shutdown(1000)


@pytest.fixture
def app(make_app: Callable[..., App]) -> App:
    return make_app()
