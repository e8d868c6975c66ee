"""Tables planted so that a mean over unlike columns would say the opposite of what they hold."""

from __future__ import annotations

import math
import random

import pytest

from iolab.imported.mapping import Wishes
from iolab.imported.study import store_imported, understand
from iolab.stats.cell_class import class_of_cell
from iolab.stats.judge import judge
from iolab.store.db import Store

D1_OPERATIONS = ("write", "rewrite", "read", "reread", "random read", "random write", "fwrite")


def judged(folder, rows, **wishes):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "table.csv"
    path.write_text("\n".join(["scheduler,record_size,operation,run,value,unit", *rows]) + "\n")
    database = folder / "out" / "study.db"
    store_imported(understand(path, Wishes(**wishes)), database, "test")
    with Store.open_reader(database) as store:
        return judge(store.load_data())


def table(gain, *, operations, sizes=("4k",), unit="MB/s", runs=5, sd=0.01):
    """Rows of two schedulers; `gain` is the factor of cfq over noop by (operation, size)."""
    rng = random.Random(1)
    return [
        f"{level},{size},{operation},{run},{speed * math.exp(rng.gauss(0, sd)):.5f},{unit}"
        for level in ("noop", "cfq")
        for size in sizes
        for operation in operations
        for speed in [100 * (gain(operation, size) if level == "cfq" else 1)]
        for run in range(1, runs + 1)
    ]


def test_a_gain_of_fwrite_alone_is_no_headline_for_all(tmp_path):
    """D1's columns: fwrite is the C library's buffer, and ten times as fast as the device."""
    rows = table(lambda op, _: 3.0 if op == "fwrite" else 1.0, operations=D1_OPERATIONS)
    verdict = judged(tmp_path, rows)
    assert [(c.kind, c.effect.word) for c in verdict.headline] == [
        ("writes", "same"),
        ("reads", "same"),
    ]
    assert verdict.headline_word == "same"
    assert [(c.kind, c.effect.word) for c in verdict.pooled if not c.is_headline] == [
        ("memory", "better")
    ]
    assert "In imported, memory, cfq is 2.97 times as fast" in verdict.sentence


def test_a_table_of_times_is_judged_by_real_time_alone(tmp_path):
    """Elapsed time fell to a third while user time rose: pooled it was 28 % higher."""
    factors = {"real": 0.3, "user": 3.0, "system": 3.0}
    verdict = judged(
        tmp_path, table(lambda op, _: factors[op], operations=tuple(factors), unit="s")
    )
    (headline,) = verdict.headline
    assert (headline.kind, headline.n_cells, headline.effect.word) == ("elapsed time", 1, "better")
    assert verdict.headline_word == "better"
    (beside,) = [c for c in verdict.pooled if not c.is_headline]
    assert (beside.kind, beside.n_cells, beside.effect.word) == ("processor time", 2, "worse")


def test_cells_that_cross_are_depends_and_named(tmp_path):
    verdict = judged(
        tmp_path,
        table(
            lambda _, size: 1.1 if size in ("4k", "8k") else 0.9,
            operations=("read",),
            sizes=("4k", "8k", "64k", "128k"),
        ),
    )
    (headline,) = verdict.headline
    assert verdict.headline_word == headline.effect.word == "depends"
    assert [(p.label, p.direction) for p in headline.parts] == [
        ("4k and 8k", "better"),
        ("64k and 128k", "worse"),
    ]
    assert "It depends: cfq compared with noop is" in verdict.sentence
    assert "faster in 4k and 8k" in verdict.sentence
    assert "slower in 64k and 128k" in verdict.sentence
    assert verdict.best_levels == [], "no level is the best of cells that disagree"


def test_one_word_for_cells_that_are_all_better(tmp_path):
    rows = table(
        lambda _, size: 1.1 if size == "4k" else 1.3, operations=("read",), sizes=("4k", "64k")
    )
    assert judged(tmp_path, rows).headline_word == "better"


def test_tables_have_a_winner_set_with_unequal_spreads(tmp_path):
    rng = random.Random(2)
    rows = [
        f"{level},4k,read,{run},{100 * math.exp(rng.gauss(mean, sd)):.6f},MB/s"
        for level, mean, sd in (("noop", 0.0, 0.004), ("cfq", -0.3, 0.004), ("bfq", 0.02, 0.06))
        for run in range(1, 7)
    ]
    (best,) = judged(tmp_path, rows).best_levels
    assert set(best.candidates) == {"noop", "bfq"}


def test_runs_that_are_equal_to_the_last_digit_are_no_certainty(tmp_path):
    rows = [
        f"{v},4k,read,{r},{x},MB/s" for v, x in (("noop", 100), ("cfq", 120)) for r in (1, 2, 3)
    ]
    (headline,) = judged(tmp_path, rows).headline
    assert headline.effect.word == "undecided"
    assert "equal to the last digit" in headline.effect.reason


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Initial write", "writes"),
        ("Random read", "reads"),
        ("Re-read", "reads"),
        ("preadv", "reads"),
        ("pwritev", "writes"),
        ("fwrite", "memory"),
        ("re-fread", "memory"),
        ("Sequential Output Block", "writes"),
        ("read/write", "mixed"),
        ("Random Seeks", "other"),
        ("Parent sees throughput for 4 readers", "reads as the parent sees them"),
        ("Children see throughput for 4 readers", "reads"),
    ],
)
def test_columns_are_read_as_people_read_them(name, found):
    assert class_of_cell(name, kind="imported") == found
