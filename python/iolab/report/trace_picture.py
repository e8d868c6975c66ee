"""A block trace as a picture: places over time by density, throughput, and distances.

Two traces stand side by side on the same axes. Cells of equal shade that touch are one shape, so
that a page of ten million events is as large as one of ten thousand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen
from iolab.report.chart import Axis
from iolab.report.markup import Markup, join, tag
from iolab.report.scale import Scale, make_scale
from iolab.report.svg_parts import CHAR_WIDTH, WIDTH
from iolab.stats.effect_words import percent
from iolab.units import format_bytes_rounded, grouped

if TYPE_CHECKING:
    from iolab.protocol import DevicePlot, TracePlotAnswer

_LEFT: Final = 78.0
_GAP: Final = 20.0
_TOP: Final = 44.0
_PLACES: Final = 280.0
_STRIP: Final = 74.0
_STRIP_GAP: Final = 30.0
_BELOW: Final = 34.0
_SHADES: Final = 6
_COLORS: Final = ("c0", "c1", "c3")
"""Classes of reads, of writes, and of about as many of both."""


@frozen
class NamedInstant:
    """An instant with a name, such as the beginning of an operation."""

    at_ns: int
    """Since the first request that is drawn."""
    name: str


@frozen
class DrawnDevice:
    """One device of one trace."""

    name: str
    plot: DevicePlot
    span_ns: int
    moments: tuple[NamedInstant, ...] = ()

    @property
    def title(self) -> str:
        """Trace and device; one of them if both have one name."""
        device = self.plot["device"]
        return device if device == self.name else f"{self.name}, {device}"


@frozen
class _Frame:
    """Axes that all panels share."""

    span_ns: float
    low: float
    high: float
    most: int
    rate: Scale
    seek: Scale
    seek_unit: tuple[int, str]
    """Power of two and name of the unit of distances."""


@frozen
class _Strip:
    """Place, scale and colour of a line below the picture."""

    number: int
    scale: Scale
    color: str

    def y(self, value: float) -> float:
        return _strip_top(self.number) + _STRIP * (1 - self.scale.place(value))


def drawn(
    name: str, trace: TracePlotAnswer, moments: tuple[NamedInstant, ...] = ()
) -> Iterator[DrawnDevice]:
    """Devices of a trace, those with the most requests first."""
    for plot in trace["devices"]:
        yield DrawnDevice(name, plot, trace["span_ns"], moments)


def picture_svg(panels: Sequence[DrawnDevice]) -> Markup:
    """Draw devices side by side.

    Parameters
    ----------
    panels : one or two; more would be too narrow to read.
    """
    frame = _frame(panels)
    width = (WIDTH - _LEFT - _GAP * len(panels)) / len(panels)
    parts: list[Markup] = [_axes(frame)]
    for index, panel in enumerate(panels):
        left = _LEFT + index * (width + _GAP)
        parts.append(tag("g", *_panel(panel, frame, width), transform=f"translate({left:.1f} 0)"))
    height = _TOP + _PLACES + 2 * (_STRIP + _STRIP_GAP) + _BELOW
    return tag(
        "svg",
        tag("title", "Places over time"),
        *parts,
        viewBox=f"0 0 {WIDTH} {math.ceil(height)}",
        role="img",
        aria_label="Places on the device over time, throughput, and distances between requests",
        class_="chart trace",
    )


def sentence(one: DrawnDevice) -> str:
    """Picture in words."""
    plot = one.plot
    read = sum(column["read_bytes"] for column in plot["columns"])
    written = sum(column["written_bytes"] for column in plot["columns"])
    noun = "request" if plot["requests"] == 1 else "requests"
    return (
        f"{one.title}: {grouped(plot['requests'])} {noun} in {one.span_ns / 1e9:.3g} s, "
        f"{format_bytes_rounded(read)} read and {format_bytes_rounded(written)} written; "
        f"{percent(plot['sequential_share'])} of the requests begin where the one before ended."
    )


def _frame(panels: Sequence[DrawnDevice]) -> _Frame:
    pictures = [panel.plot["picture"] for panel in panels]
    low = min(picture["first_byte"] for picture in pictures)
    high = max(
        picture["first_byte"] + len(picture["reads"]) * picture["row_bytes"] for picture in pictures
    )
    most = max(
        (
            reads + writes
            for picture in pictures
            for rows in zip(picture["reads"], picture["writes"], strict=True)
            for reads, writes in zip(*rows, strict=True)
        ),
        default=1,
    )
    rates = [rate for panel in panels for rate in (*_rates(panel, 0), *_rates(panel, 1))]
    seeks = [
        column["median_seek_bytes"] or 0
        for panel in panels
        for column in panel.plot["columns"]
        if column["median_seek_bytes"] is not None
    ]
    seek_unit = _unit(max(seeks, default=0))
    return _Frame(
        seek_unit=seek_unit,
        span_ns=max(1, *(panel.span_ns for panel in panels)),
        low=float(low),
        high=float(max(high, low + 512)),
        most=max(most, 1),
        rate=make_scale(Axis("MiB/s", is_from_zero=True), [rate / 2**20 for rate in rates] or [1]),
        seek=make_scale(
            Axis(seek_unit[1], is_from_zero=True),
            [seek / 2 ** seek_unit[0] for seek in seeks] or [1],
        ),
    )


def _unit(largest: float) -> tuple[int, str]:
    """Unit of places and distances up to the largest one."""
    return (30, "GiB") if largest >= 2**31 else (20, "MiB")


def _rates(panel: DrawnDevice, direction: int) -> list[float]:
    """Bytes per second by column; 0 reads, 1 writes."""
    name = "written_bytes" if direction else "read_bytes"
    seconds = panel.plot["picture"]["column"] / 1e9
    return [column[name] / seconds for column in panel.plot["columns"]]


def _strip_top(number: int) -> float:
    return _TOP + _PLACES + _STRIP_GAP + number * (_STRIP + _STRIP_GAP)


def _axes(frame: _Frame) -> Markup:
    """Scales at the left, shared by all panels."""
    parts: list[Markup] = []
    shift, unit = _unit(frame.high)
    places = make_scale(Axis(unit), [frame.low / 2**shift, frame.high / 2**shift])
    for value, text in places.ticks:
        share = (value * 2**shift - frame.low) / (frame.high - frame.low)
        if 0 <= share <= 1:
            parts.append(_tick(_TOP + _PLACES * (1 - share), text))
    parts.append(_title(f"place, {unit}", _TOP - 8))
    for number, (scale, title) in enumerate(
        ((frame.rate, "throughput, MiB/s"), (frame.seek, f"median distance, {frame.seek_unit[1]}"))
    ):
        top = _strip_top(number)
        ticks = [tick for tick in scale.ticks if 0 <= scale.place(tick[0]) <= 1]
        for value, text in (ticks[0], ticks[-1]) if len(ticks) > 1 else ticks:
            parts.append(_tick(top + _STRIP * (1 - scale.place(value)), text))
        parts.append(_title(title, top - 5))
    return join(*parts)


def _tick(y: float, text: str) -> Markup:
    return tag("text", text, x=_LEFT - 6, y=y + 4, text_anchor="end", class_="remark")


def _title(text: str, y: float) -> Markup:
    return tag("text", text, x=4, y=y, class_="axis-title")


def _panel(panel: DrawnDevice, frame: _Frame, width: float) -> Iterator[Markup]:
    yield tag("text", panel.title, x=0, y=14, class_="panel-title")
    yield from _legend(width)
    for top, height in ((_TOP, _PLACES), (_strip_top(0), _STRIP), (_strip_top(1), _STRIP)):
        yield tag("rect", x=0, y=top, width=width, height=height, class_="axis", fill="none")
    yield from _cells(panel, frame, width)
    for direction in (0, 1):
        values = [rate / 2**20 for rate in _rates(panel, direction)]
        yield _line(panel, frame, width, values, _Strip(0, frame.rate, _COLORS[direction]))
    distances = [
        None
        if column["median_seek_bytes"] is None
        else column["median_seek_bytes"] / 2 ** frame.seek_unit[0]
        for column in panel.plot["columns"]
    ]
    yield _line(panel, frame, width, distances, _Strip(1, frame.seek, "c2"))
    yield from _times(frame, width)
    yield from _moments(panel, frame, width)


def _moments(panel: DrawnDevice, frame: _Frame, width: float) -> Iterator[Markup]:
    """Upright lines with names; a name that would touch the one before is left to the hover."""
    bottom, reached = _strip_top(1) + _STRIP, -math.inf
    for moment in panel.moments:
        x = min(max(moment.at_ns, 0) / frame.span_ns, 1.0) * width
        yield tag("line", tag("title", moment.name), x1=x, x2=x, y1=_TOP, y2=bottom, class_="one")
        room = (len(moment.name) + 1) * CHAR_WIDTH
        if x >= reached and x + room <= width:
            yield tag("text", moment.name, x=x + 3, y=_TOP + 12, class_="remark")
            reached = x + room


def _legend(width: float) -> Iterator[Markup]:
    for index, (color, name) in enumerate(zip(_COLORS, ("reads", "writes", "both"), strict=True)):
        x = width - 180 + index * 64
        yield tag("rect", x=x, y=24, width=9, height=9, fill="currentColor", class_=color)
        yield tag("text", name, x=x + 13, y=33, class_="remark")


def _times(frame: _Frame, width: float) -> Iterator[Markup]:
    factor, unit = (1e9, "s") if frame.span_ns >= 1e9 else (1e6, "ms")
    scale = make_scale(Axis("time", is_from_zero=True), [frame.span_ns / factor])
    bottom = _strip_top(1) + _STRIP
    for value, text in scale.ticks:
        share = value * factor / frame.span_ns
        if 0 <= share <= 1:
            label = f"{text} {unit}" if value == scale.ticks[0][0] else text
            anchor = "start" if share < 0.05 else "end" if share > 0.95 else "middle"
            yield tag(
                "text", label, x=share * width, y=bottom + 16, text_anchor=anchor, class_="remark"
            )
            yield tag("line", x1=share * width, x2=share * width, y1=_TOP, y2=bottom, class_="grid")


def _cells(panel: DrawnDevice, frame: _Frame, width: float) -> Iterator[Markup]:
    """Cells by direction and shade: one path for each."""
    picture = panel.plot["picture"]
    step_x = picture["column"] / frame.span_ns * width
    step_y = picture["row_bytes"] / (frame.high - frame.low) * _PLACES
    base = _TOP + _PLACES
    base -= (picture["first_byte"] - frame.low) / (frame.high - frame.low) * _PLACES
    tall = max(step_y, 0.6)
    paths: dict[tuple[int, int], list[str]] = {}
    for row, (reads, writes) in enumerate(zip(picture["reads"], picture["writes"], strict=True)):
        y = base - (row + 1) * step_y
        shades = [_shade(*pair, frame.most) for pair in zip(reads, writes, strict=True)]
        for begin, length, shade in _runs(shades):
            x = begin * step_x
            long = max(min(length * step_x, width - x), 0.6)
            if x < width:
                piece = f"M{x:.1f} {y:.1f}h{long:.1f}v{tall:.1f}h-{long:.1f}z"
                paths.setdefault(shade, []).append(piece)
    for (direction, shade), pieces in sorted(paths.items()):
        yield tag(
            "path",
            d="".join(pieces),
            fill="currentColor",
            fill_opacity=f"{(shade + 1) / _SHADES:.2f}",
            class_=_COLORS[direction],
        )


def _shade(reads: int, writes: int, most: int) -> tuple[int, int] | None:
    """Direction and shade of a cell: logarithmic, so that one request is seen beside a million."""
    count = reads + writes
    if count == 0:
        return None
    share = math.log1p(count) / math.log1p(most)
    is_both = 2 * min(reads, writes) >= max(reads, writes)
    direction = 2 if is_both else int(writes > reads)
    return direction, min(int(share * _SHADES), _SHADES - 1)


def _runs(
    shades: Iterable[tuple[int, int] | None],
) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Beginning, length and shade of cells in a row that are alike and not empty."""
    begin, before = 0, None
    end = 0
    for end, shade in enumerate([*shades, None]):
        if shade != before:
            if before is not None:
                yield begin, end - begin, before
            begin, before = end, shade


def _line(
    panel: DrawnDevice, frame: _Frame, width: float, values: Sequence[float | None], strip: _Strip
) -> Markup:
    """A strip's line, broken where there is no value."""
    step = panel.plot["picture"]["column"] / frame.span_ns * width
    pieces: list[str] = []
    is_open = False
    for index, value in enumerate(values):
        if value is not None:
            x, y = min((index + 0.5) * step, width), strip.y(value)
            pieces.append(f"{'L' if is_open else 'M'}{x:.1f} {y:.1f}")
        is_open = value is not None
    return tag("path", d="".join(pieces) or "M0 0", class_=f"joined {strip.color}")
