"""Number of cells that measure memory, and whether all of their levels do or only some."""

from __future__ import annotations

from collections.abc import Iterator

from iolab.stats.ledger import Group, is_segment
from iolab.stats.verdict import StudyVerdict

CellName = tuple[object, ...]


def cells_all_cached(verdict: StudyVerdict, metric: str) -> int:
    """Count the cells of the headline's group of which every level came from the page cache."""
    groups = {c.group for c in verdict.headline}
    cells: dict[CellName, bool] = {}
    for name, row_metric, is_cached, group in _rows(verdict):
        if group in groups and row_metric == metric:
            cells[name] = cells.get(name, True) and is_cached
    return sum(cells.values())


def has_cold_level(verdict: StudyVerdict) -> bool:
    """Say whether some level of a cell labelled "page cache" did reach the device."""
    cached = {
        (c.workload, c.is_direct, c.operation, *sorted(c.cell_levels.items()))
        for c in verdict.cells
        if c.is_page_cache
    }
    return any(not is_cached and name in cached for name, _, is_cached, _ in _rows(verdict))


def _rows(verdict: StudyVerdict) -> Iterator[tuple[CellName, str, bool, Group]]:
    """Yield the cell of every treatment, metric by metric, whether it is cached, and its group."""
    for row in verdict.treatments:
        if not is_segment(row.operation):
            levels = (item for item in row.levels.items() if item[0] != verdict.compared_factor)
            name = (row.workload, row.is_direct, row.operation, *sorted(levels))
            yield name, row.metric, row.is_page_cache, row.group
