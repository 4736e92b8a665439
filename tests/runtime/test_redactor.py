"""A redactor of one's own, given where one attaches: nothing passes it by, and where it fails nothing leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from otel_evals import Redactor, SettingsError, attach
from otel_evals.judging.models.openai_compatible import OpenAICompatibleModel
from tests.agents import run_conversation
from tests.judging.scripted import ScriptedModel, reply
from tests.runtime.conftest import App
from tests.scripted_judge import ScriptedJudge


def shout(text: str) -> str:
    return text.replace("Oslo", "<CITY>")


def fail(text: str) -> str:
    raise RuntimeError(f"cannot redact {text}")


def prompts(judge: ScriptedJudge) -> str:
    return json.dumps([request.body["messages"] for request in judge.requests])


@pytest.fixture
def judged(make_app: Callable[..., App], scripted_judge: ScriptedJudge) -> Callable[..., App]:
    def run(**settings: Any) -> App:
        app = make_app(judge_model=OpenAICompatibleModel("judge", scripted_judge.base_url, "key"), **settings)
        run_conversation(app.tracer_provider, "c-1")
        assert app.complete()
        return app

    return run


def test_without_it_the_judge_sees_the_word(judged: Callable[..., App], scripted_judge: ScriptedJudge) -> None:
    judged()
    assert "Oslo" in prompts(scripted_judge)


def test_a_callable_changes_what_the_judge_sees(judged: Callable[..., App], scripted_judge: ScriptedJudge) -> None:
    judged(redactor=shout)
    assert "<CITY>" in prompts(scripted_judge)
    assert "Oslo" not in prompts(scripted_judge)


def test_a_redactor_takes_the_place_of_the_patterns_of_the_settings(
    judged: Callable[..., App], scripted_judge: ScriptedJudge
) -> None:
    judged(redactor=Redactor({"city": "Oslo"}))
    assert "<CITY_1>" in prompts(scripted_judge)


def test_where_it_fails_nothing_leaves_and_the_session_is_accounted_for(
    judged: Callable[..., App], scripted_judge: ScriptedJudge, caplog: pytest.LogCaptureFixture
) -> None:
    app = judged(redactor=fail)
    assert scripted_judge.requests == []
    assert {e.error_type for e in app.results[0].evaluations} == {"redaction_failed"}
    assert app.handle.stats()["decisions"] == {"unscorable": 1}
    assert "Oslo" not in caplog.text


def test_what_is_no_redactor_is_refused_at_the_start(make_app: Callable[..., App]) -> None:
    with pytest.raises(SettingsError, match="redactor=str"):
        make_app(redactor="Oslo")


def test_a_second_one_on_the_same_provider_is_named_in_the_log(app: App, caplog: pytest.LogCaptureFixture) -> None:
    attach(app.tracer_provider, app.logger_provider, app.meter_provider, redactor=shout)
    assert "the first redactor" in caplog.text


WORDS = "only the judge says zanzibar"


@pytest.mark.parametrize("explanations", [True, False])
def test_without_explanations_no_word_of_a_judge_or_a_session_is_emitted(
    make_app: Callable[..., App], explanations: bool
) -> None:
    answer = {
        "failure_rate": {
            "turns": [{"turn": 0, "quote": WORDS, "label": "stall"}],
            "reasoning": WORDS,
            "label": "stall",
            "confidence": 1,
        },
        "goal_achievement": {
            "goal": WORDS,
            "positive_signals": [{"turn": 0, "quote": WORDS}],
            "negative_signals": [],
            "unmet_requests": [WORDS],
            "reasoning": WORDS,
            "label": "partial",
            "confidence": 1,
        },
    }
    app = make_app(
        judge_model=ScriptedModel(reply(answer)),
        evaluators=("failure_rate", "goal_achievement"),
        explanations=explanations,
    )
    run_conversation(app.tracer_provider, "c-1")
    assert app.complete()
    assert any(WORDS in str(e.details) for e in app.results[0].evaluations), "details stay in the process"
    emitted = [span.to_json() for span in app.evaluation_spans()]
    emitted += [log.to_json() for log in app.logs.get_finished_logs()]
    emitted.append(app._reader.get_metrics_data().to_json())
    assert len(emitted) >= 4
    assert ("zanzibar" in "".join(emitted)) == explanations
