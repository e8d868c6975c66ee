"""Longest service time over time inside the median trial, one small chart per competing stream."""

from __future__ import annotations

from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series, Table
from iolab.report.charts.common import cap_panels, grey_note, level_slots
from iolab.report.charts.over_time import Panels, change_marks, chosen_panels
from iolab.stats.metrics.metric import format_ns
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import SeriesRow, StudyData

POINTS_MAX = 150
"""Points drawn per line; of neighbours that are drawn as one the longest time is kept."""

TABLED_MAX = 60
"""Series whose values are in the table; study.db has all."""


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one chart per workload in which streams compete; panels are streams."""
    slots = level_slots(data, verdict)
    specs: list[ChartSpec] = []
    for workload, panels in chosen_panels(data, verdict).items():
        streams = {title: rows for title, rows in panels.items() if "/" in title}
        if streams:
            specs.append(_spec(data, workload, streams, slots))
    return specs


def _spec(data: StudyData, workload: str, panels: Panels, slots: dict[str, int]) -> ChartSpec:
    drawn, note = cap_panels(
        [
            Panel(
                title,
                tuple(
                    Series(level, _points(level, row), slots.get(level, GREY), is_joined=True)
                    for level, row in sorted(members, key=lambda item: slots.get(item[0], 99))
                    if slots.get(level, 0) != GREY
                ),
            )
            for title, members in panels.items()
        ]
    )
    rows = [(title, level, row) for title, members in panels.items() for level, row in members]
    title, level, row = max(rows, key=lambda item: max(item[2].latency_ns_max, default=0))
    worst = format_ns(max(row.latency_ns_max, default=0))
    return ChartSpec(
        name=f"latency_over_time-{workload}",
        kind="plane",
        title=f"Longest wait over time, median trial per treatment: {workload}",
        caption=f"The longest operation of all took {worst}: {title}, {level}."
        + note
        + grey_note(slots),
        x=Axis("time since the phase began", "s", is_from_zero=True),
        y=Axis("longest service time", "ms", "log"),
        panels=drawn,
        table=Table(
            ("stream", "level", "trial", "time (s)", "longest service time (ms)"),
            tuple(
                (title, level, row.trial_id, round(x, 6), y)
                for title, level, row in rows[:TABLED_MAX]
                for x, y in _longest(row)
            ),
        ),
        marks=change_marks(data, workload),
    )


def _longest(row: SeriesRow) -> list[tuple[float, float]]:
    """Return (end of interval in s, ms); an interval without an operation has no value."""
    stride = max(1, -(-len(row.latency_ns_max) // POINTS_MAX))
    seconds = row.interval_ns / 1e9
    parts = [row.latency_ns_max[i : i + stride] for i in range(0, len(row.latency_ns_max), stride)]
    return [
        ((i * stride + len(part)) * seconds, max(part) / 1e6)
        for i, part in enumerate(parts)
        if max(part) > 0
    ]


def _points(level: str, row: SeriesRow) -> tuple[Point, ...]:
    return tuple(Point(x, y, title=f"{level}: {y:.4g} ms at {x:.3g} s") for x, y in _longest(row))
