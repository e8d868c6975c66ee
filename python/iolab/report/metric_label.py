"""Name of a metric beside comparisons by it, with the cells that have it where not all do.

A cell that is too short has no p99, so that the mean of the p99 is one over fewer cells than that
of the throughput beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.stats.ledger import is_segment
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.wording import counted

NAMES_MAX: Final = 2
"""More cells are counted."""
NAMES_CHARS_MAX: Final = 24
"""Longer names leave no room in the head of a table: such cells are counted, too."""


def metric_label(verdict: StudyVerdict, found: Sequence[Comparison]) -> str:
    """Return the name of the metric of comparisons of one group: ``p99 latency (read · 4k only)``,
    of many cells ``p99 latency (3 of 8 cells)``.
    """
    part = share_of_cells(verdict, found)
    return METRIC_BY_NAME[found[0].metric].label + (f" ({part})" if part else "")


def share_of_cells(verdict: StudyVerdict, found: Sequence[Comparison]) -> str:
    """Return which cells such comparisons rest on, or how many; empty if no metric has more."""
    every = [*verdict.pooled, *verdict.secondary]
    group = found[0].group
    most = max((c.n_cells for c in every if c.group == group), default=0)
    counts = sorted({c.n_cells for c in found})
    if counts[0] >= most:
        return ""
    names = _names(verdict, found)
    said = f"{' and '.join(names)} only"
    if counts == [len(names)] and len(names) <= NAMES_MAX and len(said) <= NAMES_CHARS_MAX:
        return said
    few = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{few} of {counted(most, 'cell')}"


def _names(verdict: StudyVerdict, found: Sequence[Comparison]) -> list[str]:
    """Return the cells of which all levels that are compared have the metric."""
    first = found[0]
    levels = {first.baseline, *(c.level for c in found)}
    measured: dict[str, set[str | None]] = {}
    for t in verdict.treatments:
        if (t.group, t.metric) == (first.group, first.metric) and not is_segment(t.operation):
            label = " · ".join(part for part in (t.operation, t.cell_label) if part)
            measured.setdefault(label, set()).add(t.level)
    return [label for label, known in measured.items() if levels <= known]
