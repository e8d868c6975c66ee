"""Bars of `make bench-aa`, on records with planted noise and effects."""

from __future__ import annotations

import importlib
import math
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    sys.path.insert(0, str(BENCHES))
    try:
        return importlib.import_module("slices_bar")
    finally:
        sys.path.remove(str(BENCHES))


def records(sd: float, count: int = 10, units: int = 60) -> list[list[float]]:
    rng = random.Random(5)
    return [[rng.gauss(0, sd) for _ in range(units)] for _ in range(count)]


def test_power_and_errors_are_those_of_a_t_test(bench: ModuleType) -> None:
    # 60 units of sd 10 % have a standard error of 1.3 %: 5 % is 3.9 of them, 10 % is 8.
    equal, five, ten = bench.window_bars(records(0.10))
    assert (equal.is_met, five.is_met, ten.is_met) == (True, True, True)
    assert "%" in five.interval
    # With 40 % it is 1: such noise hides 5 %, and still no equal labels differ too often.
    equal, five, ten = bench.window_bars(records(0.40))
    assert (equal.is_met, five.is_met) == (True, False)
    # One error in twenty is promised: a test that always sees something is found out.
    always = [[math.log(1.001)] * 60 for _ in range(10)]
    assert max(bench.window_shares(always, 0.05, 200)) == 1.0


def test_few_records_or_units_are_not_judged(bench: ModuleType) -> None:
    assert {bar.is_met for bar in bench.window_bars(records(0.1, count=9))} == {None}
    assert {bar.is_met for bar in bench.window_bars(records(0.1, units=4))} == {None}


def test_a_missed_bar_decides_the_exit_code_and_short_parts_are_told(
    bench: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    met, missed = (bench.Bar("x", "1", "", ">= 1", is_met) for is_met in (True, False))
    unknown = bench.Bar("x", "1", "", ">= 1", None)
    whole, short = bench.Shares.of(60), bench.Shares.of(6)
    assert (whole.is_whole, short.is_whole) == (True, False)
    assert bench.exit_code([met, missed, unknown], short) == 1
    assert bench.exit_code([met, unknown], whole) == 4
    assert bench.exit_code([met], short) == 4
    assert "three minutes" in bench.__doc__
    assert "180 s a window" in capsys.readouterr().out
    assert bench.exit_code([met], whole) == 0
    assert "MISSED" in missed.line


def test_variances_are_compared_cell_by_cell(bench: ModuleType) -> None:
    rng = random.Random(2)

    def drawn(sd: float) -> object:
        return bench.Measured([rng.gauss(0, sd) for _ in range(200)], 100.0)

    slices, trials = [drawn(0.1) for _ in bench.CELLS], [drawn(0.5) for _ in bench.CELLS]
    assert [bar.is_met for bar in bench.variance_bars(slices, trials)] == [True, True]
    trials[3] = drawn(0.1)
    assert [bar.is_met for bar in bench.variance_bars(slices, trials)] == [True, False]


def test_planted_studies_count_by_their_signs(bench: ModuleType) -> None:
    good = [(False, True, True)] * 3 + [(True, False, True), (False, False, False)]
    assert [bar.is_met for bar in bench.planted_bars(good)] == [True, True, True]
    bad = [(True, False, True)] * 5
    assert [bar.is_met for bar in bench.planted_bars(bad)] == [False, False, True]
    assert {bar.is_met for bar in bench.planted_bars(good[:4])} == {None}
