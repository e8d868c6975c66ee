"""Heights over two numeric factors as a surface in perspective, as spreadsheets drew IOzone's.

Levels stand at equal distances, the smallest of both in front. Facets are drawn from the back to
the front, each opaque, so that what is nearer hides what is behind it. A facet that lacks a corner,
as where records would be larger than the file, is a triangle; one that lacks two is left out. Left
out: turning it; there is one view, and the heat map for everything it hides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from iolab.frozen import frozen
from iolab.report.chart import Axis, ChartSpec, Panel, Point
from iolab.report.markup import Markup, tag
from iolab.report.scale import Scale, make_scale
from iolab.report.svg_parts import CHAR_WIDTH, WIDTH, whole_svg

GAP = 26.0
WIDTH_ALONE = 640.0
RISE = 0.17
"""Of a panel's width: how much higher the middle of the floor's back is than its sides."""
TALL = 0.34
"""Of a panel's width: the height of the walls."""
LINE = 13.0
"""Height of a line of text."""
Corner = tuple[int, int]
Place = tuple[float, float]


@frozen
class Facet:
    """Three or four neighbouring points, in the order of the outline."""

    corners: tuple[Point, ...]

    @property
    def height(self) -> float:
        """Mean of the corners, in the unit of the axis."""
        return math.fsum(point.z for point in self.corners) / len(self.corners)


@frozen
class View:
    """Turns levels and heights into pixels; the front corner of the floor is below the middle."""

    front: Place
    half: float
    rise: float
    tall: float
    steps: tuple[int, int]
    """Levels of x and y, less one."""
    scale: Scale

    def at(self, x: float, y: float, share: float) -> Place:
        """Return the pixel of a place among the levels at a share of the height."""
        u, v = x / self.steps[0], y / self.steps[1]
        left, top = self.front
        return left + (u - v) * self.half, top - (u + v) * self.rise - share * self.tall

    def of(self, point: Point) -> Place:
        """Return the pixel of a point."""
        return self.at(point.x, point.y, self.scale.place(point.z))


def draw_surface(spec: ChartSpec) -> Markup:
    """Draw one surface per panel, all with the same axes."""
    columns = 1 if len(spec.panels) == 1 else 2
    wide = WIDTH_ALONE if columns == 1 else (WIDTH - GAP) / 2
    points = [p for panel in spec.panels for series in panel.series for p in series.points]
    scale = make_scale(spec.z or Axis(""), [p.z for p in points])
    beside = [*(text for _, text in scale.ticks), *spec.x.categories, *spec.y.categories]
    room = 16 + CHAR_WIDTH * max(map(len, beside))
    half = (wide - 2 * room) / 2
    rise, tall = RISE * wide, TALL * wide
    head, foot = 30.0, 40.0
    cell = head + tall + 2 * rise + foot
    parts: list[Markup] = []
    for index, panel in enumerate(spec.panels):
        left = (index % columns) * (wide + GAP) + (WIDTH - wide if columns == 1 else 0) / 2
        front = (left + wide / 2, (index // columns) * cell + cell - foot)
        steps = (len(spec.x.categories) - 1, len(spec.y.categories) - 1)
        view = View(front, half, rise, tall, steps, scale)
        parts.append(_panel(spec, panel, view, left))
    return whole_svg(spec, math.ceil(len(spec.panels) / columns) * cell, *parts)


def facets(points: Sequence[Point], steps: tuple[int, int]) -> Iterator[Facet]:
    """Return the facets of which three corners are known, from the back to the front."""
    known: Mapping[Corner, Point] = {(int(p.x), int(p.y)): p for p in points}
    places = sorted(
        ((x, y) for x in range(steps[0]) for y in range(steps[1])),
        key=lambda place: (-(place[0] / steps[0] + place[1] / steps[1]), place),
    )
    for x, y in places:
        outline = ((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1))
        corners = tuple(known[corner] for corner in outline if corner in known)
        if len(corners) > 2:
            yield Facet(corners)


def _panel(spec: ChartSpec, panel: Panel, view: View, left: float) -> Markup:
    top = view.at(*view.steps, 1.0)[1]
    drawn = [
        _facet(facet, view)
        for series in panel.series
        for facet in facets(series.points, view.steps)
    ]
    title = tag("text", panel.title, x=left, y=top - 14, class_="panel-title")
    return tag("g", title, *_walls(view), *_heights(spec, view, left), *drawn, *_floor(spec, view))


def _facet(facet: Facet, view: View) -> Markup:
    outline = _outline([view.of(point) for point in facet.corners])
    shade = 0.1 + 0.85 * min(1.0, max(0.0, view.scale.place(facet.height)))
    return tag(
        "g",
        tag("title", "; ".join(point.title for point in facet.corners)),
        tag("polygon", points=outline, class_="under"),
        tag("polygon", points=outline, class_="facet", fill_opacity=f"{shade:.2f}"),
    )


def _outline(places: Sequence[Place]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _walls(view: View) -> Iterator[Markup]:
    """Draw the floor and the two walls at the back."""
    x, y = view.steps
    for corners in (
        ((0, 0, 0), (x, 0, 0), (x, y, 0), (0, y, 0)),
        ((x, 0, 0), (x, y, 0), (x, y, 1), (x, 0, 1)),
        ((0, y, 0), (x, y, 0), (x, y, 1), (0, y, 1)),
    ):
        yield tag("polygon", points=_outline([view.at(*c) for c in corners]), class_="wall")


def _heights(spec: ChartSpec, view: View, left: float) -> Iterator[Markup]:
    """Draw the lines of equal height on the walls, their values, and the name of the axis."""
    x, y = view.steps
    for value, label in view.scale.ticks:
        share = view.scale.place(value)
        line = [view.at(*corner, share) for corner in ((0, y), (x, y), (x, 0))]
        yield tag("polyline", points=_outline(line), class_="grid", fill="none")
        at = line[0]
        yield tag("text", label, x=at[0] - 6, y=at[1] + 2, text_anchor="end")
    top = view.at(x, y, 1.0)[1]
    name = spec.z.title if spec.z else ""
    yield tag("text", name, x=left, y=top + 4, class_="axis-title")


def _floor(spec: ChartSpec, view: View) -> Iterator[Markup]:
    """Name the levels along the two edges in front, and the factors below them."""
    for place, name in _labelled(spec.x, view, 0):
        at = view.at(place, 0, 0.0)
        yield tag("text", name, x=at[0] + 5, y=at[1] + 15)
    for place, name in _labelled(spec.y, view, 1):
        at = view.at(0, place, 0.0)
        yield tag("text", name, x=at[0] - 5, y=at[1] + 15, text_anchor="end")
    bottom = view.front[1] + 30
    right = view.at(view.steps[0], 0, 0.0)[0]
    start = view.at(0, view.steps[1], 0.0)[0]
    names = (
        (spec.x.title, right, "end"),
        (spec.y.title, start, "start"),
    )
    for name, x, anchor in names:
        yield tag("text", name, x=x, y=bottom, text_anchor=anchor, class_="axis-title")


def _labelled(axis: Axis, view: View, edge: int) -> list[tuple[int, str]]:
    """Return as many levels as have room, the first and the last among them."""
    last = view.steps[edge]
    room = CHAR_WIDTH * (1 + max(len(name) for name in axis.categories))
    stride = math.ceil(min(room * last / view.half, LINE * last / view.rise))
    kept = [i for i in range(0, last, stride) if last - i >= stride]
    return [(i, axis.categories[i]) for i in (*kept, last)]
