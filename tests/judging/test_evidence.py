"""Quotes: what still counts as the same words, and what does not."""

from __future__ import annotations

import pytest

from otel_evals.evaluation import Evaluation, Evidence
from otel_evals.judging.evidence import occurs, verify
from tests.evaluators.conversations import failed_call, session, turn, worked_call

TEXT = "I'm sorry — the flight search\n  timed out, so I could **not** get “any” results. Ｔｒｙ again."


@pytest.mark.parametrize(
    "quote",
    [
        "the flight search timed out",
        "THE FLIGHT SEARCH   TIMED OUT",
        "I’m sorry - the flight search",
        "could not get",
        "'any' results"[1:-1].replace("'", '"'),
        "Try again",
        '"timed out"',
        "timed\u200bout".replace("\u200b", " "),
        "the flight\u200b search",
        "I'm sorry … could not get",
        "I'm sorry [...] results",
    ],
)
def test_white_space_case_quotation_marks_and_compatibility_forms_are_folded(quote):
    assert occurs(quote, TEXT)


@pytest.mark.parametrize(
    "quote",
    ["the hotel search timed out", "", " ", "...", "results ... the flight search", "“”", "a … b", "timedout"],
)
def test_other_words_another_order_and_nothing_at_all_do_not_occur(quote):
    assert not occurs(quote, TEXT)


SESSION = session(
    turn("Find a flight", "The search timed out.", failed_call(message="upstream 504"), interim=("Let me look.",)),
    turn("And hotels?", "Found one.", worked_call(result={"hotel": "Harbour House"})),
)


@pytest.mark.parametrize(
    ("turn_index", "role", "quote", "verified"),
    [
        (0, "agent", "timed out", True),
        (0, "agent", "let me look", True),
        (0, "user", "find a flight", True),
        (0, "tool", "upstream 504", True),
        (1, "tool", "Harbour House", True),
        (1, "agent", "timed out", False),
        (0, "user", "timed out", False),
        (7, "agent", "timed out", False),
        (-1, "agent", "Found one", False),
    ],
)
def test_a_quote_has_to_occur_in_the_turn_and_role_it_names(turn_index, role, quote, verified):
    evidence = (Evidence(turn=turn_index, role=role, quote=quote),)
    result = verify(Evaluation(evaluator="x", evaluator_version="1", outcome="scored", evidence=evidence), SESSION)
    assert (result.evidence[0].verified, result.evidence_verified) == (verified, verified)


def test_one_quote_that_does_not_occur_leaves_the_whole_unverified():
    evidence = (Evidence(turn=0, role="agent", quote="timed out"), Evidence(turn=0, role="agent", quote="nonsense"))
    result = verify(Evaluation(evaluator="x", evaluator_version="1", outcome="scored", evidence=evidence), SESSION)
    assert [e.verified for e in result.evidence] == [True, False]
    assert result.evidence_verified is False


def test_a_verdict_without_quotes_is_neither_verified_nor_unverified():
    bare = Evaluation(evaluator="x", evaluator_version="1", outcome="scored")
    assert verify(bare, SESSION).evidence_verified is None


@pytest.mark.parametrize("result", ['{"hotel": "Harbour House", "rooms": 3}', {"hotel": "Harbour House", "rooms": 3}])
@pytest.mark.parametrize("quote", ['"hotel": "Harbour House", "rooms": 3', '"hotel":"Harbour House","rooms":3'])
def test_tool_data_may_be_quoted_with_or_without_spaces(result, quote):
    told = session(turn("q", "a", worked_call(result=result)))
    evidence = (Evidence(turn=0, role="tool", quote=quote),)
    found = verify(Evaluation(evaluator="x", evaluator_version="1", outcome="scored", evidence=evidence), told)
    assert found.evidence_verified is True
