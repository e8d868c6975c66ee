"""Slices with planted effects: totals beside means, stalls, and levels that carry over."""

import dataclasses
import math
import random

import pytest

from iolab.stats.effect import Effect
from iolab.stats.judge import judge
from iolab.stats.ledger import build_ledger
from iolab.stats.noise_by_length import error_by_length
from iolab.stats.slices import (
    about_slices,
    carry_over,
    design_of,
    total_log_ratio,
    twin_effect,
)
from iolab.store.rows import Measurement, SlicesRow, StudyData, StudyRow, TrialRow

MS = 1_000_000
RATE = "throughput_bytes_per_s"


def study():
    return StudyRow(
        study_id="s",
        name="s",
        kind="real",
        created_at_unix_ns=0,
        iolab_version="0",
        seed=1,
        margin=0.05,
        compared_factor="record_size",
        baseline="4k",
        factors={"record_size": ["4k", "64k"]},
        settings={},
        workloads=["w"],
        rounds_planned=0,
        testbed="loop:1g",
        plan_digest="",
        spec_toml="",
        is_in_slices=True,
    )


def planted(units=20, effect=1.0, stalls=0.0, carried=0.0, seed=1, sessions=1):
    """Levels whose slices share the moment's noise; `effect` multiplies the second level's rate.

    With `stalls` that share of the second level's slices lasts a hundred times as long; with
    `carried` a slice after one of the same level is so much faster (ln).
    """
    rng = random.Random(seed)
    trials, measurements, slices = [], [], []
    for unit in range(1, units + 1):
        rows = {level: [] for level in ("4k", "64k")}
        before, begin = "", 0
        for _ in range(40):
            moment = rng.gauss(0, 0.5)
            for level in rng.sample(["4k", "64k"], 2):
                rate = 1e6 * math.exp(moment + rng.gauss(0, 0.05))
                rate *= effect if level == "64k" else 1
                rate *= math.exp(carried) if before == level else 1
                length = 12 * MS
                moved = rate * length / 1e9
                if level == "64k" and rng.random() < stalls:
                    length *= 100
                rows[level].append((begin, length, moved))
                before, begin = level, begin + length
        for position, (level, found) in enumerate(rows.items()):
            trial = f"t{2 * unit + position:04d}"
            levels = {"record_size": level}
            trials.append(
                TrialRow(trial, 2 * unit + position, unit, position, "w", levels, "ok", 0, 1)
            )
            logs = [math.log(moved * 1e9 / length) for _, length, moved in found]
            measurements.append(
                Measurement(
                    *(trial, 2 * unit + position, unit, position, "w", levels, "read", RATE),
                    value=math.exp(math.fsum(logs) / len(logs)),
                    is_direct=True,
                    cache_share=None,
                )
            )
            slices.append(
                SlicesRow(
                    *(trial, "read", 1 + unit % sessions, 12 * MS, "shortest", 0, 0),
                    begin_ns=[b for b, _, _ in found],
                    length_ns=[length for _, length, _ in found],
                    ops=[max(1, round(moved)) for _, _, moved in found],
                    bytes=[round(moved) for _, _, moved in found],
                    longest_ns=[length if length > 12 * MS else MS for _, length, _ in found],
                )
            )
    return StudyData(study(), trials, measurements, slices=slices)


def effect_in(data) -> Effect:
    return judge(data).headline[0].effect


def test_five_percent_are_found_where_moments_differ_by_half():
    effect = effect_in(planted(effect=1.10))
    assert effect.word == "better"
    assert effect.ratio == pytest.approx(1.10, rel=0.02)


def test_equal_levels_differ_as_rarely_as_the_interval_says():
    wrong = sum(
        not (e.interval_95.low <= 1 <= e.interval_95.high)
        for seed in range(60)
        for e in [effect_in(planted(units=8, seed=seed))]
        if e.interval_95 is not None
    )
    assert wrong <= 8  # of 60 at 5 %: more than 8 by chance in less than 1 of 200


def test_totals_are_told_apart_from_means_and_withhold_the_word():
    data = planted(effect=1.30, stalls=0.02)
    total = total_log_ratio(data, "64k", "4k", RATE)
    assert total is not None
    assert total < -0.3
    effect = effect_in(data)
    assert effect.word == "undecided"
    assert "totals" in effect.reason
    agreeing = total_log_ratio(planted(effect=1.10), "64k", "4k", RATE)
    assert agreeing == pytest.approx(math.log(1.10), abs=0.02)
    assert total_log_ratio(data, "64k", "4k", "latency_ns_p99") is None


def slice_findings(data):
    return {f.kind: f.count for f in about_slices(build_ledger(data), judge(data))}


def test_stalls_are_counted_and_named():
    caveats = slice_findings(planted(stalls=0.02))
    assert caveats["stalls_in_slices"] > 0
    assert "stalls_in_slices" not in slice_findings(planted())


def test_a_level_that_carries_over_is_found_and_one_that_does_not_is_not():
    found = carry_over(planted(carried=0.08))
    assert found is not None
    assert found.p < 0.01
    assert found.ratio > 1
    assert "carry_over" in slice_findings(planted(carried=0.3))
    false = sum(c.p < 0.05 for seed in range(60) if (c := carry_over(planted(units=10, seed=seed))))
    assert false <= 8


def test_few_units_say_nothing_of_carry_over():
    assert carry_over(planted(units=4, carried=0.5)) is None


def test_the_design_is_described_by_what_was_measured():
    design = design_of(planted(units=4, sessions=2))
    assert design is not None
    assert (design.sessions, design.slices) == (2, 4 * 80)
    assert design.text.startswith("alternating slices of 12 ms, 2 sessions")
    sentence = judge(planted()).sentence
    assert "alternating slices of 12 ms, one session, one layout" in sentence
    assert "the interval holds for these" in sentence


def test_the_error_grows_with_the_length_of_slices_where_noise_is_slow():
    data = planted(units=20)
    rng, level = random.Random(4), 0.0
    rows = []
    for row in data.slices:
        rates = []
        for _ in row.ops:
            level = 0.98 * level + rng.gauss(0, 0.1)
            rates.append(max(1, round(1e5 * math.exp(level))))
        rows.append(dataclasses.replace(row, ops=tuple(rates), length_ns=(12 * MS,) * len(rates)))
    slow = dataclasses.replace(data, slices=tuple(rows))
    found = error_by_length(slow)
    lengths = [row.length_ns for row in found]
    assert lengths == [12 * MS * 2**step for step in range(len(found))]
    assert found[0].error < found[3].error
    assert all(row.pairs >= 8 for row in found)


def test_devices_made_alike_are_compared_under_the_same_level():
    data = planted(units=6)
    rows = [
        dataclasses.replace(
            row,
            ops=tuple(
                round(1000 * (1.2 if turn % 2 else 1.0) * (3 if turn_of(row) else 1))
                for turn in range(len(row.ops))
            ),
            length_ns=(12 * MS,) * len(row.ops),
            place=tuple(turn % 2 for turn in range(len(row.ops))),
            places=2,
        )
        for row in data.slices
    ]
    found = twin_effect(dataclasses.replace(data, slices=tuple(rows)))
    assert found is not None
    assert (found.device, round(found.ratio, 3)) == (1, 1.2)
    assert twin_effect(data) is None


def turn_of(row):
    """Tell whether a row belongs to the second level, which is three times as fast here."""
    return int(row.trial_id[1:]) % 2
