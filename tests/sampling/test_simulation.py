"""Whether intervals hold what they promise: each scenario is lived through 2,000 times with a known true rate.

In each life the true rate is drawn within a quarter around the named one, because a single exact rate makes the
coverage of any interval jump with the few counts that are possible.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

import pytest

from otel_evals.evaluation import JudgedSession, Judgement
from otel_evals.sampling.account import Cost, Limits
from otel_evals.sampling.budget import Budget
from otel_evals.sampling.estimate import (
    Stratum,
    prediction_powered,
    rogan_gladen,
    stratified_rate,
    weighted_mean,
    weighted_rate,
)
from otel_evals.sampling.rules import Match, Rule
from otel_evals.sampling.sampler import Sampler
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings
from tests.sampling.month import Month, binomial

pytestmark = pytest.mark.slow

LIVES = 2000
RATES = (0.005, 0.02, 0.05, 0.2)
MONTHS = {
    "defaults": Month(20_000, evidence_share=0.05, evidence_risk=6),
    "skewed": Month(20_000, evidence_share=0.02, evidence_risk=10, rest_rate=0.03),
    "small": Month(3_000, evidence_share=0.1, evidence_risk=4, rest_rate=0.2),
    "late spans": Month(20_000, evidence_share=0.05, evidence_risk=6, late_share=0.3),
    "evidence tells nothing": Month(10_000, evidence_share=0.1, evidence_risk=1),
}

Judge = Callable[[random.Random, float], tuple[list[float], list[bool]]]


def live(judge: Judge, rate: float) -> None:
    """Judge the same kind of month again and again; check bias and coverage, show the naive rate beside."""
    rng = random.Random(f"{rate}")
    errors, naive, effective, covered = [], [], [], 0
    for _ in range(LIVES):
        true = rate * rng.uniform(0.75, 1.25)
        weights, hits = judge(rng, true)
        estimate = weighted_rate(weights, hits)
        errors.append(estimate.value - true)
        naive.append(sum(hits) / len(hits) - true)
        effective.append(estimate.effective_n)
        covered += estimate.low <= true <= estimate.high
    bias = statistics.fmean(errors) / statistics.stdev(errors)
    naive_bias = statistics.fmean(naive) / statistics.stdev(errors)
    n, coverage = statistics.fmean(effective), covered / LIVES
    print(
        f"true {rate:.3f}: effective n {n:.0f}, bias {bias:+.3f} SE (naive {naive_bias:+.2f} SE), coverage {coverage:.3f}"
    )
    assert abs(bias) < 0.2
    assert n >= 50
    assert coverage >= 0.93
    # Where fewer than ten hits are to be expected, Wilson's interval errs to the safe side, in an even sample too.
    assert coverage <= 0.97 or n * rate < 10


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", MONTHS)
def test_weighted_rates_are_unbiased_and_covered(name: str, rate: float) -> None:
    live(MONTHS[name].judge, rate)


@pytest.mark.parametrize("rate", RATES)
def test_the_naive_rate_is_biased_where_evidence_is_oversampled(rate: float) -> None:
    rng = random.Random(3)
    judged = [MONTHS["defaults"].judge(rng, rate) for _ in range(200)]
    assert statistics.fmean(sum(hits) / len(hits) for _, hits in judged) > 1.5 * rate


@pytest.fixture(scope="module")
def pressed() -> list[tuple[bool, float]]:
    """An hour with a burst, decided by the real sampler under a budget: (has evidence, probability) per session."""
    clock = [1_800_000_000.0]
    budget = Budget(Limits(evaluations_per_minute=60), Cost(), clock=lambda: clock[0])
    rules = (Rule(name="evidence", match=(Match(signal=("loop",)),), rate=1.0, priority=10),)
    sampler = Sampler(Settings(rate=0.5), rules, budget)
    decided = []
    for number in range(12_000):
        clock[0] += 0.1 if 4000 < number < 8000 else 0.4
        evident = number % 20 == 0
        session = Session(session_id=f"s{number}", session_key="session.id")
        decision = sampler.decide(session, ("loop",) if evident else ())
        decided.append((evident, decision.probabilities["failure_rate"]))
        if decision.chosen:
            judgement = Judgement(model="m")
            sampler.settle(JudgedSession(session=session, evaluations=(), judgement=judgement))
    return decided


def test_the_budget_did_thin(pressed: Sequence[tuple[bool, float]]) -> None:
    probabilities = {round(probability, 3) for evident, probability in pressed if not evident}
    assert min(probabilities) < 0.1
    assert max(probabilities) == 0.5


@pytest.mark.parametrize("rate", RATES)
def test_under_budget_pressure_too(pressed: Sequence[tuple[bool, float]], rate: float) -> None:
    shape = Month(len(pressed), evidence_share=0.05, evidence_risk=6)

    def judge(rng: random.Random, overall: float) -> tuple[list[float], list[bool]]:
        with_evidence, without = shape.failing(overall)
        picked = [(evident, p) for evident, p in pressed if rng.random() < p]
        weights = [1 / p for _, p in picked]
        return weights, [rng.random() < (with_evidence if evident else without) for evident, _ in picked]

    live(judge, rate)


def test_other_estimates_are_covered_as_promised() -> None:
    rng = random.Random(11)
    month = Month(5_000, evidence_share=0.05, evidence_risk=6)
    covered = {"stratified": 0, "prediction-powered": 0, "mean": 0, "corrected": 0}
    for _ in range(LIVES):
        true = rng.uniform(0.04, 0.2)
        with_evidence, without = month.failing(true)
        evident = binomial(rng, month.sessions, month.evidence_share)
        rest = month.sessions - evident
        judged = binomial(rng, rest, month.rest_rate)
        bad, good = binomial(rng, evident, with_evidence), binomial(rng, judged, without)
        hits = [True] * bad + [False] * (evident - bad) + [True] * good + [False] * (judged - good)
        weights = [1.0] * evident + [10.0] * judged
        strata = [
            Stratum(evident, weights[:evident], hits[:evident]),
            Stratum(rest, weights[evident:], hits[evident:]),
        ]
        values = [float(hit) for hit in hits]
        flags = [1.0] * evident + [0.0] * judged
        share = evident / month.sessions
        # A judge that sees nine of ten failures, and one in twenty where there is none; measured on 200 and 400.
        seen = [rng.random() < (0.9 if hit else 0.05) for hit in hits]
        found = binomial(rng, 200, 0.9)
        sensitivity = weighted_rate([1.0] * 200, [index < found for index in range(200)])
        cleared = binomial(rng, 400, 0.95)
        specificity = weighted_rate([1.0] * 400, [index < cleared for index in range(400)])
        estimates = {
            "stratified": stratified_rate(strata),
            "prediction-powered": prediction_powered(weights, values, flags, month.sessions, share),
            "mean": weighted_mean(weights, values),
            "corrected": rogan_gladen(weighted_rate(weights, seen), sensitivity, specificity),
        }
        for name, estimate in estimates.items():
            covered[name] += estimate.low <= true <= estimate.high
    for name, count in covered.items():
        print(f"{name}: coverage {count / LIVES:.3f}")
        assert 0.93 <= count / LIVES <= 0.975, name
