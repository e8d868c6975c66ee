"""Neighbouring trials: how far apart they were, and what run delay explains; planted and drawn."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from iolab.stats.judge import judge
from iolab.stats.methods.covariate import ROUNDS_MIN, adjusted_mean
from iolab.stats.methods.student import estimate_mean
from iolab.stats.neighbours import adjacent_text, apart
from iolab.store.rows import Measurement, Nature, StudyData, StudyRow, TrialRow

RATE, RUNNING = "throughput_bytes_per_s", "running_share"
MS = 1_000_000
STUDIES = 4000


def drawn(rng: random.Random, n: int, slope: float, effect: float = 0.02) -> tuple[list, list]:
    waits = [rng.gauss(0, 0.1) for _ in range(n)]
    return [effect + slope * x + rng.gauss(0, 0.05) for x in waits], waits


@pytest.mark.parametrize("slope", [0.0, 0.5, 2.0])
def test_the_adjusted_effect_is_unbiased_and_its_interval_covers(slope: float) -> None:
    rng = random.Random(16)
    means, covered = [], 0
    for _ in range(STUDIES):
        values, waits = drawn(rng, 8, slope)
        found = adjusted_mean(values, waits)
        assert found is not None
        means.append(found.mean)
        covered += abs(found.mean - 0.02) <= found.half_width(0.95)
    error = estimate_mean(means)
    assert error.sd is not None
    assert abs(error.mean - 0.02) <= 4 * error.sd / math.sqrt(STUDIES)
    assert abs(covered / STUDIES - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / STUDIES)


def test_it_stays_unbiased_where_it_is_told_only_if_it_helps() -> None:
    """Told: narrower than the plain interval, and no shift of the covariate. The mean is kept."""
    rng = random.Random(17)
    means = []
    for _ in range(STUDIES):
        values, waits = drawn(rng, 8, 0.5)
        found, plain = adjusted_mean(values, waits), estimate_mean(values)
        assert found is not None
        p = estimate_mean(waits).p_value()
        if found.half_width(0.95) <= 0.95 * plain.half_width(0.95) and (p or 0) >= 0.05:
            means.append(found.mean)
    error = estimate_mean(means)
    assert len(means) > STUDIES / 4
    assert error.sd is not None
    assert abs(error.mean - 0.02) <= 4 * error.sd / math.sqrt(len(means))


def test_what_the_processors_explain_makes_the_interval_narrower() -> None:
    rng = random.Random(18)
    plain = adjusted = 0.0
    for _ in range(200):
        values, waits = drawn(rng, 10, 2.0)
        found = adjusted_mean(values, waits)
        assert found is not None
        plain += estimate_mean(values).half_width(0.95)
        adjusted += found.half_width(0.95)
    assert adjusted < plain / 2.5


def test_few_rounds_or_equal_waits_give_none() -> None:
    assert adjusted_mean([0.0] * (ROUNDS_MIN - 1), [0.1] * (ROUNDS_MIN - 1)) is None
    assert adjusted_mean([0.0] * 8, [0.1] * 8) is None


def study(**changes: object) -> StudyRow:
    row = StudyRow(
        study_id="s",
        name="s",
        kind="real",
        created_at_unix_ns=0,
        iolab_version="0",
        seed=1,
        margin=0.05,
        compared_factor="label",
        baseline="A",
        factors={"label": ["A", "B"]},
        settings={},
        workloads=["w"],
        rounds_planned=10,
        testbed="loop:1g",
        plan_digest="",
        spec_toml="",
        is_adjacent=True,
    )
    return dataclasses.replace(row, **changes)  # type: ignore[arg-type]


def planted(*, slope: float = 1.0, moves: float = 0.0, rounds: int = 12) -> StudyData:
    """Trials of 100 ms of which 30 ms are before the timed region, 20 ms apart.

    Rates follow the share of time with a processor (ln, times `slope`); with `moves` level B has
    less of it.
    """
    rng = random.Random(5)
    trials, measurements, details = [], [], []
    for number in range(1, rounds + 1):
        for position, level in enumerate(rng.sample(["A", "B"], 2)):
            ordinal = 2 * (number - 1) + position + 1
            trial, levels = f"t{ordinal:04d}", {"label": level}
            began = ordinal * 120 * MS
            trials.append(
                TrialRow(*(trial, ordinal, number, position, "w", levels, "ok"), began, 100 * MS)
            )
            share = math.exp(-abs(rng.gauss(0.3, 0.15)) - (moves if level == "B" else 0))
            rate = 1e8 * share**slope * math.exp(rng.gauss(0, 0.01))
            for name, value in ((RATE, rate), (RUNNING, share)):
                measurements.append(
                    Measurement(
                        *(trial, ordinal, number, position, "w", levels, "write", name),
                        value=value,
                        is_direct=True,
                        cache_share=None,
                    )
                )
            details.append(
                {"trial_id": trial, "operation": "write", "nature": Nature()}
                | {"elapsed_ns": 70 * MS, "workers": []}
                | dict.fromkeys(("harness_ns_per_op", "depth_reached_mean"))
            )
    return StudyData(study(), trials, measurements, phase_details=details)  # type: ignore[arg-type]


def kinds(data: StudyData) -> dict[str, object]:
    return {finding.kind: finding for finding in judge(data).caveats}


def test_neighbours_say_how_far_apart_their_timed_regions_were() -> None:
    data = planted()
    found = apart(data)
    assert found is not None
    assert (found.median_ns, found.longest_ns, found.pairs) == (50 * MS, 50 * MS, 12)
    assert adjacent_text(data) == "adjacent trials, 50.0 ms apart (at most 50.0 ms)"
    verdict = judge(data)
    assert "Measured in adjacent trials, 50.0 ms apart" in verdict.sentence
    assert "adjacent_trials" in kinds(data)
    other = dataclasses.replace(data, study=study(is_adjacent=False))
    assert "adjacent" not in judge(other).sentence


def test_run_delay_that_explains_the_spread_is_told_beside_the_word() -> None:
    assert "run_delay" in kinds(planted())


def test_run_delay_that_explains_nothing_or_is_the_levels_own_is_not() -> None:
    assert "run_delay" not in kinds(planted(slope=0.0))
    assert "run_delay" not in kinds(planted(moves=0.4))
