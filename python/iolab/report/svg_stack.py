"""Chart of parts of a whole: one bar per row, its parts end to end from zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iolab.report.chart import ChartSpec, Panel, Point
from iolab.report.markup import Markup, tag
from iolab.report.scale import Scale, make_scale
from iolab.report.svg_parts import (
    CHAR_WIDTH,
    WIDTH,
    color_class,
    label_room,
    legend_of,
    row_names,
    whole_svg,
)

TALL = 16.0
STEP = 24.0
RIGHT = 14.0
BELOW = 44.0
TITLE = 22.0


def draw_stack(spec: ChartSpec) -> Markup:
    """Draw the panels below each other, on one scale unless each has its own."""
    legend, top = legend_of(spec)
    left = label_room(spec)
    width = WIDTH - left - RIGHT
    parts: list[Markup] = [legend]
    rows = len(spec.y.categories)
    shared = _scale(spec, spec.panels)
    for panel in spec.panels:
        scale = _scale(spec, [panel]) if spec.has_own_scales else shared
        top += TITLE if panel.title else 8.0
        if panel.title:
            parts.append(tag("text", panel.title, x=left, y=top - 7, class_="panel-title"))
        parts += _axis(spec, scale, (left, top, width), rows * STEP)
        for row, (name, text) in enumerate(zip(spec.y.categories, row_names(spec), strict=True)):
            y = top + (row + 0.5) * STEP
            at = {"x": left - 8, "y": y + 4}
            parts.append(tag("text", tag("title", name), text, **at, text_anchor="end"))
            found = [
                (series.slot, point)
                for series in panel.series
                for point in series.points
                if point.y == row
            ]
            parts += _bar(found, scale, (left, y, width))
        top += rows * STEP + BELOW
    return whole_svg(spec, top, *parts)


def _scale(spec: ChartSpec, panels: Sequence[Panel]) -> Scale:
    totals: list[float] = [0.0]
    ends: list[float] = []
    for panel in panels:
        by_row = dict[float, float]()
        for point in (point for series in panel.series for point in series.points):
            by_row[point.y] = by_row.get(point.y, 0.0) + point.x
            ends += [point.high] if point.high is not None else []
        totals += by_row.values()
    return make_scale(spec.x, totals, ends)


def _axis(
    spec: ChartSpec, scale: Scale, frame: tuple[float, float, float], height: float
) -> Iterator[Markup]:
    left, top, width = frame
    bottom = top + height
    for value, label in scale.ticks:
        x = left + scale.place(value) * width
        yield tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid")
        inside = min(x, WIDTH - len(label) * CHAR_WIDTH / 2 - 2)
        yield tag("text", label, x=inside, y=bottom + 15, text_anchor="middle")
    yield tag("line", x1=left, x2=left, y1=top, y2=bottom, class_="axis")
    middle = left + width / 2
    title = {"x": middle, "y": bottom + 32, "text_anchor": "middle"}
    yield tag("text", spec.x.title, **title, class_="axis-title")


def _bar(
    found: Sequence[tuple[int, Point]], scale: Scale, frame: tuple[float, float, float]
) -> Iterator[Markup]:
    """Parts of one row, then the interval of their sum."""
    left, y, width = frame
    reached = 0.0
    for slot, point in found:
        begin, end = (left + scale.place(v) * width for v in (reached, reached + point.x))
        reached += point.x
        if point.x <= 0:
            continue
        yield tag(
            "rect",
            tag("title", point.title),
            x=begin,
            y=y - TALL / 2,
            width=max(end - begin, 0.4),
            height=TALL,
            class_=f"stacked {color_class(slot)}",
        )
    for _, point in found:
        if point.low is None or point.high is None:
            continue
        low, high = (left + min(1.0, scale.place(v)) * width for v in (point.low, point.high))
        path = f"M{low:.1f} {y:.1f}H{high:.1f}M{low:.1f} {y - 4:.1f}v8M{high:.1f} {y - 4:.1f}v8"
        yield tag("path", d=path, class_="interval ink")
