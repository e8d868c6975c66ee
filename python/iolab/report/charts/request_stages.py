"""Stages of a block request, where its time goes: mean by mean, and their tails.

Source of the stages: `docs/reference/trace-measures.md`.
"""

from __future__ import annotations

from statistics import fmean
from typing import Final

from iolab.frozen import frozen
from iolab.report.chart import Axis, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import LOG_SPAN, slug
from iolab.report.charts.traced import TracedCell, traced_cells
from iolab.stats.effect_words import percent
from iolab.stats.methods.log_ratio import geometric_interval
from iolab.stats.metrics.metric import format_ns, format_significant
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData, TracedPhase
from iolab.units import format_bytes_rounded
from iolab.wording import counted

ROWS_MAX: Final = 40
NAMED_SHARE: Final = 0.02
"""A difference of means below this share of the baseline's is not worth a sentence."""
SHARE_TOLD: Final = 0.1
"""Least difference of the shares of sequential requests that is told."""
SIZE_TOLD: Final = 1.25
"""Least ratio of the mean sizes of requests that is told."""
TAIL_COUNT_MIN: Final = 1000
"""Requests of a trial behind its 99th percentile."""


@frozen
class _Part:
    """Part of a request's life: the stages that make it up, in words."""

    stages: tuple[str, ...]
    """Empty: the rest of Q2C, which no stage of the other parts has."""
    name: str
    clause: str
    """The same within a sentence."""
    slot: int


PARTS: Final = (
    _Part(("Q2G",), "gets a request (Q2G)", "until there is a request for it (Q2G)", 0),
    _Part(("G2I",), "on its way to the scheduler (G2I)", "on its way to the scheduler (G2I)", 1),
    _Part(
        ("Q2M", "M2D"),
        "joined with another (Q2M, M2D)",
        "joined with another request (Q2M, M2D)",
        2,
    ),
    _Part(("I2D",), "in the scheduler (I2D)", "in the scheduler (I2D)", 3),
    # A request that waits for a flush of the device is issued without ever being inserted.
    _Part(
        (),
        "held back, as for a flush (G2D)",
        "before the device without being queued (G2D), as requests wait for a flush before them",
        5,
    ),
    _Part(("D2C",), "driver and device (D2C)", "in driver and device (D2C)", 4),
)
"""Together they are Q2C, from when the request was asked for to its completion."""


@frozen
class _Row:
    cell: TracedCell
    means_ns: tuple[float, ...]
    """Part by part, over the requests of all trials."""
    low_ns: float | None
    high_ns: float | None

    @property
    def whole_ns(self) -> float:
        return sum(self.means_ns)

    @property
    def name(self) -> str:
        return f"{self.cell.cell} · {self.cell.level}" if self.cell.level else self.cell.cell


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw two views per workload: the mean request, and the 99th percentiles of its stages."""
    rows = _rows(data, verdict)
    specs: list[ChartSpec] = []
    for workload in dict.fromkeys(row.cell.workload for row in rows):
        mine = [row for row in rows if row.cell.workload == workload]
        specs += _views(data, workload, mine)
    return specs


def difference_text(data: StudyData, verdict: StudyVerdict) -> str:
    """Return where the requests of two levels differ most, in the workload of the headline.

    Empty if no cell has levels whose mean requests the rounds tell apart.
    """
    named = {c.workload for c in verdict.headline}
    rows = [row for row in _rows(data, verdict) if row.cell.workload in named]
    return _largest_difference(data, rows)


def _rows(data: StudyData, verdict: StudyVerdict) -> list[_Row]:
    return [row for cell in traced_cells(data, verdict) if (row := _row(cell)) is not None]


def _row(cell: TracedCell) -> _Row | None:
    total = sum(_count(phase, "Q2C") for phase in cell.phases)
    if not total:
        return None
    sums = {
        part: sum(_sum(phase, stage) for phase in cell.phases for stage in part.stages)
        for part in PARTS
    }
    rest = sum(_sum(phase, "Q2C") for phase in cell.phases) - sum(sums.values())
    means = tuple((sums[part] if part.stages else max(rest, 0)) / total for part in PARTS)
    by_trial = [
        _sum(phase, "Q2C") / count for phase in cell.phases if (count := _count(phase, "Q2C"))
    ]
    interval = geometric_interval(by_trial)
    return _Row(cell, means, *(interval or (None, None)))


def _count(phase: TracedPhase, stage: str) -> int:
    row = phase.stages.get(stage)
    return int(row["count"]) if row else 0


def _sum(phase: TracedPhase, stage: str) -> int:
    row = phase.stages.get(stage)
    return int(row["sum_ns"]) if row else 0


def _views(data: StudyData, workload: str, rows: list[_Row]) -> list[ChartSpec]:
    shown = rows[:ROWS_MAX]
    rest = f" Drawn: {len(shown)} of {len(rows)} rows; the table has all."
    caption = _caption(data, rows) + (rest if len(shown) < len(rows) else "")
    categories = tuple(row.name for row in shown)
    name = f"request_stages-{slug(workload)}"
    title = f"Where the time of a block request goes: {workload}"
    table = Table(_columns(), tuple(_table_row(row) for row in rows))
    factor, unit = _unit(max(row.whole_ns for row in shown))
    mean = ChartSpec(
        name=name,
        kind="stack",
        title=title,
        caption=caption,
        x=Axis("mean time of a request", unit, is_from_zero=True),
        y=Axis("cell", categories=categories),
        panels=(Panel("", _bars(shown, factor)),),
        table=table,
        tab=(name, "mean"),
    )
    tails = _tails(shown)
    if not tails:
        return [mean]
    values = [point.x for series in tails for point in series.points]
    is_log = max(values) > LOG_SPAN * min(values)
    tail = ChartSpec(
        name=f"{name}-p99",
        kind="rows",
        title=title,
        caption=caption,
        x=Axis(
            "99th percentile of a stage, median trial",
            "µs",
            "log" if is_log else "linear",
            is_from_zero=not is_log,
        ),
        y=Axis("cell", categories=categories),
        panels=(Panel("", tails),),
        table=table,
        tab=(name, "99th percentiles"),
    )
    return [mean, tail]


def _unit(longest_ns: float) -> tuple[float, str]:
    return (1e6, "ms") if longest_ns >= 2e6 else (1e3, "µs")


def _bars(shown: list[_Row], factor: float) -> tuple[Series, ...]:
    series: list[Series] = []
    for place, part in enumerate(PARTS):
        points = [
            Point(
                row.means_ns[place] / factor,
                number,
                title=f"{row.name}, {part.name}: {format_ns(row.means_ns[place])} of "
                f"{format_ns(row.whole_ns)}",
            )
            for number, row in enumerate(shown)
            if row.means_ns[place] > 0
        ]
        series.append(Series(part.name, tuple(points), part.slot))
    whole = [
        Point(
            0.0,
            number,
            row.low_ns / factor,
            row.high_ns / factor,
            f"{row.name}: {format_ns(row.whole_ns)} (95 % {format_ns(row.low_ns)} to "
            f"{format_ns(row.high_ns)}, n = {len(row.cell.phases)})",
        )
        for number, row in enumerate(shown)
        if row.low_ns is not None and row.high_ns is not None
    ]
    return tuple(one for one in [*series, Series("", tuple(whole), -1)] if one.points)


def _tails(shown: list[_Row]) -> tuple[Series, ...]:
    series: list[Series] = []
    for part in PARTS:
        for stage in part.stages:
            points = [
                Point(value / 1e3, number, title=f"{row.name}, {stage} p99: {format_ns(value)}")
                for number, row in enumerate(shown)
                if (value := _p99(row.cell, stage)) is not None and value > 0
            ]
            name = part.name if len(part.stages) == 1 else f"{part.name.split(' (')[0]} ({stage})"
            if points:
                slot = part.slot + (0 if stage == part.stages[0] else 8)
                series.append(Series(name, tuple(points), slot))
    return tuple(series)


def _p99(cell: TracedCell, stage: str) -> float | None:
    """99th percentile of the median trial, of those with enough requests."""
    values = sorted(
        row["p99_ns"]
        for phase in cell.phases
        if (row := phase.stages.get(stage)) and row["count"] >= TAIL_COUNT_MIN
    )
    return float(values[(len(values) - 1) // 2]) if values else None


def _caption(data: StudyData, rows: list[_Row]) -> str:
    """Conclusion: what most of the time is, and which stage makes levels differ most."""
    longest = max(rows, key=lambda row: row.whole_ns)
    place = max(range(len(PARTS)), key=lambda at: longest.means_ns[at])
    share = longest.means_ns[place] / longest.whole_ns
    said = (
        f"{longest.name}: a request takes {format_ns(longest.whole_ns)} on average, "
        f"{percent(share)} of it {PARTS[place].clause}."
    )
    differs = _largest_difference(data, rows)
    return f"{said} {differs}." if differs else said


def _largest_difference(data: StudyData, rows: list[_Row]) -> str:
    differences = [found for row in rows if (found := _difference(data, rows, row)) is not None]
    if not differences:
        return ""
    return max(differences, key=lambda item: abs(item[0]))[1]


def _difference(data: StudyData, rows: list[_Row], row: _Row) -> tuple[float, str] | None:
    """Part that differs most from the baseline in the same cell, and a sentence about it.

    None where the rounds do not tell the two apart.
    """
    baseline = data.study.baseline
    base = next(
        (b for b in rows if b.cell.cell == row.cell.cell and b.cell.level == baseline), None
    )
    if base is None or base is row or not baseline:
        return None
    ratios = _ratios_by_round(data, base.cell, row.cell)
    interval = geometric_interval(ratios)
    if interval is None or interval[0] <= 1 <= interval[1]:
        return None
    whole = row.whole_ns - base.whole_ns
    if abs(whole) < NAMED_SHARE * base.whole_ns:
        return None
    gaps = [own - other for own, other in zip(row.means_ns, base.means_ns, strict=True)]
    same_sign = [gap if gap * whole > 0 else 0.0 for gap in gaps]
    place = max(range(len(PARTS)), key=lambda at: abs(same_sign[at]))
    low, high = (format_significant(end) for end in interval)
    level = row.cell.level
    return (
        whole / base.whole_ns,
        f"{row.cell.cell}: a request takes {format_ns(row.whole_ns)} with {level}, "
        f"{format_ns(base.whole_ns)} with {baseline} (95 % interval of the ratio {low} to {high}, "
        f"{counted(len(ratios), 'round')}); most of the difference is the time "
        f"{PARTS[place].clause}: {format_ns(row.means_ns[place])} against "
        f"{format_ns(base.means_ns[place])}{_beside_it(PARTS[place], row.cell, base.cell)}",
    )


def _beside_it(part: _Part, cell: TracedCell, base: TracedCell) -> str:
    """Say in what else requests differ that may explain their time at the device."""
    if part.stages != ("D2C",):
        return ""
    own, other = (one.mean([p.sequential_share for p in one.phases]) for one in (cell, base))
    if own is not None and other is not None and abs(own - other) >= SHARE_TOLD:
        return (
            f"; {percent(own)} of the requests begin where the one before ended, with "
            f"{base.level} {percent(other)}"
        )
    size, base_size = (one.mean([_mean_bytes(p) for p in one.phases]) for one in (cell, base))
    if not size or not base_size or max(size, base_size) < SIZE_TOLD * min(size, base_size):
        return ""
    return (
        f"; a request has {format_bytes_rounded(size)} on average, with {base.level} "
        f"{format_bytes_rounded(base_size)}"
    )


def _mean_bytes(phase: TracedPhase) -> float | None:
    moved = phase.read_bytes + phase.write_bytes
    return moved / phase.transfers if phase.transfers else None


def _ratios_by_round(data: StudyData, base: TracedCell, other: TracedCell) -> list[float]:
    """Mean time of a request over that of the baseline, round by round."""
    rounds = {trial.trial_id: trial.round for trial in data.trials}
    means = [
        {
            rounds[phase.trial_id]: _sum(phase, "Q2C") / count
            for phase in cell.phases
            if (count := _count(phase, "Q2C"))
        }
        for cell in (base, other)
    ]
    return [
        means[1][number] / means[0][number]
        for number in sorted(means[0].keys() & means[1].keys())
        if means[0][number] > 0 and means[1][number] > 0
    ]


def _columns() -> tuple[str, ...]:
    means = tuple(f"{' + '.join(part.stages) or 'G2D'} mean (µs)" for part in PARTS)
    return (
        *("cell", "level", "trials", "requests per trial", "Q2C mean (µs)"),
        *("95 % low (µs)", "95 % high (µs)"),
        *means,
        *("Q2D p99 (µs)", "D2C p99 (µs)", "Q2C p99 (µs)"),
    )


def _table_row(row: _Row) -> tuple[Value, ...]:
    cell = row.cell
    tails = (_p99(cell, stage) for stage in ("Q2D", "D2C", "Q2C"))
    return (
        cell.cell,
        cell.level or None,
        len(cell.phases),
        fmean(_count(phase, "Q2C") for phase in cell.phases),
        row.whole_ns / 1e3,
        None if row.low_ns is None else row.low_ns / 1e3,
        None if row.high_ns is None else row.high_ns / 1e3,
        *(mean / 1e3 for mean in row.means_ns),
        *(None if tail is None else tail / 1e3 for tail in tails),
    )
