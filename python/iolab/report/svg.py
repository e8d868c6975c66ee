"""Draw a ChartSpec as inline SVG: no script, colours and fonts from the page's CSS variables.

Every mark has a `<title>` (hover, screen readers). Colour is never the only difference: marks have
shapes too. Left out: interaction; the data table under each figure answers what hovering cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from iolab.frozen import frozen, replace
from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series, Shape
from iolab.report.folding import fit_text, fold_text
from iolab.report.labels import fitted
from iolab.report.markup import Markup, join, tag
from iolab.report.scale import Scale, in_milliseconds, make_scale
from iolab.report.svg_grid import draw_heat, draw_strip
from iolab.report.svg_parts import (
    BOLD_CHAR_WIDTH,
    CHAR_WIDTH,
    CUT,
    DASHES,
    LABEL_CHARS_MAX,
    WIDTH,
    color_class,
    keys_of,
    label_room,
    legend_of,
    mark,
    row_names,
    whole_svg,
)
from iolab.report.svg_stack import draw_stack
from iolab.report.svg_surface import draw_surface
from iolab.stats.metrics.metric import format_significant

GAP = 26
RIGHT_ROOM = 12
"""Between a frame and the end of its panel."""
BARE_FROM = 24
"""Joined points without an interval beyond this number are a line without marks, and so are all
other lines of the chart: a mark more or less would look like a meaning."""
TITLE_LINE = 16
"""Height of a line of a panel's title."""
CUTS_NAMED = 3
"""Ends of cut intervals that are written out."""
ROWS_DENSE = 30
"""From so many rows on they stand closer."""


@frozen
class Frame:
    """The plot area of one panel, in pixels of the drawing."""

    left: float
    top: float
    width: float
    height: float
    x: Scale | None
    y: Scale | None
    margin: float = 58.0
    """Room at the left for the ticks and the title of the value axis."""

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
    draw = _OF_OTHER_KINDS.get(spec.kind)
    if draw is not None:
        return draw(spec)
    spec = _with_cuts(in_milliseconds(spec))
    columns = columns_of(spec)
    width, height, panels = _cells(spec, columns)
    legend, top = legend_of(spec)
    places = (
        f"translate({(n % columns) * (width + GAP):.1f} {top + (n // columns) * height:.1f})"
        for n in range(len(panels))
    )
    drawn = (tag("g", panel, transform=at) for panel, at in zip(panels, places, strict=True))
    total = top + math.ceil(len(panels) / columns) * height
    return whole_svg(spec, total, legend, *drawn)


def render_figure(spec: ChartSpec) -> Markup:
    """Draw a chart for a page: panels of which several stand side by side may stand below each
    other where the screen is narrow.
    """
    columns = columns_of(spec)
    if columns == 1:
        return tag("div", render_svg(spec), class_="drawing")
    spec = _with_cuts(in_milliseconds(spec))
    width, height, panels = _cells(spec, columns)
    size, css = f"0 0 {width:.0f} {math.ceil(height)}", f"chart panel {spec.kind}"
    titles = (panel.title or spec.title for panel in spec.panels)
    drawn = (
        tag("svg", panel, viewBox=size, role="img", aria_label=title, class_=css)
        for title, panel in zip(titles, panels, strict=True)
    )
    return tag("div", keys_of(spec), *drawn, class_=f"panels of-{columns}")


def _cells(spec: ChartSpec, columns: int) -> tuple[float, float, list[Markup]]:
    """Draw the panels, each from a corner of its own; with the width and height of any."""
    rows, plane = spec.kind == "rows", spec.kind == "plane"
    x, y = _scales(spec, spec.panels)
    left = label_room(spec) if rows else _tick_room(spec)
    width = (WIDTH - GAP * (columns - 1)) / columns
    height = _rows_height(spec) if rows else (230.0 if columns > 1 else 300.0)
    titles = _titles(spec, width)
    head = 8 + TITLE_LINE * max(map(len, titles))
    drawn = list[Markup]()
    for panel, title in zip(spec.panels, titles, strict=True):
        if spec.has_own_scales:
            x, y = _scales(spec, (panel,))
        wide = width - left - RIGHT_ROOM
        frame = Frame(left, head, wide, height, x, y if plane else None, left)
        drawn.append(join(_panel(spec, panel, frame), _panel_title(panel.title, title, frame)))
    return width, height + head + 44, drawn


_OF_OTHER_KINDS: Final[Mapping[str, Callable[[ChartSpec], Markup]]] = {
    "strip": draw_strip,
    "heat": draw_heat,
    "surface": draw_surface,
    "stack": draw_stack,
}


def _all_points(panels: tuple[Panel, ...]) -> Iterator[Point]:
    for panel in panels:
        for series in panel.series:
            yield from series.points


def _scales(spec: ChartSpec, panels: tuple[Panel, ...]) -> tuple[Scale, Scale]:
    points = list(_all_points(panels))
    ends = [end for p in points for end in (p.low, p.high) if end is not None]
    band = [spec.band.low, spec.band.high] if spec.band else []
    if spec.kind == "rows":
        return make_scale(spec.x, [*(p.x for p in points), *band], ends), make_scale(Axis(""), [0])
    shapes = [shape for panel in panels for shape in panel.shapes]
    xs = make_scale(spec.x, [*(p.x for p in points), *(x for shape in shapes for x in shape.x)])
    ys = [y for shape in shapes for y in shape.y or ()]
    return xs, make_scale(spec.y, [*(p.y for p in points), *ys, *band], ends)


def columns_of(spec: ChartSpec) -> int:
    """Return how many panels stand side by side."""
    if spec.kind not in ("rows", "plane"):
        return 1
    if len(spec.panels) == 1:
        return 1
    if spec.kind == "rows" and label_room(spec) > 150:
        return 1
    return 2 if len(spec.panels) <= 4 or spec.kind == "rows" else 3


def _rows_height(spec: ChartSpec) -> float:
    """Give each row room for the series that are dodged inside it."""
    dodged = max(_dodged(panel) for panel in spec.panels)
    least = 15.0 if len(spec.y.categories) > ROWS_DENSE else 20.0
    return max(60.0, len(spec.y.categories) * max(least, min(56.0, 8 + 8.0 * dodged)))


def _dodged(panel: Panel) -> int:
    """Count the series that must stand side by side: those sharing a row with another."""
    rows: dict[float, int] = {}
    for series in panel.series:
        for row in {point.y for point in series.points}:
            rows[row] = rows.get(row, 0) + 1
    return max(rows.values(), default=1)


def _panel(spec: ChartSpec, panel: Panel, frame: Frame) -> Markup:
    parts = [
        _band(spec, frame),
        *(_shape(shape, frame) for shape in panel.shapes),
        _value_axes(spec, frame),
        _guides(spec, panel, frame),
        _marks(spec, frame),
    ]
    if spec.kind == "rows":
        parts.append(_row_labels(spec, panel, frame))
    ordered = sorted(enumerate(panel.series), key=lambda item: item[1].slot != GREY)
    for index, series in ordered:
        parts.append(_series(spec, panel, frame, index, series))
    return tag("g", *parts)


def _titles(spec: ChartSpec, cell_width: float) -> list[list[str]]:
    """Fold the titles of the panels into lines as wide as a panel; only single words are cut."""
    room = max(8, int(cell_width / BOLD_CHAR_WIDTH))
    return [
        [fit_text(line, room).rstrip() for line in fold_text(panel.title, room).split("\n")]
        if panel.title
        else []
        for panel in spec.panels
    ]


def _panel_title(title: str, lines: Sequence[str], frame: Frame) -> Markup:
    """Write the title above the frame, further to the left if it is long."""
    right, first = frame.left + frame.width + RIGHT_ROOM, frame.left - frame.margin
    whole = tag("title", title) if "…" in "".join(lines) else None
    parts: list[Markup] = []
    for place, text in enumerate(reversed(lines)):
        left = min(frame.left, max(first, right - len(text) * BOLD_CHAR_WIDTH))
        y = frame.top - 9 - place * TITLE_LINE
        parts.append(tag("text", whole, text, x=left, y=y, class_="panel-title"))
    return tag("g", *reversed(parts)) if parts else Markup()


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


def _guides(spec: ChartSpec, panel: Panel, frame: Frame) -> Markup:
    """Draw values worth comparing with, such as the noise floor, as dotted lines."""
    parts: list[Markup] = []
    for value, label in (*spec.guides, *panel.guides):
        if spec.kind == "rows":
            at = frame.px(value)
            line = {"x1": at, "x2": at, "y1": frame.top, "y2": frame.top + frame.height}
        else:
            at = frame.py(value)
            line = {"x1": frame.left, "x2": frame.left + frame.width, "y1": at, "y2": at}
        parts.append(tag("line", tag("title", label), **line, class_="guide"))
    return tag("g", *parts) if parts else Markup()


def _shape(shape: Shape, frame: Frame) -> Markup:
    """Draw what explains a series: boxes behind it, lines over it, marks on the axis."""
    x1, x2 = (frame.px(x) for x in shape.x)
    low, high = shape.y or (None, None)
    bottom = frame.top + frame.height
    y1 = bottom if low is None else frame.py(low)
    y2 = frame.top if high is None else frame.py(high)
    title = tag("title", shape.label)
    if shape.kind in ("warm_up", "window"):
        top, tall = min(y1, y2), abs(y2 - y1)
        drawn = tag("rect", title, x=x1, y=top, width=x2 - x1, height=tall, class_=shape.kind)
    elif shape.kind == "stall":
        wide = max(3.0, x2 - x1)
        drawn = tag("rect", title, x=x1, y=bottom - 7, width=wide, height=7, class_="stall")
    else:
        drawn = tag("line", title, x1=x1, x2=x2, y1=y1, y2=y2, class_=shape.kind)
    return drawn


def _marks(spec: ChartSpec, frame: Frame) -> Markup:
    """Draw what happened at an instant: an upright line and its label, on every panel."""
    parts: list[Markup] = []
    texts = fitted([label for _, label in spec.marks], LABEL_CHARS_MAX)
    for index, ((at, label), text) in enumerate(zip(spec.marks, texts, strict=True)):
        x = frame.px(at)
        is_right = x > frame.left + frame.width / 2
        parts.append(
            tag("line", x1=x, x2=x, y1=frame.top, y2=frame.top + frame.height, class_="one")
        )
        parts.append(
            tag(
                "text",
                tag("title", f"{label} after {at:g} s"),
                text,
                x=x - 4 if is_right else x + 4,
                y=frame.top + 12 + 14 * (index % 3),
                text_anchor="end" if is_right else "start",
            )
        )
    return tag("g", *parts, class_="marks") if parts else Markup()


def _value_axes(spec: ChartSpec, frame: Frame) -> Markup:
    bottom, right = frame.top + frame.height, frame.left + frame.width
    x_title = _axis_title(spec.x, frame.x)
    parts: list[Markup] = []
    for value, label in _thinned(frame.x, frame.width) if frame.x else ():
        at = frame.px(value)
        parts.append(tag("line", x1=at, x2=at, y1=frame.top, y2=bottom, class_="grid"))
        inside = min(at, right + RIGHT_ROOM - len(label) * CHAR_WIDTH / 2 - 2)
        parts.append(tag("text", label, x=inside, y=bottom + 15, text_anchor="middle"))
    for value, label in frame.y.ticks if frame.y else ():
        at = frame.py(value)
        parts.append(tag("line", x1=frame.left, x2=right, y1=at, y2=at, class_="grid"))
        parts.append(tag("text", label, x=frame.left - 6, y=at + 4, text_anchor="end"))
    parts.append(tag("line", x1=frame.left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    parts.append(tag("line", x1=frame.left, x2=frame.left, y1=frame.top, y2=bottom, class_="axis"))
    parts.append(
        tag(
            "text",
            x_title,
            x=_inside(frame, x_title),
            y=bottom + 32,
            text_anchor="middle",
            class_="axis-title",
        )
    )
    if spec.kind == "plane":
        middle = frame.top + frame.height / 2
        at = frame.left - frame.margin + 12
        parts.append(
            tag(
                "text",
                _axis_title(spec.y, frame.y),
                x=at,
                y=middle,
                text_anchor="middle",
                class_="axis-title",
                transform=f"rotate(-90 {at:.1f} {middle:.1f})",
            )
        )
    return tag("g", *parts)


def _axis_title(axis: Axis, scale: Scale | None) -> str:
    return axis.log_title if scale is not None and scale.is_log else axis.title


def _inside(frame: Frame, title: str) -> float:
    """Middle of the title of a value axis: below its frame, or as near as its panel lets it."""
    half = len(title) * (CHAR_WIDTH + 0.4) / 2
    return min(
        frame.left + frame.width / 2,
        max(frame.left - frame.margin, frame.left + frame.width + RIGHT_ROOM - 2 * half) + half,
    )


def _tick_room(spec: ChartSpec) -> float:
    """Return the room that the value axis of a `plane` needs at the left, title included."""
    scales = [_scales(spec, (p,))[1] for p in spec.panels] if spec.has_own_scales else []
    ticks = [text for scale in [*scales, _scales(spec, spec.panels)[1]] for _, text in scale.ticks]
    return max(58.0, 28 + CHAR_WIDTH * max(map(len, ticks), default=0))


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
                text,
                x=frame.left - 8,
                y=_row_center(spec, frame, row) + 4,
                text_anchor="end",
                class_="strong" if row in emphasised else None,
            )
            for row, (name, text) in enumerate(zip(spec.y.categories, row_names(spec), strict=True))
        ),
    )


def _series(spec: ChartSpec, panel: Panel, frame: Frame, index: int, series: Series) -> Markup:
    parts: list[Markup] = []
    places = [_place(spec, panel, frame, index, point) for point in series.points]
    if series.is_joined and len(places) > 1:
        parts += _lines(series, places)
        if series.slot == GREY:
            return tag("g", *parts, class_="grey")
    is_bare = not series.has_marks or (len(places) > 1 and series.is_joined and _is_dense(spec))
    for point, place in zip(series.points, places, strict=True):
        interval = _interval(spec, frame, point, place)
        drawn = None if is_bare and point.low is None else mark(series.slot, *place, point)
        if drawn is not None or interval:
            title = tag("title", point.title) if point.title else None
            is_bare = title is None and interval is None
            parts.append(drawn if drawn and is_bare else tag("g", title, interval, drawn))
    return tag("g", *parts, class_=color_class(series.slot))


def _is_dense(spec: ChartSpec) -> bool:
    """Tell whether a line of a chart has too many points for marks: then none has marks."""
    return any(
        series.is_joined and len(series.points) > BARE_FROM and series.points[0].low is None
        for panel in spec.panels
        for series in panel.series
    )


def _lines(series: Series, places: list[tuple[float, float]]) -> Iterator[Markup]:
    """Draw a line per stretch without a gap; a point between two gaps is a dot."""
    css = f"joined dash{min(series.dash, DASHES)}" if series.dash else "joined"
    begin = 0
    for run in series.runs():
        mine = places[begin : begin + len(run)]
        begin += len(run)
        if len(mine) == 1:
            x, y = mine[0]
            yield tag("circle", tag("title", series.name), cx=x, cy=y, r=1.6, class_="mark")
            continue
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in mine)
        yield tag("polyline", tag("title", series.name), points=line, class_=css)


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
    """Draw the interval; an end beyond the axis has an arrow, and no cap."""
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
        ends += [
            f"M{at - 4 * out:.1f} {y - 3.5:.1f}l{4 * out} 3.5l{-4 * out} 3.5"
            for at, v, out in ((a, point.low, -1), (b, point.high, 1))
            if not _is_inside(frame.x, v)
        ]
    else:
        a, b = frame.py(point.low), frame.py(point.high)
        ends = [f"M{x:.1f} {a:.1f}V{b:.1f}"]
        ends += [
            f"M{x - 3:.1f} {at:.1f}h6"
            for at, v in ((a, point.low), (b, point.high))
            if _is_inside(frame.y, v)
        ]
        ends += [
            f"M{x - 3.5:.1f} {at - 4 * out:.1f}l3.5 {4 * out}l3.5 {-4 * out}"
            for at, v, out in ((a, point.low, 1), (b, point.high, -1))
            if not _is_inside(frame.y, v)
        ]
    return tag(
        "path", d="".join(ends), class_="interval pooled" if point.is_emphasised else "interval"
    )


def _with_cuts(spec: ChartSpec) -> ChartSpec:
    """Say below a drawing where intervals end that reach beyond its axis."""
    found: list[float] = []
    whole = _scales(spec, spec.panels)
    for panel in spec.panels:
        scales = _scales(spec, (panel,)) if spec.has_own_scales else whole
        scale = scales[0 if spec.kind == "rows" else 1]
        ends = (end for p in _all_points((panel,)) for end in (p.low, p.high))
        found += [end for end in ends if end is not None and not _is_inside(scale, end)]
    if not found:
        return spec
    unit = spec.value_axis.unit
    texts = [f"{format_significant(end)} {unit}".rstrip() for end in found[:CUTS_NAMED]]
    more = f" and {len(found) - CUTS_NAMED} more" if len(found) > CUTS_NAMED else ""
    ends_at = "its end" if len(found) == 1 else "their ends"
    said = f"interval cut at the edge; {ends_at}: {', '.join(texts)}{more}"
    return replace(spec, notes=(*spec.notes, (CUT, said)))


def _is_inside(scale: Scale | None, value: float) -> bool:
    return scale is not None and scale.low <= value <= scale.high
