"""Inside single trials: warm-up, the window that is judged steady, changes of level, stalls.

One panel per level, for the operation whose trials are least steady; of each level the trial with
the longest stall, else that with the lower median throughput. Three views: over time, over what was
written or read, longest wait.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Final

from iolab import units
from iolab.frozen import frozen, replace
from iolab.report.chart import PANELS_MAX, Axis, ChartSpec, Panel, Point, Series, Shape, Table
from iolab.report.charts.common import level_slots
from iolab.report.charts.drawn_trials import Panels, chosen_panels
from iolab.stats.methods.change_points import change_points
from iolab.stats.methods.stalls import SLICES_MIN, quiet_slices
from iolab.stats.methods.steady_state import RANGE_MAX, WINDOW
from iolab.stats.methods.trial_shape import (
    LEVEL_CHANGE_MIN,
    PARTS,
    POINTS_MAX,
    TrialShape,
    joined,
    trial_shape,
)
from iolab.stats.metrics.metric import format_bytes_per_s, format_ns, in_rate_unit, rate_unit
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import SeriesRow, StudyData
from iolab.wording import counted

WORDS: Final = {
    "flat": "flat",
    "warm_up": "warms up",
    "decay": "decays",
    "cyclic": "is cyclic",
    "never_steady": "never gets steady",
    "too_short": "too short to tell",
}


@frozen
class Course:
    """One trial over time, and what was found in it."""

    level: str
    row: SeriesRow
    shape: TrialShape
    slot: int = 0
    """Colour of the level, as in the other figures."""

    @property
    def seconds(self) -> float:
        """Length of a slice."""
        return self.row.interval_ns / 1e9

    @property
    def rates(self) -> list[float]:
        """Bytes/s of the whole slices."""
        return [count / self.seconds for count in self.row.bytes[:-1]]


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one figure per workload with stored series of at least a few slices."""
    slots = level_slots(data, verdict)
    specs: list[ChartSpec] = []
    for workload, panels in chosen_panels(data, verdict).items():
        found = _least_steady(panels)
        if found is not None:
            title, courses = found
            courses.sort(key=lambda c: (slots.get(c.level, 99) % 99, c.level))
            coloured = [replace(c, slot=slots.get(c.level, 0)) for c in courses[:PANELS_MAX]]
            specs += _views(workload, title, coloured)
    return specs


def _least_steady(panels: Panels) -> tuple[str, list[Course]] | None:
    """Choose the cell with most trials that are not flat; ties go to the longest wait."""
    ranked: list[tuple[int, int, str, list[Course]]] = []
    for title, members in panels.items():
        # A trial with a stall stands for its level: the median one would hide it.
        by_level = {drawn.level: drawn.row for drawn in members}
        courses = [
            Course(level, row, trial_shape(row.bytes, row.ops, row.interval_ns))
            for level, row in by_level.items()
            if len(row.bytes) > 4
        ]
        odd = sum(c.shape.shape not in ("flat", "too_short") for c in courses)
        odd += sum(c.shape.stalls.share > 0 for c in courses)
        if courses:
            longest = max(max(c.row.latency_ns_max, default=0) for c in courses)
            ranked.append((odd, longest, title, courses))
    if not ranked:
        return None
    *_, title, courses = max(ranked, key=lambda item: item[:2])
    return title, courses


def _views(workload: str, title: str, courses: list[Course]) -> list[ChartSpec]:
    name = f"steady_state-{workload}"
    unit = units.readable(max(sum(c.row.bytes[:-1]) for c in courses))
    over_time = ChartSpec(
        name=name,
        kind="plane",
        title=f"Inside one trial per level: {workload}, {title}",
        caption=_caption(title, courses),
        x=Axis("time since the phase began", "s", is_from_zero=True),
        y=Axis("throughput", rate_unit(), is_from_zero=True),
        panels=_panels(courses, _seconds, with_shapes=True),
        table=Table(
            ("level", "trial", "end of slice (s)", "throughput (bytes/s)", "moved (bytes)",
             "longest wait (ms)"),
            tuple(
                (c.level, c.row.trial_id, round(x, 6), rate, moved, wait / 1e6)
                for c in courses
                for x, rate, moved, wait in zip(
                    _seconds(c), c.rates, _moved(c), c.row.latency_ns_max, strict=False
                )
            ),
        ),
        tab=(name, "by time"),
        notes=(
            ("▒", "warm-up (MSER-5)"),
            ("□", f"window judged, mean ± {RANGE_MAX / 2:.0%}".replace("%", " %")),
            ("╱", "its slope"),
            ("╎", "change of level"),
            ("▮", "stall"),
        ),
    )  # fmt: skip
    by_bytes = replace(
        over_time,
        name=f"{name}-moved",
        x=Axis("moved since the phase began", unit.name, is_from_zero=True),
        panels=_panels(courses, lambda c: [n / unit.size for n in _moved(c)], with_shapes=True),
        tab=(name, f"by {unit.name} moved"),
    )
    waits = replace(
        over_time,
        name=f"{name}-longest",
        y=Axis("longest wait in the slice", "ms", "log"),
        panels=_wait_panels(courses),
        tab=(name, "longest wait"),
        notes=(),
    )
    has_waits = any(point for panel in waits.panels for point in panel.series[0].points)
    return [over_time, by_bytes, *([waits] if has_waits else [])]


def _seconds(course: Course) -> list[float]:
    return [(i + 1) * course.seconds for i in range(len(course.rates))]


def _moved(course: Course) -> list[int]:
    """Return the bytes moved at the end of each whole slice."""
    return list(accumulate(course.row.bytes[:-1]))


def _panels(
    courses: list[Course], places: Callable[[Course], list[float]], *, with_shapes: bool
) -> tuple[Panel, ...]:
    panels: list[Panel] = []
    for course in courses:
        xs, parts = places(course), min(POINTS_MAX, len(course.rates))
        points = tuple(
            Point(x, in_rate_unit(y), title=f"{course.level}: {format_bytes_per_s(y)}")
            for x, y in zip(joined(xs, parts), joined(course.rates, parts), strict=True)
        )
        shapes = _shapes(course, [0.0, *xs]) if with_shapes else ()
        word = WORDS[course.shape.shape]
        title = f"{course.level}: {word}"
        series = Series(course.level, points, course.slot, is_joined=True)
        panels.append(Panel(title, (series,), shapes))
    return tuple(panels)


def _wait_panels(courses: list[Course]) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            c.level,
            (Series(c.level, _wait_points(c), c.slot, is_joined=True),),
        )
        for c in courses
    )


def _wait_points(course: Course) -> tuple[Point, ...]:
    """Return the longest wait of every slice in which something was completed."""
    waits = list(zip(_seconds(course), course.row.latency_ns_max, strict=False))
    return tuple(
        Point(
            x,
            wait / 1e6,
            title=f"{wait / 1e6:.4g} ms at {x:.3g} s",
            is_start=place > 0 and waits[place - 1][1] == 0,
        )
        for place, (x, wait) in enumerate(waits)
        if wait > 0
    )


def _shapes(course: Course, edges: list[float]) -> tuple[Shape, ...]:
    """Find what to mark; `edges` are the places of the ends of the slices, from 0 on."""
    shape, rates = course.shape, course.rates
    if shape.shape == "too_short":
        return _stalls(course, edges)
    found: list[Shape] = []
    count = len(rates)
    warm = shape.warm_up_ns // course.row.interval_ns
    if warm:
        found.append(Shape("warm_up", (0.0, edges[warm]), label=f"warm-up: {warm} slices"))
    begin = (PARTS - WINDOW) * count // PARTS
    values = joined(rates, PARTS)[-WINDOW:]
    mean = sum(values) / WINDOW
    mean = in_rate_unit(mean)
    slope = (shape.steady.slope_share if shape.steady else 0.0) * mean
    window = (edges[begin], edges[-1])
    half = RANGE_MAX / 2
    verb = "steady" if shape.steady and shape.steady.is_steady_at_end else "not steady"
    found.append(Shape("window", window, (mean * (1 - half), mean * (1 + half)), f"{verb}"))
    found.append(Shape("slope", window, (mean - slope / 2, mean + slope / 2), "fitted line"))
    parts = min(POINTS_MAX, count)
    for place in change_points(joined(rates, parts), smallest_change=LEVEL_CHANGE_MIN):
        at = edges[place * count // parts]
        found.append(Shape("level", (at, at), label="change of level"))
    return (*found, *_stalls(course, edges))


def _stalls(course: Course, edges: list[float]) -> tuple[Shape, ...]:
    """Mark the slices that are stalls; those may be wider than the slices that are drawn."""
    is_quiet, width = quiet_slices(course.row.ops[:-1], course.row.interval_ns)
    wide = width // course.row.interval_ns
    return tuple(
        Shape("stall", (edges[i * wide], edges[(i + 1) * wide]), label="stall")
        for i, quiet in enumerate(is_quiet)
        if quiet and (i + 1) * wide < len(edges)
    )


def _caption(title: str, courses: list[Course]) -> str:
    counts: dict[str, list[str]] = {}
    for course in courses:
        counts.setdefault(WORDS[course.shape.shape], []).append(course.level)
    said = "; ".join(
        f"{', '.join(levels) if len(levels) <= 4 else f'{len(levels)} levels'}: {word}"
        for word, levels in counts.items()
    )
    text = f"In {title}, one trial each (with the longest stall, else the median): {said}."
    if WORDS["too_short"] in counts:
        least = min(len(c.rates) for c in courses)
        text += f" A series needs {SLICES_MIN} whole slices to be judged; the shortest has {least}."
    stalled = [c for c in courses if c.shape.stalls.share > 0]
    if stalled:
        worst = max(stalled, key=lambda c: c.shape.stalls.longest_ns)
        longest = format_ns(worst.shape.stalls.longest_ns)
        text += (
            f" {len(stalled)} of {counted(len(courses), 'trial')} stalled; the longest stall lasts"
            f" {longest} ({worst.level}, trial {worst.row.trial_id})."
        )
    elif WORDS["too_short"] not in counts:
        text += " None of them stalled."
    return text
