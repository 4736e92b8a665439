"""How a short budget is spread: every stratum keeps a known probability above zero, the important ones the most.

Dropping what does not fit would leave nobody able to say what was dropped. Thinning multiplies each rate by a
factor, which goes into the probability on the result, so that weighted rates stay unbiased.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Demand", "thin"]

FLOOR = 0.1
"""Part of its even share that the least important stratum keeps, so that it can always be estimated."""
MEMORY_S = 30.0
"""Time constant of the demand: long enough to be smooth, short enough to follow a burst."""

YOUTH_S = 5.0
"""A process younger than this is taken to be so old: its first session is no stream of one a second."""


def thin(demand: Mapping[str, float], priority: Mapping[str, int], capacity: float) -> dict[str, float]:
    """The factor, 0 to 1, for each stratum, such that Σ factor·demand ≤ capacity.

    Args:
        demand: evaluations per second that each stratum's rates ask for.
        priority: higher is served first; strata of one priority are thinned alike.
        capacity: evaluations per second that the budget allows.
    """
    total = math.fsum(demand.values())
    if total <= capacity:
        return dict.fromkeys(demand, 1.0)
    if capacity <= 0:
        return dict.fromkeys(demand, 0.0)
    floor = FLOOR * capacity / total
    left = capacity - floor * total
    factors: dict[str, float] = {}
    for level in sorted({priority.get(name, 0) for name in demand}, reverse=True):
        names = [name for name in demand if priority.get(name, 0) == level]
        wanted = math.fsum(demand[name] for name in names) * (1 - floor)
        granted = min(1.0, left / wanted) if wanted > 0 else 1.0
        left -= granted * wanted
        factors.update(dict.fromkeys(names, floor + (1 - floor) * granted))
    return factors


@dataclass(slots=True)
class Demand:
    """Evaluations per second that each stratum asks for, remembered with exponential decay."""

    started: float
    """Time of the beginning, in seconds of the same clock as all further times."""
    _sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _updated: float = -math.inf

    def add(self, stratum: str, expected: float, now: float) -> None:
        """One session of the stratum, which its rates would judge with probability `expected`."""
        self._decay(now)
        self._sums[stratum] += expected

    def rates(self, now: float) -> dict[str, float]:
        """Evaluations per second by stratum, corrected for the short memory at the beginning."""
        self._decay(now)
        span = MEMORY_S * -math.expm1(-max(YOUTH_S, now - self.started) / MEMORY_S)
        return {stratum: amount / span for stratum, amount in self._sums.items()}

    def _decay(self, now: float) -> None:
        if self._updated > -math.inf:
            faded = math.exp(-max(0.0, now - self._updated) / MEMORY_S)
            for stratum in self._sums:
                self._sums[stratum] *= faded
        self._updated = max(now, self._updated)
