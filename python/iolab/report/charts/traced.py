"""Rows of block traces by treatment: what the charts of the block layer stand on."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from iolab.frozen import frozen
from iolab.report.charts.common import cell_name, cells_in_order, levels_of
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData, TracedPhase, TrialRow


@frozen
class TracedCell:
    """Recorded operations of one treatment."""

    workload: str
    cell: str
    """Operation, and the levels of the factors that are not compared."""
    level: str
    """Level of the compared factor; empty without one."""
    phases: tuple[TracedPhase, ...]
    """One per trial."""

    def mean(self, values: Sequence[float | None]) -> float | None:
        """Mean of those that are known."""
        known = [value for value in values if value is not None]
        return fmean(known) if known else None


def traced_cells(data: StudyData, verdict: StudyVerdict) -> list[TracedCell]:
    """Return what was recorded, cell by cell, the levels of each next to each other.

    Slices of several levels share one recording and one operation, which tells nothing of a level:
    none for a study in slices.
    """
    if data.study.is_in_slices:
        return []
    trials = {trial.trial_id: trial for trial in data.trials if trial.status == "ok"}
    found: dict[tuple[str, str, str], list[TracedPhase]] = {}
    for phase in data.traced:
        trial = trials.get(phase.trial_id)
        if trial is not None:
            found.setdefault(_key(data, verdict, trial, phase.operation), []).append(phase)
    cells = cells_in_order(data, list(dict.fromkeys(cell for _, cell, _ in found)))
    levels = levels_of(data)

    def place(key: tuple[str, str, str]) -> tuple[int, int, int]:
        workload, cell, level = key
        rank = levels.index(level) if level in levels else len(levels)
        return data.study.workloads.index(workload), cells.index(cell), rank

    return [TracedCell(*key, tuple(found[key])) for key in sorted(found, key=place)]


def _key(
    data: StudyData, verdict: StudyVerdict, trial: TrialRow, operation: str
) -> tuple[str, str, str]:
    level = trial.levels.get(verdict.compared_factor, "")
    return trial.workload, cell_name(data, verdict, trial, operation), level
