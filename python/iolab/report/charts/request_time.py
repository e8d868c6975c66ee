"""Time per request by record size, with the line a + b x size that tells latency from bandwidth."""

from __future__ import annotations

from typing import Final

from iolab.report.chart import (
    GREY,
    IN_WORDS,
    PER_BYTE_COLUMN,
    Axis,
    ChartSpec,
    Panel,
    Point,
    Series,
    Table,
)
from iolab.report.charts.common import Group, cap_panels, group_title, level_slots, size_ticks, slug
from iolab.report.ledgers import ledger_of
from iolab.stats.methods.log_ratio import geometric_interval, geometric_mean
from iolab.stats.metrics.metric import format_ns
from iolab.stats.numeric_levels import numeric_level
from iolab.stats.request_time import (
    TimesOfSizes,
    TreatmentName,
    measured_times,
    request_time_sentence,
)
from iolab.stats.verdict import RequestTime, StudyVerdict
from iolab.store.rows import StudyData

LINE_PARTS: Final = 12
"""Parts of a drawn line; on an axis of another scale it is bent."""


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one chart per workload and mode in which record size is a factor."""
    groups = dict.fromkeys((f.workload, f.is_direct) for f in verdict.request_times)
    return [_spec(data, verdict, group) for group in groups]


def _spec(data: StudyData, verdict: StudyVerdict, group: Group) -> ChartSpec:
    fits = [f for f in verdict.request_times if (f.workload, f.is_direct) == group]
    slots = level_slots(data, verdict)
    by_operation: dict[str, list[RequestTime]] = {}
    for fit in fits:
        rest = fit.label.split(" · ")[2 if fit.level is not None else 1 :]
        by_operation.setdefault(" · ".join([fit.operation, *rest]), []).append(fit)
    measured = measured_times(ledger_of(data))
    panels, note = cap_panels(
        [
            Panel(title, tuple(s for fit in members for s in _series(fit, slots, measured)))
            for title, members in by_operation.items()
        ]
    )
    sizes = sorted({s for f in fits for s in f.sizes}, key=lambda s: numeric_level(s) or 0)
    largest = max(_time(f, numeric_level(f.sizes[-1]) or 0) for f in fits)
    smallest = min(_time(f, numeric_level(f.sizes[0]) or 0) for f in fits)
    is_log = smallest > 0 and largest / smallest > 10
    return ChartSpec(
        name=f"request_time-{slug(group_title(verdict, group))}",
        kind="plane",
        title=f"Time per request by record size: {group_title(verdict, group)}",
        caption=(
            request_time_sentence(verdict)
            or "A request takes a time that does not depend on its size, and a time for each of its"
            " bytes. The runs do not tell which of the two is more."
        )
        + " Marks are geometric means with 95 % intervals, lines what was fitted."
        + note,
        x=Axis("record size", "bytes", "log", ticks=size_ticks(sizes)),
        y=Axis("time per request", "µs", "log" if is_log else "linear", is_from_zero=not is_log),
        panels=panels,
        table=Table(
            (
                "treatment",
                "time per request (µs)",
                "95 % low (µs)",
                "95 % high (µs)",
                f"time per byte {PER_BYTE_COLUMN}",
                f"95 % low {PER_BYTE_COLUMN}",
                f"95 % high {PER_BYTE_COLUMN}",
                "runs",
                "largest misfit",
                IN_WORDS,
            ),
            tuple(_row(fit) for fit in fits),
        ),
    )


def _row(fit: RequestTime) -> tuple[str | float | int | None, ...]:
    request, byte = fit.request_ns_interval, fit.byte_ns_interval
    return (
        fit.label,
        fit.request_ns / 1000,
        request.low / 1000 if request else None,
        request.high / 1000 if request else None,
        fit.byte_ns,
        byte.low if byte else None,
        byte.high if byte else None,
        fit.n_runs,
        fit.misfit,
        fit.sentence,
    )


def _time(fit: RequestTime, size: float) -> float:
    return (fit.request_ns + fit.byte_ns * size) / 1000


def _series(
    fit: RequestTime, slots: dict[str, int], measured: dict[TreatmentName, TimesOfSizes]
) -> tuple[Series, ...]:
    """Make the marks of what was measured, and the line that was fitted to them."""
    points: list[Point] = []
    times = measured.get((fit.workload, fit.is_direct, fit.label), {})
    for size in fit.sizes:
        values = times.get(size, ())
        if not values:
            continue
        mean, ends = geometric_mean(values) / 1000, geometric_interval(values)
        low, high = (ends[0] / 1000, ends[1] / 1000) if ends else (None, None)
        title = f"{fit.label}: {format_ns(mean * 1000)}, {size} (n = {len(values)})"
        points.append(Point(numeric_level(size) or 1.0, mean, low, high, title))
    name = fit.level or "all"
    slot = slots.get(name, GREY if fit.level else 0)
    first, last = (numeric_level(size) or 1.0 for size in (fit.sizes[0], fit.sizes[-1]))
    places = (first * (last / first) ** (i / LINE_PARTS) for i in range(LINE_PARTS + 1))
    line = tuple(Point(x, time) for x in places if (time := _time(fit, x)) > 0)
    return (
        Series(name, tuple(points), slot),
        Series(f"{name}, fitted", line, slot, is_joined=True, dash=1, has_marks=False),
    )
