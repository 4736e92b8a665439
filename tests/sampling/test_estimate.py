"""Estimates against published numbers and against what must hold for any input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_evals.sampling.estimate import (
    Estimate,
    Stratum,
    difference,
    minimum_n,
    prediction_powered,
    rogan_gladen,
    stratified_rate,
    weighted_mean,
    weighted_rate,
)


def even(hits: int, n: int) -> Estimate:
    return weighted_rate([1.0] * n, [index < hits for index in range(n)])


class TestWeightedRate:
    @pytest.mark.parametrize(
        ("hits", "n", "low", "high"),
        # Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3 (Wilson).
        [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
    )
    def test_an_even_sample_has_wilsons_interval(self, hits: int, n: int, low: float, high: float) -> None:
        estimate = even(hits, n)
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=5e-5)
        assert estimate.value == pytest.approx(hits / n)
        assert estimate.effective_n == pytest.approx(n)

    def test_sessions_count_as_many_as_they_stand_for(self) -> None:
        # 10 of 20 hits among sessions judged always, 1 of 20 among those judged at one in ten.
        weights = [1.0] * 20 + [10.0] * 20
        hits = [True] * 10 + [False] * 10 + [True] + [False] * 19
        assert weighted_rate(weights, hits).value == pytest.approx((10 + 10) / (20 + 200))

    def test_without_a_hit_the_effective_n_is_kishs(self) -> None:
        estimate = weighted_rate([1.0] * 20 + [10.0] * 20, [False] * 40)
        assert estimate.value == 0.0
        assert estimate.effective_n == pytest.approx(220**2 / (20 + 2000))

    def test_hits_that_were_always_judged_are_worth_more_than_hits_that_stand_for_many(self) -> None:
        weights = [1.0] * 50 + [10.0] * 50
        cheap = weighted_rate(weights, [index < 20 for index in range(100)])
        dear = weighted_rate(weights, [index >= 98 for index in range(100)])
        assert dear.value == pytest.approx(cheap.value)
        assert dear.margin > cheap.margin

    def test_nothing_judged_is_no_rate_and_every_rate(self) -> None:
        estimate = weighted_rate([], [])
        assert math.isnan(estimate.value)
        assert (estimate.low, estimate.high, estimate.n, estimate.effective_n) == (0.0, 1.0, 0, 0.0)

    @pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
    def test_what_is_no_weight_is_refused(self, weight: float) -> None:
        with pytest.raises(ValueError, match="give 1/probability"):
            weighted_rate([1.0, weight], [True, False])

    def test_each_result_needs_its_weight(self) -> None:
        with pytest.raises(ValueError, match="1 weights for 2 results"):
            weighted_rate([1.0], [True, False])

    def test_a_level_is_between_0_and_1(self) -> None:
        with pytest.raises(ValueError, match="confidence level between 0 and 1"):
            weighted_rate([1.0], [True], level=95)

    @given(st.lists(st.tuples(st.floats(1.0, 1e6), st.booleans()), min_size=1, max_size=50))
    def test_the_interval_holds_the_rate_and_stays_between_0_and_1(self, judged: list[tuple[float, bool]]) -> None:
        estimate = weighted_rate([w for w, _ in judged], [hit for _, hit in judged])
        slack = 1e-9
        assert 0.0 <= estimate.low <= estimate.value + slack
        assert estimate.value - slack <= estimate.high <= 1.0
        assert estimate.effective_n > 0

    @given(st.lists(st.tuples(st.floats(1.0, 1e3), st.booleans()), min_size=1, max_size=30), st.floats(0.1, 1e3))
    def test_only_the_ratio_of_weights_matters(self, judged: list[tuple[float, bool]], factor: float) -> None:
        weights, hits = [w for w, _ in judged], [hit for _, hit in judged]
        one, other = weighted_rate(weights, hits), weighted_rate([w * factor for w in weights], hits)
        assert (one.low, one.value, one.high) == pytest.approx((other.low, other.value, other.high))


class TestWeightedMean:
    def test_an_even_sample_has_students_interval(self) -> None:
        # 1..10: mean 5.5, standard error 0.9574, t(9) = 2.262.
        estimate = weighted_mean([1.0] * 10, list(range(1, 11)))
        assert estimate.value == pytest.approx(5.5)
        assert estimate.margin == pytest.approx(2.262 * 0.9574, rel=1e-3)

    def test_weights_move_the_mean(self) -> None:
        assert weighted_mean([1.0, 3.0], [0.0, 1.0]).value == pytest.approx(0.75)

    def test_one_session_has_a_mean_and_no_interval(self) -> None:
        estimate = weighted_mean([2.0], [0.4])
        assert (estimate.value, estimate.low, estimate.high) == (0.4, -math.inf, math.inf)


class TestDifference:
    @pytest.mark.parametrize(
        ("later", "earlier", "low", "high"),
        # Newcombe, Statistics in Medicine 17 (1998) 873-890, table II, method 10.
        [
            ((56, 70), (48, 80), 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.1705, 0.8090),
            ((5, 56), (0, 29), -0.0381, 0.1926),
            ((0, 10), (0, 10), -0.2775, 0.2775),
        ],
    )
    def test_it_is_newcombes(self, later: tuple[int, int], earlier: tuple[int, int], low: float, high: float) -> None:
        found = difference(even(*later), even(*earlier))
        assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)

    def test_periods_of_different_levels_cannot_be_compared(self) -> None:
        with pytest.raises(ValueError, match="estimate both at the same level"):
            difference(even(1, 2), weighted_rate([1.0], [True], level=0.9))


class TestMinimumN:
    @pytest.mark.parametrize(("margin", "rate"), [(0.02, 0.5), (0.02, 0.05), (0.1, 0.01), (0.3, 0.5)])
    def test_it_is_the_least_that_is_enough(self, margin: float, rate: float) -> None:
        n = minimum_n(margin, rate)
        assert _margin(rate, n) <= margin < _margin(rate, n - 1)

    @pytest.mark.parametrize("margin", [0.0, 0.5, -1.0, math.nan])
    def test_a_margin_is_between_0_and_a_half(self, margin: float) -> None:
        with pytest.raises(ValueError, match="margin"):
            minimum_n(margin)


def _margin(rate: float, n: int) -> float:
    z = 1.959963984540054
    return z * math.sqrt(rate * (1 - rate) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)


class TestStratifiedRate:
    def test_strata_count_in_the_proportion_of_their_sizes(self) -> None:
        strata = [Stratum(100, [1.0] * 4, [True] * 2 + [False] * 2), Stratum(900, [10.0] * 10, [True] + [False] * 9)]
        assert stratified_rate(strata).value == pytest.approx(0.1 * 0.5 + 0.9 * 0.1)

    def test_one_stratum_is_the_weighted_rate(self) -> None:
        alone, plain = stratified_rate([Stratum(50, [1.0] * 10, [True] * 3 + [False] * 7)]), even(3, 10)
        assert (alone.value, alone.low, alone.high) == pytest.approx((plain.value, plain.low, plain.high))

    def test_knowing_the_sizes_narrows_the_interval(self) -> None:
        bad, good = [True] * 60 + [False] * 40, [True] * 2 + [False] * 98
        weights = [1.0] * 100 + [9.0] * 100
        strata = [Stratum(100, weights[:100], bad), Stratum(900, weights[100:], good)]
        assert stratified_rate(strata).margin < weighted_rate(weights, bad + good).margin

    def test_a_stratum_nobody_judged_widens_the_interval_by_its_share(self) -> None:
        judged = Stratum(90, [1.0] * 90, [True] * 9 + [False] * 81)
        estimate = stratified_rate([judged, Stratum(10, [], [])])
        assert estimate.value == pytest.approx(0.1)
        assert estimate.high > 0.1 + 0.1 * 0.85

    def test_without_any_session_there_is_nothing_to_estimate(self) -> None:
        with pytest.raises(ValueError, match="no sessions in any stratum"):
            stratified_rate([Stratum(0, [], [])])


class TestRoganGladen:
    def test_a_perfect_judge_changes_nothing(self) -> None:
        corrected = rogan_gladen(even(10, 100), even(10_000, 10_000), even(10_000, 10_000))
        assert corrected.value == pytest.approx(0.1)
        assert (corrected.low, corrected.high) == pytest.approx((even(10, 100).low, even(10, 100).high), abs=0.005)

    def test_false_alarms_are_taken_off(self) -> None:
        # 10 % true hits seen at 90 %, 5 % false alarms: 13.5 % apparent.
        assert rogan_gladen(even(135, 1000), even(90, 100), even(95, 100)).value == pytest.approx(0.1)

    def test_what_is_not_known_about_the_judge_widens_the_interval(self) -> None:
        apparent = even(135, 1000)
        well = rogan_gladen(apparent, even(900, 1000), even(950, 1000))
        barely = rogan_gladen(apparent, even(18, 20), even(19, 20))
        assert barely.margin > 2 * well.margin
        assert barely.effective_n < well.effective_n < apparent.effective_n

    def test_a_rate_below_the_false_alarms_is_none(self) -> None:
        assert rogan_gladen(even(1, 100), even(90, 100), even(95, 100)).value == 0.0

    def test_a_judge_no_better_than_chance_is_refused(self) -> None:
        with pytest.raises(ValueError, match="tells nothing about the true rate"):
            rogan_gladen(even(10, 100), even(50, 100), even(50, 100))

    def test_a_judge_that_was_never_measured_is_refused(self) -> None:
        with pytest.raises(ValueError, match="let people label"):
            rogan_gladen(even(10, 100), weighted_rate([], []), even(50, 100))


class TestPredictionPowered:
    def test_a_perfect_prediction_brings_the_sample_near_the_worth_of_the_population(self) -> None:
        few, many = ([1.0] * n + [0.0] * (9 * n) for n in (10, 1000))
        known = prediction_powered([10.0] * 100, few, few, population=1000, predicted_mean=0.12)
        proven = prediction_powered([10.0] * 10_000, many, many, population=100_000, predicted_mean=0.12)
        assert known.value == proven.value == pytest.approx(0.12)
        assert 100 < known.effective_n < 1000
        assert proven.effective_n > 0.5 * 100_000

    def test_a_useless_prediction_does_no_harm(self) -> None:
        values = [1.0] * 10 + [0.0] * 90
        unrelated = [float(index % 2) for index in range(100)]
        estimate = prediction_powered([10.0] * 100, values, unrelated, population=1000, predicted_mean=0.9)
        assert estimate.value == pytest.approx(0.1, abs=1e-9)
        assert estimate.effective_n == pytest.approx(100, rel=0.01)

    def test_a_helpful_one_corrects_an_unlucky_sample(self) -> None:
        # Hits are nine of ten among the predicted, of whom the sample holds too few.
        predictions = [1.0] * 10 + [0.0] * 90
        values = [1.0] * 9 + [0.0] * 91
        estimate = prediction_powered([10.0] * 100, values, predictions, population=1000, predicted_mean=0.2)
        assert estimate.value == pytest.approx(0.18, abs=0.001)

    def test_a_fully_judged_population_needs_no_prediction(self) -> None:
        estimate = prediction_powered([1.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0], 4, 0.75)
        assert estimate.value == pytest.approx(0.25)
        assert estimate.effective_n == pytest.approx(4)

    def test_the_population_holds_the_sample(self) -> None:
        with pytest.raises(ValueError, match="count all sessions"):
            prediction_powered([1.0, 1.0], [0.0, 1.0], [0.0, 1.0], population=1, predicted_mean=0.5)
