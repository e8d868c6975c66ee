"""Families of all pairs: published divisors, no baseline in any word, unequal spreads."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import pytest

from iolab.stats.families import Family, all_estimates
from iolab.stats.methods.best_set import best_of
from iolab.stats.methods.forecast import forecast
from iolab.stats.methods.hsu_mcb import hsu_mcb
from iolab.stats.methods.interaction import disagreement, paired_p, unpaired_p
from iolab.stats.methods.shaffer import numbers_of_equal_pairs, shaffer_divisors, shaffer_steps
from iolab.stats.methods.student import MeanEstimate, estimate_mean

EDGE = math.log(1.05)
Rows = Mapping[str, list[float]]


def family_of(rows: Rows, levels: list[str] | None = None) -> Family:
    names = levels or list(rows)

    def estimate(a: str, b: str) -> MeanEstimate:
        return estimate_mean([x - y for x, y in zip(rows[a], rows[b], strict=True)])

    return Family(names, all_estimates(names, estimate), 0.05)


@pytest.mark.parametrize(
    ("levels", "printed"),
    [
        (2, (1,)),
        (3, (3, 1, 1)),
        (4, (6, 3, 3, 3, 2, 1)),
        (5, (10, 6, 6, 6, 6, 4, 4, 3, 2, 1)),
    ],
)
def test_divisors_are_those_of_shaffer(levels: int, printed: tuple[int, ...]) -> None:
    """Shaffer (1986), table 1: the most hypotheses that can be true after each rejection."""
    assert shaffer_divisors(levels) == printed


def test_seven_levels_can_have_these_equal_pairs() -> None:
    assert sorted(numbers_of_equal_pairs(7)) == [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 15, 21]


def recursed(levels: int) -> set[int]:
    """Numbers of equal pairs as the source defines them: the largest group, then the others."""
    if levels < 2:
        return {0}
    return {
        math.comb(group, 2) + rest
        for group in range(1, levels + 1)
        for rest in recursed(levels - group)
    }


def test_divisors_are_those_of_the_definition() -> None:
    for levels in range(16):
        possible = recursed(levels)
        assert numbers_of_equal_pairs(levels) == possible
        lefts = range(math.comb(levels, 2), 0, -1)
        expected = [max(1, *(n for n in possible if n <= left), 1) for left in lefts]
        assert list(shaffer_divisors(levels)) == expected


def test_divisors_of_hundreds_of_levels_take_no_minutes() -> None:
    """A table of 300 levels, 9 KB, took more than 25 s; one of 600 ended in a RecursionError."""
    divisors = shaffer_divisors(600)
    assert (divisors[0], divisors[1], divisors[-1]) == (179_700, 179_101, 1)


def test_a_family_is_all_pairs() -> None:
    assert [s.divisor for s in shaffer_steps([0.001, 0.02, 0.6], 3)] == [3, 1, 1]
    # The first that is not rejected keeps its divisor for all that follow.
    assert [s.divisor for s in shaffer_steps([0.03, 0.02, 0.6], 3)] == [3, 3, 3]
    assert [s.p_adjusted for s in shaffer_steps([0.001, 0.02, None], 3)] == [0.003, 0.02, None]
    with pytest.raises(ValueError, match="2 p-values are not all pairs of 3 levels"):
        shaffer_steps([0.1, 0.2], 3)


def test_no_word_depends_on_the_baseline() -> None:
    rng, turned = random.Random(7), {"better": "worse", "worse": "better"}
    for _ in range(100):
        rows = {
            v: [rng.gauss(m, 0.03) for _ in range(6)]
            for v, m in zip("abcd", (0, 0.05, 0.1, 0), strict=True)
        }
        found = family_of(rows)
        other = family_of(rows, ["c", "a", "d", "b"])
        for a, b in (("a", "b"), ("c", "b"), ("d", "a")):
            one, two = found.effect(a, b), other.effect(b, a)
            assert turned.get(two.word, two.word) == one.word
            assert one.interval_95.low == pytest.approx(1 / two.interval_95.high)
            assert one.interval_95.confidence == 0.95, "one level in one table"


def test_same_is_a_family_of_its_own() -> None:
    """Ordered by the p of "ratio = 1", the level nearest to 1 got the smallest divisor."""
    rng, wrong = random.Random(3), 0
    for _ in range(150):
        rows = {"a": [rng.gauss(0, 0.02) for _ in range(10)]}
        rows |= {v: [rng.gauss(EDGE, 0.02) for _ in range(10)] for v in "bcd"}
        found = family_of(rows)
        wrong += any(found.effect(v, "a").word in ("same", "trivial") for v in "bcd")
    assert wrong / 150 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


def test_a_noisy_best_level_stays_in_the_winner_set() -> None:
    rng, hits = random.Random(5), 0
    for _ in range(400):
        rows = {v: [rng.gauss(0, 0.01) for _ in range(6)] for v in "abc"}
        rows["d"] = [rng.gauss(0.01, 0.15) for _ in range(6)]
        found = {row.level: row for row in hsu_mcb(list(rows), family_of(rows).estimate)}
        hits += found["d"].may_be_best
    assert hits / 400 >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)


def test_the_winner_set_rules_out_what_is_clearly_worse() -> None:
    rows = {"a": [0.0, 0.1, 0.0], "b": [0.02, 0.11, 0.0], "c": [-1.0, -0.9, -1.1]}
    family = family_of(rows)
    found = {row.level: row for row in hsu_mcb(list(rows), family.estimate)}
    assert [level for level, row in found.items() if row.may_be_best] == ["a", "b"]
    assert found["c"].low < found["c"].difference < found["c"].high == 0
    assert hsu_mcb(["a"], family.estimate) == []
    best = best_of(list(rows), family.estimate, 0.05)
    assert best is not None
    assert (best.best, best.members, best.n_rounds) == ("b", ("a", "b"), 3)


def test_interaction_is_the_f_of_a_two_way_table() -> None:
    """By hand: cells' means .1 and -.1, nothing left but .02 in one round."""
    rows = [[0.12, -0.12], [0.08, -0.08], [0.10, -0.10]]
    # Between: 3 * 2 * .1**2 = .06 (1 df); rest: .02**2 * 2 * 2 / 1 = .0016 (2 df): F = 75.
    assert paired_p(rows) == pytest.approx(0.013072, abs=1e-5)
    assert paired_p(rows[:1]) is None
    assert paired_p([[0.1, 0.1], [0.2, 0.2]]) == 1.0
    two = unpaired_p([([0.1, 0.12, 0.08], [0.0, 0.02, -0.02]), ([0.0] * 3, [0.1] * 3)])
    assert two is not None
    assert two < 0.001


def test_cells_that_are_all_better_do_not_disagree() -> None:
    def cells(*means: float) -> list[MeanEstimate]:
        return [MeanEstimate(mean, 0.01, 5) for mean in means]

    assert disagreement(cells(0.1, -0.1), 0.001, 0.05) == ["better", "worse"]
    assert disagreement(cells(0.2, 0.01), 0.001, 0.05) == ["better", "same"]
    assert disagreement(cells(0.1, 0.3), 0.001, 0.05) == [], "both are better"
    assert disagreement(cells(0.06, 0.04), 0.001, 0.05) == [], "less than the margin apart"
    assert disagreement(cells(0.1, -0.1), 0.02, 0.05) == [], "may be chance"
    assert disagreement([MeanEstimate(0.2, 0.5, 5), *cells(0.0)], 0.001, 0.05) == [], "one is noise"


def test_a_forecast_knows_its_chance() -> None:
    """Far from the margin with a known spread few rounds decide; near it none surely does."""
    both = (1.0, 1.0)
    clear = forecast(MeanEstimate(0.12, 0.10, 10), EDGE, both, 200)
    assert clear.least is not None
    assert clear.most is not None
    assert 1 <= clear.least < clear.most <= 200
    assert clear.chance >= 0.8
    near = forecast(MeanEstimate(EDGE, 0.05, 10), EDGE, both, 200)
    assert near.most is None
    assert near.chance < 0.8
    mirrored = forecast(MeanEstimate(-0.12, 0.10, 10), EDGE, both, 200)
    assert mirrored == clear
    stricter = forecast(MeanEstimate(0.12, 0.10, 10), EDGE, (8.0, 8.0), 200)
    assert (stricter.most or 201) > clear.most
