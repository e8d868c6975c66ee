"""Agreement between charts side by side: series in one order everywhere, and a word where lines
coincide.

Applied to every chart after it was built, so that page and workbook draw the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from iolab.frozen import replace
from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Series

NEAR: Final = 0.004
"""Lines are one to the eye if they stay within this part of the axis: about a pixel."""
PANELS_NAMED: Final = 3
COINCIDE_DASH: Final = 2
"""Pattern of the first line that lies on another; the next ones have the patterns after it."""
_Found = dict[tuple[str, ...], list[str]]
"""Names of series that coincide, to titles of panels."""


def tidied(spec: ChartSpec) -> ChartSpec:
    """Return a chart with its series in the order of their colours, and coincidences said."""
    panels = tuple(replace(p, series=tuple(in_order(p.series))) for p in spec.panels)
    found: _Found = {}
    drawn = (
        tuple(_apart(panel, spec, found) for panel in panels) if spec.kind == "plane" else panels
    )
    said = _said(found, len(panels))
    return replace(spec, panels=drawn, caption=spec.caption + said)


def in_order(series: Sequence[Series]) -> list[Series]:
    """Order series by colour, which is the order of the levels; grey ones first, below the rest."""
    return sorted(series, key=lambda s: s.slot)


def _apart(panel: Panel, spec: ChartSpec, found: _Found) -> Panel:
    """Break the lines that lie on others, and note their names."""
    groups: list[list[int]] = []
    for place, series in enumerate(panel.series):
        if series.slot == GREY or not series.is_joined or len(series.points) < 2:
            continue
        for group in groups:
            if _coincide(panel.series[group[0]], series, spec.y, panel):
                group.append(place)
                break
        else:
            groups.append([place])
    changed = list(panel.series)
    for group in groups:
        if len(group) > 1:
            names = tuple(panel.series[place].name for place in group)
            found.setdefault(names, []).append(panel.title)
            for nth, place in enumerate(group[1:]):
                changed[place] = replace(changed[place], dash=COINCIDE_DASH + nth)
    return replace(panel, series=tuple(changed))


def _coincide(a: Series, b: Series, axis: Axis, panel: Panel) -> bool:
    if len(a.points) != len(b.points):
        return False
    if not all(math.isclose(p.x, q.x) for p, q in zip(a.points, b.points, strict=True)):
        return False
    values = [p.y for series in panel.series for p in series.points]
    if axis.scale == "log":
        if min(values) <= 0:
            return False
        room = NEAR * max(0.5, math.log(max(values) / min(values)))
        gaps = (abs(math.log(p.y / q.y)) for p, q in zip(a.points, b.points, strict=True))
    else:
        low = 0.0 if axis.is_from_zero else min(values)
        room = NEAR * (max(values) - low)
        gaps = (abs(p.y - q.y) for p, q in zip(a.points, b.points, strict=True))
    return max(gaps) <= room


def _said(found: _Found, panels: int) -> str:
    parts: list[str] = []
    for names, titles in found.items():
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        where = ""
        if 1 < panels == len(titles):
            where = " in every panel"
        elif panels > 1:
            rest = len(titles) - PANELS_NAMED
            more = f" and {rest} more" if rest > 0 else ""
            where = f" in {', '.join(titles[:PANELS_NAMED])}{more}"
        parts.append(f"{listed} coincide{where}")
    return f" Lines on each other: {'; '.join(parts)}." if parts else ""
