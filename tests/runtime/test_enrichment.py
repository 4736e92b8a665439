"""Roots wait for their session's scores and leave with them, in time and exactly once."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from otel_evals import EvaluationHandle, Settings, attach
from otel_evals.enrichment import EnrichingExporter
from tests.agents import run_conversation, run_turn

LONG = 3600.0
SHORT = 0.05
PATIENCE = 10.0


class Store(SpanExporter):
    """What a trace store has received."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []
        self.closed = False
        self.flushed = False
        self.fails = False
        self.suppressed: list[bool] = []
        self._arrived = threading.Condition()
        self._inside = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        assert self._inside.acquire(blocking=False), "two exports at once"
        try:
            with self._arrived:
                self.suppressed.append(bool(get_value(_SUPPRESS_INSTRUMENTATION_KEY)))
                self.spans += spans
                self._arrived.notify_all()
            if self.fails:
                raise ConnectionError("the store is down")
            return SpanExportResult.SUCCESS
        finally:
            self._inside.release()

    def shutdown(self) -> None:
        self.closed = True

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        self.flushed = True
        return True

    def wait_for_roots(self, number: int) -> list[ReadableSpan]:
        """The roots, in order of arrival, as soon as there are so many."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.roots()) >= number, PATIENCE), self.names()
            return self.roots()

    def roots(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith("invoke_agent")]

    def names(self) -> Counter[str]:
        return Counter(span.name for span in self.spans)


class App:
    """An application whose exporter is wrapped, with otel-evals attached."""

    def __init__(self, rate: float = 1.0, limits: SpanLimits | None = None, **options: Any) -> None:
        self.store = Store()
        self.exporter = EnrichingExporter(self.store, **{"hold_seconds": LONG, **options})
        self.provider = TracerProvider(shutdown_on_exit=False, span_limits=limits)
        self.provider.add_span_processor(BatchSpanProcessor(self.exporter, schedule_delay_millis=3_600_000))
        self.handle: EvaluationHandle = attach(
            self.provider,
            settings=Settings(rate=rate, idle_timeout=LONG, poll_interval=0.01),
            on_result=self.exporter.on_result,
            on_decision=self.exporter.on_decision,
        )

    def batch(self) -> None:
        """Let the batch processor export what has ended."""
        self.provider.force_flush()

    def judge(self) -> None:
        assert self.handle.force_flush(20_000, complete=True)


@pytest.fixture
def apps() -> Iterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        app.handle.shutdown(2000)
        app.provider.shutdown()


@pytest.fixture
def app(apps: list[App]) -> App:
    apps.append(App())
    return apps[0]


def scores(span: ReadableSpan) -> dict[str, Any]:
    return {
        key: value
        for key, value in (span.attributes or {}).items()
        if key.startswith("otel_evals.") and key.endswith((".score", ".label", ".passed"))
    }


def test_a_root_is_held_back_and_its_children_are_not(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()

    assert app.store.names() == {"chat model": 1}


def test_a_judged_session_releases_its_root_with_the_scores_without_another_batch(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()
    app.judge()
    [root] = app.store.wait_for_roots(1)

    assert scores(root) == {
        "otel_evals.failure_rate.score": 1.0,
        "otel_evals.failure_rate.label": "not_applicable",
        "otel_evals.failure_rate.passed": True,
        "otel_evals.failure_communication.score": 0.5,
        "otel_evals.failure_communication.label": "Acceptable",
        "otel_evals.failure_communication.passed": True,
        "otel_evals.goal_achievement.score": 1.0,
        "otel_evals.goal_achievement.label": "fully",
        "otel_evals.goal_achievement.passed": True,
    }
    assert root.attributes is not None
    assert root.attributes["otel_evals.session.id"] == "s-1"
    assert root.attributes["gen_ai.conversation.id"] == "s-1", "the span's own attributes stay"


def test_the_scores_are_on_the_root_of_the_last_turn_only(app: App) -> None:
    first, last = run_conversation(app.provider, "s-1")
    app.batch()
    app.judge()

    found = {f"{root.context.trace_id:032x}": bool(scores(root)) for root in app.store.wait_for_roots(2)}
    assert found == {first: False, last: True}


def test_the_ended_span_itself_is_not_changed(app: App) -> None:
    kept: list[ReadableSpan] = []
    app.provider.add_span_processor(BatchSpanProcessor(held := Store()))
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()
    kept += held.roots()
    app.judge()
    app.store.wait_for_roots(1)

    assert not scores(kept[0])


def test_a_copy_keeps_what_a_span_has_besides_attributes(apps: list[App]) -> None:
    apps.append(app := App(limits=SpanLimits(max_span_attributes=3)))
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.", attributes={"a": 1, "b": 2, "c": 3})
    app.batch()
    app.judge()
    [root] = app.store.wait_for_roots(1)
    [child] = [span for span in app.store.spans if span.name == "chat model"]

    assert root.dropped_attributes > 0
    assert root.context.span_id == child.parent.span_id  # type: ignore[union-attr]
    assert (root.resource, root.instrumentation_scope) == (child.resource, child.instrumentation_scope)
    assert len(root.attributes or {}) > 3


def test_a_root_that_comes_after_its_scores_leaves_with_them_at_once(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.judge()
    app.batch()

    [root] = app.store.roots()
    assert scores(root)


def test_a_session_that_is_not_judged_releases_its_roots(apps: list[App]) -> None:
    apps.append(app := App(rate=0.0))
    run_conversation(app.provider, "s-1")
    app.batch()
    app.judge()

    assert [scores(root) for root in app.store.wait_for_roots(2)] == [{}, {}]


def test_a_root_leaves_without_scores_at_its_deadline(apps: list[App]) -> None:
    apps.append(app := App(hold_seconds=SHORT))
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()

    [root] = app.store.wait_for_roots(1)
    assert not scores(root)


def test_deadlines_are_kept_again_after_nothing_was_held(apps: list[App]) -> None:
    apps.append(app := App(hold_seconds=SHORT))
    for number in range(1, 4):
        run_turn(app.provider, f"s-{number}", "Find me a flight.", "Here is one.")
        app.batch()
        app.store.wait_for_roots(number)


def test_beyond_the_bound_the_oldest_root_leaves(apps: list[App]) -> None:
    apps.append(app := App(max_spans=2))
    traces = [run_turn(app.provider, f"s-{n}", "Find me a flight.", "Here is one.") for n in range(3)]
    app.batch()

    assert [f"{root.context.trace_id:032x}" for root in app.store.roots()] == traces[:1]


def test_flush_releases_all_and_flushes_the_wrapped_exporter(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()

    assert app.exporter.force_flush()
    assert (len(app.store.roots()), app.store.flushed) == (1, True)


def test_shutdown_releases_all_and_shuts_the_wrapped_exporter_down(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.provider.shutdown()

    assert (len(app.store.roots()), app.store.closed) == (1, True)


def test_after_its_shutdown_it_holds_nothing_back(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.exporter.shutdown()
    app.batch()

    assert len(app.store.roots()) == 1


def test_traces_without_an_agent_pass_at_once(app: App) -> None:
    with app.provider.get_tracer("web").start_as_current_span("GET /health"):
        pass
    app.batch()

    assert app.store.names() == {"GET /health": 1}


def test_the_server_span_above_an_agent_is_the_root_that_waits(app: App) -> None:
    with app.provider.get_tracer("web").start_as_current_span("POST /chat"):
        run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()
    assert app.store.names() == {"chat model": 1, "invoke_agent travel-agent": 1}

    app.judge()
    app.exporter.force_flush()
    [root] = [span for span in app.store.spans if span.name == "POST /chat"]
    assert scores(root)


def test_our_own_evaluation_spans_pass_at_once(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.judge()
    app.batch()

    assert app.store.names()["evaluate session"] == 1


def test_a_store_that_is_down_neither_stops_later_releases_nor_the_judge(app: App) -> None:
    app.store.fails = True
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()
    app.judge()
    app.store.wait_for_roots(1)
    app.store.fails = False
    run_turn(app.provider, "s-2", "Find me a flight.", "Here is one.")
    app.batch()
    app.judge()

    assert scores(app.store.wait_for_roots(2)[1])


def test_instrumentation_is_suppressed_while_it_exports_on_its_own(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()
    app.judge()
    app.store.wait_for_roots(1)

    assert app.store.suppressed
    assert all(app.store.suppressed)


def test_every_span_is_exported_exactly_once_while_batches_results_and_deadlines_race(apps: list[App]) -> None:
    apps.append(app := App(hold_seconds=SHORT, max_spans=20))
    for number in range(60):
        run_turn(app.provider, f"s-{number}", "Find me a flight.", "Here is one.")
        if number % 7 == 0:
            app.batch()
        if number % 11 == 0:
            app.judge()
    app.handle.shutdown()
    app.provider.shutdown()

    assert app.store.names() == {"invoke_agent travel-agent": 60, "chat model": 60, "evaluate session": 60}
    assert len({span.context.span_id for span in app.store.spans}) == 180


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_leaves_the_held_roots_to_its_parent(app: App) -> None:
    run_turn(app.provider, "s-1", "Find me a flight.", "Here is one.")
    app.batch()
    child = os.fork()
    if child == 0:
        app.exporter.force_flush()
        os._exit(len(app.store.roots()))

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    app.exporter.force_flush()
    assert len(app.store.roots()) == 1


@pytest.mark.parametrize("options", [{"hold_seconds": 0}, {"max_spans": 0}])
def test_bounds_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        EnrichingExporter(Store(), **options)
