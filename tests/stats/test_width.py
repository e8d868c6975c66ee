"""Studies that end when their intervals are narrow enough, with the coverage they promise."""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType

import pytest

from iolab.errors import StudyError
from iolab.stats.judge import judge
from iolab.stats.methods.stein import PILOT_MIN, two_stage_estimate
from iolab.stats.verdict import StudyVerdict
from iolab.stats.width import rounds_for_width, width_of
from iolab.store.rows import StudyData
from iolab.study.load import PILOT_ROUNDS, parse_study
from iolab.study.plan import make_plan
from iolab.study.render import spec_toml

STUDY = """
name = "s"
testbed = "loop:1g"
rounds = 60
width = "2%"
seed = 1
[factors]
scheduler = ["none", "bfq"]
[[workloads]]
kind = "iozone"
tests = ["read"]
"""
WIDTH = 0.02


def _first(data: StudyData, rounds: int) -> StudyVerdict:
    """Judge the first rounds of a study with a wanted width."""
    return judge(
        dataclasses.replace(
            data,
            study=dataclasses.replace(data.study, spec_toml=f"width = {WIDTH}\n"),
            trials=[t for t in data.trials if t.round <= rounds],
            measurements=[
                m
                for m in data.measurements
                if m.round <= rounds and m.metric == "throughput_bytes_per_s"
            ],
            series=[],
        )
    )


def _session(canned: ModuleType, seed: int, noise: float) -> StudyData:
    workload = canned.Workload("iozone", ("read",))
    return canned.make_study(rounds=60, seed=seed, workloads=(workload,), noise=noise)


def test_a_width_is_read_written_back_and_part_of_the_plan() -> None:
    study = parse_study(STUDY)
    assert study.width == WIDTH
    assert parse_study(spec_toml(study)) == study
    other = parse_study(STUDY.replace("2%", "1%"))
    assert make_plan(study).digest != make_plan(other).digest
    more = parse_study(STUDY.replace("60", "90"))
    assert make_plan(study).digest == make_plan(more).digest, "it may be continued with more rounds"
    assert PILOT_ROUNDS == PILOT_MIN


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('width = "2%"', 'width = "wide"', "is not a share"),
        ("rounds = 60", "rounds = 8", "leave nothing after the pilot of 8"),
        ("rounds = 60", "", "may take for ever"),
        ("rounds = 60", "rounds = 60\nlooks = 3", "two ways to end a study"),
    ],
)
def test_a_width_that_means_nothing_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        parse_study(STUDY.replace(old, new))


def test_the_pilot_alone_decides_how_many_rounds(canned: ModuleType) -> None:
    data = _session(canned, 3, 0.02)
    assert rounds_for_width(_first(data, 7).headline, WIDTH) is None
    wanted = rounds_for_width(_first(data, 8).headline, WIDTH)
    assert wanted is not None
    assert wanted > PILOT_ROUNDS
    assert {rounds_for_width(_first(data, n).headline, WIDTH) for n in (9, 20, 60)} == {wanted}
    assert width_of(data.study) is None


def test_the_interval_has_the_width_that_was_asked_for_and_says_so(canned: ModuleType) -> None:
    data = _session(canned, 3, 0.02)
    wanted = rounds_for_width(_first(data, 8).headline, WIDTH)
    assert wanted is not None
    verdict = _first(data, wanted)
    bounds = verdict.headline[0].effect.interval_95
    assert bounds is not None
    assert math.log(bounds.high / bounds.low) / 2 <= math.log1p(WIDTH) * (1 + 1e-9)
    (caveat,) = [c for c in verdict.caveats if c.kind == "wanted_width"]
    assert f"asked for {wanted} rounds; with {wanted} they are" in caveat.says
    (early,) = [c for c in _first(data, wanted - 1).caveats if c.kind == "wanted_width"]
    assert "--resume" in early.hint


def test_ending_by_width_covers_as_promised(canned: ModuleType) -> None:
    """Nothing differs; the study ends where its pilot says. 200 sessions, 4 standard errors."""
    covered = 0
    for seed in range(200):
        data = _session(canned, seed, 0.015)
        wanted = rounds_for_width(_first(data, 8).headline, WIDTH)
        assert wanted is not None
        bounds = _first(data, min(60, wanted)).headline[0].effect.interval_95
        assert bounds is not None
        covered += bounds.low <= 1 <= bounds.high
    assert covered / 200 >= 0.95 - 4 * (0.05 * 0.95 / 200) ** 0.5


def test_a_two_stage_interval_by_hand() -> None:
    """Pilot 1, 2, 3 (sd 1), then 6: t with 2 degrees is 4.3027, half of n = 4 is 2."""
    estimate = two_stage_estimate([1.0, 2.0, 3.0, 6.0], n_pilot=3)
    assert estimate.mean == 3.0
    assert estimate.half_width(0.95) == pytest.approx(4.3027 / 2, abs=1e-4)
    assert estimate.p_value() == pytest.approx(0.0267, abs=2e-4), "t = 6 with 2 degrees"
    assert two_stage_estimate([1.0, 2.0], n_pilot=3).n == 2
