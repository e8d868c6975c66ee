"""Name of a metric beside comparisons by it, with how many cells have it where not all do.

A cell that is too short has no p99, so that the mean of the p99 is one over fewer cells than that
of the throughput beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.wording import counted


def metric_label(verdict: StudyVerdict, found: Sequence[Comparison]) -> str:
    """Return the name of the metric of comparisons of one group: ``p99 latency (1 of 2 cells)``."""
    part = share_of_cells(verdict, found)
    return METRIC_BY_NAME[found[0].metric].label + (f" ({part})" if part else "")


def share_of_cells(verdict: StudyVerdict, found: Sequence[Comparison]) -> str:
    """Return how many cells such comparisons rest on; empty if no metric has more of them."""
    every = [*verdict.pooled, *verdict.secondary]
    group = found[0].group
    most = max((c.n_cells for c in every if c.group == group), default=0)
    counts = sorted({c.n_cells for c in found})
    if counts[0] >= most:
        return ""
    few = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{few} of {counted(most, 'cell')}"
