"""A session that goes on after it was judged: a new generation, never counted twice."""

from __future__ import annotations

from collections.abc import Callable

from tests.agents import ANSWERED, THANKS, run_conversation, run_turn
from tests.runtime.conftest import App


def test_a_resumed_session_is_the_next_generation(app: App) -> None:
    run_conversation(app.tracer_provider, "c-1", [ANSWERED])
    assert app.complete()
    run_conversation(app.tracer_provider, "c-1", [THANKS])
    assert app.complete()
    assert [result.session.generation for result in app.results] == [1, 2]
    assert app.handle.stats()["decisions"] == {"judged": 2}
    generations = [span.attributes["otel_evals.session.generation"] for span in app.evaluation_spans()]
    assert generations == [1, 2]


def test_generations_of_one_session_share_their_draw(app: App) -> None:
    app.handle.set_rate(0.5)
    for number in range(20):
        run_turn(app.tracer_provider, f"c-{number}", *ANSWERED)
    assert app.complete()
    first = {result.session.session_id for result in app.results}
    app.results.clear()
    for number in range(20):
        run_turn(app.tracer_provider, f"c-{number}", *THANKS)
    assert app.complete()
    assert 0 < len(first) < 20
    assert {result.session.session_id for result in app.results} == first


def test_a_span_delivered_again_changes_nothing(make_app: Callable[..., App]) -> None:
    app = make_app(poll_interval=10.0)  # what is in the buffer stays there until the flush
    run_conversation(app.tracer_provider, "c-1")
    buffer = app.handle._runtime.buffer
    delivered = list(buffer.items)
    assert len(delivered) == 4
    buffer.items.extend(delivered)
    assert app.complete()
    buffer.items.extend(delivered)
    assert app.complete()
    assert len(app.results) == 1
    assert app.handle.stats()["sessions_completed"] == 1
    assert app.handle.stats()["late_spans"] == len(delivered)
