"""The simulation bench in its quick form: the same studies and judge, fewer sessions.

Bounds are wider than those of `make bench-verdicts` by what so few sessions leave open, so that a
correct implementation does not fail; a verdict that ignores pairing or order does.
"""

from __future__ import annotations

import importlib.util
import math
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "benches" / "verdicts.py"
SESSIONS = 150


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    name = "iolab_bench_verdicts"
    spec = importlib.util.spec_from_file_location(name, BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_identical_treatments_rarely_differ_and_naively_often_do(bench: ModuleType) -> None:
    rng = random.Random(1)
    found = sum(
        bench.differs(bench.session(rng, bench.HARDEST, 0.0, bench.ROUNDS)) for _ in range(SESSIONS)
    )
    naive = sum(bench.naive_differs(rng, bench.HARDEST, bench.ROUNDS) for _ in range(SESSIONS))
    assert found / SESSIONS <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / SESSIONS)
    assert naive / SESSIONS > 0.30


def test_intervals_cover_a_true_difference(bench: ModuleType) -> None:
    rng, truth = random.Random(2), 2 * math.log1p(bench.MARGIN)
    hits = sum(
        bench.covers(bench.session(rng, bench.WORLDS[1], truth, bench.ROUNDS), truth)
        for _ in range(SESSIONS)
    )
    assert hits / SESSIONS >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / SESSIONS)


def test_the_planned_rounds_find_twice_the_margin(bench: ModuleType) -> None:
    rng, truth = random.Random(3), 2 * math.log1p(bench.MARGIN)
    found = 0
    for _ in range(60):
        n = bench.planned_rounds(rng, bench.HARDEST)
        found += bench.session(rng, bench.HARDEST, truth, n).effect.word == "better"
    assert found / 60 >= 0.80 - 4 * math.sqrt(0.16 / 60)


def test_the_bench_says_which_bound_is_missed(bench: ModuleType) -> None:
    lines = []
    assert bench.main(["--sessions", "2"], tell=lines.append) == 1
    assert any("MISSED" in line for line in lines)
    assert str(bench.Row("x", 1, 100, "at least 0 %", True)).endswith("ok")
