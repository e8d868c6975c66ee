"""The bench of the bar for A/A studies: its three answers, from made-up studies."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "benches" / "aa_bar.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    name = "iolab_bench_aa_bar"
    spec = importlib.util.spec_from_file_location(name, BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Lab:
    """Answers like `iolab aa` on a device of a millisecond per operation."""

    testbed = "made-up"
    spent_s = 60.0

    def __init__(self, sd: float = 0.01, found: int = 10, differing: int = 0) -> None:
        self.sd, self.found, self.differing = sd, found, differing
        self.asked: list[tuple[str, int, int]] = []

    def op_ns(self, name: str) -> float:
        assert name == "pilot"
        return 1e6

    def study(self, name: str, rounds: int, pause_ns: int) -> dict[str, Any]:
        self.asked.append((name, rounds, pause_ns))
        number = len(self.asked) - 1  # 0 is the pilot.
        low = 1.01 if 0 < number <= self.differing else 0.99
        return {
            "n_rounds": rounds,
            "sd": self.sd,
            "sd_upper": self.sd,
            "ratio": 1.02 if low > 1 else 1.0,
            "ratio_low": low,
            "ratio_high": 1.03,
            "false_positives": 0,
            "small_studies": 2,
            "control": {
                # The pilot's pause costs 10 us more than the 100 us asked for.
                "ratio": 1e6 / 1.11e6 if number == 0 else 0.9,
                "low": 0.88,
                "high": 0.92,
                "is_found": number <= self.found,
            },
        }


def test_the_pause_is_what_costs_a_tenth_and_the_rounds_are_the_planners(bench: ModuleType) -> None:
    lab, told = Lab(), list[str]()
    assert bench.run(lab, 10, 900, told.append) == 0
    assert len(lab.asked) == 11
    # A tenth of the throughput is a ninth of the time, less the 10 us that come by themselves.
    assert {pause for _, _, pause in lab.asked[1:]} == {round(1e6 / 9 - 10_000)}
    assert {rounds for _, rounds, _ in lab.asked[1:]} == {4}
    assert "the pause is found in 10 of 10 studies of 4 rounds" in told[-1]
    assert told[-1].endswith("ok")


def test_seven_of_ten_miss_the_bar_and_eight_meet_it(bench: ModuleType) -> None:
    assert bench.run(Lab(found=8), 10, 900, lambda _: None) == 0
    told = list[str]()
    assert bench.run(Lab(found=7), 10, 900, told.append) == bench.EXIT_MISSED
    assert told[-1].endswith("MISSED")


def test_labels_that_differ_too_often_do_not_hold(bench: ModuleType) -> None:
    told = list[str]()
    assert bench.run(Lab(differing=5), 10, 900, told.append) == bench.EXIT_MISSED
    assert "DOES NOT HOLD" in told[-2]
    assert bench.run(Lab(differing=1), 10, 900, told.append) == 0


@pytest.mark.parametrize("sd", [0.3, 3.0])
def test_a_noisy_machine_is_undecided_after_the_first_study(bench: ModuleType, sd: float) -> None:
    lab, told = Lab(sd=sd), list[str]()
    assert bench.run(lab, 10, 900, told.append) == bench.EXIT_UNDECIDED
    assert len(lab.asked) == 1
    assert told[-1].startswith("UNDECIDED")
