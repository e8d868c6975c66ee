"""Axis arithmetic: ranges and readable ticks (1-2-5 steps), linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterable

from iolab.frozen import frozen, replace
from iolab.report.chart import Axis, ChartSpec, Point
from iolab.stats.metrics.metric import format_significant

CLIP_FACTOR = 3.0
"""On a log axis an interval may reach this factor beyond the outermost estimates, then is cut."""
EXTREME = 1e100
"""Values beyond it, or nearer to 0 than its inverse, are drawn there: a quotient of two such values
is still a number.
"""
MS_FROM_US = 10_000.0
"""From so many microseconds on an axis is in milliseconds."""


@frozen
class Scale:
    """Maps values to [0, 1]; values outside are clipped by the renderer."""

    low: float
    high: float
    is_log: bool
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high end."""
        if self.is_log:
            value = min(max(value, 1e-300), 1e150)
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def make_scale(axis: Axis, values: Iterable[float], bounds: Iterable[float] = ()) -> Scale:
    """Choose range and ticks of an axis.

    Parameters
    ----------
    axis : its scale, and fixed ticks if any.
    values : estimates; all are inside the range.
    bounds : interval ends; inside as far as `CLIP_FACTOR` allows.
    """
    inner = [_bounded(value) for value in values if math.isfinite(value)] or [1.0]
    low, high = min(inner), max(inner)
    is_log = axis.scale == "log" and low > 0
    outer = [_bounded(value) for value in bounds if math.isfinite(value)]
    if is_log:
        low = max(low / CLIP_FACTOR, min([*outer, low]))
        high = min(high * CLIP_FACTOR, max([*outer, high]))
        pad = max((high / low) ** 0.06, 1.01)
        low, high = low / pad, high * pad
    else:
        span = max(high - low, abs(high) * 0.1, 1e-9)
        low = max(low - span * 2, min([*outer, low]))
        high = min(high + span * 2, max([*outer, high]))
        low = 0.0 if axis.is_from_zero and low >= 0 else low - 0.04 * (high - low or 1)
        high += 0.06 * (high - low or 1)
        if axis.is_from_zero:
            low = min(0.0, low)
    ticks = (
        tuple(t for t in axis.ticks if low <= t[0] <= high)
        if axis.ticks
        else _ticks(low, high, is_log)
    )
    return Scale(low, high, is_log, ticks)


def _bounded(value: float) -> float:
    if 0 < abs(value) < 1 / EXTREME:
        return math.copysign(1 / EXTREME, value)
    return min(max(value, -EXTREME), EXTREME)


def is_in_milliseconds(axis: Axis, values: Iterable[float]) -> bool:
    """Tell whether an axis of microseconds reads better in milliseconds."""
    return axis.unit == "µs" and max(values, default=0) >= MS_FROM_US


def in_milliseconds(spec: ChartSpec) -> ChartSpec:
    """Return a chart of long times in milliseconds; its table keeps its microseconds."""
    is_rows = spec.kind == "rows"
    axis = spec.x if is_rows else spec.y
    points = [p for panel in spec.panels for s in panel.series for p in s.points]
    others = (spec.band, spec.guides, spec.marks if is_rows else ())
    panels_only = not any(panel.guides or panel.shapes for panel in spec.panels)
    values = (p.x if is_rows else p.y for p in points)
    if not is_in_milliseconds(axis, values) or any(others) or axis.ticks or not panels_only:
        return spec

    def scaled(p: Point) -> Point:
        low, high = (None if end is None else end / 1000 for end in (p.low, p.high))
        x, y = (p.x / 1000, p.y) if is_rows else (p.x, p.y / 1000)
        return replace(p, x=x, y=y, low=low, high=high)

    panels = tuple(
        replace(
            panel,
            series=tuple(replace(s, points=tuple(map(scaled, s.points))) for s in panel.series),
        )
        for panel in spec.panels
    )
    axis = replace(axis, unit="ms")
    return replace(spec, panels=panels, **({"x": axis} if is_rows else {"y": axis}))


def _ticks(low: float, high: float, is_log: bool) -> tuple[tuple[float, str], ...]:
    values = _log_ticks(low, high) if is_log and high / low > 10 else _linear_ticks(low, high)
    return tuple((value, tick_text(value)) for value in values)


def tick_text(value: float) -> str:
    """Write a tick's value shortly."""
    text = format_significant(value, 4)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _linear_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    raw = (high - low) / wanted
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float, wanted: int = 7) -> list[float]:
    decades = math.log10(high / low)
    factors = (1,) if decades > 3.5 else (1, 3) if decades > 2 else (1, 2, 5)
    stride = max(1, math.ceil(decades / wanted))
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = [f * 10.0**e for e in range(first, last + 1, stride) for f in factors]
    return [value for value in values if low <= value <= high]
