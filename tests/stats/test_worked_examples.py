"""The procedures beside the verdict against published worked examples and independent twins."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import scipy.stats

from iolab.stats.methods.autocorrelation import lag_one
from iolab.stats.methods.change_points import change_points, energy_statistics
from iolab.stats.methods.effect_size import clopper_pearson, hedges_g, superiority
from iolab.stats.methods.factor_effects import factor_effects
from iolab.stats.methods.group_sequential import nominal_levels
from iolab.stats.methods.hodges_lehmann import hodges_lehmann
from iolab.stats.methods.kalibera_jones import plan_repetitions, top_interval
from iolab.stats.methods.location import bca_interval, median_interval, median_ranks
from iolab.stats.methods.mser import truncate_warm_up
from iolab.stats.methods.power import chance_of_difference, chance_of_same, rounds_needed
from iolab.stats.methods.sign_flip import rounds_to_reach, sign_flip_p, smallest_p
from iolab.stats.methods.steady_state import steady_state
from iolab.stats.methods.stein import stein_rounds
from iolab.study.plan import look_rounds


def test_sign_flips_against_scipy_and_the_achievable_p() -> None:
    """Spec of achievability: 5 rounds .0625, 6 .031, 8 .0078, 10 .0020, 12 .0005."""
    values = [0.3, -0.1, 0.4, 0.2, 0.5, -0.05]
    twin = scipy.stats.permutation_test(
        (np.array(values),), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip_p(values) == pytest.approx(twin.pvalue)
    assert sign_flip_p([1.0] * 5) == smallest_p(5) == 0.0625
    assert [round(smallest_p(n), 4) for n in (6, 8, 10, 12)] == [0.0312, 0.0078, 0.002, 0.0005]
    # All 28 pairs of eight levels, Holm: .05 / 28 takes 11 rounds.
    assert rounds_to_reach(0.05 / 28) == 11
    assert sign_flip_p([1.0] * 13) is None


def test_clopper_pearson_against_scipy() -> None:
    for successes, n in ((0, 20), (2, 20), (20, 20), (50, 1000)):
        twin = scipy.stats.binomtest(successes, n).proportion_ci(method="exact")
        share = clopper_pearson(successes, n)
        assert (share.low, share.high) == pytest.approx((twin.low, twin.high))
    with pytest.raises(ValueError, match="no share"):
        clopper_pearson(3, 2)


def test_hedges_g_of_lakens_films() -> None:
    """Lakens (2013), table 1: two films rated by ten people, Hedges' g = 1.08."""
    first, second = [9, 7, 8, 9, 8, 9, 9, 10, 9, 9], [9, 6, 7, 8, 7, 9, 8, 8, 8, 7]
    assert hedges_g(first, second) == pytest.approx(1.08, abs=0.005)
    assert hedges_g([1.0, 1.0], [1.0, 1.0]) is None
    share = superiority([a - b for a, b in zip(first, second, strict=True)])
    assert share is not None
    assert (share.share, share.n) == (1.0, 8)


# Yates (1935): yields of three varieties of oats (whole plots) at four levels of nitrogen, six
# blocks; as MASS::oats. R: aov(Y ~ N * V + Error(B / V)): V F = 1.485 on 2 and 10, p = .272;
# N F = 37.69 on 3 and 45, p = 2.46e-12; N:V F = 0.303 on 6 and 45, p = .932.
OATS = {
    1: {"V": (111, 130, 157, 174), "G": (117, 114, 161, 141), "M": (105, 140, 118, 156)},
    2: {"V": (61, 91, 97, 100), "G": (70, 108, 126, 149), "M": (96, 124, 121, 144)},
    3: {"V": (68, 64, 112, 86), "G": (60, 102, 89, 96), "M": (89, 129, 132, 124)},
    4: {"V": (74, 89, 81, 122), "G": (64, 103, 132, 133), "M": (70, 89, 104, 117)},
    5: {"V": (62, 90, 100, 116), "G": (80, 82, 94, 126), "M": (63, 70, 109, 99)},
    6: {"V": (53, 74, 118, 113), "G": (89, 82, 86, 104), "M": (97, 99, 119, 121)},
}


def _oats() -> dict[tuple[int, tuple[str, ...]], float]:
    return {
        (block, (variety, str(nitrogen))): float(value)
        for block, rows in OATS.items()
        for variety, values in rows.items()
        for nitrogen, value in enumerate(values)
    }


def test_split_plot_of_oats() -> None:
    """Variance components of REML for these data: 214.48 (block), 106.06 (plot), 177.08."""
    effects = factor_effects(_oats(), ["variety", "nitrogen"], ["variety"])
    assert effects is not None
    terms = {term.factors: term for term in effects.terms}
    variety, nitrogen = terms["variety",], terms["nitrogen",]
    both = terms["variety", "nitrogen"]
    assert (variety.f, variety.p) == pytest.approx((1.485, 0.272), abs=0.001)
    assert (variety.degrees_of_freedom, variety.error_degrees_of_freedom) == (2, 10)
    assert (nitrogen.f, nitrogen.p) == pytest.approx((37.686, 2.46e-12), abs=0.001)
    assert (both.f, both.p, both.error_degrees_of_freedom) == pytest.approx(
        (0.303, 0.932, 45), abs=0.001
    )
    assert effects.round_sd**2 == pytest.approx(214.48, abs=0.01)
    assert effects.whole_plot_sd is not None
    assert effects.whole_plot_sd**2 == pytest.approx(106.06, abs=0.01)
    assert effects.trial_sd**2 == pytest.approx(177.08, abs=0.01)
    assert effects.terms[0].factors == ("nitrogen",)


def test_an_incomplete_factorial_is_not_analysed() -> None:
    values = _oats()
    values.pop((3, ("G", "2")))
    assert factor_effects(values, ["variety", "nitrogen"]) is None


def test_hodges_lehmann_of_the_depression_scale() -> None:
    """Hollander and Wolfe (1973), example 3.1: estimate 0.46, interval 0.010 to 0.786."""
    first = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
    second = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)
    shift = hodges_lehmann([a - b for a, b in zip(first, second, strict=True)])
    assert shift is not None
    assert shift.estimate == pytest.approx(0.46)
    assert (shift.low, shift.high) == pytest.approx((0.010, 0.786))
    assert shift.confidence == pytest.approx(0.961, abs=0.001)
    few = hodges_lehmann([1.0, 2.0, 3.0, 4.0, 5.0])
    assert few is not None
    assert (few.estimate, few.low) == (3.0, None)


def test_ranks_of_the_median() -> None:
    """Binomial coverage by hand: six values 1 - 2/64; no interval of 95 % below six."""
    assert median_ranks(5) is None
    assert median_ranks(6) == (1, 6, 1 - 2 / 64)
    assert median_ranks(10) == (2, 9, pytest.approx(1 - 2 * 11 / 1024))
    bounds = median_interval([3.0, 1, 2, 6, 5, 4])
    assert bounds is not None
    assert (bounds.low, bounds.high) == (1.0, 6.0)


def test_bca_against_scipy() -> None:
    sample = np.random.default_rng(1).lognormal(size=20)
    twin = scipy.stats.bootstrap(
        (sample,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    ours = bca_interval(list(sample))
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((twin.low, twin.high), rel=0.01)
    assert ours == bca_interval(list(sample))
    assert bca_interval([1.0] * 12) is None
    assert bca_interval(list(range(9))) is None


def test_bca_of_another_statistic() -> None:
    values = [float(v) for v in range(1, 12)]
    ours = bca_interval(values, lambda x: sorted(x)[len(x) // 2], resamples=499)
    assert ours is not None
    assert ours.low < 6 < ours.high


@pytest.mark.parametrize(
    ("kind", "looks", "printed"),
    [
        ("pocock", 2, 2.178),
        ("pocock", 5, 2.413),
        ("obrien_fleming", 2, 1.977),
        ("obrien_fleming", 3, 2.004),
        ("obrien_fleming", 5, 2.040),
    ],
)
def test_constants_of_jennison_and_turnbull(kind, looks: int, printed: float) -> None:
    """Jennison and Turnbull (2000), tables 2.1 and 2.3, alpha .05: the bound of the last look."""
    last = nominal_levels(looks, kind)[-1]
    assert float(scipy.stats.norm.isf(last / 2)) == pytest.approx(printed, abs=0.001)


def test_looks_are_spread_over_the_rounds() -> None:
    assert look_rounds(20, 4) == (5, 10, 15, 20)
    assert look_rounds(7, 3) == (3, 5, 7)
    with pytest.raises(ValueError, match="between 1 and 10"):
        nominal_levels(11, "pocock")


def test_kalibera_jones_recovers_the_variances_of_its_levels() -> None:
    """The paper's estimators, by hand for two levels and by simulation for three."""
    found = plan_repetitions([[1.0, 3.0], [5.0, 7.0]], [1.0, 8.0])
    # S1^2 = 2, S2^2 = var(2, 6) = 8, T2^2 = 8 - 2/2 = 7; r = ceil(sqrt(8 / 1 * 2 / 7)) = 2.
    assert found.spread_squared == pytest.approx((2.0, 7.0))
    assert found.counts == (2,)
    # What a repetition costs is not known: the pilot's number stays.
    assert plan_repetitions([[1.0, 3.0], [5.0, 7.0]], [0.0, 8.0]).counts == (2,)
    rng = random.Random(4)
    pilot = [
        [
            [day + trial + rng.gauss(0, 3) for _ in range(20)]
            for trial in [rng.gauss(0, 2) for _ in range(20)]
        ]
        for day in [rng.gauss(0, 1) for _ in range(60)]
    ]
    assert plan_repetitions(pilot, [1, 1, 1]).spread_squared == pytest.approx((9, 4, 1), rel=0.35)
    mean, half = top_interval([[1.0, 3.0], [5.0, 7.0]])
    assert (mean, half) == (4.0, pytest.approx(12.706 * 2, rel=1e-3))
    with pytest.raises(ValueError, match="same number"):
        plan_repetitions([[1.0, 2.0], [3.0]], [1, 1])
    with pytest.raises(ValueError, match="as many costs"):
        plan_repetitions([[1.0, 2.0], [3.0, 4.0]], [1])


def test_mser_cuts_a_known_transient() -> None:
    rng = random.Random(6)
    values = [100 - 80 * math.exp(-i / 8) + rng.gauss(0, 2) for i in range(200)]
    cut = truncate_warm_up(values)
    assert cut is not None
    assert cut.is_settled
    assert 15 <= cut.n_dropped <= 45
    flat = truncate_warm_up([100 + rng.gauss(0, 2) for _ in range(200)])
    assert flat is not None
    assert flat.n_dropped <= 50
    rising = truncate_warm_up([float(i) for i in range(200)])
    assert rising is not None
    assert not rising.is_settled
    assert truncate_warm_up([1.0] * 19) is None


def test_snia_bounds_are_where_the_specification_puts_them() -> None:
    """Range 20 % and fitted change 10 % of the mean of five values, both inclusive."""
    flat = steady_state([100, 100, 100, 100, 100])
    assert flat is not None
    assert (flat.reached_at, flat.range_share, flat.slope_share) == (5, 0, 0)
    spread = steady_state([90.0, 110, 100, 90, 110])
    assert spread is not None
    assert spread.range_share == pytest.approx(0.2)
    assert spread.is_steady_at_end
    slope = steady_state([94.5, 97.25, 100, 102.75, 105.5])
    assert slope is not None
    assert slope.slope_share == pytest.approx(0.11)
    assert slope.reached_at is None
    late = steady_state([50, 80, 100, 101, 99, 100, 102])
    assert late is not None
    assert late.reached_at == 7
    assert steady_state([1.0] * 4) is None


def test_energy_statistic_is_its_definition() -> None:
    series = np.random.default_rng(5).normal(size=9)
    found = energy_statistics(series)
    for place, value in enumerate(found):
        a, b = series[: place + 2], series[place + 2 :]
        m, n = len(a), len(b)
        between = 2 / (m * n) * np.abs(a[:, None] - b[None, :]).sum()
        inside = sum(
            np.abs(x[:, None] - x[None, :]).sum() / 2 / math.comb(len(x), 2) for x in (a, b)
        )
        assert value == pytest.approx(m * n / (m + n) * (between - inside))


def test_change_points_are_found_where_they_are() -> None:
    rng = random.Random(8)
    levels = [10.0] * 40 + [6.0] * 30 + [10.0] * 30
    places = change_points([v + rng.gauss(0, 0.5) for v in levels], smallest_change=0.1)
    assert len(places) == 2
    assert abs(places[0] - 40) <= 1
    assert abs(places[1] - 70) <= 1
    assert change_points([10 + rng.gauss(0, 0.5) for _ in range(100)], smallest_change=0.1) == []


def test_lag_one_of_a_known_process() -> None:
    rng = random.Random(9)
    state, values = 0.0, []
    for _ in range(4000):
        state = 0.6 * state + rng.gauss(0, 1)
        values.append(state)
    found = lag_one(values)
    assert found is not None
    assert found.value == pytest.approx(0.6, abs=0.05)
    assert found.chance == pytest.approx(1.96 / math.sqrt(4000))
    assert lag_one([1.0] * 10) is None


def test_stein_by_hand() -> None:
    """s0 = 2, t(7, .975) = 2.3646, d = 1: N = ceil((2.3646 * 2)**2) = 23."""
    pilot = [x * 2 / math.sqrt(8 / 7) for x in (-1, 1, -1, 1, -1, 1, -1, 1)]
    plan = stein_rounds(pilot, 1.0)
    assert (plan.n_pilot, plan.n_total) == (8, 23)
    assert plan.half_width <= 1.0
    assert stein_rounds(pilot, 100.0).n_total == 8
    with pytest.raises(ValueError, match="two rounds"):
        stein_rounds([1.0], 1.0)


def test_power_of_same_matches_phillips() -> None:
    """Two one-sided tests as a paired t, n = 2: hardly a chance; n large: certainty; monotone."""
    assert chance_of_same(0.0, 0.05, 0.05, 2) < 0.1
    chances = [chance_of_same(0.0, 0.05, 0.05, n) for n in (5, 10, 20, 80)]
    assert chances == sorted(chances)
    assert chances[-1] > 0.999
    needed = rounds_needed(math.log(1.10), 0.05, 0.03)
    assert needed is not None
    assert chance_of_difference(math.log(1.10), 0.05, 0.03, needed) >= 0.8
    assert chance_of_difference(math.log(1.10), 0.05, 0.03, needed - 1) < 0.8
    assert rounds_needed(math.log(1.0501), 0.05, 0.5) is None
    more = rounds_needed(math.log(1.10), 0.05, 0.03, family=3)
    assert more is not None
    assert more > needed
