"""A simulated month of sessions: strata with different failure rates, judged unevenly, many times over."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Month", "binomial"]


def binomial(rng: random.Random, n: int, p: float) -> int:
    """Number of successes in n trials, in about log n steps (Devroye, Non-Uniform Random Variate Generation, X.4.4)."""
    count = 0
    while n > 16 and 0.0 < p < 1.0:
        middle = (n + 1) // 2
        median = rng.betavariate(middle, n + 1 - middle)
        if median <= p:
            count, n, p = count + middle, n - middle, (p - median) / (1 - median)
        else:
            n, p = middle - 1, p / median
    return count + sum(rng.random() < p for _ in range(n))


@dataclass(frozen=True)
class Month:
    """Two strata. Failures are more frequent among sessions with evidence."""

    sessions: int
    evidence_share: float
    evidence_risk: float
    """How many times as often sessions with evidence fail, compared with the rest."""
    evidence_rate: float = 1.0
    """Sampling rate of the evidence stratum."""
    rest_rate: float = 0.1
    late_share: float = 0.0
    """Share of the evidence that arrived only after the decision, which was therefore taken at `rest_rate`."""

    def failing(self, overall: float) -> tuple[float, float]:
        """Failure rates with evidence and without, such that all sessions together fail at `overall`."""
        rest = overall / (self.evidence_share * self.evidence_risk + 1 - self.evidence_share)
        with_evidence = min(0.95, rest * self.evidence_risk)
        return with_evidence, (overall - self.evidence_share * with_evidence) / (1 - self.evidence_share)

    def judge(self, rng: random.Random, overall: float) -> tuple[list[float], list[bool]]:
        """Weights and results of the sessions that were judged in one such month."""
        with_evidence, without = self.failing(overall)
        evident = binomial(rng, self.sessions, self.evidence_share)
        late = binomial(rng, evident, self.late_share)
        groups = (
            (evident - late, with_evidence, self.evidence_rate),
            (late, with_evidence, self.rest_rate),
            (self.sessions - evident, without, self.rest_rate),
        )
        weights: list[float] = []
        hits: list[bool] = []
        for size, risk, rate in groups:
            judged = binomial(rng, size, rate)
            failed = binomial(rng, judged, risk)
            weights += [1 / rate] * judged
            hits += [True] * failed + [False] * (judged - failed)
        return weights, hits
