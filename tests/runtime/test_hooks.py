"""The hooks in the application's own calls: never raise, never block, bounded, and deaf to our own spans."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry._logs import LogRecord
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from otel_evals import EvaluationLogProcessor, EvaluationSpanProcessor, Settings
from otel_evals.suppression import internal_work
from tests.agents import run_conversation, run_turn
from tests.runtime.conftest import App

cyclic: list[Any] = []
cyclic.append(cyclic)

hostile_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=50),
    st.binary(max_size=50),
    st.just("x" * 1_000_000),
    st.just("\ud800"),
    st.just(cyclic),
    st.just(object()),
    st.lists(st.integers(), max_size=5),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
hostile_keys = st.sampled_from(
    [
        "gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.conversation.id",
        "gen_ai.tool.call.arguments", "gen_ai.tool.name", "openinference.span.kind", "input.value", "output.value",
        "llm.input_messages.0.message.content", "llm.input_messages.x.message.role", "session.id", "error.type",
        "gen_ai.usage.input_tokens", "traceloop.span.kind", "traceloop.entity.input",
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def shared_app() -> Any:
    app = App()
    yield app
    app.handle.shutdown(1000)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attributes=st.dictionaries(hostile_keys, hostile_values, max_size=8), name=hostile_values)
def test_hostile_span_content_neither_raises_nor_stops_the_worker(
    shared_app: App, attributes: dict[str, Any], name: Any
) -> None:
    tracer = shared_app.tracer_provider.get_tracer("hostile")
    span: Any = tracer.start_span("work", attributes={"gen_ai.operation.name": "chat"})
    span._attributes._dict.update(attributes)  # past the SDK's own cleaning
    span._name = name
    span.end()
    span.end()  # ended twice
    assert shared_app.handle.force_flush(10_000, complete=True)


@settings(max_examples=100, deadline=None)
@given(
    fields=st.dictionaries(
        st.sampled_from(
            [
                "_attributes",
                "_context",
                "_parent",
                "_name",
                "_kind",
                "_start_time",
                "_end_time",
                "_status",
                "_events",
                "_links",
                "_resource",
                "_instrumentation_scope",
            ]
        ),
        hostile_values,
    )
)
def test_objects_that_are_no_spans_are_counted_not_raised(shared_app: App, fields: dict[str, Any]) -> None:
    (processor,) = [
        p
        for p in shared_app.tracer_provider._active_span_processor._span_processors
        if isinstance(p, EvaluationSpanProcessor)
    ]
    span: Any = SimpleNamespace(**{"_attributes": {"gen_ai.operation.name": "chat"}, **fields})
    processor.on_start(span, None)
    processor.on_end(span)
    assert shared_app.handle.force_flush(10_000)


@settings(max_examples=100, deadline=None)
@given(body=hostile_values, attributes=st.dictionaries(hostile_keys, hostile_values, max_size=4))
def test_hostile_log_records_neither_raise_nor_stop_the_worker(
    shared_app: App, body: Any, attributes: dict[str, Any]
) -> None:
    processor = EvaluationLogProcessor(shared_app.handle._runtime)
    record: Any = SimpleNamespace(
        log_record=LogRecord(event_name="gen_ai.choice", body=body, attributes=attributes, trace_id=5, span_id=6),
        resource=None,
        instrumentation_scope=None,
    )
    processor.on_emit(record)
    processor.on_emit(SimpleNamespace(log_record=None))  # type: ignore[arg-type]
    assert shared_app.handle.force_flush(10_000, complete=True)


def test_after_all_that_a_normal_conversation_is_still_scored(shared_app: App) -> None:
    run_conversation(shared_app.tracer_provider, "the-normal-one")
    assert shared_app.complete()
    assert "the-normal-one" in {result.session.session_id for result in shared_app.results}


def test_a_full_buffer_drops_counts_and_does_not_block(make_app: Callable[..., App]) -> None:
    app = make_app(buffer_spans=10, poll_interval=10.0)
    for number in range(30):
        run_turn(app.tracer_provider, f"c-{number}", "Hello", "Hi")
    spans = app.handle.stats()["spans"]
    assert spans["accepted"] == 10
    assert spans["dropped"] == 50
    assert app.metric_total("otel_evals.spans") == 60


def test_the_buffer_is_bounded_by_bytes_as_the_sizes_of_a_sample_tell(make_app: Callable[..., App]) -> None:
    app = make_app(buffer_bytes=1_000_000, poll_interval=10.0)
    for number in range(300):
        run_turn(app.tracer_provider, f"c-{number}", "x" * 20_000, "Hi")
    buffer = app.handle._runtime.buffer
    held = sum(len(str(item)) for item in buffer.items)
    assert held < 3_000_000  # of the more than 6 MB offered
    assert buffer.counts()["dropped", "buffer_bytes"] > 100


def test_spans_without_ai_content_are_ignored(app: App) -> None:
    with app.tracer_provider.get_tracer("web").start_as_current_span("GET /", attributes={"url.path": "/"}):
        pass
    assert app.handle.stats()["spans"]["ignored"] == 1
    assert app.handle.stats()["spans"]["accepted"] == 0


def test_attributes_rewritten_after_the_end_do_not_change_what_was_taken(
    make_app: Callable[..., App],
) -> None:
    app = make_app(poll_interval=10.0)
    taken: list[Any] = []
    app.tracer_provider.add_span_processor(_Scrubber(taken))
    run_turn(app.tracer_provider, "c-1", "My question", "My answer")
    app.complete()
    assert [turn.user for result in app.results for turn in result.session.turns] == ["My question"]
    assert taken


class _Scrubber(EvaluationSpanProcessor):
    """A processor that rewrites the attributes of spans that have ended, as redaction plugins do."""

    def __init__(self, taken: list[Any]) -> None:
        self._taken = taken

    def on_start(self, span: Any, parent_context: Any = None) -> None: ...

    def on_end(self, span: Any) -> None:
        self._taken.append(span)
        for key in list(span._attributes._dict):
            span._attributes._dict[key] = "scrubbed"

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


def test_spans_inside_our_own_work_are_refused(app: App) -> None:
    tracer = app.tracer_provider.get_tracer("instrumented client")
    with internal_work():
        tracer.start_span("chat judge", attributes={"gen_ai.operation.name": "chat"}).end()
    assert app.handle.stats()["spans"]["accepted"] == 0


def test_spans_marked_internal_are_refused_whoever_made_them(app: App) -> None:
    tracer = app.tracer_provider.get_tracer("elsewhere")
    attributes = {"gen_ai.operation.name": "chat", "otel_evals.internal": True}
    tracer.start_span("chat judge", attributes=attributes).end()
    assert app.handle.stats()["spans"]["accepted"] == 0


def test_rootless_spans_made_on_the_judge_thread_are_refused(make_app: Callable[..., App]) -> None:
    provider: list[TracerProvider] = []

    class Instrumented:
        """A judge client whose instrumentation ignores every suppression flag."""

        def get_model_name(self) -> str:
            return "instrumented"

        async def chat_complete(self, messages: Any, temperature: float) -> tuple[str, None]:
            tracer = provider[0].get_tracer("stubborn")
            tracer.start_span("chat judge", attributes={"gen_ai.operation.name": "chat"}).end()
            return "{}", None

    app = make_app(judge_model=Instrumented())
    provider.append(app.tracer_provider)
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    assert app.complete()  # a judge span that had been taken would be a session by now
    assert app.handle.stats()["sessions_completed"] == 1
    assert app.handle.stats()["spans"]["accepted"] == 4


def test_an_open_local_root_keeps_its_session_from_being_judged(make_app: Callable[..., App]) -> None:
    app = make_app(idle_timeout=0.05)
    tracer = app.tracer_provider.get_tracer("web")
    with tracer.start_as_current_span("POST /chat"):
        run_turn(app.tracer_provider, "c-1", "Hello", "Hi, how can I help?")
        time.sleep(0.3)
        app.handle.force_flush()
        assert app.handle.stats()["sessions_completed"] == 0
    _wait_for(lambda: app.handle.stats()["sessions_completed"] == 1)


def test_a_local_root_below_a_remote_parent_counts_as_open_too(make_app: Callable[..., App]) -> None:
    app = make_app(idle_timeout=0.05)
    caller = NonRecordingSpan(SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1)))
    with app.tracer_provider.get_tracer("web").start_as_current_span("POST", context=set_span_in_context(caller)):
        run_turn(app.tracer_provider, "c-1", "Hello", "Hi, how can I help?")
        time.sleep(0.3)
        app.handle.force_flush()
        assert app.handle.stats()["sessions_completed"] == 0
    _wait_for(lambda: app.handle.stats()["sessions_completed"] == 1)


def test_hooks_go_on_while_the_worker_is_busy_with_a_flush(app: App) -> None:
    """No hook waits for a lock that the worker holds."""
    runtime = app.handle._runtime
    done = threading.Event()

    def application() -> None:
        run_conversation(app.tracer_provider, "c-1")
        done.set()

    with runtime._step_lock:
        threading.Thread(target=application, daemon=True).start()
        assert done.wait(5)


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EVALS_RATE", "0.25")
    provider = TracerProvider()
    processor = EvaluationSpanProcessor(tracer_provider=provider)
    assert processor.runtime.settings == Settings(rate=0.25)
    processor.shutdown()


def _wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


@pytest.mark.parametrize(
    "settings",
    [
        {"session_keys": ("shop.chat",)},
        {"goal_attributes": ("shop.chat",)},
        {"marker_attributes": ("shop.chat",)},
    ],
)
def test_spans_with_a_configured_attribute_are_kept(settings: dict[str, Any]) -> None:
    app = App(**settings)
    buffer = app.handle._runtime.buffer
    for name in ("shop.chat", "shop.basket"):
        app.tracer_provider.get_tracer("shop").start_span("visit", attributes={name: "c-1"}).end()
    assert buffer.ignored == 1
    app.handle.shutdown(1000)
