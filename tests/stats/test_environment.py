"""Trials of one study on two kernels: told, with the rounds that span the change."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest

from iolab.stats.environment import IDENTITY, environment_changes
from iolab.stats.judge import judge
from iolab.store.rows import StudyData


def _with_kernels(data: StudyData, last_round_of_old: int, extra: str = "") -> StudyData:
    values = {
        trial.trial_id: (
            "6.14.0" if trial.round <= last_round_of_old and trial.trial_id != extra else "6.17.0"
        )
        for trial in data.trials
    }
    return dataclasses.replace(data, varying_facts={"kernel.release": values})


def test_a_change_between_rounds_is_explained(canned: ModuleType) -> None:
    data = _with_kernels(canned.make_study(rounds=6), 3)
    (change,) = environment_changes(data, IDENTITY)
    assert change.values == ("6.14.0", "6.17.0")
    assert change.mixed_rounds == ()
    (caveat,) = [c for c in judge(data).caveats if c.kind == "environment_changed"]
    assert "6.14.0 then 6.17.0" in caveat.says
    assert "ratios are fair" in caveat.hint


def test_a_round_that_spans_the_change_is_named(canned: ModuleType) -> None:
    data = canned.make_study(rounds=4)
    first_of_third = next(t for t in data.trials if t.round == 3)
    (caveat,) = [
        c
        for c in judge(_with_kernels(data, 4, extra=first_of_third.trial_id)).caveats
        if c.kind == "environment_changed"
    ]
    assert "Inside round 3" in caveat.hint


@pytest.mark.parametrize("fact", ["load.average", "cpu.frequency_khz", "vm.dirty_ratio"])
def test_what_changes_by_nature_is_no_caveat(canned: ModuleType, fact: str) -> None:
    data = canned.make_study(rounds=3)
    values = {trial.trial_id: str(trial.ordinal) for trial in data.trials}
    data = dataclasses.replace(data, varying_facts={fact: values})
    codes = {caveat.kind for caveat in judge(data).caveats}
    assert not codes & {"environment_changed", "conditions_changed"}


def test_conditions_have_a_code_of_their_own(canned: ModuleType) -> None:
    data = canned.make_study(rounds=3)
    values = {trial.trial_id: "tsc" if trial.round < 3 else "hpet" for trial in data.trials}
    data = dataclasses.replace(data, varying_facts={"clocksource": values})
    assert "conditions_changed" in {caveat.kind for caveat in judge(data).caveats}
