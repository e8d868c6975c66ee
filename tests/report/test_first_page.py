"""Content of the first page: what to take, how sure, what next; the verdict table; the reasons."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from iolab.report.answer import Answer, answer
from iolab.report.charts.common import noise_floor
from iolab.report.conditions import Condition, condition_table, conditions
from iolab.report.trust import Reason, reasons
from iolab.stats.judge import judge
from iolab.stats.methods.log_ratio import geometric_mean
from iolab.store.rows import StudyData

CALIBRATION = {
    "false_positives": 2,
    "small_studies": 40,
    "false_positive_low": 0.006,
    "false_positive_high": 0.17,
}


def _answer(data: StudyData) -> Answer:
    verdict = judge(data)
    return answer(data, verdict, conditions(data, verdict))


def _reasons(data: StudyData) -> dict[str, Reason]:
    return {reason.label: reason for reason in reasons(data, judge(data))}


def _rows(data: StudyData) -> dict[str, Condition]:
    return {row.level: row for row in conditions(data, judge(data))}


def test_the_factorial_is_answered(canned: ModuleType) -> None:
    found = _answer(canned.factorial())
    assert [take.where.rpartition(", ")[2] for take in found.take] == [
        *("writes", "writes"),
        *("reads", "reads"),
    ]
    best = ("none or mq-deadline", "none, mq-deadline or kyber")
    for (throughput, tail), levels in zip((found.take[:2], found.take[2:]), best, strict=True):
        assert throughput.choice == levels
        assert not throughput.is_open
        assert tail.choice == "bfq"
        assert "times as high as none" in tail.reason
    assert any("noise floor" in text and "below the margin" in text for text in found.sure)
    assert any("iolab aa --on loop:1g" in typed for _, typed in found.steps)


def test_an_open_question_names_the_rounds_that_would_decide(canned: ModuleType) -> None:
    workload = canned.Workload("iozone", ("read",))
    data = canned.make_study(workloads=(workload,), rounds=6, noise=0.03, seed=2)
    verdict = judge(data)
    assert verdict.headline_word == "undecided"
    found = answer(data, verdict, conditions(data, verdict))
    effect = verdict.headline[0].effect
    more = effect.further_rounds
    assert more is not None
    assert effect.further_rounds_least is not None
    assert effect.further_rounds_least < more, "a range with its chance"
    assert f"iolab run DIR --resume --rounds {6 + more}" in [typed for _, typed in found.steps]


def test_too_much_noise_is_no_question_of_rounds(canned: ModuleType) -> None:
    found = _answer(canned.make_study(noise=0.5, rounds=6))
    assert found.steps[0][0].startswith("Get less noise first")


def test_stars_stand_only_where_the_question_is_settled(canned: ModuleType) -> None:
    settled = _rows(canned.factorial())
    assert {level for level, row in settled.items() if row.is_winner} == {
        "none",
        "mq-deadline",
        "kyber",
    }
    noisy = _rows(canned.make_study(noise=0.5, rounds=6))
    assert _answer(canned.make_study(noise=0.5, rounds=6)).take[0].is_open
    assert not any(row.is_winner for row in noisy.values())
    assert all(row.may_be_best for row in noisy.values())


def test_a_row_has_value_tail_stalls_and_cost(canned: ModuleType) -> None:
    data = canned.factorial()
    row = _rows(data)["bfq"]
    assert row.primary is not None
    assert row.p99 is not None
    assert row.primary.low is not None
    assert row.primary.low < row.primary.value < (row.primary.high or 0)
    assert row.primary.n == row.p99.n == 8
    assert row.stalled is not None
    stalled, seen, longest = row.stalled
    assert (stalled, seen) == (224, 224)
    assert longest == 200_000_000
    assert _rows(data)["none"].stalled == (0, 224, 0)
    mine = {trial.trial_id for trial in data.trials if trial.levels["scheduler"] == "bfq"}
    costs = [
        130_000_000 / sum(worker["ops"] for worker in detail["workers"])
        for detail in data.phase_details
        if detail["trial_id"] in mine
    ]
    assert row.cpu_ns_per_op == pytest.approx(geometric_mean(costs))
    table = condition_table(list(_rows(data).values()), "scheduler")
    assert all(len(line) == len(table.columns) for line in table.rows)


def test_series_too_short_for_a_stall_say_nothing_of_stalls(canned: ModuleType) -> None:
    assert all(row.stalled is None for row in _rows(canned.make_study(slices=3)).values())


def test_reasons_tell_good_from_bad_and_unknown(canned: ModuleType) -> None:
    data = canned.factorial()
    found = _reasons(data)
    assert found["trials ok / planned"].sign == "good"
    assert found["A/A false positives"].sign == "unknown"
    assert found["environment"].sign == "mind"
    assert found["generator headroom, least"].sign == "good"
    assert found["Hoefler and Belli's rules kept"].value.split(" of ")[1].startswith("12")
    known = _reasons(replace(data, calibration=CALIBRATION))
    assert known["A/A false positives"].value == "2 of 40 (1 to 17 %)"
    assert known["A/A false positives"].sign == "good"
    bad = CALIBRATION | {"false_positives": 12, "false_positive_low": 0.16}
    assert _reasons(replace(data, calibration=bad))["A/A false positives"].sign == "mind"
    failed = _reasons(canned.demo())
    assert failed["trials ok / planned"].sign == "mind"


def test_the_noise_floor_is_the_width_of_the_intervals(canned: ModuleType) -> None:
    """Twice the noise gives about twice the floor; a simulation has none."""
    floors = [
        noise_floor(judge(canned.make_study(noise=noise, rounds=20))) for noise in (0.02, 0.04)
    ]
    low, high = (floor or 0.0 for floor in floors)
    assert 1.6 < (high - 1) / (low - 1) < 2.5
    assert noise_floor(judge(canned.simulated())) is None


def test_several_workloads_are_a_table(canned: ModuleType, tmp_path: Any) -> None:
    takes = _answer(canned.demo()).take
    assert list(dict.fromkeys(take.where for take in takes)) == [
        "iozone, writes",
        "iozone, reads",
        "contention",
    ]
    assert {take.purpose for take in takes} == {"throughput", "low p99"}


@pytest.mark.parametrize(
    ("fs", "factors", "facts", "is_repeatable"),
    [
        ("ext4", {}, {}, True),
        ("vxfs", {}, {}, False),
        ("none", {}, {"sim.fs": "ufs: clusters"}, False),
        ("none", {}, {"sim.fs": "xfs: groups"}, True),
        ("ext4", {"fs": ["ext4", "ufs"]}, {}, False),
    ],
)
def test_what_exists_in_simulation_alone_is_not_to_be_repeated_on_a_device(
    canned: ModuleType,
    fs: str,
    factors: dict[str, list[str]],
    facts: dict[str, str],
    is_repeatable: bool,
) -> None:
    data = canned.simulated()
    row = replace(
        data.study,
        testbed="sim:disk",
        settings={**data.study.settings, "fs": fs},
        factors={**data.study.factors, **factors},
    )
    data = replace(data, study=row, facts={**data.facts, **facts})
    steps = [text for text, _ in _answer(data).steps]
    assert any("Repeat on a real device" in text for text in steps) == is_repeatable
