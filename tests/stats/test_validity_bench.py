"""The test of equivalence that earns a row of the table of validity, on planted designs."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

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


def test_a_row_goes_on_where_it_was_stopped_and_shares_the_seconds(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[str, Any] = {}
    shares: list[tuple[str, float]] = []

    def measure(_words: object, _design: object, folder: Path, seconds: float) -> object:
        if folder.name == "slices-2" and not kept.get("is_continued"):
            raise KeyboardInterrupt
        shares.append((folder.name, seconds))
        kept[folder.name] = drawn(bench, 1, 0.1, 0.05, rounds=30)
        return kept[folder.name]

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(
        bench, "stored", lambda folder: kept.get(folder.name, bench.Measured([], 0.0))
    )
    row = bench.ROWS["record-size"]
    with pytest.raises(KeyboardInterrupt):
        bench.parts_of(row, tmp_path, 30, 480.0)
    assert shares == [("slices-1", 120.0), ("trials", 240.0)]
    kept["is_continued"] = True
    slices, trials = bench.parts_of(row, tmp_path, 30, 480.0)
    assert shares[2:] == [("slices-2", 480.0)]
    assert (len(slices.logs), len(trials.logs)) == (60, 30)


def test_the_result_of_a_row_has_its_interval_and_takes_the_place_of_an_older_one(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row, file = bench.ROWS["depth"], tmp_path / "results.json"
    file.write_text("[]")
    wide = bench.result_of(row, drawn(bench, 1, 0.1, 0.05), drawn(bench, 2, 0.1, 0.6))
    fine = bench.result_of(row, drawn(bench, 1, 0.1, 0.05), drawn(bench, 2, 0.1, 0.05))
    other = bench.result_of(
        bench.ROWS["read-ahead"], drawn(bench, 1, 0.1, 0.05), drawn(bench, 2, 0.1, 0.05)
    )
    for result in (wide, other, fine):
        bench.keep(result, file)
    kept = json.loads(file.read_text())
    assert [(one["factor"], one["word"]) for one in kept] == [
        ("read_ahead_kb", "shown"),
        ("depth", "shown"),
    ]
    # Two one-sided tests at 5 % pass just where the 90 % interval lies inside the margin.
    for one in (wide, fine):
        is_inside = one["low"] > 1 / 1.05 and one["high"] < 1.05
        assert is_inside == (one["p_equivalent"] < 0.05)
    assert "90 % interval" in capsys.readouterr().out
    few = bench.result_of(row, drawn(bench, 1, 0.1, 0.05), drawn(bench, 2, 0.1, 0.05, rounds=1))
    assert few is None


def test_rows_are_those_of_the_table_and_unknown_ones_are_named(bench: ModuleType) -> None:
    from iolab.study.validity import row_for

    for row in bench.ROWS.values():
        found = row_for(row.factor, row.levels.split(","), row.program, (row.kind, bench.METRIC))
        assert found is not None
        assert found.slices == "short"
        assert found.is_of_buffered == row.is_buffered
