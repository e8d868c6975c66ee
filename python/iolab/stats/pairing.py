"""Pairs: one level against the baseline, round by round, pooled over cells.

Only rounds in which every cell has both sides count for the pooled ratio ("complete"): an
incomplete round would change the mix of cells and with it the mean. A cell that has pairs in fewer
than half of the rounds of the fullest cell (a record size that one side cannot do) would cost more
rounds than it is worth: it is left out instead, and counted. Both choices look at what is missing,
never at values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iolab.frozen import frozen
from iolab.stats.ledger import CellKey, Cells, Ledger, Samples
from iolab.stats.methods.log_ratio import log_ratio
from iolab.stats.metrics import Metric
from iolab.store.rows import Measurement, TrialRow

TOTAL = "all"
"""Stream name under which a mixed phase's total is stored."""


@frozen
class CellPairs:
    """The oriented ln-ratios of one cell, by round, with the samples they came from."""

    key: CellKey
    log_ratios: dict[int, float]
    level: Samples
    baseline: Samples


@frozen
class PooledPairs:
    """The oriented ln-ratios of one group, averaged over its cells, by complete round."""

    cells: list[CellPairs]
    cells_excluded: int
    log_ratios: dict[int, float]
    rounds_excluded: int
    trials_used: int
    trials_excluded: int


def pair_cells(
    cells: Cells, metric: Metric, level: str, baseline: str
) -> tuple[list[CellPairs], int]:
    """Pair two levels in each cell.

    Returns
    -------
    Cells with at least one pair, and the number of cells that have a value of either level but
    never a pair.
    """
    pairs: list[CellPairs] = []
    left_out = 0
    for key, by_level in cells.items():
        ours, theirs = by_level.get(level), by_level.get(baseline)
        if ours is None and theirs is None:
            continue
        if ours is None or theirs is None:
            left_out += 1
            continue
        ratios = log_ratios(metric, ours, theirs)
        if ratios:
            pairs.append(CellPairs(key, ratios, ours, theirs))
        else:
            left_out += 1
    return pairs, left_out


def log_ratios(metric: Metric, ours: Samples, theirs: Samples) -> dict[int, float]:
    """Return `oriented_log_ratio` of every round that both have; kept, as it is asked often."""
    known = ours.log_ratios.get(id(theirs))
    if known is None:
        mine, other = ours.by_round, theirs.by_round
        ratios = {
            r: oriented_log_ratio(metric, mine[r], other[r])
            for r in sorted(mine.keys() & other.keys())
        }
        known = ours.log_ratios[id(theirs)] = theirs, ratios
    return known[1]


def without_parts(cells: Cells) -> Cells:
    """Leave out the streams of a mixed phase, and the operations of a program, with their total.

    The total (``<phase>/all``, or the program's own cell) is the sum of its parts; pooling both
    would count every byte twice, and pooling the parts alone would call a phase slower that moved
    more bytes. A metric without a total (latency) pools the parts.
    """

    def place(key: CellKey, phase: str) -> tuple[object, ...]:
        return (key.workload, key.is_direct, key.levels, phase)

    totals = {
        place(key, phase)
        for key in cells
        for phase, _, part in [key.operation.rpartition("/")]
        if part == TOTAL
    }
    totals |= {place(key, key.operation) for key in cells}
    return {
        key: by_level
        for key, by_level in cells.items()
        for phase, _, part in [key.operation.rpartition("/")]
        if part == TOTAL or place(key, phase) not in totals
    }


def oriented_log_ratio(
    metric: Metric, ours: Sequence[Measurement], theirs: Sequence[Measurement]
) -> float:
    """Return the mean ln-ratio of one round, above 0 when `ours` is better.

    Usually one value a side; several (a nested factor's levels) are averaged on the ln scale.
    """
    if len(ours) == 1 and len(theirs) == 1:
        value = log_ratio(ours[0].value, theirs[0].value)
    else:
        value = _mean_log(ours) - _mean_log(theirs)
    return value if metric.is_higher_better else -value


def pool(ledger: Ledger, cells: Cells, metric: Metric, level: str, baseline: str) -> PooledPairs:
    """Pool the cells of one group (same workload, all direct or all buffered)."""
    pairs, left_out = _paired_cells(cells, metric, level, baseline)
    ratios = _mean_log_ratios(pairs)
    begun = _begun_trials(ledger, pairs, {level, baseline})
    used = {
        m.trial_id
        for pair in pairs
        for side in (pair.level, pair.baseline)
        for r in ratios
        for m in side.by_round[r]
    }
    return PooledPairs(
        cells=pairs,
        cells_excluded=left_out,
        log_ratios=ratios,
        rounds_excluded=len({t.round for t in begun} - ratios.keys()),
        trials_used=len(used),
        trials_excluded=len({t.trial_id for t in begun} - used),
    )


def pooled_log_ratios(cells: Cells, metric: Metric, level: str, baseline: str) -> dict[int, float]:
    """Return the pooled ln-ratios of one group by complete round, and nothing else of `pool`."""
    return _mean_log_ratios(_paired_cells(cells, metric, level, baseline)[0])


def _paired_cells(
    cells: Cells, metric: Metric, level: str, baseline: str
) -> tuple[list[CellPairs], int]:
    """Return the cells with enough pairs, and how many are left out."""
    paired, left_out = pair_cells(without_parts(cells), metric, level, baseline)
    fullest = max((len(pair.log_ratios) for pair in paired), default=0)
    pairs = [pair for pair in paired if 2 * len(pair.log_ratios) >= fullest]
    return pairs, left_out + len(paired) - len(pairs)


def _mean_log_ratios(pairs: list[CellPairs]) -> dict[int, float]:
    """Average over cells in the rounds that all of them have."""
    complete = set.intersection(*(set(p.log_ratios) for p in pairs)) if pairs else set[int]()
    return {
        r: math.fsum(pair.log_ratios[r] for pair in pairs) / len(pairs) for r in sorted(complete)
    }


def _begun_trials(ledger: Ledger, pairs: list[CellPairs], levels: set[str]) -> list[TrialRow]:
    """Return the trials of these cells and levels that were run, whatever came of them."""
    wanted = {(pair.key.workload, pair.key.levels) for pair in pairs}
    return [
        trial
        for workload, cell_levels in wanted
        for level in levels
        for trial in ledger.begun.get((workload, cell_levels, level), ())
    ]


def _mean_log(values: Sequence[Measurement]) -> float:
    return math.fsum(math.log(m.value) for m in values) / len(values)
