"""What is taken out, what is left alone, and that failure to redact means no judging."""

from __future__ import annotations

import json

import pytest

from otel_evals.evaluators.registry import create_evaluators
from otel_evals.judging.plan import Judge
from otel_evals.judging.redact import RedactionError, Redactor
from otel_evals.settings import EVALUATOR_NAMES, Settings
from tests.evaluators.conversations import failed_call, session, turn, worked_call
from tests.judging.scripted import ScriptedModel, answers, reply, task


def redacted(text: str) -> str:
    return Redactor().for_session().value(text)


# Invented, but well-formed: checksums and lengths are right. Keys are put together here so that no scanner of
# repositories takes them for real ones.
TAKEN_OUT = {
    "e-mail": ("write to mia.li+x@mail.example.co.uk now", "write to <EMAIL_1> now"),
    "international e-mail": ("an jürgen@bücher.example", "an <EMAIL_1>"),
    "card": ("card 4111 1111 1111 1111, please", "card <CARD_1>, please"),
    "card with dashes": ("5500-0055-5555-5559", "<CARD_1>"),
    "american express": ("378282246310005", "<CARD_1>"),
    "IBAN": ("to DE89 3704 0044 0532 0130 00 please", "to <IBAN_1> please"),
    "compact IBAN": ("GB82WEST12345698765432", "<IBAN_1>"),
    "IBAN before capitals": ("IBAN GB82 WEST 1234 5698 7654 32 BANK NAME", "IBAN <IBAN_1> BANK NAME"),
    "IPv4": ("from 203.0.113.7.", "from <IP_1>."),
    "IPv6": ("host 2001:db8::ff00:42:8329 is down", "host <IP_1> is down"),
    "international phone": ("call +49 (30) 901820-12", "call <PHONE_1>"),
    "american phone": ("call (415) 555-0132 today", "call <PHONE_1> today"),
    "german phone": ("Tel. 030 1234567", "Tel. <PHONE_1>"),
    "social security number": ("SSN 536-22-8471", "SSN <NATIONAL_ID_1>"),
    "national insurance number": ("NI number AB 12 34 56 C", "NI number <NATIONAL_ID_1>"),
    "codice fiscale": ("RSSMRA85T10A562S", "<NATIONAL_ID_1>"),
    "DNI": ("DNI 12345678Z", "DNI <NATIONAL_ID_1>"),
    "NIE": ("X1234567L", "<NATIONAL_ID_1>"),
    "CPF": ("CPF 529.982.247-25", "CPF <NATIONAL_ID_1>"),
    "personnummer": ("811218-9876", "<NATIONAL_ID_1>"),
    "AHV number": ("756.9217.0769.85", "<NATIONAL_ID_1>"),
    "French social security number": (f"2 69 05 49 588 157 {97 - 2690549588157 % 97:02d}", "<NATIONAL_ID_1>"),
    "Aadhaar": ("2341 2341 2346", "<NATIONAL_ID_1>"),
    "OpenAI key": ("key " + "sk-" + "proj-" + "a1B2" * 8, "key <SECRET_1>"),
    "Anthropic key": ("sk-" + "ant-api03-" + "Zz9_" * 10, "<SECRET_1>"),
    "AWS key": ("AK" + "IAIOSFODNN7EXAMPLE", "<SECRET_1>"),
    "GitHub token": ("gh" + "p_" + "a1" * 18, "<SECRET_1>"),
    "Slack token": ("xo" + "xb-123456789012-abcdefABCDEF", "<SECRET_1>"),
    "Google key": ("AI" + "za" + "SyA1234567890abcdefghijklmnopqrstuv", "<SECRET_1>"),
    "JWT": ("ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "<SECRET_1>"),
    "bearer token": ("Authorization: " + "Bearer abc123def456ghi789", "Authorization: Bearer <SECRET_1>"),
    "private key": ("-----BEGIN RSA PRIV" + "ATE KEY-----\nMIIE\n-----END RSA PRIV" + "ATE KEY-----", "<SECRET_1>"),
    "private key cut off": ("see -----BEGIN PRIV" + "ATE KEY-----\nMIIEabc", "see <SECRET_1>"),
    "password in a URL": ("postgres://app:hunter2x@db.example/x", "postgres://app:<SECRET_1>@db.example/x"),
    "password in prose": ("my password is hunter2!", "my password is <SECRET_1>"),
    "password assignment": ('{"db_password": "correct-horse"}', '{"db_password": "<SECRET_1>"}'),
    "api key assignment": ("API_KEY=abcd1234efgh", "API_KEY=<SECRET_1>"),
}


@pytest.mark.parametrize("kind", TAKEN_OUT)
def test_it_is_taken_out(kind):
    text, expected = TAKEN_OUT[kind]
    assert redacted(text) == expected


LEFT_ALONE = [
    "I found two flights from SFO to JFK on May 20: UA 1234 at 08:05 for $312 and B6 616 at 13:20.",
    "Order W-48213 leaves on 2024-05-20T06:00:00+02:00 and arrives 12:00:00.",
    "reservation LU15PA, certificate_7504069, credit card ending in 7447",
    "4111 1111 1111 1112 is no card number: its check digit is wrong",
    "DE00 1234 5678 9012 3456 78 is no IBAN",
    "the id 5943431850667813 has a right check digit, but no issuer",
    "timestamp 1716192000000000000, version 2.14.0, 3.6 GB",
    "256.300.1.1 is no address; neither is 12:30:45",
    "The password is required and the API key is optional.",
    "basic understanding, bearer of good news, a basic responsibility",
    "https://example.com/path?q=1#frag and http://example.com:8080/x",
    "trace 0af7651916cd43dd8448eb211c80319c span b7ad6b7169203331",
    "1-555 and 12-34-5678 and 000-12-3456",
    "DNI 12345678A, CPF 529.982.247-26, 811218-9875, 2341 2341 2347, 756.9217.0769.84",
    "Prices: 12.50, 1,299.00, 100-200, 2019-2024",
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_ordinary_text_is_left_alone(text):
    assert redacted(text) == text


def test_equal_values_get_equal_placeholders_and_different_ones_different():
    text = "From a@example.com and b@example.com to A@example.com"
    assert redacted(text) == "From <EMAIL_1> and <EMAIL_2> to <EMAIL_1>"


def test_one_number_in_two_groupings_is_one_value():
    assert redacted("4111 1111 1111 1111 or 4111-1111-1111-1111") == "<CARD_1> or <CARD_1>"


def test_addresses_that_differ_in_their_dots_are_two_values():
    assert redacted("127.0.0.1 and 12.70.0.1") == "<IP_1> and <IP_2>"
    assert redacted("a.b@example.com and ab@example.com") == "<EMAIL_1> and <EMAIL_2>"


def test_numbering_is_shared_by_all_texts_of_a_session_and_not_by_sessions():
    redactor = Redactor()
    first = redactor.for_session()
    assert [first.value("x@example.com"), first.value(["y@example.com", "x@example.com"])] == [
        "<EMAIL_1>",
        ["<EMAIL_2>", "<EMAIL_1>"],
    ]
    assert redactor.for_session().value("y@example.com") == "<EMAIL_1>"


def test_secrets_are_also_known_by_their_key():
    data = {"user": "mia", "password": "plain", "headers": {"x-api-key": "abc"}, "tokens": 5}
    assert redacted(data) == {
        "user": "mia",
        "password": "<SECRET_1>",
        "headers": {"x-api-key": "<SECRET_2>"},
        "tokens": 5,
    }


def test_numbers_that_are_card_numbers_are_taken_out_of_data():
    assert redacted({"number": 4111111111111111, "count": 4111111111111112}) == {
        "number": "<CARD_1>",
        "count": 4111111111111112,
    }


def test_redacting_twice_changes_nothing():
    for text, expected in TAKEN_OUT.values():
        assert redacted(redacted(text)) == redacted(text) == expected


def test_own_patterns_come_first_and_may_limit_what_is_replaced():
    redactor = Redactor({"order": r"W-\d+", "name": r"Mr (?P<value>\w+)"})
    assert redactor.for_session().value("Mr Smith: W-123") == "Mr <NAME_1>: <ORDER_1>"


def test_a_pattern_that_is_none_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'order'.*regular expression"):
        Redactor({"order": "("})


def test_an_own_callable_sees_every_text():
    redactor = Redactor(custom=lambda text: text.replace("Mia", "<NAME>"))
    assert redactor.for_session().value({"a": ["Mia"], "b": "Mia!"}) == {"a": ["<NAME>"], "b": "<NAME>!"}


@pytest.mark.parametrize("custom", [lambda text: None, lambda text: 1 / 0])
def test_a_callable_that_fails_is_an_error_without_content(custom):
    with pytest.raises(RedactionError) as caught:
        Redactor(custom=custom).for_session().session(session(turn("my secret words", "b")))
    assert "secret words" not in str(caught.value)


async def test_a_session_that_cannot_be_redacted_is_not_judged(caplog):
    model = ScriptedModel()
    redactor = Redactor(custom=lambda text: 1 / 0)
    judge = Judge(model, create_evaluators(EVALUATOR_NAMES), Settings(), redactor=redactor)
    result = await judge.judge(task())
    assert {(e.outcome, e.error_type) for e in result.evaluations} == {("unscorable", "redaction_failed")}
    assert model.requests == []
    assert "timed out" not in caplog.text


PERSONAL = "mia@example.com"
EVERYWHERE = session(
    turn(PERSONAL, PERSONAL, worked_call(result={"to": [PERSONAL]}, to=PERSONAL), failed_call(message=PERSONAL)),
    turn("x", None, interim=(PERSONAL,)),
    system_prompt=PERSONAL,
    goal=PERSONAL,
)


async def test_no_part_of_a_session_reaches_the_judge_unredacted():
    model = ScriptedModel()
    judge = Judge(model, create_evaluators(EVALUATOR_NAMES), Settings())
    await judge.judge(task(EVERYWHERE))
    sent = json.dumps([list(r.messages) for r in model.requests])
    assert PERSONAL not in sent
    assert sent.count("<EMAIL_1>") >= 7
    assert PERSONAL not in model.requests[0].session.model_dump_json()


async def test_quotes_are_verified_against_what_the_judge_was_shown():
    quoted = {"turns": [{"turn": 0, "quote": "<EMAIL_1>", "label": "honest_fallback"}], "label": "honest_fallback"}
    model = ScriptedModel(reply(answers(failure_rate=quoted)))
    judge = Judge(model, create_evaluators(EVALUATOR_NAMES), Settings())
    result = await judge.judge(task(EVERYWHERE, "failure_rate"))
    assert result.evaluations[0].evidence_verified is True


async def test_what_the_judge_says_is_redacted_too():
    said = {"goal": f"Reach {PERSONAL}", "reasoning": f"{PERSONAL} was not reached."}
    model = ScriptedModel(reply(answers(goal_achievement=said)))
    judge = Judge(model, create_evaluators(EVALUATOR_NAMES), Settings())
    result = await judge.judge(task())
    assert PERSONAL not in "".join(e.model_dump_json() for e in result.evaluations)
    assert result.evaluations[1].explanation == "<EMAIL_1> was not reached."


def test_of_very_long_texts_only_what_can_be_shown_is_kept_and_redacted():
    text = "a@example.com " + "x" * 1_000_000 + " b@example.com"
    kept = redacted(text)
    assert len(kept) < 61_000
    assert kept.startswith("<EMAIL_1> x")
    assert kept.endswith("x <EMAIL_2>")
    assert "characters left out" in kept
