"""Looking back at a study: where repetition pays, how many rounds would have sufficed."""

from __future__ import annotations

import dataclasses
import math
import random
from types import ModuleType

import pytest

from iolab.errors import AnalysisError
from iolab.library.power_reached import look_back_text
from iolab.stats.judge import judge
from iolab.stats.ledger import build_ledger
from iolab.stats.power_reached import look_back
from iolab.stats.repetition import PARTS, noise_by_level, trial_costs_ns, trial_lengths
from iolab.store.rows import Nature, SeriesRow, StudyData

SECOND = 1_000_000_000
SLICE = SECOND // 10


def _with_series(
    data: StudyData, *, part_sd: float, trial_sd: float, overhead_ns: int, seed: int = 1
) -> StudyData:
    """Trials of one second in slices of a tenth, with known spreads, and a known overhead."""
    rng = random.Random(seed)
    series: list[SeriesRow] = []
    for trial in data.trials:
        level = rng.gauss(0, trial_sd)
        work = [round(1e9 * math.exp(level + rng.gauss(0, part_sd))) for _ in range(PARTS)]
        # The last slice is cut off by the end and never counts.
        row = (tuple([1000] * 11), (*work, 1), tuple([0] * 11))
        series.append(SeriesRow(trial.trial_id, "read", SLICE, *row))
    return dataclasses.replace(
        data,
        trials=[dataclasses.replace(t, elapsed_ns=SECOND + overhead_ns) for t in data.trials],
        series=series,
        phase_details=[
            {
                "trial_id": t.trial_id,
                "operation": "read",
                "nature": Nature(),
                "elapsed_ns": SECOND,
            }
            for t in data.trials
        ],
    )


def _study(canned: ModuleType, rounds: int) -> StudyData:
    workload = canned.Workload("iozone", ("read",))
    return canned.make_study(rounds=rounds, workloads=(workload,), noise=0.02)


def test_noise_inside_trials_asks_for_longer_ones(canned: ModuleType) -> None:
    """T1 = .2 and T2 = .02 of a ratio, 1 s beside tenths of .11 s: sqrt(1/.11 x 100) = 30."""
    data = _with_series(
        _study(canned, 200), part_sd=0.2 / 2**0.5, trial_sd=0.02 / 2**0.5, overhead_ns=SECOND
    )
    (row,) = trial_lengths(build_ledger(data))
    assert row.part_sd == pytest.approx(0.2, rel=0.1)
    assert row.overhead_ns == SECOND
    assert row.best_ns > 2 * row.length_ns
    assert row.saving > 0.2


def test_noise_between_rounds_asks_for_shorter_trials(canned: ModuleType) -> None:
    data = _with_series(_study(canned, 200), part_sd=0.02, trial_sd=0.1, overhead_ns=SECOND // 100)
    (row,) = trial_lengths(build_ledger(data))
    assert row.round_sd == pytest.approx(0.1 * 2**0.5, rel=0.15)
    assert row.best_ns == pytest.approx(row.length_ns / PARTS)
    assert "more, shorter trials pay" in look_back_text(data, look_back(data, judge(data)))


def test_spreads_of_an_equal_pair_are_told_apart_by_level(canned: ModuleType) -> None:
    data = _study(canned, 400)
    data = _with_series(data, part_sd=0.1, trial_sd=0.05, overhead_ns=SECOND)
    costs = trial_costs_ns(data)
    assert costs is not None
    assert costs[1:] == (SECOND, 0)
    found = noise_by_level(data, ("none", "bfq"), costs)
    assert found is not None
    assert found.part_sd == pytest.approx(0.1, rel=0.05)
    assert found.trial_sd == pytest.approx(0.05, rel=0.15)
    assert found.round_sd < 0.02
    assert found.trials_per_round == 1


def test_a_short_study_says_what_is_missing(canned: ModuleType) -> None:
    data = _study(canned, 3)
    text = look_back_text(data, look_back(data, judge(data)))
    assert "8 rounds are needed to tell how many give an interval" in text
    assert "10 rounds are needed to tell after how many a median" in text
    assert "trials too short, or rounds too few" in text
    lone = _study(canned, 1)
    with pytest.raises(AnalysisError, match="no two complete rounds"):
        look_back_text(lone, look_back(lone, judge(lone)))


def test_confirm_names_the_treatments_that_need_more(canned: ModuleType) -> None:
    data = _study(canned, 20)
    rng = random.Random(5)
    noisy = [
        dataclasses.replace(m, value=m.value * math.exp(rng.gauss(0, 0.5)))
        if m.levels["scheduler"] == "bfq"
        else dataclasses.replace(m, value=1e8)
        for m in data.measurements
        if m.metric == "throughput_bytes_per_s"
    ]
    data = dataclasses.replace(data, measurements=noisy, series=[])
    found = look_back(data, judge(data))
    assert found.medians is not None
    assert set(found.medians.known.values()) == {10}
    assert all("bfq" in name for name in found.medians.unknown)
    assert found.medians.unknown
    text = look_back_text(data, found)
    assert "more than 20 rounds are needed for read · bfq" in text
    assert "(Stein)" in text
