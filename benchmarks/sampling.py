"""How many judgements a failure rate to ± 2 % takes, sampled in four ways, and what a decision costs.

Two populations. `simulated_month`: 100,000 sessions of which 5 % fail; 6 % carry evidence (signals), and of those
60 % fail, of the rest 1.5 %: an assumption, printed with the result. `tau_bench`: the 200 recorded conversations of
`tests/data`, reward as the judge, signals as found by `detect`, drawn with replacement until there are 100,000.

- uniform: every session with the same probability, `weighted_rate`;
- weighted: evidence oversampled in the proportion of Neyman, `weighted_rate`;
- stratified: the same sample and the known sizes of the strata, `stratified_rate`;
- prediction_powered: the same sample and the signal on every session, `prediction_powered`.

A figure is the least number of judgements with which the mean half-width of the interval is at most 0.02.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.report import goal, report
from otel_evals.sampling.estimate import (
    Estimate,
    Stratum,
    prediction_powered,
    stratified_rate,
    weighted_rate,
)
from otel_evals.sampling.sampler import Sampler
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings
from otel_evals.signals import detect, signal_names
from tests.sampling.month import binomial
from tests.tau_bench import tau_bench

SESSIONS = 100_000
MARGIN = 0.02


class Part(NamedTuple):
    """One stratum of the population."""

    share: float
    failing: float


class Sample(NamedTuple):
    """What was judged of one stratum."""

    size: float
    weight: float
    judged: int
    failed: int

    @property
    def hits(self) -> list[bool]:
        return [index < self.failed for index in range(self.judged)]

    @property
    def weights(self) -> list[float]:
        return [self.weight] * self.judged


Estimator = Callable[[Sequence[Sample]], Estimate]


def weighted(samples: Sequence[Sample]) -> Estimate:
    weights = [weight for sample in samples for weight in sample.weights]
    return weighted_rate(weights, [hit for sample in samples for hit in sample.hits])


def stratified(samples: Sequence[Sample]) -> Estimate:
    return stratified_rate([Stratum(sample.size, sample.weights, sample.hits) for sample in samples])


def powered(samples: Sequence[Sample]) -> Estimate:
    """The prediction is 1 for a session with evidence, the first stratum, and else 0."""
    evidence, rest = samples
    weights = [weight for sample in samples for weight in sample.weights]
    values = [float(hit) for sample in samples for hit in sample.hits]
    predictions = [1.0] * evidence.judged + [0.0] * rest.judged
    sessions = evidence.size + rest.size
    return prediction_powered(weights, values, predictions, int(sessions), evidence.size / sessions)


def even(parts: Sequence[Part]) -> list[float]:
    return [part.share for part in parts]


def neyman(parts: Sequence[Part]) -> list[float]:
    """Share of the judgements per stratum: size times standard deviation (J. Neyman, JRSS 97, 1934)."""
    spreads = [part.share * math.sqrt(part.failing * (1 - part.failing)) for part in parts]
    return [spread / sum(spreads) for spread in spreads]


def live(rng: random.Random, parts: Sequence[Part], shares: Sequence[float], judgements: int) -> list[Sample]:
    """One population, judged once."""
    samples = []
    for part, share in zip(parts, shares, strict=True):
        size = round(SESSIONS * part.share)
        rate = min(1.0, judgements * share / size)
        judged = binomial(rng, size, rate)
        samples.append(Sample(size, 1 / rate, judged, binomial(rng, judged, part.failing)))
    return samples


def needed(parts: Sequence[Part], shares: Sequence[float], estimator: Estimator, lives: int) -> int:
    """Judgements for the margin, to 1 %, by bisection on common random numbers."""

    def margin(judgements: int) -> float:
        rng = random.Random(20)
        return statistics.fmean(estimator(live(rng, parts, shares, judgements)).margin for _ in range(lives))

    low, high = 50, SESSIONS
    while high > low * 1.01:
        middle = round(math.sqrt(low * high))
        low, high = (middle, high) if margin(middle) > MARGIN else (low, middle)
    return high


def compare(parts: Sequence[Part], lives: int) -> dict[str, float]:
    counts = {
        "uniform": needed(parts, even(parts), weighted, lives),
        "weighted": needed(parts, neyman(parts), weighted, lives),
        "stratified": needed(parts, neyman(parts), stratified, lives),
        "prediction_powered": needed(parts, neyman(parts), powered, lives),
    }
    uniform = counts["uniform"]
    ratios = {f"{name}_vs_uniform": round(count / uniform, 3) for name, count in counts.items()}
    return {**counts, **ratios}


def recorded() -> list[Part]:
    """τ-bench in two strata: with and without evidence of failed tools."""
    evidence = {"tool_error", "tool_error_unacknowledged", "loop"}
    cases = [(bool(evidence & set(signal_names(detect(case.session)))), case.succeeded) for case in tau_bench()]
    parts = []
    for wanted in (True, False):
        outcomes = [succeeded for evident, succeeded in cases if evident is wanted]
        parts.append(Part(len(outcomes) / len(cases), outcomes.count(False) / len(outcomes)))
    return parts


def microseconds(work: Callable[[Session], object], sessions: Sequence[Session], rounds: int) -> float:
    """CPU per session: the least of several rounds, because others use this machine too."""
    figures = []
    for _ in range(rounds):
        begin = time.thread_time()
        for session in sessions:
            work(session)
        figures.append((time.thread_time() - begin) / len(sessions) * 1e6)
    return round(min(figures), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=30, help="simulated populations per figure")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    month = [Part(0.06, 0.6), Part(0.94, 0.015)]
    in_month, on_tau_bench = compare(month, arguments.lives), compare(recorded(), arguments.lives)
    sessions = [case.session for case in tau_bench()]
    sampler = Sampler(Settings())
    best = min(in_month["stratified_vs_uniform"], in_month["prediction_powered_vs_uniform"])
    report(
        "sampling",
        {
            "margin": MARGIN,
            "simulated_month": {"strata": [part._asdict() for part in month], **in_month},
            "tau_bench": {"strata": [part._asdict() for part in recorded()], **on_tau_bench},
            "decision_us": microseconds(sampler.decide, sessions, arguments.rounds),
            "early_decision_us": microseconds(
                lambda session: sampler.can_pick(session.session_id), sessions, arguments.rounds
            ),
            "signals_us": microseconds(detect, sessions, arguments.rounds),
            "turns_per_session": round(statistics.fmean(len(session.turns) for session in sessions), 1),
        },
        {"judgements_vs_uniform": goal(best, "<= 0.5")},
    )


if __name__ == "__main__":
    main()
