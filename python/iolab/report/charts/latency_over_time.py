"""Longest service time over time inside single trials, one small chart per competing stream."""

from __future__ import annotations

from iolab.frozen import replace
from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series, Table
from iolab.report.charts.common import cap_panels, grey_note, level_slots
from iolab.report.charts.drawn_trials import Panels, chosen_panels, drawn_said
from iolab.report.charts.over_time import change_marks, in_colour, stall_shapes
from iolab.stats.longest_latencies import longest_sentence
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
            mine = [t for t in verdict.treatments if t.workload == workload]
            said = longest_sentence(verdict, mine) + drawn_said(streams, verdict)
            spec = _spec(said, workload, streams, slots)
            specs.append(replace(spec, marks=change_marks(data, workload)))
    return specs


def _spec(said: str, workload: str, panels: Panels, slots: dict[str, int]) -> ChartSpec:
    drawn, note = cap_panels(
        [
            Panel(
                title,
                tuple(
                    Series(
                        d.name,
                        _points(d.level, d.row),
                        slots.get(d.level, GREY),
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
    return ChartSpec(
        name=f"latency_over_time-{workload}",
        kind="plane",
        title=f"Longest wait over time, single trials: {workload}",
        caption=f"{said} A gap in a line: nothing was completed.{note}{grey_note(slots)}",
        x=Axis("time since the phase began", "s", is_from_zero=True),
        y=Axis("longest service time", "ms", "log"),
        panels=drawn,
        table=Table(
            ("stream", "level", "trial", "time (s)", "longest service time (ms)"),
            tuple(
                (title, level, row.trial_id, round(x, 6), y)
                for title, level, row in rows[:TABLED_MAX]
                for x, y, _ in _longest(row)
            ),
        ),
    )


def _longest(row: SeriesRow) -> list[tuple[float, float, bool]]:
    """Return (end of interval in s, ms, whether one without an operation was before it)."""
    stride = max(1, -(-len(row.latency_ns_max) // POINTS_MAX))
    seconds = row.interval_ns / 1e9
    parts = [row.latency_ns_max[i : i + stride] for i in range(0, len(row.latency_ns_max), stride)]
    return [
        (
            (i * stride + len(part)) * seconds,
            max(part) / 1e6,
            i > 0 and max(parts[i - 1]) == 0,
        )
        for i, part in enumerate(parts)
        if max(part) > 0
    ]


def _points(level: str, row: SeriesRow) -> tuple[Point, ...]:
    return tuple(
        Point(x, y, title=f"{level}: {y:.4g} ms at {x:.3g} s", is_start=is_start)
        for x, y, is_start in _longest(row)
    )
