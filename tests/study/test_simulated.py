"""The names of simulated schedulers, knobs and profiles are the simulator's."""

from pathlib import Path

import gen_docs
import iolab.study.simulated
from iolab.study.factors import factor_on
from iolab.study.simulated import KNOBS, PROFILES, SCHEDULERS

FILE = Path(iolab.study.simulated.__file__).with_suffix(".json")


def test_the_file_is_what_the_simulator_says():
    text = FILE.read_text(encoding="utf-8")
    assert text == gen_docs.simulated_text(), "a list has changed: run `make docs`"


def test_every_tunable_is_a_factor_with_its_bounds():
    for scheduler in SCHEDULERS:
        for tunable in scheduler.tunables:
            definition = factor_on("sim", f"{scheduler.name}.{tunable.name}")
            assert definition.bounds == (tunable.min, tunable.max)
            assert not definition.needs_root
            assert definition.parse(str(tunable.default)) == (str(tunable.default),)


def test_every_knob_and_profile_has_a_name_and_words():
    assert factor_on("sim", "scheduler").choices == tuple(s.name for s in SCHEDULERS)
    assert all(factor_on("sim", name).is_knob for name in KNOBS)
    assert all(profile.title for profile in PROFILES)
