"""Errors by length of slice, on series whose noise is known."""

import dataclasses
import math
import random

import pytest

from iolab.report.charts.noise import noise_charts
from iolab.stats.noise_by_length import (
    chance_to_see,
    error_of_equal_labels,
    errors_of_series,
    smallest_seen,
)

from .test_slices import planted

SLICE_NS = 12e6


def independent(seed: int, count: int = 4096) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0, 0.2) for _ in range(count)]


def lasting(seed: int, count: int = 4096) -> list[float]:
    rng, level, found = random.Random(seed), 0.0, list[float]()
    for _ in range(count):
        level = 0.98 * level + rng.gauss(0, 0.1)
        found.append(level + rng.gauss(0, 0.05))
    return found


def test_independent_noise_gives_every_length_the_same_error_inside_its_interval():
    # By hand: two means of k slices differ by sd * sqrt(2 / k), in three minutes 7500 / k times.
    true = 0.2 * math.sqrt(2 / (180e9 / (2 * SLICE_NS)))
    inside = total = 0
    for seed in range(40):
        rows = errors_of_series(independent(seed), SLICE_NS)
        inside += sum(row.low <= true <= row.high for row in rows)
        total += len(rows)
    assert 0.91 <= inside / total <= 0.985


def test_noise_that_lasts_is_told_and_independent_noise_is_not():
    slow = noise_charts(errors_of_series(lasting(1), SLICE_NS))
    assert "the noise lasts longer than a short slice" in slow[1].caption
    assert "times as much" in slow[0].caption
    quiet = [noise_charts(errors_of_series(independent(s), SLICE_NS))[1] for s in range(40)]
    told = sum("lasts longer" in chart.caption for chart in quiet)
    assert told <= 4


def test_the_chance_is_that_of_a_normal_estimate():
    assert chance_to_see(0.02, 0.0) == pytest.approx(0.05)
    assert chance_to_see(0.02, smallest_seen(0.02)) == pytest.approx(0.8, abs=1e-3)
    # Textbook: 2.80 standard errors for a power of 80 % at 5 %.
    assert math.log1p(smallest_seen(0.02)) == pytest.approx(2.802 * 0.02, rel=1e-3)


def test_only_equal_labels_of_an_a_a_study_are_one_series():
    data = planted(units=20)
    assert error_of_equal_labels(data) == []
    study = dataclasses.replace(data.study, compared_factor="label")
    labels = {"4k": "A", "64k": "delay=1ms"}
    trials = [
        dataclasses.replace(trial, levels={"label": labels[trial.levels["record_size"]]})
        for trial in data.trials
    ]
    labelled = dataclasses.replace(data, study=study, trials=trials)
    both = dataclasses.replace(
        labelled, trials=[dataclasses.replace(t, levels={"label": "A"}) for t in trials]
    )
    alone, all_of_them = error_of_equal_labels(labelled), error_of_equal_labels(both)
    assert alone
    assert 2 * alone[0].pairs == all_of_them[0].pairs
