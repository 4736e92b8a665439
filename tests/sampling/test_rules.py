"""Rules: which session falls into which stratum, at which rates, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from otel_evals.sampling.rules import Match, Rule, compile_rule
from otel_evals.sampling.sampler import Sampler
from otel_evals.sessions.model import Session, ToolCall, ToolFailure, Turn, Usage
from otel_evals.settings import Settings

FAILED = ToolCall(error=ToolFailure())


def session(**more: Any) -> Session:
    return Session(**{"session_id": "s", "session_key": "session.id", **more})


def matches(condition: dict[str, Any], one: Session, signals: tuple[str, ...] = ()) -> bool:
    return compile_rule(Rule.model_validate({"name": "r", "match": condition})).matches(one, signals)


@pytest.mark.parametrize(
    ("condition", "fitting", "other"),
    [
        ({"service": "shop"}, session(service_name="shop"), session(service_name="shop-eu")),
        ({"service": ["a", "b"]}, session(service_name="b"), session()),
        ({"version": "2.*"}, session(service_version="2.1"), session(service_version="12.1")),
        ({"environment": "prod*"}, session(environment="production"), session(environment="staging")),
        ({"agent": "planner"}, session(agents=("router", "planner")), session(agents=("router",))),
        ({"model": "gpt-*"}, session(models=("claude", "gpt-4o")), session(models=("claude",))),
        ({"tag": "vip"}, session(tags=("vip", "eu")), session(tags=("eu",))),
        ({"attributes": {"tenant": "acme"}}, session(attributes={"tenant": "acme"}), session()),
        ({"attributes": {"tenant": "*"}}, session(attributes={"tenant": "x"}), session(attributes={"tenant": None})),
        ({"attributes": {"n": 7}}, session(attributes={"n": 7}), session(attributes={"n": 77})),
        ({"attributes": {"beta": True}}, session(attributes={"beta": True}), session(attributes={"beta": False})),
        ({"attributes": {"a": "1", "b": "2"}}, session(attributes={"a": "1", "b": "2"}), session(attributes={"a": "1"})),
        ({"min_turns": 2}, session(turns=(Turn(), Turn())), session(turns=(Turn(),))),
        ({"max_turns": 1}, session(turns=(Turn(),)), session(turns=(Turn(), Turn()))),
        ({"min_duration": 1.5}, session(end_ns=1_500_000_000), session(end_ns=1_400_000_000)),
        ({"min_tokens": 100}, session(usage=Usage(input_tokens=99, output_tokens=1)), session()),
        ({"max_tokens": 100}, session(usage=Usage(input_tokens=100)), session()),
        ({"min_failed_tools": 1}, session(turns=(Turn(tool_calls=(FAILED,)),)), session(turns=(Turn(),))),
        ({"max_failed_tools": 0}, session(turns=(Turn(),)), session(turns=(Turn(tool_calls=(FAILED,)),))),
        ({"service": "a", "tag": "b"}, session(service_name="a", tags=("b",)), session(service_name="a")),
        ([{"service": "a"}, {"tag": "b"}], session(tags=("b",)), session(service_name="b")),
    ],
)  # fmt: skip
def test_a_condition_tells_sessions_apart(condition: dict[str, Any], fitting: Session, other: Session) -> None:
    assert matches(condition, fitting)
    assert not matches(condition, other)


def test_any_of_the_named_signals_is_enough() -> None:
    condition = {"signal": ["loop", "no_answer"]}
    assert matches(condition, session(), ("tool_error", "loop"))
    assert not matches(condition, session(), ("tool_error",))


def test_no_condition_matches_everything() -> None:
    assert matches({}, session())


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"name": "r", "match": {"signal": "tool_eror"}}, "'tool_eror' is no signal: give some of tool_error"),
        ({"name": "r", "match": {"colour": "red"}}, "Extra inputs are not permitted"),
        ({"name": "r", "match": {"min_turns": 3, "max_turns": 2}}, "min_turns 3 is above max_turns 2"),
        ({"name": "r", "exclude": True, "rate": 0.5}, "excludes sessions and gives a rate"),
        ({"name": "default", "rate": 0.5}, "choose another name"),
        ({"name": "a/b"}, "String should match pattern"),
        ({"name": "r", "rate": -0.1}, "-0.1 is no rate: give a number from 0"),
        ({"name": "r", "rate": 1.1}, "1.1 is no rate"),
        ({"name": "r", "rate": math.nan}, "nan is no rate"),
        ({"name": "r", "rate": "often"}, "valid number"),
        ({"name": "r", "rates": {"failure_rate": 2}}, "2.0 is no rate"),
    ],
)
def test_a_wrong_rule_is_refused_with_the_reason(rule: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Rule.model_validate(rule)


@pytest.mark.parametrize("rate", [0, 1, "0.25"])
def test_bounds_and_numbers_written_as_text_are_rates(rate: Any) -> None:
    assert Rule(name="r", rate=rate).rate == float(rate)


class TestStrata:
    RULES = (
        Rule(name="vip", match=(Match(tag=("vip",)),), rate=1.0),
        Rule(name="long", match=(Match(min_turns=2),), rates={"failure_rate": 0.75}),
        Rule(name="bots", match=(Match(tag=("bot",)),), exclude=True),
    )

    def sampler(self, **settings: Any) -> Sampler:
        return Sampler(Settings(**{"rate": 0.5, **settings}), self.RULES)

    def test_the_first_rule_that_matches_names_the_stratum(self) -> None:
        two_turns = (Turn(), Turn())
        assert self.sampler().decide(session(tags=("vip",), turns=two_turns)).rule == "vip"
        assert self.sampler().decide(session(turns=two_turns)).rule == "long"
        assert self.sampler().decide(session()).rule == "default"

    def test_a_rate_that_a_rule_does_not_give_is_the_general_one(self) -> None:
        decision = self.sampler().decide(session(turns=(Turn(), Turn())))
        assert decision.probabilities["failure_rate"] == 0.75
        assert decision.probabilities["goal_achievement"] == 0.5

    def test_excluded_sessions_are_filtered_at_any_rate(self) -> None:
        sampler = self.sampler(rate=1.0)
        sampler.set_rate(1.0)
        decision = sampler.decide(session(tags=("bot",)))
        assert (decision.outcome, decision.rule, decision.chosen) == ("filtered", "bots", {})

    def test_a_rate_without_a_rule_holds_in_every_rule(self) -> None:
        sampler = self.sampler()
        sampler.set_rate(0.25, evaluator="failure_rate")
        assert {rate for (_, name), rate in sampler.rates().items() if name == "failure_rate"} == {0.25}

    def test_a_rate_for_a_rule_holds_there_alone(self) -> None:
        sampler = self.sampler()
        before = sampler.rates()
        sampler.set_rate(0.25, rule="vip")
        assert {key: rate for key, rate in sampler.rates().items() if rate != before[key]} == {
            ("vip", name): 0.25 for name in Settings().evaluators
        }

    def test_an_excluded_rule_has_no_rate_to_set(self) -> None:
        with pytest.raises(ValueError, match="'bots' is no rule here: give one of default, long, vip"):
            self.sampler().set_rate(0.5, rule="bots")

    def test_of_several_changes_the_special_one_wins(self) -> None:
        sampler = self.sampler()
        sampler.set_rates({("vip", "failure_rate"): 0.9, (None, "failure_rate"): 0.1, (None, None): 0.0})
        rates = sampler.rates()
        assert rates["vip", "failure_rate"] == 0.9
        assert rates["long", "failure_rate"] == 0.1
        assert rates["vip", "goal_achievement"] == 0.0

    def test_one_refused_change_leaves_all_as_they_were(self) -> None:
        sampler = self.sampler()
        before = sampler.rates()
        with pytest.raises(ValueError, match="7 is no rate"):
            sampler.set_rates({(None, None): 0.9, ("vip", None): 7})
        assert sampler.rates() == before

    def test_rules_must_have_different_names(self) -> None:
        with pytest.raises(ValueError, match="two rules are named 'a'"):
            Sampler(Settings(), (Rule(name="a"), Rule(name="a")))

    def test_rules_name_evaluators_that_run(self) -> None:
        with pytest.raises(ValueError, match="rule 'a': 'typo' is no evaluator here"):
            Sampler(Settings(), (Rule(name="a", rates={"typo": 0.5}),))


class TestDefaults:
    EVIDENCE = ("tool_error", "tool_error_unacknowledged")

    def test_evidence_of_trouble_is_always_judged_and_a_tenth_of_the_rest(self) -> None:
        sampler = Sampler(Settings())
        assert set(sampler.decide(session(), self.EVIDENCE).probabilities.values()) == {1.0}
        assert set(sampler.decide(session(), ("judge_injection_suspected",)).probabilities.values()) == {1.0}
        assert set(sampler.decide(session(), ("tool_error",)).probabilities.values()) == {0.1}

    def test_a_rate_that_somebody_set_is_the_rate_of_all(self) -> None:
        decision = Sampler(Settings(rate=0)).decide(session(), self.EVIDENCE)
        assert (decision.rule, decision.outcome) == ("default", "sampled_out")

    @pytest.mark.parametrize(
        "marked",
        [
            {"environment": "sdk-experiment"},
            {"tags": ("experiment",)},
            {"attributes": {"langfuse.experiment.id": "e1"}},
            {"attributes": {"otel_evals.experiment": "nightly"}},
        ],
    )
    def test_experiments_are_excluded(self, marked: dict[str, Any]) -> None:
        decision = Sampler(Settings(rate=1.0)).decide(session(**marked))
        assert (decision.outcome, decision.rule) == ("filtered", "experiments")

    def test_attributes_that_rules_look_at_are_named_so_that_sessions_keep_them(self) -> None:
        assert "langfuse.experiment.id" in Sampler(Settings()).attributes


class TestEarlyDecision:
    def test_a_session_that_no_rule_can_pick_is_known_from_its_id(self) -> None:
        sampler = Sampler(Settings(rate=0.0), (Rule(name="rare", match=(Match(min_turns=9),), rate=0.2),))
        names = [f"s{number}" for number in range(500)]
        share = sum(sampler.can_pick(name) for name in names) / len(names)
        assert share == pytest.approx(0.2, abs=0.06)

    def test_what_is_known_rules_out_strata(self) -> None:
        rules = (Rule(name="prod", match=(Match(environment=("prod",)),), rate=1.0),)
        sampler = Sampler(Settings(rate=0.0), rules)
        assert sampler.can_pick("s")
        assert sampler.can_pick("s", {"environment": "prod"})
        assert not sampler.can_pick("s", {"environment": "test"})

    def test_a_certain_exclusion_ends_the_search(self) -> None:
        rules = (Rule(name="bots", match=(Match(attributes={"bot": ("*",)}),), exclude=True),)
        sampler = Sampler(Settings(rate=1.0), rules)
        assert not sampler.can_pick("s", {"attribute:bot": "crawler"})
        assert sampler.can_pick("s", {"attribute:bot": None})

    def test_it_never_rules_out_what_the_decision_would_pick(self) -> None:
        rules = (
            Rule(name="hot", match=(Match(environment=("prod",), signal=("loop",)),), rate=0.8),
            Rule(name="test", match=(Match(environment=("test",)),), rate=0.05),
        )
        sampler = Sampler(Settings(rate=0.1), rules)
        for number in range(400):
            one = session(session_id=f"s{number}", environment=("prod", "test", None)[number % 3])
            for signals in ((), ("loop",)):
                if sampler.decide(one, signals).chosen:
                    assert sampler.can_pick(one.session_id, {"environment": one.environment})


def test_settings_taken_anew_change_rates_and_rules_but_not_a_pause() -> None:
    sampler = Sampler(Settings(rate=0.1))
    sampler.pause()
    sampler.reconfigure(Settings(rate=0.5), (Rule(name="new"),))
    assert sampler.paused
    assert set(sampler.rates().values()) == {0.5}
    assert {rule for rule, _ in sampler.rates()} == {"new", "default"}
