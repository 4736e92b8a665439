"""Attaching: once, to the right providers, without side effects, and off again without leaks."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import psutil
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import otel_evals
from otel_evals import EvaluationSpanProcessor, Settings, SettingsError, attach
from tests.agents import run_conversation
from tests.runtime.conftest import App


def test_a_completed_conversation_comes_back_scored(app: App) -> None:
    traces = run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    (result,) = app.results
    assert result.session.session_id == "c-1"
    assert [turn.trace_id for turn in result.session.turns] == traces
    assert {e.evaluator for e in result.evaluations} == {
        "failure_rate", "goal_achievement", "failure_communication",
    }  # fmt: skip
    (span,) = app.evaluation_spans()
    assert f"{span.context.trace_id:032x}" == traces[-1]


def test_attaching_twice_judges_once(app: App) -> None:
    again = attach(app.tracer_provider, app.logger_provider, app.meter_provider, app.settings)
    app.tracer_provider.add_span_processor(EvaluationSpanProcessor(app.settings, tracer_provider=app.tracer_provider))
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    assert len(app.results) == 1
    assert len(app.evaluation_spans()) == 1
    assert again.stats() == app.handle.stats()


def test_other_settings_on_the_same_provider_are_named_in_the_log(app: App, caplog: pytest.LogCaptureFixture) -> None:
    EvaluationSpanProcessor(Settings(rate=0.5), tracer_provider=app.tracer_provider)
    assert "first settings stay in force" in caplog.text


def test_two_providers_are_two_attachments(make_app: Callable[..., App]) -> None:
    one, two = make_app(), make_app()
    run_conversation(one.tracer_provider, "c-1")
    assert one.complete()
    assert two.complete()
    assert (len(one.results), len(two.results)) == (1, 0)


def test_attaching_anew_after_shutdown_works(app: App) -> None:
    app.handle.shutdown()
    handle = attach(app.tracer_provider, app.logger_provider, app.meter_provider, app.settings)
    run_conversation(app.tracer_provider, "c-2")
    assert handle.force_flush(complete=True)
    assert handle.stats()["decisions"] == {"judged": 1}
    handle.shutdown()


def test_without_an_sdk_provider_the_error_says_what_to_do() -> None:
    with pytest.raises(SettingsError, match="set_tracer_provider"):
        attach(trace.ProxyTracerProvider())


@pytest.mark.parametrize("setting", [{"evaluators": ("faliure_rate",)}, {"model": "no-such-provider:"}])
def test_an_unknown_evaluator_or_model_is_refused_by_name(setting: dict[str, object]) -> None:
    (value,) = setting.values()
    named = value[0] if isinstance(value, tuple) else str(value)
    with pytest.raises(SettingsError, match=named):
        attach(TracerProvider(), settings=Settings(**setting))  # type: ignore[arg-type]


def test_nothing_is_accepted_after_shutdown(app: App) -> None:
    app.handle.shutdown()
    before = app.handle.stats()
    run_conversation(app.tracer_provider, "c-1")
    assert app.handle.stats() == before
    assert app.handle.force_flush() is False


def test_shutdown_scores_the_open_sessions_first(app: App) -> None:
    run_conversation(app.tracer_provider, "c-1")
    app.handle.shutdown()
    assert [result.session.session_id for result in app.results] == ["c-1"]


def test_shutdown_leaves_no_thread_and_no_file_descriptor_behind() -> None:
    def cycle() -> None:
        app = App()
        run_conversation(app.tracer_provider, "c-1")
        assert app.complete()
        app.handle.shutdown()
        app.tracer_provider.shutdown()
        app.meter_provider.shutdown()

    cycle()  # whatever is made once per process exists now
    process = psutil.Process()
    threads, descriptors = set(threading.enumerate()), process.num_fds()
    for _ in range(5):
        cycle()
    assert {t.name for t in set(threading.enumerate()) - threads} == set()
    assert process.num_fds() <= descriptors


def test_attaching_leaves_loggers_and_global_providers_alone() -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers), trace.get_tracer_provider())
    app = App()
    run_conversation(app.tracer_provider, "c-1")
    app.complete()
    app.handle.shutdown()
    assert (root.level, list(root.handlers), trace.get_tracer_provider()) == before


def test_a_disabled_attachment_accepts_nothing_and_starts_no_thread(make_app: Callable[..., App]) -> None:
    threads = threading.active_count()
    app = make_app(enabled=False)
    run_conversation(app.tracer_provider, "c-1")
    assert threading.active_count() == threads
    assert app.handle.stats()["spans"]["accepted"] == 0


def test_rates_and_pause_apply_to_the_sessions_that_complete_afterwards(app: App) -> None:
    app.handle.set_rate(0.0)
    run_conversation(app.tracer_provider, "c-1")
    app.complete()
    app.handle.set_rate(1.0)
    app.handle.pause()
    run_conversation(app.tracer_provider, "c-2")
    app.complete()
    app.handle.resume()
    run_conversation(app.tracer_provider, "c-3")
    app.complete()
    assert app.handle.stats()["decisions"] == {"sampled_out": 1, "paused": 1, "judged": 1}


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), float("inf"), "half", None])
def test_a_refused_rate_keeps_the_old_one(app: App, rate: object) -> None:
    before = app.handle.stats()["rates"]
    with pytest.raises(ValueError, match=r"0 .*1"):
        app.handle.set_rate(rate)  # type: ignore[arg-type]
    assert app.handle.stats()["rates"] == before


def test_end_session_completes_without_waiting_for_the_idle_time(make_app: Callable[..., App]) -> None:
    app = make_app(idle_timeout=3600.0, grace=0.0)
    run_conversation(app.tracer_provider, "c-1")
    app.handle.end_session("c-1")
    assert app.handle.force_flush(10_000)
    assert [r.session.completion for r in app.results] == ["ended"]


def test_importing_the_package_loads_no_heavy_module() -> None:
    probe = (
        "import sys, otel_evals; print([m for m in ('litellm', 'aiohttp', 'typer', 'rich', 'pydantic')"
        " if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", probe], text=True).strip() == "[]"


def test_attaching_loads_no_client_library_and_prints_nothing() -> None:
    probe = (
        "import sys, otel_evals; from opentelemetry.sdk.trace import TracerProvider\n"
        "otel_evals.attach(TracerProvider(), settings=otel_evals.Settings(model='anthropic:claude-sonnet-4'))\n"
        "assert not [m for m in ('litellm', 'aiohttp', 'typer', 'rich') if m in sys.modules]"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_every_public_name_can_be_imported() -> None:
    for name in otel_evals.__all__:
        assert getattr(otel_evals, name) is not None


def test_sessions_still_open_at_interpreter_exit_are_scored_by_a_judge_without_a_model() -> None:
    program = """
import otel_evals
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from tests.agents import run_conversation
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
otel_evals.attach(provider, settings=otel_evals.Settings(rate=1.0))
run_conversation(provider, "c-1")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=os.getcwd(),
        timeout=60,
    )
    assert done.stdout.count('"name": "evaluate session"') == 1
    assert "Traceback" not in done.stderr
