"""ChartSpecs as native Excel charts: their data goes into cells, and the charts refer to the cells.

Error bars are custom ranges (distance down and up from each value), so that whoever changes a cell
changes the chart. `rows` become markers over a category axis, without a line; `plane` becomes a
scatter chart. Left out: the grey band, drawn as two thin lines at its edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from iolab.frozen import frozen
from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series
from iolab.report.scale import make_scale
from iolab.report.workbook import NativeChart
from iolab.report.xlsx_cells import HEADER_HEIGHT, Links, SheetWriter
from iolab.report.xlsx_paper import charts_room

COLORS: Final = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#B07800",
    "#3F9FD8",
    "#1C2024",
    "#8C7A00",
)
"""Okabe and Ito's colour-blind-safe palette, yellow and orange darkened for white paper."""
GREY_COLOR: Final = "#B9C0C6"
DASHES: Final = ("dash", "long_dash", "round_dot", "long_dash_dot")
MARKERS: Final = ("circle", "square", "triangle", "diamond")
PAGE_ROWS: Final = 36
"""Rows of the usual height on a printed page, A4 across."""
CHART_ROWS: Final = 18
"""Rows that a chart of ordinary height takes."""
ROW_PIXELS: Final = 20
CATEGORIES_MAX: Final = 10
"""More names than this do not fit below a chart of half the width."""
BETWEEN_PIXELS: Final = 10
"""Between the two charts of a line."""
SERIES_MAX: Final = 200
"""Excel draws at most 255 series; greys beyond this are left out of the chart, not of the data."""


Linked = tuple[SheetWriter, Links]
"""A sheet, and the cells that its charts may follow."""


@frozen
class Column:
    """Position of a column of a chart's data: zero-based, rows inclusive."""

    first_row: int
    last_row: int
    column: int

    def ref(self, sheet: str) -> list[str | int]:
        """Return the range in XlsxWriter's list form."""
        return [sheet, self.first_row, self.column, self.last_row, self.column]


@frozen
class Spot:
    """Positions of the data and the charts of a sheet."""

    data_row: int
    """First row for the data blocks."""
    chart_row: int
    """Upper left corner of the grid of charts, two per line."""
    chart_column: int


def write_charts(out: SheetWriter, specs: list[ChartSpec], spot: Spot, links: Links) -> None:
    """Write the data of all panels below each other and draw their charts in a grid.

    Parameters
    ----------
    out : the sheet.
    specs : charts of this sheet.
    spot : where they go.
    links : cells of tables that hold what a chart shows; the chart's data follow them.
    """
    row = spot.data_row
    places = iter(layout(specs)[0])
    room, _ = charts_room(out)
    out.sheet.set_h_pagebreaks(page_breaks(specs, spot))
    for spec in specs:
        out.text(row, 0, f"Chart data: {spec.title}", "title")
        out.text(row + 1, 0, spec.caption, "soft")
        row += 2
        for panel in spec.panels:
            block = _rows_block if spec.kind == "rows" else _plane_block
            chart, row = block((out, links), spec, panel, row)
            title = f"{spec.title} · {panel.title}" if panel.title else spec.title
            chart.set_title(
                {"name": plain_name(title), "name_font": {"size": 11}, "overlay": False}
            )
            chart.set_legend({"position": "bottom"} if len(panel.series) > 1 else {"none": True})
            width = chart_width(room, is_wide=_is_wide(spec))
            chart.set_size({"width": width, "height": _height(spec)})
            down, is_second = next(places)
            out.sheet.insert_chart(
                spot.chart_row + down,
                spot.chart_column,
                chart,
                {
                    "description": spec.caption,
                    "x_offset": width + BETWEEN_PIXELS if is_second else 0,
                },
            )


def layout(specs: Sequence[ChartSpec]) -> tuple[list[tuple[int, bool]], int]:
    """Return the place of every panel's chart, and how many rows all of them take.

    A place is a row, and whether it is the second of the line. Two charts stand on a line; a wide
    one has a line of its own.
    """
    places: list[tuple[int, bool]] = []
    row, is_half = 0, False
    for spec in specs:
        rows = _height(spec) // ROW_PIXELS + 1
        for _ in spec.panels:
            if _is_wide(spec):
                row += CHART_ROWS if is_half else 0
                places.append((row, False))
                row, is_half = row + rows, False
            else:
                places.append((row, is_half))
                row, is_half = row + (rows if is_half else 0), not is_half
    return places, row + (CHART_ROWS if is_half else 0)


def page_breaks(specs: Sequence[ChartSpec], spot: Spot) -> list[int]:
    """Rows before which a printed page ends, so that none cuts a chart."""
    lines: dict[int, int] = {}
    places = iter(layout(specs)[0])
    for spec in specs:
        for _ in spec.panels:
            row, _ = next(places)
            lines[row] = max(lines.get(row, 0), _height(spec) // ROW_PIXELS + 1)
    return breaks_of_lines(lines, spot.chart_row)


def breaks_of_lines(lines: Mapping[int, int], first: int) -> list[int]:
    """Rows at which pages end, given the lines of charts (row and height) below row `first`."""
    found: list[int] = [first] if first and lines else []
    begin = 0
    for row, rows in sorted(lines.items()):
        if row + rows - begin > PAGE_ROWS and row > begin:
            found.append(first + row)
            begin = row
    return found


def _is_wide(spec: ChartSpec) -> bool:
    """Tell whether the names of the categories need room, and there is only one chart of them."""
    return len(spec.panels) == 1 and len(spec.y.categories) > CATEGORIES_MAX


def _height(spec: ChartSpec) -> int:
    """Height in pixels."""
    return 520 if _is_wide(spec) else 340


def chart_width(room: int, *, is_wide: bool) -> int:
    """Width in pixels of a chart that has a line of that room, or half of it."""
    return room if is_wide else (room - BETWEEN_PIXELS) // 2


def plain_name(text: str) -> str:
    """Keep XlsxWriter from taking a title such as ``=a!B1`` for the reference of a cell."""
    return text.replace("!", "! ")


def _rows_block(sheet: Linked, spec: ChartSpec, panel: Panel, row: int) -> tuple[NativeChart, int]:
    """Write one line per category and three columns per series; return chart and next free row."""
    out, _ = sheet
    categories = spec.y.categories
    out.sheet.write_string(row, 0, panel.title or spec.title, out.formats["bold"])
    out.sheet.write_string(row + 1, 0, spec.y.label, out.formats["header"])
    first, last = row + 2, row + 1 + max(1, len(categories))
    for index, name in enumerate(categories):
        out.sheet.write_string(first + index, 0, name)
    chart = out.book.add_chart({"type": "line"})
    labels = Column(first, last, 0)
    column = 1
    for series in panel.series:
        _write_headers(out, row + 1, column, series, spec.x)
        for point in series.points:
            _write_value(sheet, first + int(point.y), column, point.x, point)
        if column // 3 < SERIES_MAX:
            chart.add_series(_series_options(out, series, labels, (first, last, column), False))
        column += 3
    if spec.band is not None:
        for name, edge in (("margin low", spec.band.low), ("margin high", spec.band.high)):
            out.sheet.write_string(row + 1, column, name, out.formats["header"])
            for index in range(max(1, len(categories))):
                out.sheet.write_number(first + index, column, edge, out.formats["number"])
            chart.add_series(_edge_options(out, name, labels, Column(first, last, column)))
            column += 1
    chart.set_x_axis(
        {
            "name": plain_name(spec.y.label),
            "num_font": {
                "rotation": -45 if len(categories) > 4 else 0,
                "size": 8 if len(categories) > 4 else 9,
            },
            "label_position": "low",
        }
    )
    points = [p for s in panel.series for p in s.points]
    chart.set_y_axis(axis_options(spec.x, [p.x for p in points], _ends(points)))
    return chart, last + 2


def _plane_block(sheet: Linked, spec: ChartSpec, panel: Panel, row: int) -> tuple[NativeChart, int]:
    """Write four columns per series (x, value, down, up); return chart and next free row."""
    out, _ = sheet
    out.sheet.write_string(row, 0, panel.title or spec.title, out.formats["bold"])
    first = row + 2
    chart = out.book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
    chart.show_blanks_as("gap")
    longest = 1
    for index, series in enumerate(panel.series):
        column = index * 4
        out.sheet.write_string(row + 1, column, spec.x.title, out.formats["header"])
        _write_headers(out, row + 1, column + 1, series, spec.y)
        lines = _lines(series)
        for line, point in zip(lines, series.points, strict=True):
            style = out.formats["rate" if point.x.is_integer() else "number"]
            out.sheet.write_number(first + line, column, point.x, style)
            _write_value(sheet, first + line, column + 1, point.y, point)
        count = lines[-1] + 1 if lines else 1
        last = first + count - 1
        longest = max(longest, count)
        if index < SERIES_MAX:
            places = Column(first, last, column)
            options = _series_options(out, series, places, (first, last, column + 1), True)
            chart.add_series(options)
    points = [p for s in panel.series for p in s.points]
    chart.set_x_axis(axis_options(spec.x, [p.x for p in points]))
    chart.set_y_axis(axis_options(spec.y, [p.y for p in points], _ends(points)))
    return chart, first + longest + 1


def _lines(series: Series) -> list[int]:
    """Return the line of every point in its block; an empty one makes a gap in the drawing."""
    gaps = accumulate(point.is_start and place > 0 for place, point in enumerate(series.points))
    return [place + gap for place, gap in enumerate(gaps)]


def _write_headers(out: SheetWriter, row: int, column: int, series: Series, axis: Axis) -> None:
    unit = f" ({axis.unit})" if axis.unit else ""
    out.sheet.set_row(row, HEADER_HEIGHT)
    for offset, name in enumerate((series.name, "down", "up")):
        out.sheet.write_string(row, column + offset, f"{name}{unit}", out.formats["header"])


def _write_value(sheet: Linked, row: int, column: int, value: float, point: Point) -> None:
    """Write a value and the lengths of its error bar; no interval leaves the bar cells empty.

    Where a table of the workbook has the value, the cells are formulas that follow it.
    """
    from xlsxwriter.utility import xl_rowcol_to_cell

    out, links = sheet
    number = out.formats["number"]
    place = links.find(point.title, (value, point.low, point.high))
    if place is None:
        out.sheet.write_number(row, column, value, number)
    else:
        out.sheet.write_formula(row, column, f"={place.term(place.value)}", number, value)
    if point.low is None or point.high is None:
        return
    if place is None:
        out.sheet.write_number(row, column + 1, value - point.low, number)
        out.sheet.write_number(row, column + 2, point.high - value, number)
        return
    own = xl_rowcol_to_cell(row, column)
    down, up = f"={own}-{place.term(place.low)}", f"={place.term(place.high)}-{own}"
    out.sheet.write_formula(row, column + 1, down, number, value - point.low)
    out.sheet.write_formula(row, column + 2, up, number, point.high - value)


def _series_options(
    out: SheetWriter, series: Series, places: Column, block: tuple[int, int, int], is_plane: bool
) -> dict[str, object]:
    first, last, column = block
    color = GREY_COLOR if series.slot == GREY else COLORS[series.slot % len(COLORS)]
    shape = MARKERS[max(0, series.slot) // len(COLORS) % len(MARKERS)]
    is_dense = is_plane and len(series.points) > 24
    marker = (
        {"type": "none"}
        if is_dense or not series.has_marks
        else {"type": shape, "size": 6, "fill": {"color": color}, "border": {"color": color}}
    )
    line: dict[str, object] = {"none": True}
    if series.is_joined:
        line = {"color": color, "width": 1.5}
        line |= {"dash_type": DASHES[min(series.dash, len(DASHES)) - 1]} if series.dash else {}
    options: dict[str, object] = {
        "name": [out.name, first - 1, column],
        "categories": places.ref(out.name),
        "values": Column(first, last, column).ref(out.name),
        "marker": marker,
        "line": line,
    }
    if any(point.low is not None for point in series.points):
        options["y_error_bars"] = {
            "type": "custom",
            "minus_values": _absolute(out.name, Column(first, last, column + 1)),
            "plus_values": _absolute(out.name, Column(first, last, column + 2)),
            "minus_data": _lengths(series, (first, last), -1, is_plane),
            "plus_data": _lengths(series, (first, last), 1, is_plane),
            "line": {"color": color, "width": 1},
        }
    return options


def _lengths(series: Series, rows: tuple[int, int], sign: int, is_plane: bool) -> list[float | str]:
    """Return the cached error lengths, one per line of the block."""
    found: list[float | str] = [""] * (rows[1] - rows[0] + 1)
    for line, point in zip(_lines(series), series.points, strict=True):
        value = point.y if is_plane else point.x
        end = point.high if sign > 0 else point.low
        if end is not None:
            found[line if is_plane else int(point.y)] = sign * (end - value)
    return found


def _edge_options(out: SheetWriter, name: str, places: Column, values: Column) -> dict[str, object]:
    return {
        "name": name,
        "categories": places.ref(out.name),
        "values": values.ref(out.name),
        "marker": {"type": "none"},
        "line": {"color": GREY_COLOR, "width": 1.25},
    }


def _absolute(sheet: str, column: Column) -> str:
    from xlsxwriter.utility import xl_range_abs

    cells = xl_range_abs(column.first_row, column.column, column.last_row, column.column)
    return f"='{sheet}'!{cells}"


def _ends(points: list[Point]) -> list[float]:
    return [end for p in points for end in (p.low, p.high) if end is not None]


def axis_options(
    axis: Axis, values: Sequence[float], ends: Sequence[float] = ()
) -> dict[str, object]:
    """Choose an axis as the page does; ratios close to 1 get a linear axis around them."""
    options: dict[str, object] = {
        "name": plain_name(axis.title),
        "major_gridlines": {"visible": True, "line": {"color": "#D9DEE3", "width": 0.5}},
        "num_format": "#,##0.###" if axis.scale == "linear" else "#,##0.##",
    }
    known = [value for value in values if value > 0]
    if axis.is_ratio:
        return options | _ratio_axis([*known, *(end for end in ends if end > 0)])
    is_log = axis.scale == "log" and bool(known) and max(known) / min(known) > 4
    if is_log:
        options["name"] = plain_name(axis.log_title)
        base = 2 if axis.ticks else 10
        least = _power_below(min(known), base)
        options |= {"log_base": base, "min": least, "crossing": least}
    elif axis.is_from_zero:
        options["min"] = 0
    elif axis.scale == "log":
        scale = make_scale(axis, values, ends)
        options |= rounded_limits(scale.low, scale.high)
    return options


def rounded_limits(low: float, high: float) -> dict[str, object]:
    """Choose limits that are multiples of the distance between the ticks: 1, 2 or 5 tenths."""
    rough = max((high - low) / TICKS_WANTED, 1e-12)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    least, most = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    ends: dict[str, object] = {
        "min": round(least * step, digits),
        "max": round(most * step, digits),
    }
    return ends | {"major_unit": round(step, digits)}


TICKS_WANTED: Final = 5
RATIO_SPAN_LINEAR: Final = 2.0
"""Ratios that lie closer together have 1 in the middle of a linear axis."""
RATIO_FROM_ZERO: Final = 4.0
"""Ratios that lie further apart, up to this one, have an axis from 0: powers of ten would leave
most of it empty."""


def _ratio_axis(values: Sequence[float]) -> dict[str, object]:
    """An axis that crosses at 1, which is a tick; logarithmic, in powers of ten, if it is long.

    The ticks of a logarithmic axis are its least value times powers of ten (LibreOffice) or of its
    base (Excel), so that both are ten here, and small differences get a linear axis: up to 10 %
    both are the same to within the width of a mark.
    """
    far = max((max(value, 1 / value) for value in values), default=1.0)
    if far * far > RATIO_SPAN_LINEAR:
        most = max(values)
        if most <= RATIO_FROM_ZERO:
            step = 0.5 if most <= RATIO_FROM_ZERO / 2 else 1.0
            end = math.ceil(max(most, 1 + step) / step) * step
            return {"min": 0, "max": end, "major_unit": step, "crossing": 1}
        decades = math.ceil(math.log10(far) - 1e-9)
        ends: dict[str, object] = {"min": 10.0**-decades, "max": 10.0**decades}
        return ends | {"log_base": 10, "crossing": 1}
    end = math.ceil((far - 1) * 20 + 1e-9) / 20 or 0.05
    return {"min": 1 - end, "max": 1 + end, "major_unit": end / 2, "crossing": 1}


def _power_below(value: float, base: int) -> float:
    """Return the largest power of `base` that does not exceed `value`."""
    power = 1.0
    while power > value:
        power /= base
    while power * base <= value:
        power *= base
    return power
