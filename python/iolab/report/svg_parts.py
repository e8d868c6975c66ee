"""Parts of a drawing that every kind of chart has: frame, marks, legend, notes, short names."""

from __future__ import annotations

import math

from iolab.report.chart import GREY, ChartSpec, Point, Series
from iolab.report.labels import fitted
from iolab.report.markup import Markup, tag

WIDTH = 800
"""Pixels of a drawing at its own size; on screens of about that width its text is not scaled."""
CHAR_WIDTH = 6.4
"""Mean advance of the page's 12 px font; only used to reserve room."""
BOLD_CHAR_WIDTH = 7.4
LABEL_CHARS_MAX = 38
COLORS = 8
SHAPES = 4
CUT = "▸"
"""Sign of an interval that goes on beyond the axis; no text above a narrow drawing says that."""
DASHES = 4
"""Patterns of broken lines that the page has."""
LINE_SAMPLE = 26
"""Length of a line in a legend: every pattern shows two of its marks."""


def whole_svg(spec: ChartSpec, height: float, *parts: Markup) -> Markup:
    """Wrap what was drawn; it scales with the page and uses the page's fonts and colours."""
    return tag(
        "svg",
        tag("title", spec.title),
        *parts,
        viewBox=f"0 0 {WIDTH} {math.ceil(height)}",
        role="img",
        aria_label=spec.caption,
        class_=f"chart {spec.kind}",
    )


def label_room(spec: ChartSpec) -> float:
    """Return the room that the names of the rows need at the left."""
    return 16 + BOLD_CHAR_WIDTH * max(map(len, row_names(spec)), default=4)


def row_names(spec: ChartSpec) -> list[str]:
    """Return the names of the rows, shortened where they agree."""
    return fitted(spec.y.categories, LABEL_CHARS_MAX)


def color_class(slot: int) -> str:
    """Return the class that gives a series its colour."""
    return "grey" if slot == GREY else f"c{slot % COLORS}"


def mark(slot: int, x: float, y: float, point: Point) -> Markup:
    """Draw a mark; its shape changes every time the colours have been used up."""
    r = 5.5 if point.is_emphasised else 3.6
    shape = 0 if slot == GREY else (slot // COLORS) % SHAPES
    if point.is_emphasised:
        shape = 3
    css = "mark hollow" if point.is_hollow else "mark"
    if shape == 0:
        return tag("circle", cx=x, cy=y, r=r, class_=css)
    if shape == 1:
        return tag("rect", x=x - r, y=y - r, width=2 * r, height=2 * r, class_=css)
    if shape == 2:
        return tag(
            "path",
            d=f"M{x:.1f} {y - r * 1.2:.1f}l{r * 1.2:.1f} {r * 2.1:.1f}h{-r * 2.4:.1f}z",
            class_=css,
        )
    return tag(
        "path",
        d=f"M{x:.1f} {y - r * 1.3:.1f}l{r * 1.3:.1f} {r * 1.3:.1f}l{-r * 1.3:.1f} "
        f"{r * 1.3:.1f}l{-r * 1.3:.1f} {-r * 1.3:.1f}z",
        class_=css,
    )


def _sample(series: Series, x: float, y: float) -> Markup:
    """Draw a piece of a line as it is in the chart: broken or not, where colours repeat."""
    css = f"joined dash{min(series.dash, DASHES)}" if series.dash else "joined"
    return tag("line", x1=x - 4, x2=x - 4 + LINE_SAMPLE, y1=y, y2=y, class_=css)


def keys_of(spec: ChartSpec) -> Markup | None:
    """Write legend and notes as text that folds, for panels that may stand in one column."""
    entries = spec.legend()
    keys = [_key(series, spec) for series in entries] if len(entries) > 1 else []
    notes = [tag("span", f"{sign} {meaning}", class_="key") for sign, meaning in spec.notes]
    return tag("p", *keys, *notes, class_="keys") if keys or notes else None


def _key(series: Series, spec: ChartSpec) -> Markup:
    has_line = series.is_joined and any(other.dash for other in spec.legend())
    wide = LINE_SAMPLE if has_line else 12
    sign = _sample(series, 4, 6) if has_line else mark(series.slot, 6, 6, Point(0, 0))
    css = f"sample {color_class(series.slot)}"
    drawn = tag("svg", sign, viewBox=f"0 0 {wide} 12", width=wide, height=12, class_=css)
    return tag("span", drawn, f" {series.name}", class_="key")


def legend_of(spec: ChartSpec) -> tuple[Markup, float]:
    """Lay legend and notes out in rows, with their height; a single series needs no legend."""
    entries = spec.legend() if spec.kind != "heat" else []
    if len(entries) < 2:
        entries = list[Series]()
    if not entries and not spec.notes:
        return Markup(), 0.0
    parts: list[Markup] = []
    x, y = 8.0, 10.0
    names = fitted([series.name for series in entries], LABEL_CHARS_MAX)
    has_dashes = any(series.dash for series in entries)
    for series, name in zip(entries, names, strict=True):
        line = _sample(series, x, y) if has_dashes and series.is_joined else None
        indent = 9 if line is None else LINE_SAMPLE - 1
        room = 17 + indent + len(name) * (CHAR_WIDTH + 0.4)
        if x + room > WIDTH and x > 8:
            x, y = 8.0, y + 18
        parts.append(
            tag(
                "g",
                tag("title", series.name),
                line or mark(series.slot, x, y, Point(0, 0)),
                tag("text", name, x=x + indent, y=y + 4),
                class_=color_class(series.slot),
            )
        )
        x += room
    for sign, meaning in spec.notes:
        text, css = f"{sign} {meaning}", "remark" if sign == CUT else "note"
        room = 18 + len(text) * CHAR_WIDTH
        if x + room > WIDTH and x > 8:
            x, y = 8.0, y + 18
        parts.append(tag("text", text, x=x, y=y + 4, class_=css))
        x += room
    return tag("g", *parts, class_="legend"), y + 16
