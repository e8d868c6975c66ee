"""Draw a ChartSpec as inline SVG: no script, colours and fonts from the page's CSS variables.

Every mark has a `<title>` (hover, screen readers). Colour is never the only difference: marks have
shapes too. Left out: interaction; the data table under each figure answers what hovering cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series
from iolab.report.markup import Markup, tag
from iolab.report.scale import Scale, make_scale

WIDTH = 900
GAP = 26
CHAR_WIDTH = 6.4
"""Mean advance of the page's 12 px font; only used to reserve room."""
BOLD_CHAR_WIDTH = 7.4
LABEL_CHARS_MAX = 38
COLORS = 8
SHAPES = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot area of one panel, in pixels of the drawing."""

    left: float
    top: float
    width: float
    height: float
    x: Scale | None
    y: Scale | None

    def px(self, value: float) -> float:
        """Return the pixel column of a value, kept inside the frame."""
        place = self.x.place(value) if self.x else value
        return self.left + min(1.0, max(0.0, place)) * self.width

    def py(self, value: float) -> float:
        """Return the pixel row of a value, kept inside the frame."""
        place = self.y.place(value) if self.y else value
        return self.top + (1 - min(1.0, max(0.0, place))) * self.height


def render_svg(spec: ChartSpec) -> Markup:
    """Draw a chart.

    Returns
    -------
    One ``<svg>`` element that scales with the page; its text uses the page's fonts.
    """
    if spec.kind == "strip":
        return _strip(spec)
    rows, plane = spec.kind == "rows", spec.kind == "plane"
    x, y = _scales(spec)
    columns = _columns(spec)
    left = _label_room(spec) if rows else 58.0
    cell_width = (WIDTH - GAP * (columns - 1)) / columns
    height = _rows_height(spec) if rows else (230.0 if columns > 1 else 300.0)
    has_titles = any(panel.title for panel in spec.panels)
    cell_height = height + (24 if has_titles else 8) + 44
    legend, legend_height = _legend(spec)
    parts = [legend]
    for index, panel in enumerate(spec.panels):
        origin_x = (index % columns) * (cell_width + GAP)
        origin_y = legend_height + (index // columns) * cell_height
        frame = Frame(
            origin_x + left,
            origin_y + (24 if has_titles else 8),
            cell_width - left - 12,
            height,
            x,
            y if plane else None,
        )
        parts.append(_panel(spec, panel, frame))
    total = legend_height + math.ceil(len(spec.panels) / columns) * cell_height
    return _svg(spec, total, *parts)


def _svg(spec: ChartSpec, height: float, *parts: Markup) -> Markup:
    return tag(
        "svg",
        tag("title", spec.title),
        *parts,
        viewBox=f"0 0 {WIDTH} {math.ceil(height)}",
        role="img",
        aria_label=spec.caption,
        class_=f"chart {spec.kind}",
    )


def _all_points(spec: ChartSpec) -> Iterator[Point]:
    for panel in spec.panels:
        for series in panel.series:
            yield from series.points


def _scales(spec: ChartSpec) -> tuple[Scale, Scale]:
    points = list(_all_points(spec))
    ends = [end for p in points for end in (p.low, p.high) if end is not None]
    band = [spec.band.low, spec.band.high] if spec.band else []
    if spec.kind == "rows":
        return make_scale(spec.x, [*(p.x for p in points), *band], ends), make_scale(Axis(""), [0])
    xs = make_scale(spec.x, [p.x for p in points])
    return xs, make_scale(spec.y, [*(p.y for p in points), *band], ends)


def _columns(spec: ChartSpec) -> int:
    if len(spec.panels) == 1:
        return 1
    if spec.kind == "rows" and _label_room(spec) > 150:
        return 1
    return 2 if len(spec.panels) <= 4 or spec.kind == "rows" else 3


def _label_room(spec: ChartSpec) -> float:
    longest = max((len(name) for name in spec.y.categories), default=4)
    return 16 + BOLD_CHAR_WIDTH * min(LABEL_CHARS_MAX, longest)


def _rows_height(spec: ChartSpec) -> float:
    """Give each row room for the series that are dodged inside it."""
    dodged = max(_dodged(panel) for panel in spec.panels)
    return max(60.0, len(spec.y.categories) * max(20.0, min(56.0, 8 + 8.0 * dodged)))


def _dodged(panel: Panel) -> int:
    """Count the series that must stand side by side: those sharing a row with another."""
    rows: dict[float, int] = {}
    for series in panel.series:
        for row in {point.y for point in series.points}:
            rows[row] = rows.get(row, 0) + 1
    return max(rows.values(), default=1)


def _panel(spec: ChartSpec, panel: Panel, frame: Frame) -> Markup:
    parts = [_band(spec, frame), _value_axes(spec, frame), _marks(spec, frame)]
    if spec.kind == "rows":
        parts.append(_row_labels(spec, panel, frame))
    if panel.title:
        parts.append(tag("text", panel.title, x=frame.left, y=frame.top - 9, class_="panel-title"))
    ordered = sorted(enumerate(panel.series), key=lambda item: item[1].slot != GREY)
    for index, series in ordered:
        parts.append(_series(spec, panel, frame, index, series))
    return tag("g", *parts)


def _band(spec: ChartSpec, frame: Frame) -> Markup:
    if spec.band is None:
        return Markup()
    low, high = frame.px(spec.band.low), frame.px(spec.band.high)
    middle = frame.px(spec.band.middle)
    return tag(
        "g",
        tag("title", spec.band.label),
        tag("rect", x=low, y=frame.top, width=high - low, height=frame.height, class_="band"),
        tag("line", x1=middle, x2=middle, y1=frame.top, y2=frame.top + frame.height, class_="one"),
    )


def _marks(spec: ChartSpec, frame: Frame) -> Markup:
    """Draw what happened at an instant: an upright line and its label, on every panel."""
    parts: list[Markup] = []
    for index, (at, label) in enumerate(spec.marks):
        x = frame.px(at)
        is_right = x > frame.left + frame.width / 2
        parts.append(
            tag("line", x1=x, x2=x, y1=frame.top, y2=frame.top + frame.height, class_="one")
        )
        parts.append(
            tag(
                "text",
                tag("title", f"{label} after {at:g} s"),
                shorten(label),
                x=x - 4 if is_right else x + 4,
                y=frame.top + 12 + 14 * (index % 3),
                text_anchor="end" if is_right else "start",
            )
        )
    return tag("g", *parts, class_="marks") if parts else Markup()


def _value_axes(spec: ChartSpec, frame: Frame) -> Markup:
    bottom, right = frame.top + frame.height, frame.left + frame.width
    parts: list[Markup] = []
    for value, label in _thinned(frame.x, frame.width) if frame.x else ():
        at = frame.px(value)
        parts.append(tag("line", x1=at, x2=at, y1=frame.top, y2=bottom, class_="grid"))
        parts.append(tag("text", label, x=at, y=bottom + 15, text_anchor="middle"))
    for value, label in frame.y.ticks if frame.y else ():
        at = frame.py(value)
        parts.append(tag("line", x1=frame.left, x2=right, y1=at, y2=at, class_="grid"))
        parts.append(tag("text", label, x=frame.left - 6, y=at + 4, text_anchor="end"))
    parts.append(tag("line", x1=frame.left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    parts.append(tag("line", x1=frame.left, x2=frame.left, y1=frame.top, y2=bottom, class_="axis"))
    parts.append(
        tag(
            "text",
            spec.x.title,
            x=frame.left + frame.width / 2,
            y=bottom + 32,
            text_anchor="middle",
            class_="axis-title",
        )
    )
    if spec.kind == "plane":
        middle = frame.top + frame.height / 2
        at = frame.left - 46
        parts.append(
            tag(
                "text",
                spec.y.title,
                x=at,
                y=middle,
                text_anchor="middle",
                class_="axis-title",
                transform=f"rotate(-90 {at:.1f} {middle:.1f})",
            )
        )
    return tag("g", *parts)


def _thinned(scale: Scale, width: float) -> list[tuple[float, str]]:
    """Leave out ticks whose text would touch the one before."""
    kept: list[tuple[float, str]] = []
    reached = -math.inf
    for value, label in scale.ticks:
        at, room = scale.place(value) * width, (len(label) * CHAR_WIDTH + 8) / 2
        if at - room >= reached:
            kept.append((value, label))
            reached = at + room
    return kept


def _row_center(spec: ChartSpec, frame: Frame, row: float) -> float:
    return frame.top + (row + 0.5) * frame.height / max(1, len(spec.y.categories))


def _row_labels(spec: ChartSpec, panel: Panel, frame: Frame) -> Markup:
    emphasised = {p.y for s in panel.series for p in s.points if p.is_emphasised}
    return tag(
        "g",
        *(
            tag(
                "text",
                tag("title", name),
                shorten(name),
                x=frame.left - 8,
                y=_row_center(spec, frame, row) + 4,
                text_anchor="end",
                class_="strong" if row in emphasised else None,
            )
            for row, name in enumerate(spec.y.categories)
        ),
    )


def shorten(name: str, limit: int = LABEL_CHARS_MAX) -> str:
    """Cut a long name in its middle, where names differ least."""
    if len(name) <= limit:
        return name
    head = (limit - 1) * 2 // 3
    return f"{name[:head]}…{name[head + 1 - limit :]}"


def _series(spec: ChartSpec, panel: Panel, frame: Frame, index: int, series: Series) -> Markup:
    parts: list[Markup] = []
    places = [_place(spec, panel, frame, index, point) for point in series.points]
    if series.is_joined and len(places) > 1:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(tag("polyline", tag("title", series.name), points=line, class_="joined"))
    for point, place in zip(series.points, places, strict=True):
        interval = _interval(spec, frame, point, place)
        bare = series.is_joined and point.low is None and len(series.points) > 24
        mark = None if bare else _mark(series.slot, *place, point)
        if mark is not None or interval:
            title = tag("title", point.title) if point.title else None
            parts.append(tag("g", title, interval, mark))
    return tag("g", *parts, class_=_color_class(series.slot))


def _color_class(slot: int) -> str:
    return "grey" if slot == GREY else f"c{slot % COLORS}"


def _place(
    spec: ChartSpec, panel: Panel, frame: Frame, index: int, point: Point
) -> tuple[float, float]:
    if spec.kind == "plane":
        return frame.px(point.x), frame.py(point.y)
    center = _row_center(spec, frame, point.y)
    count = len(panel.series)
    if _dodged(panel) > 1:
        row_height = frame.height / max(1, len(spec.y.categories))
        step = min(9.0, row_height * 0.8 / count)
        center += (index - (count - 1) / 2) * step
    return frame.px(point.x), center


def _interval(
    spec: ChartSpec, frame: Frame, point: Point, place: tuple[float, float]
) -> Markup | None:
    """Draw the interval; an end beyond the axis gets no cap, so that it reads as cut."""
    if point.low is None or point.high is None:
        return None
    x, y = place
    if spec.kind == "rows":
        a, b = frame.px(point.low), frame.px(point.high)
        ends = [f"M{a:.1f} {y:.1f}H{b:.1f}"]
        ends += [
            f"M{at:.1f} {y - 3:.1f}v6"
            for at, v in ((a, point.low), (b, point.high))
            if _is_inside(frame.x, v)
        ]
    else:
        a, b = frame.py(point.low), frame.py(point.high)
        ends = [f"M{x:.1f} {a:.1f}V{b:.1f}"]
        ends += [
            f"M{x - 3:.1f} {at:.1f}h6"
            for at, v in ((a, point.low), (b, point.high))
            if _is_inside(frame.y, v)
        ]
    return tag(
        "path", d="".join(ends), class_="interval pooled" if point.is_emphasised else "interval"
    )


def _is_inside(scale: Scale | None, value: float) -> bool:
    return scale is not None and scale.low <= value <= scale.high


def _mark(slot: int, x: float, y: float, point: Point) -> Markup:
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


def _legend(spec: ChartSpec) -> tuple[Markup, float]:
    """Lay the legend out in rows; a single series needs none."""
    entries = spec.legend()
    if len(entries) < 2:
        return Markup(), 0.0
    parts: list[Markup] = []
    x, y = 8.0, 10.0
    for series in entries:
        name = shorten(series.name)
        room = 26 + len(name) * (CHAR_WIDTH + 0.4)
        if x + room > WIDTH and x > 8:
            x, y = 8.0, y + 18
        parts.append(
            tag(
                "g",
                tag("title", series.name),
                _mark(series.slot, x, y, Point(0, 0)),
                tag("text", name, x=x + 9, y=y + 4),
                class_=_color_class(series.slot),
            )
        )
        x += room
    return tag("g", *parts, class_="legend"), y + 16


def _strip(spec: ChartSpec) -> Markup:
    """Draw squares in a grid: one row per category of y, one column per place."""
    columns = 1 + int(max((p.x for p in _all_points(spec)), default=0))
    left = _label_room(spec)
    side = max(2.0, min(22.0, (WIDTH - left - 10) / columns))
    tall = max(9.0, min(22.0, side))
    legend, legend_height = _legend(spec)
    parts: list[Markup] = [legend]
    for row, name in enumerate(spec.y.categories):
        y = legend_height + row * (tall + 3) + tall / 2 + 4
        parts.append(tag("text", name, x=left - 8, y=y, text_anchor="end"))
    for series in spec.panels[0].series:
        for point in series.points:
            x, y = left + point.x * side, legend_height + point.y * (tall + 3)
            symbol = (
                tag(
                    "text",
                    point.symbol,
                    x=x + side / 2,
                    y=y + tall / 2 + 4,
                    text_anchor="middle",
                    class_="symbol",
                )
                if point.symbol and side > 7
                else None
            )
            square = tag(
                "rect",
                x=x,
                y=y,
                width=max(1.0, side - 1.5),
                height=tall,
                class_="square failed" if point.is_hollow else "square",
            )
            parts.append(
                tag(
                    "g", tag("title", point.title), square, symbol, class_=_color_class(series.slot)
                )
            )
    bottom = legend_height + len(spec.y.categories) * (tall + 3)
    parts.append(tag("text", f"{spec.x.title} →", x=left, y=bottom + 13, class_="axis-title"))
    return _svg(spec, bottom + 20, *parts)
