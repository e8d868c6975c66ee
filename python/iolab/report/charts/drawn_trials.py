"""Choice of trials that the charts over time draw: of each treatment the median one, and the worst
stall.

The median trial is the one with the lower median throughput. A stall of another trial would never
be seen there, so that the trial with the longest stall of a treatment is drawn beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.frozen import frozen
from iolab.report.charts.common import cells_in_order, operations_first
from iolab.stats.lookups import of_metric
from iolab.stats.methods.stalls import Stalls
from iolab.stats.metrics.metric import format_ns
from iolab.stats.secondary_analyses import shaped_series
from iolab.stats.verdict import StudyVerdict
from iolab.stats.whole_series import whole_series
from iolab.store.rows import Measurement, SeriesRow, StudyData, TrialRow


@frozen
class Drawn:
    """One trial of one treatment, and why it is drawn."""

    level: str
    row: SeriesRow
    stalls: Stalls | None = None
    """Of the trial with the treatment's longest stall; None of one that is drawn as the median."""

    @property
    def name(self) -> str:
        """Name in the legend."""
        return self.level if self.stalls is None else f"{self.level}, longest stall"


Panels = dict[str, list[Drawn]]
"""Panel title to the trials drawn there."""


def chosen_panels(data: StudyData, verdict: StudyVerdict) -> dict[str, Panels]:
    """Return the trials to draw, by workload; several charts draw them."""
    known = data.derived.get("chosen_panels")
    if known is None:
        known = data.derived["chosen_panels"] = _chosen_panels(data, verdict)
    return known


def _chosen_panels(data: StudyData, verdict: StudyVerdict) -> dict[str, Panels]:
    rows = whole_series(data)
    series = {(s.trial_id, s.operation): s for s in rows if s.bytes and s.interval_ns > 0}
    stalled = _longest_stalls(data, verdict)
    found: dict[str, Panels] = {}
    for (workload, panel, level), m in _median_trials(data, verdict).items():
        row = series.get((m.trial_id, m.operation))
        if row is None:
            continue
        members = found.setdefault(workload, {}).setdefault(panel, [])
        members.append(Drawn(level, row))
        worst = stalled.get((workload, panel, level))
        if worst is not None and worst[0].trial_id != row.trial_id:
            members.append(Drawn(level, *worst))
    return {
        workload: {
            title: panels[title] for title in operations_first(cells_in_order(data, list(panels)))
        }
        for workload, panels in found.items()
    }


def _place(
    data: StudyData, verdict: StudyVerdict, item: Measurement | TrialRow, operation: str
) -> tuple[str, str, str]:
    """Return workload, panel and level of a trial's operation."""
    varying = {f for f, levels in data.study.factors.items() if len(levels) > 1}
    rest = [
        level
        for name, level in sorted(item.levels.items())
        if name != verdict.compared_factor and name in varying
    ]
    panel = " · ".join([operation, *rest])
    return item.workload, panel, item.levels.get(verdict.compared_factor, "all")


def _median_trials(
    data: StudyData, verdict: StudyVerdict
) -> dict[tuple[str, str, str], Measurement]:
    """Pick, per (workload, panel, level), the trial with the lower median throughput."""
    by_treatment: dict[tuple[str, str, str], list[Measurement]] = {}
    for m in of_metric(data, "throughput_bytes_per_s"):
        if m.value > 0:
            by_treatment.setdefault(_place(data, verdict, m, m.operation), []).append(m)
    return {
        key: sorted(found, key=lambda m: (m.value, m.trial_id))[(len(found) - 1) // 2]
        for key, found in by_treatment.items()
    }


def _longest_stalls(
    data: StudyData, verdict: StudyVerdict
) -> dict[tuple[str, str, str], tuple[SeriesRow, Stalls]]:
    """Pick, per (workload, panel, level), the trial with the longest stall, if any stalls."""
    found: dict[tuple[str, str, str], tuple[SeriesRow, Stalls]] = {}
    for trial, row, shape in shaped_series(data):
        if shape.stalls.longest_ns > 0:
            key = _place(data, verdict, trial, row.operation)
            if key not in found or shape.stalls.longest_ns > found[key][1].longest_ns:
                found[key] = (row, shape.stalls)
    return found


def drawn_said(panels: Panels, verdict: StudyVerdict) -> str:
    """Say which trials are drawn."""
    which = "of each level " if verdict.compared_factor else ""
    text = f" Drawn: {which}the trial with the lower median throughput"
    stalled = [
        (title, drawn) for title, members in panels.items() for drawn in members if drawn.stalls
    ]
    if not stalled:
        return f"{text}."
    title, worst = max(stalled, key=lambda item: item[1].stalls.longest_ns if item[1].stalls else 0)
    longest = format_ns(worst.stalls.longest_ns if worst.stalls else 0)
    return (
        f"{text}; broken lines: the trial with the longest stall, where that is another"
        f" ({worst.level} in {title}: {longest} in trial {worst.row.trial_id})."
    )


def stalls_said(verdict: StudyVerdict, workload: str, rows: Sequence[SeriesRow]) -> str:
    """Say how many of all trials stall, and name the longest stall; not only of those drawn."""
    from iolab.stats.caveats_of_time import stall_text

    courses = [c for c in verdict.closer.time_courses if c.workload == workload]
    total, told = sum(c.n_trials for c in courses), sum(c.told_trials for c in courses)
    count = sum(c.stalled_trials for c in courses)
    least = min((row.interval_ns * len(row.ops) for row in rows), default=0)
    if not told:
        return (
            f"Series this short (the shortest of {format_ns(least)}) do not tell whether trials"
            " stall."
        )
    of = f"{told} series"
    rest = "" if told == total else f" ({total - told} more are too short to show a stall)"
    if not count:
        return f"None of {of} has a stall{rest}."
    worst = next(s for s in verdict.closer.stalled if s.workload == workload)
    verb = "has a stall" if count == 1 else "have a stall"
    return f"{count} of {of} {verb}{rest}; the longest: {stall_text(worst)}."
