"""How many judgements a failure rate to ± 2 % takes, sampled in four ways, and what a decision costs.

Three populations. `simulated_month`: 100,000 sessions of which 18 % fail; 10 % carry plain evidence and 90 % of those
fail, 15 % another signal and 40 % fail, 75 % none and 4 % fail. `quiet_month`: 4.9 % fail; 2 % with evidence (80 %),
8 % with another signal (30 %), 90 % with none (1 %). Both are assumptions, printed with the result; in the quiet
month so few judgements are enough for ± 2 % that no interval can make the most of strata. `tau_bench`: the 200
recorded conversations of `tests/data`, reward as the judge, signals as found by `detect`, drawn with replacement
until there are 100,000.

- uniform: every session with the same probability, `weighted_rate`;
- weighted: evidence oversampled in the proportion of Neyman, `weighted_rate`;
- stratified: the same sample and the known sizes of the strata, `stratified_rate`;
- prediction_powered: the same sample, and for every session its stratum's failure rate of an earlier month as the
  prediction, `prediction_powered`.

Memory: bytes that the assembler holds per open session for the same conversations, exported in the GenAI conventions,
once as sessions that may be judged and once as sessions that may not.

A figure is the least number of judgements with which the mean half-width of the interval is at most 0.02.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import goal, report
from otel_evals.sampling.estimate import (
    Estimate,
    Stratum,
    prediction_powered,
    stratified_rate,
    weighted_rate,
)
from otel_evals.sampling.sampler import Sampler
from otel_evals.sessions.assembler import AssemblerLimits, SessionAssembler
from otel_evals.sessions.light import EarlyDecision
from otel_evals.sessions.model import Session
from otel_evals.settings import Settings
from otel_evals.signals import detect, reduce, signal_names
from otel_evals.spans.files import read_file
from otel_evals.spans.record import SpanRecord
from tests.sampling.month import binomial
from tests.tau_bench import tau_bench
from tests.tau_bench_spans import write_spans

SESSIONS = 100_000
MARGIN = 0.02


class Part(NamedTuple):
    """One stratum of the population."""

    share: float
    failing: float


class Sample(NamedTuple):
    """What was judged of one stratum."""

    size: float
    prediction: float
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
    weights = [weight for sample in samples for weight in sample.weights]
    values = [float(hit) for sample in samples for hit in sample.hits]
    predictions = [sample.prediction for sample in samples for _ in range(sample.judged)]
    mean = math.fsum(sample.size * sample.prediction for sample in samples) / SESSIONS
    return prediction_powered(weights, values, predictions, SESSIONS, mean)


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
        samples.append(Sample(size, part.failing, 1 / rate, judged, binomial(rng, judged, part.failing)))
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


def compare(parts: Sequence[Part], lives: int) -> dict[str, Any]:
    counts = {
        "uniform": needed(parts, even(parts), weighted, lives),
        "weighted": needed(parts, neyman(parts), weighted, lives),
        "stratified": needed(parts, neyman(parts), stratified, lives),
        "prediction_powered": needed(parts, neyman(parts), powered, lives),
    }
    uniform = counts["uniform"]
    ratios = {f"{name}_vs_uniform": round(count / uniform, 3) for name, count in counts.items() if name != "uniform"}
    return {"strata": [part._asdict() for part in parts], **counts, **ratios}


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


def held(path: Path, early: EarlyDecision | None) -> float:
    """Bytes per open session."""
    gc.collect()
    tracemalloc.start()
    try:
        assembler = SessionAssembler(AssemblerLimits(idle_s=1e6, max_age_s=1e9), early)
        for record in read_file(path):
            if isinstance(record, SpanRecord):
                assembler.add_span(record, 1)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / assembler.open_sessions
    finally:
        tracemalloc.stop()


def memory() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = write_spans(Path(folder) / "spans.jsonl")
        held(path, EarlyDecision(lambda *_: 0.0, reduce))  # compiles the patterns, which are no session's
        full, light = held(path, None), held(path, EarlyDecision(lambda *_: 0.0, reduce))
    return {"full_bytes": round(full), "light_bytes": round(light), "ratio": round(light / full, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=30, help="simulated populations per figure")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    populations = {
        "simulated_month": [Part(0.1, 0.9), Part(0.15, 0.4), Part(0.75, 0.04)],
        "quiet_month": [Part(0.02, 0.8), Part(0.08, 0.3), Part(0.9, 0.01)],
        "tau_bench": recorded(),
    }
    figures = {name: compare(parts, arguments.lives) for name, parts in populations.items()}
    sessions = [case.session for case in tau_bench()]
    sampler = Sampler(Settings())
    report(
        "sampling",
        {
            "margin": MARGIN,
            **figures,
            "decision_us": microseconds(sampler.decide, sessions, arguments.rounds),
            "early_decision_us": microseconds(
                lambda session: sampler.can_pick(session.session_id), sessions, arguments.rounds
            ),
            "signals_us": microseconds(detect, sessions, arguments.rounds),
            "held_per_open_session": memory(),
            "turns_per_session": round(statistics.fmean(len(session.turns) for session in sessions), 1),
        },
        {
            f"simulated_month_{name}": goal(figures["simulated_month"][f"{name}_vs_uniform"], "<= 0.5")
            for name in ("stratified", "prediction_powered")
        },
    )


if __name__ == "__main__":
    main()
