"""Do the intervals beside the verdict cover what they promise? Simulated, seeded.

Bounds are binomial, at four standard errors or more, so that a correct implementation does not
fail by chance.
"""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from iolab.stats.methods.confirm import confirm
from iolab.stats.methods.group_sequential import nominal_levels
from iolab.stats.methods.hodges_lehmann import hodges_lehmann
from iolab.stats.methods.location import bca_interval, median_interval
from iolab.stats.methods.power import chance_of_difference, chance_of_same
from iolab.stats.methods.stalls import find_stalls
from iolab.stats.methods.stein import stein_rounds
from iolab.stats.methods.student import estimate_mean
from iolab.stats.methods.trial_shape import Course, trial_shape, trial_shapes
from iolab.stats.methods.verdict_rule import decide
from iolab.study.plan import look_rounds

SESSIONS = 1000


def _four_sigma(p: float, n: int = SESSIONS) -> float:
    return 4 * math.sqrt(p * (1 - p) / n)


def test_median_and_hodges_lehmann_cover_with_heavy_tails() -> None:
    rng = random.Random(4)
    median_hits = shift_hits = 0
    for _ in range(SESSIONS):
        sample = [rng.gauss(0, 1) / max(0.1, rng.random()) for _ in range(11)]
        bounds, shift = median_interval(sample), hodges_lehmann(sample)
        assert bounds is not None
        assert shift is not None
        assert shift.low is not None
        assert shift.high is not None
        median_hits += bounds.low <= 0 <= bounds.high
        shift_hits += shift.low <= 0 <= shift.high
    for hits in (median_hits, shift_hits):
        assert hits / SESSIONS >= 0.95 - _four_sigma(0.95)


def test_bca_covers_a_skewed_mean_better_than_nothing() -> None:
    """BCa of 20 exponential values: known to undercover a little (.92 to .94)."""
    rng, hits = random.Random(5), 0
    for _ in range(300):
        bounds = bca_interval([rng.expovariate(1) for _ in range(20)], resamples=999)
        assert bounds is not None
        hits += bounds.low <= 1 <= bounds.high
    assert 0.88 <= hits / 300 <= 0.98


def test_stein_covers_whatever_the_spread_is() -> None:
    for sd in (0.02, 0.08):
        rng, hits, width = random.Random(6), 0, math.log(1.03)
        for _ in range(SESSIONS):
            pilot = [rng.gauss(0, sd) for _ in range(8)]
            plan = stein_rounds(pilot, width)
            rest = [rng.gauss(0, sd) for _ in range(plan.n_total - 8)]
            mean = math.fsum([*pilot, *rest]) / plan.n_total
            hits += abs(mean) <= plan.half_width
        assert hits / SESSIONS >= 0.95 - _four_sigma(0.95)


@pytest.mark.parametrize("kind", ["pocock", "obrien_fleming"])
def test_looking_early_keeps_the_error(kind) -> None:
    """Four looks at 24 rounds of pure noise, nominal levels with Student's t: 5 % in all."""
    rng, levels, places = random.Random(7), nominal_levels(4, kind), look_rounds(24, 4)
    found = naive = 0
    for _ in range(2 * SESSIONS):
        values = [rng.gauss(0, 1) for _ in range(24)]
        p_values = [estimate_mean(values[:n]).p_value() or 1.0 for n in places]
        found += any(p < level for p, level in zip(p_values, levels, strict=True))
        naive += any(p < 0.05 for p in p_values)
    assert found / (2 * SESSIONS) == pytest.approx(0.05, abs=0.005 + _four_sigma(0.05, 2000))
    assert naive / (2 * SESSIONS) > 0.09


def test_planned_chances_are_those_of_the_rule() -> None:
    rng, n, sd, margin = random.Random(8), 8, 0.03, 0.05
    for truth in (0.0, math.log(1.08), math.log(1.10)):
        words = Counter(
            decide(estimate_mean([rng.gauss(truth, sd) for _ in range(n)]), margin).word
            for _ in range(SESSIONS)
        )
        same = (words["same"] + words["trivial"]) / SESSIONS
        assert chance_of_same(truth, margin, sd, n) == pytest.approx(same, abs=0.06)
        assert chance_of_difference(truth, margin, sd, n) == pytest.approx(
            words["better"] / SESSIONS, abs=0.06
        )


def test_confirm_asks_for_more_of_the_noisier() -> None:
    """Quiet values need the fewest trials it can say, noisy ones more than there are."""
    rng = random.Random(9)
    quiet = confirm([100 + rng.gauss(0, 1) for _ in range(50)])
    middle = confirm([100 + rng.gauss(0, 5) for _ in range(60)])
    noisy = confirm([100 + rng.gauss(0, 40) for _ in range(30)])
    assert quiet is not None
    assert middle is not None
    assert noisy is not None
    assert quiet.n_recommended == 10
    assert middle.n_recommended is not None
    assert 10 < middle.n_recommended <= 60
    assert noisy.n_recommended is None
    assert noisy.half_width_share > 0.03
    assert confirm([1.0] * 9) is None


SHAPES = {
    "flat": lambda t: 1.0,
    "warm_up": lambda t: 1 - 0.6 * math.exp(-15 * t),
    "decay": lambda t: 1.0 if t < 0.6 else 0.4,
    "cyclic": lambda t: 1 + 0.3 * math.sin(16 * math.pi * t),
    "never_steady": lambda t: 0.4 + 0.6 * t,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("phi", [0.0, 0.6])
def test_shapes_are_told_apart(shape: str, phi: float) -> None:
    rng, seen = random.Random(10), Counter[str]()
    for _ in range(40):
        state, work = 0.0, []
        for i in range(100):
            state = phi * state + math.sqrt(1 - phi * phi) * rng.gauss(0, 1)
            work.append(int(1e6 * SHAPES[shape](i / 100) * math.exp(0.05 * state)))
        found = trial_shape(work, [w // 1000 for w in work], 100_000_000)
        seen[found.shape] += 1
    assert seen[shape] >= 36, seen


def test_a_short_trial_says_so_and_its_warm_up_is_not_cut() -> None:
    found = trial_shape([10] * 12, [10] * 12, 100_000_000)
    assert (found.shape, found.warm_up_ns) == ("too_short", 0)


def test_stalls_are_counted_and_slow_operations_are_none() -> None:
    ops = [50] * 30 + [0, 0, 0] + [50] * 20 + [4] + [50] * 10
    found = find_stalls(ops, 100_000_000)
    assert (found.longest_ns, found.total_ns) == (300_000_000, 400_000_000)
    assert found.share == pytest.approx(4 / 64)
    # One operation in every other slice: nothing stalls, the slices are too fine.
    slow = find_stalls([1, 0] * 200, 100_000_000)
    assert (slow.longest_ns, slow.resolution_ns > 100_000_000) == (0, True)


@pytest.mark.parametrize("begin", [0, 10, 25, 40])
def test_a_stall_that_fills_more_than_half_of_a_trial_is_found(begin: int) -> None:
    rng = random.Random(begin)
    ops = [int(500 * math.exp(rng.gauss(0, 0.1))) for _ in range(100)]
    ops[begin : begin + 60] = [0] * 60
    found = find_stalls(ops, 100_000_000)
    assert (found.longest_ns, found.share) == (6_000_000_000, 0.6)
    ops[begin + 30] = 1  # A single completion does not end it.
    assert find_stalls(ops, 100_000_000).longest_ns == 6_000_000_000


def test_a_slow_trial_and_one_that_fell_to_a_lower_level_do_not_stall() -> None:
    rng = random.Random(1)
    slow = [int(7 * math.exp(rng.gauss(0, 0.1))) for _ in range(100)]
    assert find_stalls(slow, 100_000_000).longest_ns == 0
    # A cache is full after a tenth of the time: what follows is a hundredth, but it goes on.
    fell = [2000] * 12 + [20 + rng.randrange(4) for _ in range(88)]
    assert find_stalls(fell, 100_000_000).longest_ns == 0
    assert trial_shape([4096 * n for n in fell], fell, 100_000_000).shape == "decay"
    few = [rng.randrange(2) for _ in range(60)]
    assert find_stalls(few, 100_000_000).longest_ns == 0


@pytest.mark.parametrize(("busy", "idle"), [(4, 6), (7, 5), (2, 8)])
def test_a_rhythm_is_no_stall_but_rare_quiet_slices_are(busy: int, idle: int) -> None:
    ops = ([300] * busy + [0] * idle) * 10
    found = trial_shape([4096 * n for n in ops], ops, 100_000_000)
    assert (found.shape, found.stalls.longest_ns) == ("cyclic", 0)
    every_two_seconds = ([300] * 18 + [0] * 2) * 5
    assert find_stalls(every_two_seconds, 100_000_000).longest_ns == 200_000_000


def test_trials_looked_at_together_are_described_as_each_alone() -> None:
    rng = random.Random(5)
    courses: list[Course] = []
    for length in (12, 41, 100, 300):
        for shape in SHAPES.values():
            for _ in range(5):
                work = [
                    int(1e6 * shape(i / length) * math.exp(rng.gauss(0, 0.05)))
                    for i in range(length)
                ]
                ops = [n // 1000 for n in work]
                if rng.random() < 0.5:
                    ops[length // 2 :] = [0] * (length - length // 2)
                courses.append(Course(work, ops, 100_000_000))
    courses += [Course([0] * 60, [0] * 60, 1), Course([7] * 60, [7] * 60, 1), Course([], [], 1)]
    rng.shuffle(courses)
    together = trial_shapes(courses)
    assert len({found.shape for found in together}) == 6
    assert together == [trial_shape(*course) for course in courses]


def test_a_standstill_in_a_trial_with_a_rhythm_is_seen():
    """Seven busy slices and three quiet ones, again and again; once eight seconds of nothing."""
    ops = ([100] * 7 + [1] * 3) * 40
    assert find_stalls(ops, 100_000_000).longest_ns == 0
    ops[200:280] = [0] * 80
    assert find_stalls(ops, 100_000_000).longest_ns >= 8_000_000_000
