"""Every procedure against a published example, an independent twin, or its own definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.stats.methods.benjamini_hochberg import benjamini_hochberg
from iolab.stats.methods.best_set import best_set
from iolab.stats.methods.holm import holm_steps
from iolab.stats.methods.log_ratio import geometric_interval, geometric_mean, log_ratio
from iolab.stats.methods.position import PlacedValue, position_effect
from iolab.stats.methods.student import MeanEstimate, estimate_mean, spread_bound
from iolab.stats.methods.verdict_rule import decide

# Student (1908), "The probable error of a mean": additional hours of sleep, two drugs, 10 patients.
# As printed in R's help of `sleep`; R: t.test(paired) t = -4.0621, df = 9, p = 0.002833,
# 95 % interval of the difference 0.7001142 to 2.4598858, mean 1.58.
SLEEP_1 = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SLEEP_2 = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


def test_paired_t_reproduces_students_sleep_data() -> None:
    """The ln-ratios of e**hours are Student's differences: ratio and interval must be e**his."""
    ratios = [log_ratio(math.exp(b), math.exp(a)) for a, b in zip(SLEEP_1, SLEEP_2, strict=True)]
    estimate = estimate_mean(ratios)
    half = estimate.half_width(0.95)
    assert estimate.mean == pytest.approx(1.58)
    assert estimate.sd == pytest.approx(1.229995, abs=1e-6)
    assert estimate.p_value() == pytest.approx(0.002833, abs=1e-6)
    assert estimate.mean - half == pytest.approx(0.7001142, abs=1e-6)
    assert estimate.mean + half == pytest.approx(2.4598858, abs=1e-6)


def test_holm_worked_example() -> None:
    """R's p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm"); also Wikipedia's Holm-Bonferroni page."""
    steps = holm_steps([0.01, 0.04, 0.03, 0.005])
    assert [s.p_adjusted for s in steps] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # The step-down stops at .03 > .05 / 2, so the last comparison keeps that step's width.
    assert [s.divisor for s in steps] == [3, 2, 2, 4]


def test_holm_counts_comparisons_without_p() -> None:
    assert [s.divisor for s in holm_steps([0.001, None])] == [2, 1]
    assert holm_steps([None, None])[0].divisor == 2


# Benjamini and Hochberg (1995), section 4: 15 comparisons of a myocardial infarction trial.
BH_1995 = (
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
    0.5719, 0.6528, 0.7590, 1.0000,
)  # fmt: skip


def test_benjamini_hochberg_paper_example() -> None:
    """The paper rejects the first four at .05 where Bonferroni rejects three."""
    adjusted = benjamini_hochberg(BH_1995)
    assert [p is not None and p <= 0.05 for p in adjusted] == [True] * 4 + [False] * 11
    assert sum(s.p_adjusted is not None and s.p_adjusted <= 0.05 for s in holm_steps(BH_1995)) == 3


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_benjamini_hochberg_equals_scipy(p_values: list[float]) -> None:
    from scipy.stats import false_discovery_control

    expected = list(false_discovery_control(p_values, method="bh"))
    assert benjamini_hochberg(p_values) == pytest.approx(expected, abs=1e-12)


def test_geometric_mean_and_interval() -> None:
    assert geometric_mean([1.0, 10.0, 100.0]) == pytest.approx(10)
    assert geometric_interval([5.0]) is None
    low, high = geometric_interval([1.0, math.e]) or (0.0, 0.0)
    # t(.975, 1) = 12.7062; mean .5, sd .70711, standard error .5.
    assert math.log(low) == pytest.approx(0.5 - 12.7062 * 0.5, abs=1e-3)
    assert math.log(high) == pytest.approx(0.5 + 12.7062 * 0.5, abs=1e-3)


def test_estimate_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        estimate_mean([])


def _estimate_between(low: float, high: float, n: int = 10) -> MeanEstimate:
    """Make an estimate whose 95 % interval is exactly (low, high), as ratios."""
    low, high = math.log(low), math.log(high)
    width_of_one = MeanEstimate(0.0, 1.0, n).half_width(0.95)
    return MeanEstimate((low + high) / 2, (high - low) / 2 / width_of_one, n)


@pytest.mark.parametrize(
    ("low", "high", "word", "sign"),
    [
        (0.99, 1.01, "same", "none"),
        (0.97, 1.04, "same", "none"),
        (1.001, 1.03, "trivial", "better"),
        (0.97, 0.999, "trivial", "worse"),
        # The 95 % interval may leave the band as long as the 90 % one stays inside.
        (0.949, 0.999, "trivial", "worse"),
        (0.930, 0.999, "undecided", "worse"),
        (1.06, 1.20, "better", "better"),
        (0.80, 0.95, "worse", "worse"),
        (1.049, 1.20, "undecided", "better"),
        (1.01, 1.10, "undecided", "better"),
        (0.90, 1.10, "undecided", "none"),
        (0.80, 0.953, "undecided", "worse"),  # 1 / 1.05 = .95238
    ],
)
def test_rule_boundaries(low: float, high: float, word: str, sign: str) -> None:
    decision = decide(_estimate_between(low, high), 0.05)
    assert (decision.word, decision.sign) == (word, sign)


def test_one_to_every_printed_digit_is_the_same() -> None:
    """`trivial` stood beside "equal" and "0 to 0 %": a simulation tells 45 parts in 10^9 apart."""
    decision = decide(MeanEstimate(4.5e-8, 1e-9, 6), 0.05)
    assert (decision.word, decision.sign) == ("same", "none")
    assert decide(MeanEstimate(6e-6, 1e-9, 6), 0.05).word == "trivial"
    assert decide(MeanEstimate(-6e-6, 1e-9, 6), 0.05).sign == "worse"


def test_rule_edges_are_open() -> None:
    """Exactly on the margin, with no spread at all, nothing is decided."""
    edge = math.log1p(0.05)
    assert decide(MeanEstimate(edge, 0.0, 5), 0.05).word == "undecided"
    assert decide(MeanEstimate(edge * 1.0001, 0.0, 5), 0.05).word == "better"
    assert decide(MeanEstimate(edge * 0.9999, 0.0, 5), 0.05).word == "trivial"
    assert decide(MeanEstimate(0.0, 0.0, 5), 0.05).word == "same"


def test_margin_must_be_positive() -> None:
    with pytest.raises(ValueError, match="margin"):
        decide(MeanEstimate(0.0, 0.1, 5), 0.0)


@given(st.floats(-0.3, 0.3), st.floats(0.001, 0.3), st.integers(5, 20), st.sampled_from([1, 2, 5]))
def test_further_rounds_are_a_range_with_its_chance(
    mean: float, sd: float, n: int, divisor: int
) -> None:
    decision = decide(MeanEstimate(mean, sd, n), 0.05, divisor=divisor)
    if decision.word != "undecided":
        assert decision.further_rounds is None
        return
    assert decision.chance_within_limit is not None
    assert decision.is_further_rounds_above_limit == (decision.further_rounds is None)
    if decision.further_rounds is not None:
        assert decision.further_rounds_least is not None
        assert 1 <= decision.further_rounds_least <= decision.further_rounds <= 200
        assert decision.chance_within_limit >= 0.8
    else:
        assert decision.chance_within_limit < 0.8


def test_near_the_margin_no_number_of_rounds_is_promised() -> None:
    decision = decide(MeanEstimate(math.log(1.05), 0.02, 8), 0.05)
    assert decision.further_rounds is None
    assert decision.chance_within_limit is not None
    assert decision.chance_within_limit < 0.8


def test_two_rounds_decide_nothing() -> None:
    assert decide(MeanEstimate(0.0, 0.0001, 2), 0.05).word == "undecided"
    assert decide(MeanEstimate(1.0, 0.0001, 2), 0.05).word == "undecided"
    assert decide(MeanEstimate(0.0, 0.0001, 3), 0.05).word == "same"


def test_rounding_of_values_stays_in_the_interval() -> None:
    """Quantiles that are rounded to 1/128 had intervals without width in half of the studies."""
    exact, rounded = MeanEstimate(0.06, 0.0, 8), MeanEstimate(0.06, 0.0, 8, rounding=0.0078)
    assert exact.half_width(0.95) == 0
    assert rounded.half_width(0.95) == 0.0078
    assert MeanEstimate(0.005, 0.0, 8, rounding=0.0078).p_value() == 1.0


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_few_rounds_promise_nothing(n: int) -> None:
    decision = decide(MeanEstimate(0.0, None if n == 1 else 0.1, n), 0.05)
    assert (decision.further_rounds, decision.is_further_rounds_at_least) == (5 - n, True)
    assert not decide(MeanEstimate(0.0, 0.1, 5), 0.05).is_further_rounds_at_least


def test_spread_bound_is_the_tables_value() -> None:
    """Chi-square, 4 degrees: the 20 % quantile is 1.6488."""
    bound = spread_bound(MeanEstimate(0.0, 1.0, 5), 0.8)
    assert bound == pytest.approx(math.sqrt(4 / 1.6488), 1e-4)


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 0.04), (0.12, 0.08), (-0.15, 0.12)])
@pytest.mark.parametrize("n", [5, 8])
def test_the_rounds_promised_suffice_in_most_cases(mean: float, sd: float, n: int) -> None:
    import numpy as np

    rng = np.random.default_rng(11)
    decided: list[bool] = []
    for _ in range(400):
        seen = [float(value) for value in rng.normal(mean, sd, n)]
        further = decide(estimate_mean(seen), 0.05).further_rounds
        if further is not None:
            seen += [float(value) for value in rng.normal(mean, sd, further)]
            decided.append(decide(estimate_mean(seen), 0.05).word != "undecided")
    assert len(decided) > 30
    assert sum(decided) / len(decided) >= 0.70


@given(st.floats(-0.3, 0.3), st.floats(0, 0.3), st.integers(1, 20))
def test_rule_mirrors(mean: float, sd: float, n: int) -> None:
    mirror = {"better": "worse", "worse": "better"}
    spread = None if n == 1 else sd
    one = decide(MeanEstimate(mean, spread, n), 0.05)
    other = decide(MeanEstimate(-mean, spread, n), 0.05)
    assert other.word == mirror.get(one.word, one.word)
    assert other.sign == mirror.get(one.sign, one.sign)
    assert other.further_rounds == one.further_rounds


def test_position_effect_equals_ordinary_least_squares() -> None:
    """The projected slope is that of the full model with treatment and round dummies."""
    import numpy as np

    rng = np.random.default_rng(5)
    values: list[PlacedValue] = []
    for r in range(6):
        for place, treatment in enumerate(rng.permutation(4)):
            y = 0.3 * treatment + 0.1 * r + 0.08 * place / 3 + rng.normal(0, 0.01)
            values.append(PlacedValue(float(y), int(treatment), r, place / 3))
    columns = [[v.place for v in values]]
    columns += [[float(v.treatment == t) for v in values] for t in range(4)]
    columns += [[float(v.round == r) for v in values] for r in range(1, 6)]
    solution, *_ = np.linalg.lstsq(
        np.array(columns).T, np.array([v.log_value for v in values]), rcond=None
    )
    effect = position_effect(values)
    assert effect is not None
    assert math.log(effect.ratio) == pytest.approx(solution[0], abs=1e-9)
    assert effect.p < 1e-6


def test_position_effect_needs_shuffled_places() -> None:
    fixed = [PlacedValue(1.0 + t, t, r, t / 3) for r in range(5) for t in range(4)]
    assert position_effect(fixed) is None
    assert position_effect(fixed[:4]) is None


def test_best_set_finds_the_plateau() -> None:
    steps = {"4k": 0.0, "8k": 0.5, "16k": 0.98, "32k": 1.0}
    noise = (0.001, -0.002, 0.0015, 0.0, -0.001)
    log_values = {
        level: {r: value + e * (i + 1) for r, e in enumerate(noise)}
        for i, (level, value) in enumerate(steps.items())
    }
    found = best_set(log_values, 0.05)
    assert found is not None
    assert (found.best, found.members) == ("32k", ("16k", "32k"))
    assert best_set({"a": {0: 1.0}, "b": {0: 1.0}}, 0.05) is None
