"""Charts that are grids: the strip of trials, and shaded cells with their values."""

from __future__ import annotations

import math

from iolab.report.chart import ChartSpec, Panel, Point
from iolab.report.labels import fitted
from iolab.report.markup import Markup, join, tag
from iolab.report.svg_parts import (
    CHAR_WIDTH,
    WIDTH,
    color_class,
    label_room,
    legend_of,
    row_names,
    whole_svg,
)

GAP = 16
TEXT_CELL = 34.0
"""Narrower cells have no text."""
DENSE_CELL = 11.0
DARK_FROM = 0.68
"""Opacity from which on a text has the colour of the paper: there both have the same contrast."""
COLUMN_CHARS_MAX = 18
"""Of the names of columns that stand upright."""
MANY_ROWS = 16
TITLED_MAX = 800
"""Squares of a strip that are named one by one; more are drawn as one shape per level."""


def draw_strip(spec: ChartSpec) -> Markup:
    """Draw squares in a grid: one row per category of y, one column per place."""
    columns = 1 + int(max((p.x for s in spec.panels[0].series for p in s.points), default=0))
    left = label_room(spec)
    side = max(2.0, min(22.0, (WIDTH - left - 10) / columns))
    tall = max(9.0, min(15.0, side))
    legend, legend_height = legend_of(spec)
    parts: list[Markup] = [legend]
    for row, name in enumerate(spec.y.categories):
        y = legend_height + row * (tall + 3) + tall / 2 + 4
        parts.append(tag("text", name, x=left - 8, y=y, text_anchor="end"))
    is_dense = sum(len(series.points) for series in spec.panels[0].series) > TITLED_MAX
    for series in spec.panels[0].series:
        squares: list[Markup] = []
        outline: list[str] = []
        for point in series.points:
            x, y = left + point.x * side, legend_height + point.y * (tall + 3)
            if is_dense and not point.is_hollow:
                wide = max(1.0, side - 1.5)
                outline.append(f"M{x:.1f} {y:.1f}h{wide:.1f}v{tall:.1f}h-{wide:.1f}z")
            else:
                squares.append(_square(point, (x, y), (side, tall)))
        if outline:
            squares.append(tag("path", d="".join(outline), class_="square"))
        parts.append(tag("g", *squares, class_=color_class(series.slot)))
    bottom = legend_height + len(spec.y.categories) * (tall + 3)
    parts.append(tag("text", f"{spec.x.title} →", x=left, y=bottom + 13, class_="axis-title"))
    return whole_svg(spec, bottom + 20, *parts)


def _square(point: Point, place: tuple[float, float], size: tuple[float, float]) -> Markup:
    (x, y), (side, tall) = place, size
    css = "square failed" if point.is_hollow else "square"
    square = tag("rect", x=x, y=y, width=max(1.0, side - 1.5), height=tall, class_=css)
    symbol = None
    if point.symbol and side > 7:
        at = {"x": x + side / 2, "y": y + tall / 2 + 4}
        symbol = tag("text", point.symbol, **at, text_anchor="middle", class_="symbol")
    return tag("g", tag("title", point.title), square, symbol)


def draw_heat(spec: ChartSpec) -> Markup:
    """Draw panels of shaded cells side by side; all share their rows and their columns."""
    rows, columns = len(spec.y.categories), max(1, len(spec.x.categories))
    left = label_room(spec)
    least = DENSE_CELL if rows > MANY_ROWS else TEXT_CELL
    per_line = max(1, int((WIDTH - left) / (columns * least + GAP)))
    per_line = min(per_line, len(spec.panels))
    per_line = math.ceil(len(spec.panels) / math.ceil(len(spec.panels) / per_line))
    wide = min(
        120.0 if len(spec.panels) == 1 else 64.0, ((WIDTH - left) / per_line - GAP) / columns
    )
    tall = 15.0 if rows > MANY_ROWS else 24.0
    legend, legend_height = legend_of(spec)
    head = _head_room(spec, wide)
    ramp, ramp_height = _ramp(spec, legend_height)
    parts = [legend, ramp]
    top = legend_height + ramp_height
    for index, panel in enumerate(spec.panels):
        x = left + (index % per_line) * (columns * wide + GAP)
        y = top + (index // per_line) * (head + rows * tall + 14) + head
        if index % per_line == 0:
            parts += [
                tag("text", tag("title", name), text, x=left - 8,
                    y=y + row * tall + tall / 2 + 4, text_anchor="end")
                for row, (name, text) in enumerate(
                    zip(spec.y.categories, row_names(spec), strict=True)
                )
            ]  # fmt: skip
        parts.append(_heat_panel(spec, panel, (x, y), (wide, tall)))
    lines = math.ceil(len(spec.panels) / per_line)
    return whole_svg(spec, top + lines * (head + rows * tall + 14), *parts)


def _head_room(spec: ChartSpec, wide: float) -> float:
    """Return the room above a panel: its title, and column names that may stand upright."""
    longest = max((len(name) for name in spec.x.categories), default=0)
    if longest * CHAR_WIDTH <= wide - 2:
        return 20.0 + 14.0
    return 20.0 + max(map(len, fitted(spec.x.categories, COLUMN_CHARS_MAX))) * CHAR_WIDTH


def _heat_panel(
    spec: ChartSpec, panel: Panel, origin: tuple[float, float], cell: tuple[float, float]
) -> Markup:
    x, y = origin
    wide, tall = cell
    head = _head_room(spec, wide)
    parts = [tag("text", panel.title, x=x, y=y - head + 13, class_="panel-title")]
    texts = fitted(spec.x.categories, COLUMN_CHARS_MAX)
    for column, (name, text) in enumerate(zip(spec.x.categories, texts, strict=True)):
        middle = x + (column + 0.5) * wide
        if head > 40:
            at = middle + 4
            turn = f"rotate(-90 {at:.1f} {y - 5:.1f})"
            parts.append(tag("text", tag("title", name), text, x=at, y=y - 5, transform=turn))
        else:
            parts.append(tag("text", name, x=middle, y=y - 5, text_anchor="middle"))
    for series in panel.series:
        for point in series.points:
            place = (x + point.x * wide, y + point.y * tall)
            parts.append(_cell(point, place, cell))
    return tag("g", *parts)


def _cell(point: Point, place: tuple[float, float], cell: tuple[float, float]) -> Markup:
    x, y = place
    wide, tall = cell
    opacity = 0.05 + 0.85 * min(1.0, max(0.0, point.shade or 0.0))
    written = None
    if point.symbol and wide >= len(point.symbol) * CHAR_WIDTH:
        written = tag(
            "text",
            point.symbol,
            x=x + wide / 2,
            y=y + tall / 2 + 4,
            text_anchor="middle",
            class_=" ".join(
                name
                for name, is_set in (("on", opacity > DARK_FROM), ("strong", point.is_emphasised))
                if is_set
            )
            or None,
        )  # fmt: skip
    return tag(
        "g",
        tag("title", point.title),
        tag(
            "rect", x=x, y=y, width=wide - 1.5, height=tall - 1.5, class_="cell",
            fill_opacity=f"{opacity:.2f}",
        ),
        _hatch((x, y), (wide - 1.5, tall - 1.5)) if point.is_hollow else None,
        written,
    )  # fmt: skip


def _hatch(place: tuple[float, float], size: tuple[float, float], step: float = 6.0) -> Markup:
    """Draw the diagonals of a cell that is not decided; a pattern would need a reference."""
    x, y = place
    wide, tall = size
    # Tenths of pixels, each move from where the last line ended: most of a large map is hatching.
    drawn, at = list[str](), (0, 0)
    along = step / 2
    while along < wide + tall:
        start = (x + min(along, wide), y + max(0.0, along - wide))
        end = (x + max(0.0, along - tall), y + min(along, tall))
        for command, (right, down) in (("m", start), ("l", end)):
            to = (round(10 * right), round(10 * down))
            drawn.append(f"{command}{_tenths(to[0] - at[0])} {_tenths(to[1] - at[1])}")
            at = to
        along += step
    return tag("path", d="".join(drawn), class_="hatch")


def _tenths(count: int) -> str:
    return f"{count / 10:.1f}".removesuffix(".0")


def _ramp(spec: ChartSpec, top: float) -> tuple[Markup, float]:
    """Draw which shade is which value: `x.ticks` hold them."""
    if not spec.x.ticks:
        return Markup(), 0.0
    parts: list[Markup] = []
    x = 8.0
    for shade, label in spec.x.ticks:
        parts.append(_cell(Point(0, 0, shade=shade), (x, top), (24.0, 14.0)))
        parts.append(tag("text", label, x=x + 27, y=top + 11))
        x += 40 + len(label) * CHAR_WIDTH
    parts.append(_cell(Point(0, 0, shade=0.3, is_hollow=True), (x, top), (24.0, 14.0)))
    parts.append(tag("text", "not decided against the best", x=x + 27, y=top + 11))
    return join(tag("g", *parts, class_="legend")), 26.0
