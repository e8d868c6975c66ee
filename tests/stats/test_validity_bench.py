"""The test of equivalence that earns a row of the table of validity, on planted designs."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "benches" / "validity.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    name = "iolab_bench_validity"
    spec = importlib.util.spec_from_file_location(name, BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def drawn(bench: ModuleType, seed: int, mean: float, sd: float, rounds: int = 30):
    rng = random.Random(seed)
    return bench.Measured([rng.gauss(mean, sd) for _ in range(rounds)], 180.0)


def test_designs_that_agree_are_shown_only_if_both_are_precise(bench: ModuleType) -> None:
    slices = drawn(bench, 1, 0.10, 0.05)
    assert bench.agreement(slices, drawn(bench, 2, 0.10, 0.05)).word == "shown"
    assert bench.agreement(slices, drawn(bench, 2, 0.10, 0.60)).word == "not shown"


def test_designs_that_disagree_are_different(bench: ModuleType) -> None:
    found = bench.agreement(drawn(bench, 1, 0.10, 0.05), drawn(bench, 2, -0.10, 0.05))
    assert found.word == "different"


def test_designs_at_the_margin_are_rarely_shown(bench: ModuleType) -> None:
    edge = 0.04879  # ln 1.05
    shown = sum(
        bench.agreement(drawn(bench, seed, edge, 0.1), drawn(bench, 1000 + seed, 0.0, 0.1)).word
        == "shown"
        for seed in range(100)
    )
    assert shown <= 12  # at most 5 % are expected


def test_variances_are_compared_for_the_same_time(bench: ModuleType) -> None:
    slices, trials = drawn(bench, 1, 0.0, 0.1, rounds=400), drawn(bench, 2, 0.0, 0.5, rounds=400)
    assert bench.agreement(slices, trials).variance_ratio == pytest.approx(25, rel=0.3)
