"""A/A studies and plans: what is computed of them, on made-up studies with known noise."""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType

import pytest

from iolab.errors import AnalysisError
from iolab.stats.calibration import calibrate
from iolab.stats.judge import judge
from iolab.stats.planning import Noise, achievable, needed
from iolab.store.rows import Measurement, StudyData


def _aa(canned: ModuleType, **changes) -> StudyData:
    workload = canned.Workload("probe", ("probe",))
    recipe = {"levels": ("A", "B"), "compared": "label", "workloads": (workload,), "rounds": 20}
    return canned.make_study(**{**recipe, **changes})


def test_the_noise_of_a_quiet_testbed_is_found(canned: ModuleType) -> None:
    """Two labels of sd 2 % each: one round's ratio has sd 2 % x sqrt(2)."""
    data = _aa(canned, rounds=200, noise=0.02)
    result = calibrate(data, judge(data), planned_rounds=5)
    assert result.n_rounds == 200
    assert result.sd == pytest.approx(0.02 * math.sqrt(2), rel=0.15)
    assert result.sd_upper > result.sd
    assert result.small_studies == 40
    assert result.false_positives <= 8
    assert 0.02 <= result.false_positive_resampled <= 0.09
    assert result.noise_floor == pytest.approx(1.96 * 0.0283 / math.sqrt(5), rel=0.2)
    assert result.lag_one is not None
    assert abs(result.lag_one) < 0.15
    assert result.ratio_low < 1 < result.ratio_high
    assert result.control is None


def test_a_place_effect_is_seen(canned: ModuleType) -> None:
    data = _aa(canned, rounds=40, noise=0.01, place=0.05)
    result = calibrate(data, judge(data), planned_rounds=5)
    assert result.position_ratio == pytest.approx(1.05, abs=0.01)
    assert result.position_p is not None
    assert result.position_p < 0.001


def test_drift_is_remembered(canned: ModuleType) -> None:
    data = _aa(canned, rounds=30, noise=0.01, drift=0.3)
    result = calibrate(data, judge(data), planned_rounds=5)
    assert result.lag_one is not None
    assert result.lag_one_chance is not None
    assert result.lag_one > result.lag_one_chance


def _with_mean_latency(data: StudyData, latency_ns: float) -> StudyData:
    extra: list[Measurement] = [
        dataclasses.replace(m, metric="latency_ns_mean", value=latency_ns)
        for m in data.measurements
        if m.metric == "throughput_bytes_per_s"
    ]
    return dataclasses.replace(data, measurements=[*data.measurements, *extra])


@pytest.mark.parametrize(
    ("true_ratio", "is_found", "is_as_expected"),
    [(1 / 1.1, True, True), (1.0, False, False), (0.5, True, False)],
)
def test_a_slow_down_of_known_size(
    canned: ModuleType, true_ratio: float, is_found: bool, is_as_expected: bool
) -> None:
    """100 us operations, 10 us of pause: throughput must be 1 / 1.1 of what it was."""
    levels = ("A", "B", "delay=10us")
    data = _aa(canned, levels=levels, throughput={"delay=10us": true_ratio}, noise=0.01)
    data = _with_mean_latency(data, 100_000)
    control = calibrate(data, judge(data), planned_rounds=5).control
    assert control is not None
    assert control.expected_ratio == pytest.approx(1 / 1.1)
    assert (control.is_found, control.is_as_expected) == (is_found, is_as_expected)


def test_too_few_rounds_are_refused(canned: ModuleType) -> None:
    data = _aa(canned, rounds=3)
    with pytest.raises(AnalysisError, match="3 complete rounds"):
        calibrate(data, judge(data), planned_rounds=5)


def test_rounds_needed_grow_with_noise_and_family() -> None:
    counts = [needed(Noise(sd, ""), 0.05, 1, 5).recommended for sd in (0.01, 0.03, 0.08)]
    assert None not in counts
    assert counts == sorted(counts, key=lambda n: n or 0)
    alone, family = needed(Noise(0.05, ""), 0.05, 1, 8), needed(Noise(0.05, ""), 0.05, 4, 8)
    assert (alone.for_difference or 0) < (family.for_difference or 0)
    assert (alone.chance_of_difference or 0) > (family.chance_of_difference or 0)
    assert (alone.half_width or 0) < (family.half_width or 0)
    assert needed(Noise(5.0, ""), 0.01, 1, None).recommended is None
    assert needed(Noise(0.0, ""), 0.05, 1, 5).recommended == 3


def test_what_few_rounds_can_show_at_all() -> None:
    """Eight levels, all 28 pairs: eleven rounds (spec of achievability)."""
    tests = achievable(8, 5)
    assert (tests.family, tests.pairs, tests.rounds_for_exact_pairs) == (7, 28, 11)
    assert (tests.has_median_interval, tests.has_bootstrap) == (False, False)
    assert achievable(2, None).has_bootstrap
