"""Levels by rounds: the table that comparisons of several levels start from."""

from __future__ import annotations

import math

from iolab.stats.ledger import Group, Ledger
from iolab.stats.metrics import Metric
from iolab.stats.pairing import without_parts
from iolab.store.rows import Measurement

LevelTable = dict[str, dict[int, float]]
"""Level -> round -> oriented mean ln-value over the cells; above is better."""


def level_table(ledger: Ledger, group: Group, metric: Metric) -> LevelTable:
    """Average the cells that have every level; a round counts if all those cells have it."""
    cells = without_parts(ledger.cells_asked(metric, group))
    found = {level for by_level in cells.values() for level in by_level}
    levels = [level for level in ledger.levels_in_order if level in found]
    full = [by_level for by_level in cells.values() if all(level in by_level for level in levels)]
    if not full:
        return {}
    sign = 1 if metric.is_higher_better else -1
    table: LevelTable = {}
    for level in levels:
        rounds = set.intersection(*(set(by_level[level].by_round) for by_level in full))
        table[level] = {
            r: sign * math.fsum(mean_log(by_level[level].by_round[r]) for by_level in full)
            / len(full)
            for r in sorted(rounds)
        }  # fmt: skip
    return table


def mean_log(values: list[Measurement]) -> float:
    """Return the mean ln-value; usually of one."""
    return math.fsum(math.log(m.value) for m in values) / len(values)
