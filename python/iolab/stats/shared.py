"""In how many cells every level of the compared factor was measured.

A table may have gaps: IOzone's automatic mode has no record that is larger than its file.
"""

from __future__ import annotations

from iolab.stats.ledger import Group, is_segment
from iolab.stats.verdict import StudyVerdict


def shared_cells(verdict: StudyVerdict, group: Group, metric: str) -> tuple[int, int]:
    """Return the number of cells that have every level, and of all."""
    cells: dict[tuple[str, str], set[str]] = {}
    for t in verdict.treatments:
        is_wanted = t.group == group and t.metric == metric
        if is_wanted and t.level is not None and not is_segment(t.operation):
            cells.setdefault((t.operation, t.cell_label), set()).add(t.level)
    levels = {level for found in cells.values() for level in found}
    return sum(found == levels for found in cells.values()), len(cells)
