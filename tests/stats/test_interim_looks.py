"""Studies that look before their end: wider intervals, and no more false findings."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest

from iolab.errors import StudyError
from iolab.stats.interim_looks import look_of
from iolab.stats.judge import judge
from iolab.store.rows import StudyData
from iolab.study.load import parse_study
from iolab.study.render import spec_toml

STUDY = """
name = "s"
testbed = "loop:1g"
rounds = 12
looks = 3
seed = 1
[factors]
scheduler = ["none", "bfq"]
[[workloads]]
kind = "iozone"
tests = ["read"]
"""


def _looking(data: StudyData, looks: int, rounds: int) -> StudyData:
    spec = f"rounds = {rounds}\nlooks = {looks}\n"
    return dataclasses.replace(data, study=dataclasses.replace(data.study, spec_toml=spec))


def test_looks_are_read_and_written_back() -> None:
    study = parse_study(STUDY)
    assert study.looks == 3
    assert parse_study(spec_toml(study)) == study


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("looks = 3", "looks = 6", "from 2 to 5"),
        ("looks = 3", "looks = true", "from 2 to 5"),
        ("rounds = 12", "rounds = 8", "3 looks need rounds"),
        ("rounds = 12", 'budget = "1h"', "3 looks need rounds"),
    ],
)
def test_looks_that_mean_nothing_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        parse_study(STUDY.replace(old, new))


def test_levels_of_the_looks_are_obrien_flemings(canned: ModuleType) -> None:
    """K = 3: .00052, .0141, .0451 (Jennison and Turnbull, table 2.3: 2.004 at the last)."""
    study = _looking(canned.make_study(rounds=3), 3, 12)
    levels = [look_of(study, n).shown_level for n in (3, 4, 7, 8, 12)]
    assert levels == pytest.approx([0.00052, 0.00052, 0.00052, 0.0141, 0.0451], rel=0.02)
    assert look_of(study, 12).level == pytest.approx(0.8 * 0.0451, rel=0.02)
    plain = look_of(canned.make_study(), 5)
    assert (plain.shown_level, plain.level) == (0.05, pytest.approx(0.04))
    row = dataclasses.replace(study.study, spec_toml="= no toml")
    assert look_of(dataclasses.replace(study, study=row), 5).shown_level == 0.05


def test_a_study_that_was_seen_before_has_less_to_spend(canned: ModuleType) -> None:
    """All looks there may ever be have .05 together."""
    data = canned.make_study()
    looks = [dataclasses.replace(data, looks=tuple(range(3, 3 + n))) for n in range(5)]
    levels = [look_of(seen, 40).level for seen in looks]
    assert levels == pytest.approx([0.04, 0.005, 0.0025, 0.00125, 0.000625])
    assert look_of(dataclasses.replace(data, looks=(5,)), 5).resumed == 0, "the same rounds again"
    told = {c.kind: c for c in judge(dataclasses.replace(data, looks=(3,))).caveats}
    assert "was seen 1 time before, and continued" in told["seen_before"].says


def test_an_early_look_has_wider_intervals_and_says_so(canned: ModuleType) -> None:
    data = canned.make_study(rounds=6, throughput={"bfq": 0.9})
    plain, looking = judge(data), judge(_looking(data, 2, 12))
    before, after = plain.headline[0], looking.headline[0]
    assert before.effect.interval_95 is not None
    assert after.effect.interval_95 is not None
    assert after.effect.interval_95.low < before.effect.interval_95.low
    assert after.effect.interval_95.confidence == pytest.approx(1 - 0.00517, abs=1e-4)
    caveats = {c.kind: c for c in looking.caveats}
    assert "it stands at look 1" in caveats["planned_looks"].says
    assert "planned_looks" not in {c.kind for c in plain.caveats}


def test_looking_and_stopping_finds_no_more_than_promised(canned: ModuleType) -> None:
    """Identical treatments, 3 looks at 12 rounds; the study ends at the first difference."""
    found = 0
    for seed in range(200):
        whole = canned.make_study(
            rounds=12, seed=seed, workloads=(canned.Workload("iozone", ("read",)),), noise=0.02
        )
        for rounds in (4, 8, 12):
            seen = dataclasses.replace(
                whole,
                trials=[t for t in whole.trials if t.round <= rounds],
                measurements=[
                    m
                    for m in whole.measurements
                    if m.round <= rounds and m.metric == "throughput_bytes_per_s"
                ],
                series=[],
            )
            (comparison,) = judge(_looking(seen, 3, 12)).headline
            if comparison.effect.sign != "none":
                found += 1
                break
    assert found / 200 <= 0.05 + 4 * (0.05 * 0.95 / 200) ** 0.5
