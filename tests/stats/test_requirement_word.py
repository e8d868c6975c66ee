"""Words about published requirements: by hand, and on simulated rounds whose truth is known.

`IOLAB_CHECKS` is the number of simulated checks per kind of storage (`make soak` takes more).
"""

import math
import os

import numpy
import pytest

from iolab.stats.requirement_word import MeasuredPhase, Obstacle, judge_requirement
from iolab.stats.round_percentile import mean_of_rounds, percentile_of_rounds
from iolab.study.requirements import REQUIREMENTS

BITS = 7
ETCD, _, GITALY, SD_CARD, POSTGRES = REQUIREMENTS
LIMIT_NS = 10e6
CHECKS = int(os.environ.get("IOLAB_CHECKS", "40"))
ROUNDS, OPS = 15, 250


def part_of(value):
    shift = max(0, int(value).bit_length() - (BITS + 1))
    return (int(value) >> shift) + (shift << BITS)


def histogram(values):
    counts = {}
    for value in values:
        part = part_of(value)
        counts[part] = counts.get(part, 0) + 1
    return {
        "unit": "ns",
        "count": len(values),
        "min": int(min(values)),
        "max": int(max(values)),
        "sum": int(sum(values)),
        "sub_bucket_bits": BITS,
        "counts": [[part, counts[part]] for part in sorted(counts)],
    }


def phase(flushes=(), *, reads=0, writes=0, elapsed_ns=10**9):
    filled = histogram(flushes) if len(flushes) else None
    return MeasuredPhase(elapsed_ns, reads, writes, 512 * 1024 * writes, filled)


def word_of(rounds, obstacles=()):
    return judge_requirement(ETCD, [{"etcd": phase(one)} for one in rounds], obstacles).word


def test_equal_rounds_give_the_interval_of_independent_operations():
    # 1 % of 1000 operations are slow: Clopper and Pearson give 0.48 % to 1.83 % of them.
    rounds = [[*[1e6] * 198, *[2e6] * 2]] * 5
    found = percentile_of_rounds([histogram(one) for one in rounds], 0.99)
    assert (found.n_rounds, found.n_ops) == (5, 1000)
    assert found.value == pytest.approx(1e6, rel=0.01)
    assert found.low == pytest.approx(1e6, rel=0.01)
    assert found.high == pytest.approx(2e6, rel=0.01)


def test_a_bad_round_counts_as_one_of_a_few_and_not_as_many_operations():
    fine = [1e6] * 1000
    stalled = [*[1e6] * 900, *[20e6] * 100]
    few = percentile_of_rounds([histogram(one) for one in [fine] * 19 + [stalled]], 0.99)
    assert few.value == pytest.approx(1e6, rel=0.01)
    assert few.high == pytest.approx(20e6, rel=0.01)
    assert word_of([fine] * 19 + [stalled]) == "UNDECIDED"
    assert word_of([fine] * 20) == "PASS"


@pytest.mark.parametrize(("n", "is_open"), [(360, True), (500, False)])
def test_p99_of_few_operations_has_no_upper_end(n, is_open):
    rounds = [histogram([1e6] * (n // 10))] * 10
    assert math.isinf(percentile_of_rounds(rounds, 0.99).high) is is_open


def test_one_round_has_no_upper_end():
    assert math.isinf(percentile_of_rounds([histogram([1e6] * 10_000)], 0.99).high)
    assert math.isinf(mean_of_rounds([5.0], 5).high)
    assert word_of([[1e6] * 10_000] * 3) == "UNDECIDED"


def test_no_value_is_an_error():
    with pytest.raises(ValueError, match="resolution"):
        percentile_of_rounds([], 0.99)


def test_rates_are_judged_by_rounds_and_by_several_limits():
    def gitaly(reads, writes):
        rounds = [{"gitaly": phase(reads=r, writes=w)} for r, w in zip(reads, writes, strict=True)]
        return judge_requirement(GITALY, rounds)

    fast, slow = [9000, 9100, 9050, 9020, 9080], [1800, 1810, 1805, 1790, 1802]
    assert gitaly(fast, [3000] * 5).word == "PASS"
    assert gitaly(fast, slow).word == "FAIL"
    mixed = gitaly(fast, [1900, 2100, 2000, 1950, 2050])
    assert mixed.word == "UNDECIDED"
    assert [one.word for one in mixed.criteria] == ["PASS", "UNDECIDED"]
    assert [one.level for one in mixed.criteria] == [0.975, 0.975]


def test_no_limit_is_no_word():
    rounds = [{"postgres": phase([1e6] * 500)}] * 5
    judged = judge_requirement(POSTGRES, rounds)
    assert judged.word is None
    assert [one.word for one in judged.criteria] == [None, None]
    assert judged.criteria[0].estimate.value == pytest.approx(500)


def test_what_was_not_measured_is_undecided():
    assert judge_requirement(SD_CARD, [{}]).word == "UNDECIDED"
    assert word_of([]) == "UNDECIDED"


def test_an_obstacle_forbids_its_words_only():
    obstacle = Obstacle("cpu_bound", ("FAIL",), "the processor was the limit", "stop others")
    assert word_of([[20e6] * 100] * 8) == "FAIL"
    assert word_of([[20e6] * 100] * 8, [obstacle]) == "UNDECIDED"
    assert word_of([[1e6] * 100] * 8, [obstacle]) == "PASS"


# Simulated storage: `draw` gives the flushes of a round, relative to a p99 of 1.


def steady(rng):
    return numpy.exp(rng.normal(0, 0.02, OPS))


def scattered(rng):
    return numpy.exp(rng.normal(0, 0.5, OPS))


def drifting(rng):
    return numpy.exp(rng.normal(rng.normal(0, 0.25), 0.3, OPS))


def stalling(rng):
    """Half of the rounds have a few slow flushes, a tenth of the rounds many."""
    flushes = numpy.exp(rng.normal(0, 0.2, OPS))
    share = rng.choice([0.0, 0.02, 0.1], p=[0.5, 0.4, 0.1])
    return numpy.where(rng.random(OPS) < share, flushes * 4, flushes)


KINDS = (steady, scattered, drifting, stalling)


def true_p99(draw):
    rng = numpy.random.default_rng(0)
    return float(numpy.quantile(numpy.concatenate([draw(rng) for _ in range(4000)]), 0.99))


@pytest.mark.parametrize("draw", KINDS, ids=lambda draw: draw.__name__)
def test_the_interval_covers_the_true_percentile(draw):
    rng, truth = numpy.random.default_rng(20261126), true_p99(draw)
    n_missed = 0
    for _ in range(CHECKS):
        rounds = [histogram(1e6 * draw(rng)) for _ in range(ROUNDS)]
        found = percentile_of_rounds(rounds, 0.99)
        n_missed += not found.low * 0.995 <= 1e6 * truth <= found.high * 1.005
    # 5 % are allowed for, plus three standard errors of this simulation.
    assert n_missed / CHECKS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / CHECKS)


@pytest.mark.parametrize("draw", KINDS, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize(
    ("times", "wanted"), [(0.3, "PASS"), (0.8, "PASS"), (1.25, "FAIL"), (3.0, "FAIL")]
)
def test_words_at_a_planted_distance_from_the_limit(draw, times, wanted):
    rng, truth = numpy.random.default_rng(int(100 * times)), true_p99(draw)
    n_checks = max(10, CHECKS // 4)
    scale = LIMIT_NS * times / truth
    words = [word_of([scale * draw(rng) for _ in range(ROUNDS)]) for _ in range(n_checks)]
    n_wrong = sum(word not in (wanted, "UNDECIDED") for word in words)
    assert n_wrong / n_checks <= 0.025 + 3 * math.sqrt(0.025 / n_checks)
    if draw is steady:
        assert words == [wanted] * n_checks
    if draw is scattered and times in (0.3, 3.0):
        assert words == [wanted] * n_checks


def test_at_the_limit_itself_a_word_is_rare():
    rng, truth = numpy.random.default_rng(5), true_p99(scattered)
    words = [
        word_of([LIMIT_NS / truth * scattered(rng) for _ in range(ROUNDS)]) for _ in range(CHECKS)
    ]
    n_said = sum(word != "UNDECIDED" for word in words)
    assert n_said / CHECKS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / CHECKS)
