"""The test of equivalence that earns a row of the table of validity, on planted designs."""

from __future__ import annotations

import argparse
import importlib.util
import json
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


def test_too_few_rounds_of_trials_earn_no_row(bench: ModuleType) -> None:
    found = bench.agreement(drawn(bench, 1, 0.10, 0.05), drawn(bench, 2, 0.10, 0.05))
    assert bench.earned(found, 30) == "shown"
    assert bench.earned(found, 29) == "not shown"


def test_parts_are_stored_as_they_end_and_share_the_minutes(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []

    def measure(_words: object, _design: object, folder: Path, seconds: float) -> object:
        shares.append(seconds)
        if folder.name == "slices-2":
            raise KeyboardInterrupt
        return drawn(bench, 1, 0.1, 0.05, rounds=4)

    monkeypatch.setattr(bench, "measure", measure)
    asked = argparse.Namespace(
        factor="scheduler=none,bfq", on="loop:512m", test="random-read", workload=None,
        file_size="8m", rounds=30, minutes=8.0,
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        bench.parts_of(asked, tmp_path)
    assert sum(shares) == 8 * 60
    parts = json.loads((tmp_path / "validity.json").read_text())["parts"]
    assert {name: len(part["ln_ratios"]) for name, part in parts.items()} == {
        "slices-1": 4,
        "trials": 4,
    }
