"""What may be concluded from an uneven sample: weighted rates and means with honest intervals.

Every judged session stands for 1/probability sessions (its weight). Everything here is plain arithmetic on
weights and results of judged sessions; the caller leaves out errors, unscorable and not applicable results.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

__all__ = [
    "Estimate",
    "Stratum",
    "difference",
    "minimum_n",
    "prediction_powered",
    "rogan_gladen",
    "stratified_rate",
    "weighted_mean",
    "weighted_rate",
]

LEVEL = 0.95
"""Default confidence level."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    """NaN when there is nothing to estimate from."""
    low: float
    high: float
    n: int
    """Judged sessions it rests on."""
    effective_n: float
    """Sessions of an even sample that would give the same precision."""
    level: float = LEVEL
    """Confidence level of [low, high]."""

    @property
    def margin(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Stratum:
    """The judged part of one stratum (sampling rule), and how many sessions the whole stratum had."""

    size: float
    """All completed sessions of the stratum, judged or not, as the ledger counted them."""
    weights: Sequence[float]
    hits: Sequence[bool]


def weighted_rate(weights: Sequence[float], hits: Sequence[bool], level: float = LEVEL) -> Estimate:
    """Share of sessions with a property, from an uneven sample.

    The value is the Hájek ratio Σ w·hit / Σ w (J. Hájek, in Foundations of Statistical Inference, 1971). The
    interval is Wilson's (JASA 22, 1927) on the effective n, rate·(1 − rate) divided by the linearised variance
    Σ w²(hit − rate)² / (Σ w)² (Särndal, Swensson, Wretman, Model Assisted Survey Sampling, 1992, section 5.7). The
    variance is taken class by class of similar weights, and in each class the share of hits is drawn towards the
    rate by one imagined hit: without that, a class of heavy weights with no hit yet would count as certain. Without
    any hit or miss at all, and with equal weights, the effective n is Kish's (Survey Sampling, 1965).

    Args:
        weights: 1/probability of each judged session, finite and > 0.
        hits: whether the session has the property, in the same order.

    Raises:
        ValueError: lengths differ, or a weight is not finite and positive.
    """
    _check_weights(weights, len(hits))
    if not weights:
        return Estimate(math.nan, 0.0, 1.0, 0, 0.0, level)
    total = math.fsum(weights)
    rate = min(1.0, math.fsum(w for w, hit in zip(weights, hits, strict=True) if hit) / total)
    effective = _effective_n(rate, weights, hits)
    low, high = wilson(rate, effective, level)
    return Estimate(rate, low, high, len(weights), effective, level)


def weighted_mean(weights: Sequence[float], values: Sequence[float], level: float = LEVEL) -> Estimate:
    """Mean of a score from an uneven sample.

    Hájek mean with the linearised variance Σ w²(x − mean)² / (Σ w)², scaled by n/(n − 1) (Särndal, Swensson,
    Wretman: Model Assisted Survey Sampling, 1992, section 5.7), and Student's t on the effective n.

    Raises:
        ValueError: lengths differ, or a weight is not finite and positive.
    """
    _check_weights(weights, len(values))
    if not weights:
        return Estimate(math.nan, -math.inf, math.inf, 0, 0.0, level)
    total = math.fsum(weights)
    mean = math.fsum(w * x for w, x in zip(weights, values, strict=True)) / total
    effective = kish(weights)
    if len(weights) < 2:
        return Estimate(mean, -math.inf, math.inf, 1, effective, level)
    squares = math.fsum((w * (x - mean)) ** 2 for w, x in zip(weights, values, strict=True))
    error = math.sqrt(squares * len(weights) / (len(weights) - 1)) / total
    reach = student_t(level, max(1.0, effective - 1)) * error
    return Estimate(mean, mean - reach, mean + reach, len(weights), effective, level)


def stratified_rate(strata: Sequence[Stratum], level: float = LEVEL) -> Estimate:
    """Share of sessions with a property when the size of each stratum is known; narrower than `weighted_rate`.

    The strata's weighted rates in the proportion of their sizes; the interval combines their intervals (MOVER: Zou
    and Donner, Statistics in Medicine 27, 2008; for strata Yan and Su, American Statistician 64, 2010). A stratum
    without a judged session counts with the rate of the others and an interval from 0 to 1.

    Raises:
        ValueError: no stratum has a size above 0, or weights are not valid.
    """
    total = math.fsum(stratum.size for stratum in strata)
    if not total > 0:
        raise ValueError("no sessions in any stratum: give the number of completed sessions of each as its size")
    parts = [weighted_rate(stratum.weights, stratum.hits, level) for stratum in strata]
    known = [(s.size, part.value) for s, part in zip(strata, parts, strict=True) if part.n]
    if not known:
        return Estimate(math.nan, 0.0, 1.0, 0, 0.0, level)
    others = math.fsum(size * rate for size, rate in known) / math.fsum(size for size, _ in known)
    value = down = up = 0.0
    for stratum, part in zip(strata, parts, strict=True):
        share, rate = stratum.size / total, part.value if part.n else others
        value += share * rate
        down += (share * (rate - part.low)) ** 2
        up += (share * (part.high - rate)) ** 2
    low, high = max(0.0, value - math.sqrt(down)), min(1.0, value + math.sqrt(up))
    return Estimate(value, low, high, sum(p.n for p in parts), _n_of_interval(value, low, high, level), level)


def difference(later: Estimate, earlier: Estimate) -> Estimate:
    """By how much a rate changed between two periods or versions: `later` − `earlier`.

    Newcombe's hybrid score interval (Statistics in Medicine 17, 1998, method 10), which combines the two
    intervals and so inherits their effective n. A change is established when the interval excludes 0.

    Raises:
        ValueError: the two have different confidence levels.
    """
    if later.level != earlier.level:
        raise ValueError(f"levels {later.level} and {earlier.level} differ: estimate both at the same level")
    delta = later.value - earlier.value
    down = math.hypot(later.value - later.low, earlier.high - earlier.value)
    up = math.hypot(later.high - later.value, earlier.value - earlier.low)
    size = min(later.effective_n, earlier.effective_n)
    return Estimate(delta, delta - down, delta + up, later.n + earlier.n, size, later.level)


def minimum_n(margin: float, rate: float = 0.5, level: float = LEVEL) -> int:
    """Effective n at which a rate of about `rate` is known to ± `margin`, half of Wilson's interval.

    Raises:
        ValueError: `margin` is not inside (0, 0.5) or `rate` not inside [0, 1].
    """
    if not 0.0 < margin < 0.5:
        raise ValueError(f"margin {margin!r}: give a number between 0 and 0.5, e.g. 0.02 for ± 2 %")
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate {rate!r}: give the expected rate, from 0 to 1")
    low, high = 1, 2
    while _wilson_margin(rate, high, level) > margin:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if _wilson_margin(rate, middle, level) > margin:
            low = middle + 1
        else:
            high = middle
    return high


def rogan_gladen(apparent: Estimate, sensitivity: Estimate, specificity: Estimate) -> Estimate:
    """The true rate behind the rate that an imperfect judge reports, with the uncertainty of all three numbers.

    Value: Rogan and Gladen, American Journal of Epidemiology 107 (1978). Interval: Lang and Reiczigel, Preventive
    Veterinary Medicine 113 (2014), on effective n.

    Args:
        apparent: share of sessions that the judge called a hit.
        sensitivity: share of true hits (by people) that the judge called a hit, e.g. `weighted_rate` of them.
        specificity: share of true misses that the judge called a miss.

    Raises:
        ValueError: the judge is no better than chance (sensitivity + specificity ≤ 1), or has not been measured.
    """
    if not (sensitivity.n and specificity.n):
        raise ValueError("sensitivity or specificity rests on no session: let people label judged sessions first")
    youden = sensitivity.value + specificity.value - 1
    if youden <= 0:
        raise ValueError(
            f"sensitivity {sensitivity.value:.3g} + specificity {specificity.value:.3g} is not above 1: such a judge"
            " tells nothing about the true rate; mend the judge first"
        )
    value = min(1.0, max(0.0, (apparent.value + specificity.value - 1) / youden))
    low, high = _lang_reiczigel(apparent, sensitivity, specificity)
    effective = _n_of_interval(value, low, high, apparent.level)
    return Estimate(value, low, high, apparent.n, effective, apparent.level)


def prediction_powered(
    weights: Sequence[float],
    values: Sequence[float],
    predictions: Sequence[float],
    population: int,
    predicted_mean: float,
    level: float = LEVEL,
) -> Estimate:
    """A rate or mean score (0 to 1) from judgements on a sample and a cheap prediction on every session.

    Prediction-powered inference (Angelopoulos et al., Science 382, 2023) with power tuning (PPI++, 2023) on an
    uneven sample with known probabilities, which is the difference estimator of Särndal, Swensson and Wretman
    (1992, chapter 6): λ·(mean prediction of all) + weighted mean of (value − λ·prediction) in the sample. A useless
    prediction gets λ near 0 and does no harm. Interval: Wilson's on the n that this variance is worth.

    Args:
        weights: 1/probability of each judged session.
        values: what the judge found, 0 to 1.
        predictions: what was predicted for each judged session, e.g. 1 if it had a signal, else 0.
        population: number of all completed sessions, judged or not.
        predicted_mean: mean prediction over all of them.

    Raises:
        ValueError: lengths differ, a weight is not valid, or the sample is larger than the population.
    """
    _check_weights(weights, len(values))
    _check_weights(weights, len(predictions))
    if population < len(weights):
        raise ValueError(f"population {population} is less than {len(weights)} judged sessions: count all sessions")
    if not weights:
        return Estimate(math.nan, 0.0, 1.0, 0, 0.0, level)
    sample = list(zip(weights, values, predictions, strict=True))
    total = math.fsum(weights)
    value_mean = math.fsum(w * y for w, y, _ in sample) / total
    sample_mean = math.fsum(w * f for w, _, f in sample) / total
    # Only sessions with weight above 1 stand for unseen ones, so only they tell how well the prediction does there.
    spread = math.fsum(w * (w - 1) * (f - sample_mean) ** 2 for w, _, f in sample)
    shared = math.fsum(w * (w - 1) * (y - value_mean) * (f - sample_mean) for w, y, f in sample)
    power = min(1.0, max(0.0, shared / spread)) if spread > 0 else 0.0
    rate = min(1.0, max(0.0, value_mean + power * (predicted_mean - sample_mean)))
    if not 0.0 < value_mean < 1.0 or not 0.0 < rate < 1.0:
        effective = kish(weights)
    else:
        unseen = _unseen_variance(sample, value_mean, sample_mean, power)
        effective = rate * (1 - rate) / (_spread(sample, value_mean) * rate * (1 - rate) / population + unseen)
    low, high = wilson(rate, effective, level)
    return Estimate(rate, low, high, len(weights), effective, level)


# -- Building blocks --


def kish(weights: Iterable[float]) -> float:
    """Effective n of unevenly weighted sessions, (Σ w)² / Σ w² (L. Kish, Survey Sampling, 1965)."""
    known = list(weights)
    squares = math.fsum(w * w for w in known)
    return math.fsum(known) ** 2 / squares if squares else 0.0


def wilson(rate: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a rate seen in `n` (effective) trials; [0, 1] when n is 0.

    E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    if n <= 0:
        return 0.0, 1.0
    z = quantile(level)
    spread = z * math.sqrt(rate * (1 - rate) / n + (z / (2 * n)) ** 2)
    scale = 1 + z * z / n
    centre = rate + z * z / (2 * n)
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def quantile(level: float) -> float:
    """Normal quantile of a two-sided interval: 1.96 at 0.95.

    Raises:
        ValueError: the level is not inside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level {level!r}: give a confidence level between 0 and 1, e.g. 0.95")
    return NormalDist().inv_cdf(0.5 + level / 2)


def student_t(level: float, freedom: float) -> float:
    """Two-sided Student quantile by the Cornish-Fisher expansion; exact to 1 % from 4 degrees of freedom on.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    z = quantile(level)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


def _effective_n(rate: float, weights: Sequence[float], hits: Sequence[bool]) -> float:
    if not 0.0 < rate < 1.0:
        return kish(weights)
    classes: dict[int, _Class] = defaultdict(_Class)
    least = min(weights)
    for weight, hit in zip(weights, hits, strict=True):
        classes[_doublings(weight / least)].add(float(hit), weight * weight)
    variance = math.fsum(
        found.squares * (share * (1 - share) + (share - rate) ** 2)
        for found in classes.values()
        for share in [found.share(rate)]
    )
    return rate * (1 - rate) * math.fsum(weights) ** 2 / variance


@dataclass(slots=True)
class _Class:
    """Judged sessions that are alike before judging: of similar weight, and where there is one, prediction."""

    n: int = 0
    hits: float = 0.0
    """Sum of their values: of a rate, the number of hits."""
    squares: float = 0.0
    """Sum of what each contributes to a variance, times its own squared error."""

    def add(self, value: float, square: float) -> None:
        self.n += 1
        self.hits += value
        self.squares += square

    def share(self, rate: float) -> float:
        """Mean value, drawn towards the overall one by so many sessions as hold one hit (or miss, the rarer)."""
        imagined = 1.0 / min(rate, 1.0 - rate)
        return (self.hits + imagined * rate) / (self.n + imagined)


def _doublings(ratio: float) -> int:
    # The addition keeps a ratio of exactly two in its class whatever rounding made of it.
    return math.floor(math.log2(ratio) + 1e-9)


def _spread(sample: Sequence[tuple[float, float, float]], mean: float) -> float:
    """Variance of the values as a part of that of hits and misses with the same mean; 1 for a rate."""
    total = math.fsum(weight for weight, _, _ in sample)
    return math.fsum(w * (y - mean) ** 2 for w, y, _ in sample) / total / (mean * (1 - mean))


def _unseen_variance(
    sample: Sequence[tuple[float, float, float]], value_mean: float, prediction_mean: float, power: float
) -> float:
    """Variance from the sessions nobody judged, class by class as in `weighted_rate`, about the prediction."""
    classes: dict[tuple[int, float], _Class] = defaultdict(_Class)
    least = min(weight for weight, _, _ in sample)
    for weight, value, prediction in sample:
        classes[_doublings(weight / least), round(prediction, 1)].add(value, weight * (weight - 1))
    spread = _spread(sample, value_mean)
    errors = []
    for (_, prediction), found in classes.items():
        expected, share = value_mean + power * (prediction - prediction_mean), found.share(value_mean)
        errors.append(found.squares * (spread * share * (1 - share) + (share - expected) ** 2))
    return math.fsum(errors) / math.fsum(weight for weight, _, _ in sample) ** 2


def _lang_reiczigel(apparent: Estimate, sensitivity: Estimate, specificity: Estimate) -> tuple[float, float]:
    z = quantile(apparent.level)
    n, n_sens, n_spec = apparent.effective_n, sensitivity.effective_n, specificity.effective_n
    q = (n * apparent.value + z * z / 2) / (n + z * z)
    sens = (n_sens * sensitivity.value + 1) / (n_sens + 2)
    spec = (n_spec * specificity.value + 1) / (n_spec + 2)
    youden = sens + spec - 1
    if youden <= 0:
        return 0.0, 1.0
    true = min(1.0, max(0.0, (q + spec - 1) / youden))
    of_sens, of_spec = sens * (1 - sens) / n_sens, spec * (1 - spec) / n_spec
    shift = 2 * z * z * (true * of_sens - (1 - true) * of_spec)
    reach = z * math.sqrt(q * (1 - q) / (n + z * z) + true**2 * of_sens + (1 - true) ** 2 * of_spec) / youden
    return min(1.0, max(0.0, true + shift - reach)), max(0.0, min(1.0, true + shift + reach))


def _n_of_interval(rate: float, low: float, high: float, level: float) -> float:
    """The n at which Wilson's interval around `rate` is as wide as [low, high]; 0 when wider than any."""
    margin = (high - low) / 2
    least, most = 0.0, 1e9
    for _ in range(80):
        middle = (least + most) / 2
        if middle > 0 and _wilson_margin(rate, middle, level) <= margin:
            most = middle
        else:
            least = middle
    return most if margin < 0.5 else 0.0


def _wilson_margin(rate: float, n: float, level: float) -> float:
    low, high = wilson(rate, n, level)
    return (high - low) / 2


def _check_weights(weights: Sequence[float], results: int) -> None:
    if len(weights) != results:
        raise ValueError(f"{len(weights)} weights for {results} results: give one weight for each result")
    for weight in weights:
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"weight {weight!r}: give 1/probability of the judged session, finite and above 0")
