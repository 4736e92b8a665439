"""Budgets: the bucket, the thinning, the account, and what the sampler makes of them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_evals.evaluation import JudgedSession, Judgement
from otel_evals.sampling.account import Account, Cost, Limits
from otel_evals.sampling.bucket import TokenBucket
from otel_evals.sampling.budget import Budget, budget_of, require_price
from otel_evals.sampling.rules import Match, Rule
from otel_evals.sampling.sampler import Sampler
from otel_evals.sampling.thinning import Demand, thin
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings, SettingsError

NOON = 1_800_014_400.0
"""12:00:00 UTC of some day."""


class Clock:
    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def session(name: str, **more: object) -> Session:
    return Session.model_validate({"session_id": name, "session_key": "session.id", **more})


class TestTokenBucket:
    @pytest.mark.parametrize("limit", [0.5, 1, 2, 7, 60, 600])
    def test_no_60_seconds_see_more_than_one_above_the_limit(self, limit: float) -> None:
        bucket = TokenBucket.per_minute(limit)
        level, starts = bucket.capacity, []
        for tick in range(3000):
            level = bucket.level(level, 0.1)
            while level >= 1:
                level -= 1
                starts.append(tick)
        most = max(sum(start <= other < start + 600 for other in starts) for start in starts)
        assert most <= limit + 1

    def test_most_of_the_limit_can_be_used(self) -> None:
        assert TokenBucket.per_minute(60).rate * 60 >= 0.9 * 60

    def test_it_never_saves_more_than_its_capacity(self) -> None:
        assert TokenBucket(rate=1.0, capacity=5.0).level(0.0, 1e9) == 5.0

    def test_fractions_of_tokens_are_not_lost(self) -> None:
        bucket, level = TokenBucket(rate=0.1, capacity=5.0), 0.0
        for _ in range(100):
            level = bucket.level(level, 0.1)
        assert level == pytest.approx(1.0)

    def test_a_clock_that_was_set_back_fills_nothing(self) -> None:
        assert TokenBucket(rate=1.0, capacity=5.0).level(2.0, -100.0) == 2.0


class TestThin:
    def test_nothing_is_thinned_while_the_budget_suffices(self) -> None:
        assert thin({"a": 1.0, "b": 2.0}, {}, capacity=3.0) == {"a": 1.0, "b": 1.0}

    def test_equal_strata_are_thinned_alike(self) -> None:
        assert thin({"a": 2.0, "b": 6.0}, {}, capacity=4.0) == pytest.approx({"a": 0.5, "b": 0.5})

    def test_the_important_stratum_is_served_first(self) -> None:
        factors = thin({"evidence": 1.0, "default": 9.0}, {"evidence": 10}, capacity=2.0)
        assert factors["evidence"] == pytest.approx(1.0)
        assert factors["default"] == pytest.approx(1.0 / 9.0)

    def test_even_the_least_important_keeps_a_tenth_of_its_even_share(self) -> None:
        factors = thin({"evidence": 100.0, "default": 100.0}, {"evidence": 10}, capacity=20.0)
        assert factors["default"] == pytest.approx(0.1 * 0.1)

    def test_an_empty_budget_picks_nobody(self) -> None:
        assert thin({"a": 1.0}, {}, capacity=0.0) == {"a": 0.0}

    @given(
        st.dictionaries(st.sampled_from("abcdef"), st.floats(0.0, 1e3), min_size=1),
        st.dictionaries(st.sampled_from("abcdef"), st.integers(-2, 2)),
        st.floats(1e-3, 1e4),
    )
    def test_the_whole_capacity_is_used_and_never_more(
        self, demand: dict[str, float], priority: dict[str, int], capacity: float
    ) -> None:
        factors = thin(demand, priority, capacity)
        spent = sum(demand[name] * factors[name] for name in demand)
        assert spent == pytest.approx(min(capacity, sum(demand.values())), rel=1e-6, abs=1e-9)
        assert all(0.0 < factor <= 1.0 + 1e-12 for factor in factors.values())


class TestDemand:
    def test_a_steady_stream_is_seen_at_its_rate(self) -> None:
        demand = Demand(started=0.0)
        for tick in range(600):
            demand.add("a", 0.5, now=tick * 0.1)
        assert demand.rates(60.0)["a"] == pytest.approx(5.0, rel=0.02)

    def test_a_young_stream_too(self) -> None:
        demand = Demand(started=0.0)
        for tick in range(60):
            demand.add("a", 1.0, now=tick * 0.1)
        assert demand.rates(6.0)["a"] == pytest.approx(10.0, rel=0.02)

    def test_a_first_session_is_no_stream_of_one_a_second(self) -> None:
        demand = Demand(started=0.0)
        demand.add("a", 1.0, now=0.01)
        assert demand.rates(0.01)["a"] < 0.25

    def test_it_fades_when_nobody_comes(self) -> None:
        demand = Demand(started=0.0)
        demand.add("a", 1.0, now=0.0)
        assert demand.rates(300.0)["a"] < 1e-5


class TestAccount:
    def test_what_is_reserved_counts_as_spent(self) -> None:
        account = Account(Limits(tokens_per_hour=100), clock=Clock())
        assert account.reserve("a", Cost(tokens=60))
        assert not account.reserve("b", Cost(tokens=60))

    def test_settling_frees_what_was_not_used(self) -> None:
        account = Account(Limits(tokens_per_hour=100), clock=Clock())
        account.reserve("a", Cost(tokens=60))
        account.settle("a", Cost(tokens=10))
        assert account.standing().left == {("tokens", 3600): 90.0}
        assert account.reserve("b", Cost(tokens=60))

    def test_a_limit_below_one_judgement_is_exceeded_by_less_than_one(self) -> None:
        account = Account(Limits(usd_per_day=0.05), clock=Clock())
        assert account.reserve("a", Cost(usd=0.1))
        assert not account.reserve("b", Cost(usd=0.1))
        account.settle("a", Cost(usd=0.08))
        assert not account.reserve("c", Cost(usd=0.1))

    @pytest.mark.parametrize(("limits", "rest"), [(Limits(usd_per_hour=1), 3600), (Limits(usd_per_day=1), 43_200)])
    def test_hours_and_days_begin_anew_in_utc(self, limits: Limits, rest: int) -> None:
        clock = Clock(NOON)
        account = Account(limits, clock=clock)
        account.reserve("a", Cost(usd=1))
        account.settle("a", Cost(usd=1))
        clock.now = NOON + rest - 1
        assert not account.reserve("b", Cost(usd=0.1))
        clock.now = NOON + rest
        assert account.reserve("b", Cost(usd=0.1))

    def test_evaluations_come_back_with_time(self) -> None:
        clock = Clock()
        account = Account(Limits(evaluations_per_minute=1), clock=clock)
        assert account.reserve("a", Cost())
        assert not account.reserve("b", Cost())
        clock.now += 60
        assert account.reserve("b", Cost())

    def test_a_released_place_can_be_taken_by_another(self) -> None:
        account = Account(Limits(evaluations_per_minute=1, tokens_per_day=10), clock=Clock())
        account.reserve("a", Cost(tokens=10))
        account.release("a")
        assert account.reserve("b", Cost(tokens=10))

    def test_releasing_twice_frees_one_place(self) -> None:
        account = Account(Limits(evaluations_per_minute=20), clock=Clock())
        assert [account.reserve(name, Cost()) for name in "abc"] == [True, True, False]
        account.release("a")
        account.release("a")
        assert [account.reserve(name, Cost()) for name in "de"] == [True, False]

    def test_a_lease_that_ran_out_is_void(self) -> None:
        clock = Clock()
        account = Account(Limits(tokens_per_day=10), lease_s=60, clock=clock)
        account.reserve("a", Cost(tokens=10))
        clock.now += 61
        assert account.reserve("b", Cost(tokens=10))

    def test_two_users_of_a_file_share_it(self, tmp_path: Path) -> None:
        path = str(tmp_path / "budget.sqlite")
        one, other = (Account(Limits(tokens_per_hour=100), path, clock=Clock()) for _ in range(2))
        assert one.reserve("a", Cost(tokens=60))
        assert not other.reserve("b", Cost(tokens=60))
        other.standing()
        assert one.standing().processes == 2

    def test_leaving_frees_a_share(self, tmp_path: Path) -> None:
        path = str(tmp_path / "budget.sqlite")
        one, other = (Account(Limits(tokens_per_hour=100), path, clock=Clock()) for _ in range(2))
        one.reserve("a", Cost(tokens=60))
        one.close()
        assert other.reserve("b", Cost(tokens=60))

    def test_a_crashed_process_frees_its_share(self, tmp_path: Path) -> None:
        path = str(tmp_path / "budget.sqlite")
        code = (
            "import os, sys; from otel_evals.sampling.account import *\n"
            "account = Account(Limits(tokens_per_hour=100), sys.argv[1])\n"
            "account.standing(); assert account.reserve('a', Cost(tokens=60)); os._exit(9)"
        )
        account = Account(Limits(tokens_per_hour=100), path)
        assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 9
        assert account.reserve("b", Cost(tokens=60))
        assert account.standing().processes == 1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_forked_child_shares_the_file_with_its_parent(self, tmp_path: Path) -> None:
        account = Account(Limits(tokens_per_hour=100), str(tmp_path / "budget.sqlite"))
        child = os.fork()
        if child == 0:
            os._exit(0 if account.reserve("child", Cost(tokens=30)) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert account.reserve("parent", Cost(tokens=100))


SHARED_LIMIT = 40
WORKER = f"""
import sys
from otel_evals.sampling.account import Account, Cost, Limits
account = Account(Limits(usd_per_day={SHARED_LIMIT}, evaluations_per_minute=1e6), sys.argv[1])
judged = 0
for number in range(200):
    key = f"{{sys.argv[2]}}-{{number}}"
    if account.reserve(key, Cost(usd=1)):
        account.settle(key, Cost(usd=1))
        judged += 1
print(judged)
"""


def test_processes_that_share_a_budget_do_not_exceed_it_together(tmp_path: Path) -> None:
    path = str(tmp_path / "budget.sqlite")
    started = [
        subprocess.Popen([sys.executable, "-c", WORKER, path, name], stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    judged = [int(process.communicate(timeout=60)[0]) for process in started]
    assert sum(judged) in (SHARED_LIMIT, SHARED_LIMIT + 1)


class TestSamplerWithBudget:
    RULES = (Rule(name="evidence", match=(Match(signal=("loop",)),), rate=1.0, priority=10),)

    def run(
        self, limits: Limits, per_second: int, seconds: int, cost: Cost
    ) -> tuple[list[float], dict[str, int], Sampler]:
        """A steady stream, one session in ten with evidence: probabilities of the rest, outcomes, sampler."""
        clock = Clock()
        budget = Budget(limits, bound=Cost(20_000, 0.1), clock=clock)
        sampler = Sampler(Settings(rate=0.5), self.RULES, budget)
        probabilities, outcomes = [], {"chosen": 0, "sampled_out": 0, "over_budget": 0}
        for number in range(per_second * seconds):
            clock.now = NOON + number / per_second
            one = session(f"s{number}")
            decision = sampler.decide(one, ("loop",) if number % 10 == 0 else ())
            outcomes[decision.outcome] += 1
            if number % 10:
                probabilities.append(decision.probabilities["failure_rate"])
            if decision.chosen:
                judgement = Judgement(model="m", input_tokens=int(cost.tokens), cost_usd=cost.usd)
                sampler.settle(JudgedSession(session=one, evaluations=(), judgement=judgement))
        return probabilities, outcomes, sampler

    def test_a_budget_that_suffices_changes_nothing(self) -> None:
        probabilities, outcomes, _ = self.run(Limits(evaluations_per_minute=6000), 5, 60, Cost())
        assert set(probabilities) == {0.5}
        assert outcomes["over_budget"] == 0

    def test_a_short_one_thins_smoothly_and_hardly_ever_stops(self) -> None:
        # 20 sessions a second ask for 11 evaluations, of which about 5 fit.
        probabilities, outcomes, _ = self.run(Limits(evaluations_per_minute=330), 20, 120, Cost())
        settled = probabilities[len(probabilities) // 2 :]
        assert 0.1 < min(settled) <= max(settled) < 0.4
        assert max(settled) - min(settled) < 0.1
        assert outcomes["chosen"] == pytest.approx(0.95 * 300 * 2, rel=0.1)

    def test_the_limit_holds_in_every_minute(self) -> None:
        _, outcomes, _ = self.run(Limits(evaluations_per_minute=60), 50, 60, Cost())
        assert outcomes["chosen"] <= 61

    def test_money_lasts_to_the_end_of_the_hour_at_the_learnt_price(self) -> None:
        _, outcomes, _ = self.run(Limits(usd_per_hour=3.6), 2, 600, Cost(usd=0.01))
        # 600 of 3600 seconds: a sixth of 360 judgements.
        assert outcomes["chosen"] == pytest.approx(60, rel=0.15)

    def test_the_important_stratum_is_thinned_last(self) -> None:
        _, _, sampler = self.run(Limits(evaluations_per_minute=330), 20, 60, Cost())
        rates = sampler.effective_rates()
        assert rates["evidence", "failure_rate"] == pytest.approx(1.0)
        assert rates["default", "failure_rate"] < 0.4

    def test_sessions_lost_to_the_budget_are_told_from_those_sampled_out(self) -> None:
        _, outcomes, _ = self.run(Limits(evaluations_per_minute=60), 20, 30, Cost())
        assert outcomes["sampled_out"] == pytest.approx(0.45 * 600, rel=0.15)
        assert outcomes["over_budget"] == 600 - outcomes["sampled_out"] - outcomes["chosen"]

    def test_a_session_is_settled_or_released_under_its_own_name(self) -> None:
        clock = Clock()
        sampler = Sampler(Settings(rate=1.0), (), Budget(Limits(evaluations_per_minute=10), Cost(), clock=clock))
        first, second = session("s258"), session("s258", generation=2)  # drawn at 0.002
        assert sampler.decide(first).outcome == "chosen"
        assert sampler.decide(second).outcome == "over_budget"
        sampler.release(second)
        assert sampler.decide(second).outcome == "over_budget"
        sampler.release(first)
        assert sampler.decide(second).outcome == "chosen"


def test_a_file_that_cannot_be_opened_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="give a path in a directory that can be written"):
        Budget(Limits(usd_per_day=1), Cost(), path=str(tmp_path / "missing" / "budget.sqlite"))


def test_a_file_that_breaks_later_stops_judging_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "budget.sqlite"
    sampler = Sampler(Settings(rate=1.0), (), Budget(Limits(usd_per_day=1), Cost(), path=str(path), clock=Clock()))
    for file in tmp_path.iterdir():
        file.write_bytes(b"garbage" * 1000)
    with caplog.at_level(logging.WARNING):
        outcomes = {sampler.decide(session(f"s{number}")).outcome for number in range(20)}
    assert outcomes == {"over_budget"}
    assert len(caplog.records) == 1


@pytest.mark.parametrize("limits", [Limits(usd_per_day=1), Limits(usd_per_hour=1)])
def test_money_for_a_judge_of_unknown_price_is_refused_with_the_remedy(limits: Limits) -> None:
    with pytest.raises(SettingsError, match="price of judge model 'mystery' is unknown: set input_price"):
        require_price(limits, "mystery", price_known=False)


def test_without_money_nobody_asks_for_the_price() -> None:
    require_price(Limits(tokens_per_day=1), "mystery", price_known=False)
    require_price(Limits(usd_per_day=1), "known", price_known=True)


def test_settings_without_a_limit_ask_for_no_budget() -> None:
    assert budget_of(Settings()) is None


def test_settings_with_a_limit_ask_for_one() -> None:
    budget = budget_of(Settings(budget_evaluations_per_minute=10), clock=Clock())
    assert budget is not None
    assert [budget.admit(name) for name in "ab"] == [True, False]


def test_money_in_the_settings_needs_the_price_of_the_judge() -> None:
    settings = Settings(model="mystery", budget_usd_per_day=1)
    with pytest.raises(SettingsError, match="'mystery' is unknown"):
        budget_of(settings)
    assert budget_of(settings, input_price=2.5, output_price=10) is not None
    assert budget_of(settings, input_price=0, output_price=0) is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_the_budget_is_in_use_can_use_it() -> None:
    budget = Budget(Limits(evaluations_per_minute=60), Cost(), clock=Clock())
    with budget._lock():
        child = os.fork()
        if child == 0:
            os._exit(0 if budget.factor("default", 0, 0.1) == 1.0 and budget.admit("a") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
