"""The closer look as a sheet: tables whose cells the charts and their error bars refer to.

Who may be the best (Hsu), joint intervals (Dunnett), quantiles of latency, intervals without
normality, all pairs, what the factors explain, shapes of trials. The lengths of error bars are
formulas over the ends of the intervals. Left out: charts of tables with more rows than anybody
can read (`CHART_ROWS_MAX`); their numbers are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, Protocol, TypeVar

from iolab.frozen import frozen
from iolab.report.chart import Axis, Value
from iolab.report.workbook import NativeChart
from iolab.report.xlsx_cells import (
    SheetWriter,
    write_headers,
    write_table,
    write_value,
)
from iolab.report.xlsx_charts import (
    BETWEEN_PIXELS,
    CHART_ROWS,
    COLORS,
    axis_options,
    breaks_of_lines,
    chart_width,
    plain_name,
)
from iolab.report.xlsx_paper import charts_room
from iolab.stats.ledger import Group
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.secondary_types import Bounds, CloserLook
from iolab.stats.verdict import StudyVerdict, mode_word

CHART_ROWS_MAX: Final = 120
COLUMNS: Final = 14
ROWS_OF_HALF: Final = 12
"""More names than this need a chart of the whole width."""
RATIO: Final = Axis("ratio, above 1 = better", scale="log", is_ratio=True)


@frozen
class Ratios:
    """A table of ratios with intervals, drawn as dots with error bars."""

    title: str
    note: str
    columns: tuple[str, ...]
    """Headers before and after the numbers; the last of `labels` names the dots."""
    labels: tuple[tuple[str, ...], ...]
    ratios: tuple[tuple[float, Bounds | None], ...]
    more_columns: tuple[str, ...] = ()
    more: tuple[tuple[Value, ...], ...] = ()


@frozen
class Shares:
    """A table of counts or shares, drawn as columns from zero."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    label_column: int
    value_columns: tuple[int, ...]
    axis: str
    kind: Literal["plain", "stacked"] = "plain"


Drawn = tuple[NativeChart, Ratios | Shares]
"""A chart, and the table that it draws."""


def write_closer(out: SheetWriter, verdict: StudyVerdict) -> None:
    """Write all tables below each other, then their charts, two on a line."""
    out.columns(0, 0, 33)  # Ten columns are as wide as two charts, and fit on a page.
    out.columns(1, COLUMNS - 1, 12)
    row, charts = 0, list[Drawn]()
    for part in _parts(verdict.closer):
        if isinstance(part, Ratios):
            row, chart = _write_ratios(out, row, part)
        else:
            row, chart = _write_shares(out, row, part)
        if chart is not None:
            charts.append((chart, part))
    _insert_all(out, row, charts)
    if row == 0:
        out.text(0, 0, "Nothing to look at more closely: too few levels or rounds.", "soft")
    out.sheet.freeze_panes(0, 1)


def _parts(look: CloserLook) -> Iterator[Ratios | Shares]:
    yield from _winners(look)
    yield from _joint(look)
    yield from _quantiles(look)
    yield from _robust(look)
    yield from _pairs(look)
    yield from _factors(look)
    yield from _time(look)
    yield from _noise(look)


def _write_ratios(out: SheetWriter, row: int, part: Ratios) -> tuple[int, NativeChart | None]:
    """Write a table of ratios; return the first free row, and its chart."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    out.text(row, 0, part.title, "title")
    out.text(row + 1, 0, part.note, "soft")
    numbers = ("ratio", "low", "high", "confidence", "down", "up")
    n_labels = len(part.columns)
    write_headers(out, row + 2, (*part.columns, *numbers, *part.more_columns))
    first = row + 3
    for index, (labels, (ratio, bounds)) in enumerate(zip(part.labels, part.ratios, strict=True)):
        line = first + index
        for column, text in enumerate(labels):
            out.text(line, column, text)
        write_value(out, line, n_labels, ratio)
        if bounds is not None:
            for column, value in enumerate((bounds.low, bounds.high), start=n_labels + 1):
                write_value(out, line, column, value)
            out.sheet.write_number(line, n_labels + 3, bounds.confidence, out.formats["exact"])
            value, low, high = (xl_rowcol_to_cell(line, n_labels + i) for i in range(3))
            out.formula(line, n_labels + 4, f"{value}-{low}", ratio - bounds.low)
            out.formula(line, n_labels + 5, f"{high}-{value}", bounds.high - ratio)
        for column, more in enumerate(part.more[index] if part.more else (), n_labels + 6):
            write_value(out, line, column, more)
    last = first + len(part.ratios) - 1
    if len(part.ratios) > CHART_ROWS_MAX:
        return last + 2, None
    return last + 2, _ratio_chart(out, part, first, last, n_labels)


def _ratio_chart(out: SheetWriter, part: Ratios, first: int, last: int, column: int) -> NativeChart:
    from xlsxwriter.utility import xl_range_abs

    def cells(offset: int) -> str:
        return f"='{out.name}'!{xl_range_abs(first, column + offset, last, column + offset)}"

    chart = out.book.add_chart({"type": "line"})
    color = COLORS[0]
    ends = [(r - b.low, b.high - r) if b else (0.0, 0.0) for r, b in part.ratios]
    chart.add_series(
        {
            "name": plain_name(part.title),
            "categories": [out.name, first, 0, last, column - 1],
            "values": [out.name, first, column, last, column],
            "line": {"none": True},
            "marker": {"type": "circle", "size": 6, "fill": {"color": color}},
            "y_error_bars": {
                "type": "custom",
                "minus_values": cells(4),
                "plus_values": cells(5),
                "minus_data": [down for down, _ in ends],
                "plus_data": [up for _, up in ends],
                "line": {"color": color, "width": 1},
            },
        }
    )
    values = [ratio for ratio, _ in part.ratios]
    bounds = [end for _, b in part.ratios if b for end in (b.low, b.high)]
    chart.set_y_axis(axis_options(RATIO, values, bounds))
    chart.set_x_axis({"label_position": "low", "num_font": {"rotation": -45, "size": 8}})
    return chart


def _write_shares(out: SheetWriter, row: int, part: Shares) -> tuple[int, NativeChart | None]:
    """Write a table of shares; return the first free row, and its chart."""
    out.text(row, 0, part.title, "title")
    out.text(row + 1, 0, part.note, "soft")
    end = write_table(out, row + 2, part.columns, part.rows)
    if not part.value_columns or len(part.rows) > CHART_ROWS_MAX:
        return end + 1, None
    first, last = row + 3, end - 1
    options = {"type": "column"} | ({"subtype": "stacked"} if part.kind == "stacked" else {})
    chart = out.book.add_chart(options)
    for index, column in enumerate(part.value_columns):
        chart.add_series(
            {
                "name": [out.name, row + 2, column],
                "categories": [out.name, first, part.label_column, last, part.label_column],
                "values": [out.name, first, column, last, column],
                "fill": {"color": COLORS[index % len(COLORS)]},
            }
        )
    chart.set_y_axis({"name": part.axis, "min": 0, "major_gridlines": {"visible": True}})
    chart.set_x_axis({"num_font": {"rotation": -45, "size": 8}})
    return end + 1, chart


def _insert_all(out: SheetWriter, first: int, charts: Sequence[Drawn]) -> None:
    """Place the charts in a grid below the tables, as many on a line as are not wide."""
    row, is_half = 0, False
    room, _ = charts_room(out)
    lines: dict[int, int] = {}
    for chart, part in charts:
        n_rows = len(part.ratios) if isinstance(part, Ratios) else len(part.rows)
        is_wide = n_rows > ROWS_OF_HALF
        if is_wide and is_half:
            row, is_half = row + CHART_ROWS, False
        lines[row] = CHART_ROWS
        width = chart_width(room, is_wide=is_wide)
        right = width + BETWEEN_PIXELS if is_half else 0
        _insert(out, (first + row, right), chart, part, width)
        if is_wide or is_half:
            row, is_half = row + CHART_ROWS, False
        else:
            is_half = True
    out.sheet.set_h_pagebreaks(breaks_of_lines(lines, first))


def _insert(
    out: SheetWriter,
    place: tuple[int, int],
    chart: NativeChart,
    part: Ratios | Shares,
    width: int,
) -> None:
    """Insert a chart at a row, so many pixels to the right, so many wide."""
    chart.set_title({"name": plain_name(part.title), "name_font": {"size": 11}, "overlay": False})
    is_single = isinstance(part, Ratios) or len(part.value_columns) == 1
    chart.set_legend({"none": True} if is_single else {"position": "bottom"})
    chart.set_size({"width": width, "height": 340})
    row, right = place
    out.sheet.insert_chart(row, 0, chart, {"description": part.note, "x_offset": right})


# The tables.


class _Judged(Protocol):
    """Anything that belongs to a group of cells that may be pooled."""

    @property
    def group(self) -> Group: ...


_Row = TypeVar("_Row", bound=_Judged)


def _by_group(rows: Sequence[_Row]) -> Iterator[tuple[Group, list[_Row]]]:
    groups: dict[Group, list[_Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    yield from groups.items()


def _group(workload: str, is_direct: bool | None, kind: str) -> str:
    mode = "" if is_direct is None else mode_word(is_direct)
    return ", ".join(text for text in (workload, mode, kind) if text)


def _winners(look: CloserLook) -> Iterator[Ratios]:
    for w in look.winner_sets:
        members = ", ".join(w.members)
        yield Ratios(
            f"Who may be the best: {_group(*w.group)}",
            "Every level against the best of the others, jointly; a level whose interval lies"
            f" below 1 is ruled out. Not ruled out: {members}.",
            ("level",),
            tuple((level.level,) for level in w.levels),
            tuple((level.ratio, level.interval) for level in w.levels),
            ("may be the best",),
            tuple(("yes" if level.may_be_best else "no",) for level in w.levels),
        )


def _joint(look: CloserLook) -> Iterator[Ratios]:
    for group, found in _by_group(look.joint):
        yield Ratios(
            f"Against {found[0].baseline}, jointly: {_group(*group)}",
            "Intervals that all cover in 95 % of studies (Bonferroni), each with its own spread.",
            ("level",),
            tuple((j.level,) for j in found),
            tuple((j.ratio, j.interval) for j in found),
            ("adjusted p",),
            tuple((j.p_adjusted,) for j in found),
        )


def _quantiles(look: CloserLook) -> Iterator[Ratios]:
    for group, found in _by_group(look.quantile_effects):
        yield Ratios(
            f"Quantiles of latency against {found[0].baseline}: {_group(*group)}",
            "Each trial's own quantile, compared by round (Hodges-Lehmann, Wilcoxon's interval);"
            " above 1 is better, that is lower.",
            ("quantile", "level"),
            tuple((METRIC_BY_NAME[q.metric].label, q.level) for q in found),
            tuple((q.ratio, q.interval) for q in found),
            ("rounds",),
            tuple((q.n_rounds,) for q in found),
        )


def _robust(look: CloserLook) -> Iterator[Ratios]:
    for group, found in _by_group(look.robust):
        yield Ratios(
            f"Without normality: {_group(*group)}",
            "The pooled ratios by their median (order statistics, six rounds or more); beside it"
            " the BCa bootstrap of the mean (ten or more).",
            ("level",),
            tuple((r.level,) for r in found),
            tuple((r.median_ratio, r.median_interval) for r in found),
            ("BCa low", "BCa high"),
            tuple(
                (r.bca_interval.low, r.bca_interval.high) if r.bca_interval else (None, None)
                for r in found
            ),
        )


def _pairs(look: CloserLook) -> Iterator[Ratios]:
    for group, found in _by_group(look.pairs):
        yield Ratios(
            f"All pairs of levels: {_group(*group)}",
            "Paired by round, adjusted over all pairs (Shaffer); exact p by sign flips"
            " (unadjusted); in which share of rounds the first is better; Hedges' g.",
            ("pair",),
            tuple((f"{p.first} / {p.second}",) for p in found),
            tuple((p.ratio, p.interval) for p in found),
            ("adjusted p", "exact p", "first better", "g"),
            tuple((p.p_adjusted, p.p_exact, p.superiority, p.hedges_g) for p in found),
        )


def _factors(look: CloserLook) -> Iterator[Shares]:
    for group, found in _by_group(look.factor_effects):
        yield Shares(
            f"What the factors explain: {_group(*group)}",
            "Share of the variance of ln-values, rounds taken off (omega squared).",
            ("effect", "share (%)", "F", "df", "df of error", "p", "judged against"),
            tuple(
                (
                    " × ".join(e.factors),
                    e.share * 100,
                    e.f,
                    e.degrees_of_freedom,
                    e.error_degrees_of_freedom,
                    e.p,
                    e.stratum,
                )
                for e in found
            ),
            0,
            (1,),
            "share of the variance (%)",
        )


def _time(look: CloserLook) -> Iterator[Shares]:
    shapes = tuple(sorted({name for c in look.time_courses for name in c.shapes}))
    head = ("operation", "workload", "level", "trials")
    more = ("steady at the end", "stalled", "longest stall (ms)", "largest stalled share")
    rows = tuple(
        (
            f"{c.operation} · {c.level}" if c.level else c.operation,
            c.workload,
            c.level,
            c.n_trials,
            *(c.shapes.get(name, 0) for name in shapes),
            c.steady_trials,
            c.stalled_trials,
            c.stall_ns_longest / 1e6,
            c.stall_share_max,
        )
        for c in look.time_courses
    )
    if rows:
        first = len(head)
        yield Shares(
            "Trials over time",
            "Shape of each series of throughput; steady by SNIA's rule over ten equal parts.",
            (*head, *(name.replace("_", " ") for name in shapes), *more),
            rows,
            0,
            tuple(range(first, first + len(shapes))),
            "trials",
            "stacked",
        )


def _noise(look: CloserLook) -> Iterator[Shares]:
    columns = ("workload", "mode", "metric", "sd of rounds", "sd of whole plots", "sd of trials")
    rows: Sequence[tuple[Value, ...]] = [
        (n.workload, mode_word(n.is_direct), n.metric, n.round_sd, n.whole_plot_sd, n.trial_sd)
        for n in look.noise_shares
    ]
    if rows:
        note = "What no factor explains, as standard deviation of ln-values (0.02 is about 2 %)."
        yield Shares("Noise", note, columns, tuple(rows), 0, (), "")
