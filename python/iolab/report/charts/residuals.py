"""Residuals, which neither treatment nor round explains, in the order of running, and against a
normal law.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from iolab.report.balanced import Balanced
from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series, Table
from iolab.report.charts.common import group_title, level_slots, slug
from iolab.report.ledgers import balanced_of, ledger_of
from iolab.stats.methods.student import estimate_mean, t_cdf
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData

POINTS_MAX = 900
"""Points drawn; of more, evenly spaced ones are."""
TABLE_ROWS_MAX = 8000
"""Of more values the table has those drawn; they follow from study.db."""
VALUES_MIN = 8


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw the residuals of each group: by order, and by normal quantiles as a second view."""
    ledger = ledger_of(data)
    specs: list[ChartSpec] = []
    for group in ledger.places():
        table = balanced_of(data, group)
        if table is None or len(table.rounds) < 2 or data.study.kind != "real":
            continue
        if len(table.values) * len(table.rounds) >= VALUES_MIN:
            specs += _views(data, verdict, table)
    return specs


def _views(data: StudyData, verdict: StudyVerdict, table: Balanced) -> list[ChartSpec]:
    slots = level_slots(data, verdict)
    found = table.residuals()
    stride = -(-len(found) // POINTS_MAX)
    title = group_title(verdict, table.group)
    name = f"residuals-{slug(title)}"
    spread = estimate_mean([value for *_, value in found]).sd or 0.0
    note = f" Drawn: one of {stride} values." if stride > 1 else ""
    # Rows of a table keep their places, so that treatments explain all that places could.
    order = [] if data.study.command else [float(o) for o, *_ in found]
    caption = _caption([value for *_, value in found], order, spread) + note
    rows = Table(
        ("ordinal", "operation", "level", "residual (%)"),
        tuple(
            (o, place[0].operation, place[1], math.expm1(v) * 100)
            for o, place, v in (found if len(found) <= TABLE_ROWS_MAX else found[::stride])
        ),
    )
    by_level: dict[str, list[Point]] = {}
    for ordinal, place, value in found[::stride]:
        text = (
            f"trial {ordinal}, {place[1]}, {place[0].operation}: {math.expm1(value) * 100:+.2g} %"
        )
        by_level.setdefault(place[1], []).append(
            Point(ordinal, math.expm1(value) * 100, title=text)
        )
    ranked = sorted(found, key=lambda item: item[2])
    normal = NormalDist()
    ranks: dict[str, list[Point]] = {}
    for index in range(0, len(ranked), stride):
        quantile = normal.inv_cdf((index + 0.5) / len(ranked))
        _, place, value = ranked[index]
        ranks.setdefault(place[1], []).append(Point(quantile, math.expm1(value) * 100))
    order = ChartSpec(
        name=name,
        kind="plane",
        title=f"What levels and rounds do not explain: {title}",
        caption=caption,
        x=Axis("place in the study"),
        y=Axis("rest", "%"),
        panels=(Panel("", _series(by_level, slots)),),
        table=rows,
        tab=(name, "in the order of running"),
        guides=((0.0, "nothing left to explain"),),
    )
    line = tuple(Point(z, math.expm1(z * spread) * 100) for z in (-3.0, 3.0))
    quantiles = ChartSpec(
        name=f"{name}-normal",
        kind="plane",
        title=f"What levels and rounds do not explain, against a normal distribution: {title}",
        caption=caption,
        x=Axis("quantile of the normal distribution"),
        y=Axis("rest", "%"),
        panels=(Panel("", (Series("normal", line, GREY, is_joined=True), *_series(ranks, slots))),),
        table=rows,
        tab=(name, "against a normal distribution"),
    )
    return [order, quantiles]


def _series(points: dict[str, list[Point]], slots: dict[str, int]) -> tuple[Series, ...]:
    ordered = sorted(points.items(), key=lambda item: slots.get(item[0], 99) % 99)
    return tuple(Series(level, tuple(p), slots.get(level, GREY)) for level, p in ordered)


def _caption(values: list[float], order: list[float], spread: float) -> str:
    """Say how large they are, and whether they lean on order, if it is random."""
    n = len(values)
    far = sum(abs(value) > 3 * spread for value in values)
    text = f"The rest of {n} values has a standard deviation of {math.expm1(spread) * 100:.2g} %"
    text += f"; {far} lie beyond three of them ({0.0027 * n:.1f} expected)."
    if not order:
        return text
    mean = math.fsum(order) / n
    lean = math.fsum((x - mean) * y for x, y in zip(order, values, strict=True))
    spans = math.fsum((x - mean) ** 2 for x in order)
    if spread > 0 and n > 2 and spans > 0:
        r = lean / math.sqrt(spans * math.fsum(y * y for y in values))
        t = r * math.sqrt((n - 2) / max(1e-12, 1 - r * r))
        p = 2 * t_cdf(-abs(t), n - 2)
        verb = "drift inside the rounds is left" if p < 0.01 else "no drift is left"
        text += f" In the order of running {verb} (r = {r:.2f}, p = {p:.2g})."
    return text
