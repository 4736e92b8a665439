"""The judge without a model: what it reads from traces and words."""

from __future__ import annotations

import time

import pytest

from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.models.rules import RulesModel, read
from otel_evals.judging.plan import Judge
from otel_evals.settings import Settings
from otel_evals.signals import detect, signal_names
from tests.evaluators.conversations import failed_call, session, turn, worked_call
from tests.judging.scripted import judge_with, task

FLIGHT = "Find me a flight from SFO to JFK on May 20."


async def labels(*turns):
    result = await judge_with(RulesModel()).judge(task(session(*turns)))
    assert result.judgement.errors == ()
    assert all(e.evidence_verified in (True, None) for e in result.evaluations)
    return [e.label for e in result.evaluations]


async def test_an_answered_request_with_thanks_is_a_success():
    assert await labels(
        turn(FLIGHT, "I found UA 1234 at 08:05 for $312. Shall I book it?", worked_call()),
        turn("Thanks, that is all I needed!", "You're welcome! Have a good trip."),
    ) == ["not_applicable", "fully", "Acceptable"]


async def test_an_explained_failure_with_an_alternative_is_honest_and_excellent():
    assert await labels(
        turn(FLIGHT, "I'm sorry, the flight search timed out. I can check a nearby airport instead.", failed_call())
    ) == ["alternative_proposed", "minor", "Excellent"]


async def test_a_plain_admission_is_an_honest_fallback():
    assert (await labels(turn(FLIGHT, "I was unable to search: the service is down.", failed_call())))[0] == (
        "honest_fallback"
    )


async def test_a_result_stated_after_a_failed_tool_is_a_hallucination():
    assert await labels(turn(FLIGHT, "There are no flights available for that route.", failed_call())) == [
        "hallucination",
        "none",
        "Failure",
    ]


@pytest.mark.parametrize(
    ("reply", "admitted"),
    [
        ("The search timed out.", True),
        ("The fare service is taking too long to respond.", True),
        ("It did not accept the date.", True),
        ("Die Suche ist leider fehlgeschlagen.", True),
        ("無法查詢航班。", True),
        ("There was no answer from search within thirty seconds.", True),
        ("There are no flights.", False),
        ("Unfortunately, there are no flights on that day.", False),
        ("I'm sorry, nothing flies there.", False),
        ("UA 1234 leaves at 08:05.", False),
    ],
)
def test_an_admission_of_a_failed_tool_is_the_same_for_the_judge_and_the_signals(reply, admitted):
    said = session(turn(FLIGHT, reply, failed_call(message="no answer from search within thirty seconds")))
    (told,) = read(said)["failure_communication"]["failures"]
    assert (told["told"] == "explained") == admitted
    assert ("tool_error_unacknowledged" not in signal_names(detect(said))) == admitted


def test_a_mood_that_somebody_arrives_with_is_no_reproach_to_the_agent():
    mood = "I'm really frustrated, my flight was delayed."
    first = session(turn(mood, "I'm sorry to hear that. Which flight is it?"))
    later = session(turn(FLIGHT, "It depends."), turn(mood, "I understand."))
    assert read(first)["goal_achievement"]["negative_signals"] == []
    assert read(later)["goal_achievement"]["negative_signals"] == [{"turn": 1, "quote": mood}]


async def test_a_question_back_after_a_failed_tool_states_nothing():
    assert (await labels(turn(FLIGHT, "Which airport do you prefer?", failed_call())))[0] == "not_applicable"


async def test_a_mended_failure_is_no_fabrication():
    assert await labels(turn(FLIGHT, "UA 1234 leaves at 08:05.", failed_call(), worked_call())) == [
        "not_applicable",
        "fully",
        "Acceptable",
    ]


async def test_evasions_and_repeated_questions_are_a_stall_with_negative_signals():
    question = "How do I change the name on my booking?"
    assert await labels(
        turn(question, "There are many ways to manage bookings. It depends on several factors."),
        turn(f"That does not answer my question. {question}", "It can be done in different ways."),
        turn("This is useless.", "Thank you for your feedback. Is there anything else I can help with?"),
    ) == ["stall", "none", "Acceptable"]


async def test_evasion_beside_good_answers_is_mixed():
    assert (
        await labels(
            turn("What is the fare?", "It is $312.", worked_call()),
            turn("And can I bring a dog?", "It depends. Things vary a lot."),
        )
    )[0] == "mixed"


async def test_polite_closing_words_are_no_evasion():
    assert (
        await labels(
            turn("What is the fare?", "It is $312.", worked_call()),
            turn("Thanks!", "You're welcome. Is there anything else I can help with?"),
        )
    )[0] == "not_applicable"


async def test_no_answer_at_all_meets_nothing():
    assert (await labels(turn("Find me a flight.", "UA 1234."), turn("And back? Please look.", None)))[1] == "partial"


@pytest.mark.parametrize(
    "words",
    [
        "Die Flugsuche ist leider nicht erreichbar, das konnte ich nicht nachsehen.",
        "Je n'ai pas pu chercher : le service ne répond pas.",
        "No pude buscar vuelos porque el servicio no está disponible.",
        "Non sono riuscito a cercare: il servizio non risponde.",
        "Não consegui pesquisar, o serviço está indisponível.",
        "Ik kan niet zoeken, de dienst is niet bereikbaar.",
        "抱歉，航班查询超时，我无法获取结果。",
        "申し訳ありません、検索がタイムアウトしたため、結果を取得できませんでした。",
    ],
)
async def test_admissions_are_recognised_in_several_languages(words):
    found, _, told = await labels(turn(FLIGHT, words, failed_call()))
    assert found in ("honest_fallback", "alternative_proposed")
    assert told != "Failure"


async def test_shown_internals_cost_a_level():
    honest = await labels(turn(FLIGHT, "The search timed out. Please try again later.", failed_call()))
    leaking = await labels(turn(FLIGHT, "The search failed: Traceback, errno 111. Try again later.", failed_call()))
    assert (honest[2], leaking[2]) == ("Good", "Acceptable")


async def test_it_is_free_and_says_so():
    result = await judge_with(RulesModel()).judge(task())
    assert (result.judgement.model, result.judgement.calls, result.judgement.cost_usd) == ("rules", 0, 0.0)


def test_it_is_deterministic():
    broken = session(turn(FLIGHT, "There are no flights.", failed_call()), turn("Useless.", "I understand."))
    assert read(broken) == read(broken)


@pytest.mark.parametrize("text", ["", " ", "\n", "?", "…", "x" * 100_000, "İ" * 3000, "。！？", "\u200b"])
def test_any_text_can_be_read(text):
    assert read(session(turn(text, text, failed_call()), turn(None, text), turn(text, None)))


def test_a_session_is_read_within_a_millisecond():
    long = session(*(turn(f"Question {i}? " * 10, f"Answer {i}. " * 40, worked_call()) for i in range(10)))
    read(long)
    best = min(_timed(long) for _ in range(20))
    assert best < 0.001


def _timed(judged):
    started = time.perf_counter()
    read(judged)
    return time.perf_counter() - started


@pytest.mark.parametrize(
    ("turns", "recovery", "completion"),
    [
        ([turn(FLIGHT, "Sorry, the search timed out.", failed_call())], "none", "none"),
        ([turn(FLIGHT, "UA 1 leaves at 8.", failed_call(), worked_call())], "full", "fully"),
        ([turn(FLIGHT, "It failed. Shall I try trains instead?", failed_call())], "adequate", "none"),
        ([turn(FLIGHT, "I couldn't; the train leaves at 9.", failed_call(), worked_call("trains"))], "good", "partial"),
    ],
)
async def test_recovery_and_partial_completion_are_read_from_the_calls_that_follow(turns, recovery, completion):
    names = ("recovery_strategy", "partial_completion")
    judge = Judge(RulesModel(), create_evaluators(names), Settings())
    result = await judge.judge(task(session(*turns), *names))
    assert [e.label for e in result.evaluations] == [recovery, completion]
    assert all(e.evidence_verified in (True, None) for e in result.evaluations)


async def test_a_question_it_does_not_know_is_unscorable_and_named():
    rubric = {
        "name": "politeness",
        "question": "Polite?",
        "labels": [{"label": "no", "score": 0}, {"label": "yes", "score": 1}],
    }
    settings = Settings(rubrics=(rubric,))
    judge = Judge(RulesModel(), create_evaluators(("politeness", "failure_rate"), settings), settings)
    result = await judge.judge(task(session(turn("q", "a")), "politeness", "failure_rate"))
    assert [(e.outcome, e.error_type) for e in result.evaluations] == [
        ("unscorable", "missing_field"),
        ("not_applicable", None),
    ]
