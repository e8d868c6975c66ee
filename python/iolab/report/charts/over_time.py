"""Throughput over time inside single trials: of each treatment the median one, and a stall."""

from __future__ import annotations

from iolab.frozen import replace
from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series, Shape, Table, Value
from iolab.report.charts.common import cap_panels, level_slots
from iolab.report.charts.drawn_trials import Drawn, Panels, chosen_panels, drawn_said, stalls_said
from iolab.stats.methods.stalls import find_stalls
from iolab.stats.metrics.metric import format_bytes_per_s, format_ns, in_rate_unit, rate_unit
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import SeriesRow, StudyData

POINTS_MAX = 150
"""Points drawn per line; longer series are averaged over neighbours, the sum of bytes is kept."""

SLICES_DRAWN_MIN = 10
TABLE_ROWS_MAX = 6_000
"""Of longer series the table has only what is drawn in colour."""


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one chart per workload; panels are operations at their other levels."""
    slots = level_slots(data, verdict)
    return [
        replace(_spec(verdict, workload, _long(panels), slots), marks=change_marks(data, workload))
        for workload, panels in chosen_panels(data, verdict).items()
    ]


def _long(panels: Panels) -> Panels:
    """Leave out the cells whose series are too short to show anything, if others are not."""
    kept = {
        title: members
        for title, members in panels.items()
        if max(len(drawn.row.bytes) for drawn in members) >= SLICES_DRAWN_MIN
    }
    return kept or panels


def change_marks(data: StudyData, workload: str) -> tuple[tuple[float, str], ...]:
    """Changes while a workload ran: seconds and ``scheduler = bfq``, as planned."""
    own = {trial.trial_id for trial in data.trials if trial.workload == workload}
    texts = {
        (mark.asked_ns, f"{mark.knob} = {mark.after or '?'}")
        for mark in data.marks
        if mark.trial_id in own
    }
    return tuple((at_ns / 1e9, text) for at_ns, text in sorted(texts))


def _spec(verdict: StudyVerdict, workload: str, panels: Panels, slots: dict[str, int]) -> ChartSpec:
    drawn, note = cap_panels(
        [
            Panel(
                title,
                tuple(
                    Series(
                        d.name,
                        _points(d.level, d.row),
                        slots.get(d.level, 0),
                        is_joined=True,
                        dash=1 if d.stalls else 0,
                    )
                    for d in in_colour(members, slots)
                ),
                stall_shapes(members),
            )
            for title, members in panels.items()
        ]
    )
    rows = [(title, d.level, d.row) for title, members in panels.items() for d in members]
    tabled = rows
    if sum(len(row.bytes) for *_, row in rows) > TABLE_ROWS_MAX:
        titles = {panel.title for panel in drawn}
        tabled = [r for r in rows if r[0] in titles and slots.get(r[1], GREY) != GREY]
        note += " The table has what is drawn in colour; study.db has all."
    caption = stalls_said(verdict, workload, [row for *_, row in rows]) + drawn_said(
        panels, verdict
    )
    return ChartSpec(
        name=f"over_time-{workload}",
        kind="plane",
        title=f"Throughput over time, single trials: {workload}",
        caption=f"{caption} Each panel has its own scale.{note}{_undrawn(slots)}",
        x=Axis("time since the phase began", "s", is_from_zero=True),
        y=Axis("throughput", rate_unit(), is_from_zero=True),
        panels=drawn,
        has_own_scales=True,
        table=Table(
            ("panel", "level", "trial", "time (s)", "throughput (bytes/s)"),
            tuple(_table_rows(tabled)),
        ),
    )


def in_colour(members: list[Drawn], slots: dict[str, int]) -> list[Drawn]:
    """Leave the grey levels out and order the rest as everywhere."""
    kept = [d for d in members if slots.get(d.level, 0) != GREY]
    return sorted(kept, key=lambda d: slots.get(d.level, 99))


def stall_shapes(members: list[Drawn]) -> tuple[Shape, ...]:
    """Mark the longest stall of every trial that is drawn for its stall, or has one anyhow."""
    return tuple(
        Shape(
            "stall",
            (stalls.began_ns / 1e9, (stalls.began_ns + stalls.longest_ns) / 1e9),
            label=f"{d.level}, trial {d.row.trial_id}: stall of {format_ns(stalls.longest_ns)}",
        )
        for d in members
        if (stalls := d.stalls or find_stalls(d.row.ops[:-1], d.row.interval_ns)).longest_ns > 0
    )


def _undrawn(slots: dict[str, int]) -> str:
    """Say how many levels are left out of the panels, if any."""
    grey = sum(slot == GREY for slot in slots.values())
    return f" {grey} of {len(slots)} levels are not drawn." if grey else ""


def _rates(row: SeriesRow) -> list[tuple[float, float]]:
    """Return (end of interval in s, bytes/s); the last interval is partial and is left out."""
    counts = row.bytes[:-1] if len(row.bytes) > 2 else row.bytes
    stride = -(-len(counts) // POINTS_MAX)
    seconds = row.interval_ns / 1e9
    merged = [counts[i : i + stride] for i in range(0, len(counts), stride)]
    return [
        ((i * stride + len(part)) * seconds, sum(part) / (len(part) * seconds))
        for i, part in enumerate(merged)
    ]


def _points(level: str, row: SeriesRow) -> tuple[Point, ...]:
    return tuple(
        Point(x, in_rate_unit(y), title=f"{level}: {format_bytes_per_s(y)} at {x:.3g} s")
        for x, y in _rates(row)
    )


def _table_rows(rows: list[tuple[str, str, SeriesRow]]) -> list[tuple[Value, ...]]:
    return [
        (title, level, row.trial_id, round(x, 6), y)
        for title, level, row in rows
        for x, y in _rates(row)
    ]
