"""Which sessions the sampler picks, and what changes when somebody turns a rate."""

from __future__ import annotations

import math
from typing import Any

import pytest

from otel_evals.sampling.draw import draw
from otel_evals.sampling.sampler import Sampler
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings

IDS = [f"session-{number}" for number in range(2_000)]


def session(name: str, **more: Any) -> Session:
    return Session(session_id=name, session_key="session.id", **more)


def chosen(sampler: Sampler, evaluator: str = "failure_rate") -> set[str]:
    return {name for name in IDS if evaluator in sampler.decide(session(name)).chosen}


def test_about_the_configured_share_is_picked() -> None:
    assert len(chosen(Sampler(Settings(rate=0.1)))) == pytest.approx(200, rel=0.2)


def test_the_pick_is_the_draw_below_the_rate() -> None:
    assert chosen(Sampler(Settings(rate=0.3))) == {name for name in IDS if draw(name) < 0.3}


def test_a_lower_rate_picks_a_subset_of_a_higher_one() -> None:
    low, high = (chosen(Sampler(Settings(rate=rate))) for rate in (0.1, 0.5))
    assert low < high


def test_evaluators_share_the_draw_so_their_sessions_nest() -> None:
    sampler = Sampler(Settings(rate=0.5, rates={"failure_rate": 0.1}))
    assert chosen(sampler, "failure_rate") < chosen(sampler, "goal_achievement")


def test_every_decision_carries_the_probabilities_of_all_evaluators() -> None:
    decision = Sampler(Settings(rate=0.5, rates={"failure_rate": 0.0})).decide(session("a"))
    assert decision.probabilities == {
        "failure_rate": 0.0,
        "goal_achievement": 0.5,
        "failure_communication": 0.5,
    }


def test_a_resumed_session_keeps_its_draw() -> None:
    sampler = Sampler(Settings(rate=0.5))
    for name in IDS[:100]:
        first, second = (sampler.decide(session(name, generation=generation)) for generation in (1, 2))
        assert first.chosen == second.chosen


def test_a_salt_picks_others() -> None:
    assert chosen(Sampler(Settings(rate=0.1))) != chosen(Sampler(Settings(rate=0.1, salt="june")))


def test_rate_0_picks_none_and_1_picks_all() -> None:
    assert chosen(Sampler(Settings(rate=0))) == set()
    assert chosen(Sampler(Settings(rate=1))) == set(IDS)


def test_content_is_worth_keeping_exactly_for_sessions_that_can_be_picked() -> None:
    sampler = Sampler(Settings(rate=0.3, rates={"goal_achievement": 0.4}))
    assert {name for name in IDS if sampler.can_pick(name)} == chosen(sampler, "goal_achievement")


class TestSetRate:
    def test_it_holds_from_the_next_decision_on(self) -> None:
        sampler = Sampler(Settings(rate=0.0))
        sampler.set_rate(1.0)
        assert sampler.decide(session("a")).chosen == dict.fromkeys(Settings().evaluators, 1.0)

    def test_one_evaluator_alone_can_be_changed(self) -> None:
        sampler = Sampler(Settings(rate=0.0))
        sampler.set_rate(1.0, evaluator="failure_rate")
        assert sampler.decide(session("a")).chosen == {"failure_rate": 1.0}

    def test_one_rule_alone_can_be_changed(self) -> None:
        sampler = Sampler(Settings(rate=0.25))
        sampler.set_rate(0.75, evaluator="failure_rate", rule="default")
        assert sampler.rates()["default", "failure_rate"] == 0.75
        assert sampler.rates()["default", "goal_achievement"] == 0.25

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.1, "0.5", None, True, [0.5]])
    def test_what_is_no_rate_is_refused_with_the_remedy_and_the_old_rate_stays(self, bad: Any) -> None:
        sampler = Sampler(Settings(rate=0.25))
        with pytest.raises(ValueError, match=r"number from 0 \(judge none\) to 1 \(judge all\)") as caught:
            sampler.set_rate(bad)
        assert repr(bad) in str(caught.value)
        assert set(sampler.rates().values()) == {0.25}

    @pytest.mark.parametrize("good", [0, 1, 0.0, 1.0, 1e-9])
    def test_the_bounds_are_rates(self, good: float) -> None:
        sampler = Sampler(Settings())
        sampler.set_rate(good)
        assert set(sampler.rates().values()) == {good}

    @pytest.mark.parametrize("kind", ["evaluator", "rule"])
    def test_an_unknown_name_is_refused_with_the_known_ones(self, kind: str) -> None:
        with pytest.raises(ValueError, match=rf"'typo' is no {kind} here: give one of"):
            Sampler(Settings()).set_rate(0.5, **{kind: "typo"})


class TestPause:
    def test_nothing_is_picked_while_paused(self) -> None:
        sampler = Sampler(Settings(rate=1))
        sampler.pause()
        decision = sampler.decide(session("a"))
        assert (decision.outcome, decision.chosen, sampler.paused) == ("paused", {}, True)
        assert not sampler.can_pick("a")

    def test_the_effective_rates_are_0_meanwhile(self) -> None:
        sampler = Sampler(Settings(rate=0.5))
        assert set(sampler.effective_rates().values()) == {0.5}
        sampler.pause()
        assert set(sampler.effective_rates().values()) == {0.0}

    def test_rates_survive_it_and_may_be_changed_meanwhile(self) -> None:
        sampler = Sampler(Settings(rate=0.0))
        sampler.pause()
        sampler.set_rate(1.0)
        assert sampler.paused
        sampler.resume()
        assert sampler.decide(session("a")).outcome == "chosen"
