"""Main effects and interactions: what each factor does on average, with its share of the variance.

Values are ratios to the mean of everything, over complete rounds; intervals are Student's t over
rounds. The interactions with the compared factor are drawn as its ratios inside each level of the
other factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from iolab.report.balanced import Balanced, Place
from iolab.report.chart import GREY, Axis, Band, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import grey_note, group_title, level_slots, slug
from iolab.report.charts.interaction_map import interaction_text
from iolab.report.ledgers import balanced_of, ledger_of
from iolab.stats.effect_words import TIMES_FROM, percent
from iolab.stats.ledger import level_text
from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.student import MeanEstimate, estimate_mean
from iolab.stats.metrics.metric import format_significant
from iolab.stats.numeric_levels import numeric_level
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData
from iolab.wording import counted

LEVELS_MAX = 60
"""Factors with more levels are left out: their effect has charts of its own."""
COLUMNS = ("factor", "level", "ratio to the mean", "95 % low", "95 % high", "rounds")


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one chart of main effects per group with two factors or more, and its interactions."""
    ledger = ledger_of(data)
    specs: list[ChartSpec] = []
    for group in ledger.groups():
        table = balanced_of(data, group)
        if table is None or len(table.rounds) < 2 or data.study.kind == "imported":
            continue
        factors = _factors(table, verdict, data)
        if len(factors) > 1:
            specs.append(_main(table, verdict, factors))
        if len(factors) > 1 and factors[0][0] == verdict.compared_factor:
            specs += [_inside(data, table, verdict, factors, f) for f in factors[1:]]
    return specs


Factor = tuple[str, list[str], Callable[[Place], str]]


def _factors(table: Balanced, verdict: StudyVerdict, data: StudyData) -> list[Factor]:
    """Name the factors that vary here, the compared one first."""
    places = list(table.values)
    compared = verdict.compared_factor
    found: list[Factor] = [(compared, data.study.factors.get(compared, []), lambda p: p[1])]
    found.append(("operation", [], lambda p: p[0].operation))
    for name in dict.fromkeys(n for key, _ in places for n, _ in key.levels):
        found.append((name, [], _reader(name)))
    kept: list[Factor] = []
    for name, order, read in found:
        levels = list(dict.fromkeys(read(place) for place in places))
        if all(numeric_level(level) is not None for level in levels):
            levels.sort(key=lambda level: numeric_level(level) or 0)
        elif order:
            levels = sorted(levels, key=lambda v, o=order: o.index(v) if v in o else len(o))
        if 1 < len(levels) <= LEVELS_MAX:
            kept.append((name, levels, read))
    return kept


def _reader(name: str) -> Callable[[Place], str]:
    return lambda place: dict(place[0].levels).get(name, "")


def _orientation(table: Balanced) -> int:
    return 1 if table.metric.is_higher_better else -1


def _effect(table: Balanced, read: Callable[[Place], str], level: str) -> MeanEstimate:
    """Estimate how far a level lies from the mean of everything, on ln and oriented."""
    whole = table.round_means()
    mine = table.means([place for place in table.values if read(place) == level])
    return estimate_mean([_orientation(table) * (mine[r] - whole[r]) for r in table.rounds])


def _ends(estimate: MeanEstimate) -> tuple[float | None, float | None]:
    half = estimate.half_width(0.95)
    if not math.isfinite(half):
        return None, None
    return ratio_of_log(estimate.mean - half), ratio_of_log(estimate.mean + half)


def _main(table: Balanced, verdict: StudyVerdict, factors: list[Factor]) -> ChartSpec:
    group = table.group
    shares = {
        e.factors[0]: e.share
        for e in verdict.closer.factor_effects
        if e.group == group and len(e.factors) == 1
    }
    names: list[str] = []
    series: list[Series] = []
    rows: list[tuple[Value, ...]] = []
    for slot, (factor, levels, read) in enumerate(factors):
        points: list[Point] = []
        for level in levels:
            estimate = _effect(table, read, level)
            low, high = _ends(estimate)
            ratio = ratio_of_log(estimate.mean)
            title = f"{factor} = {level}: {format_significant(ratio)} of the mean"
            title += f" (n = {counted(estimate.n, 'round')})"
            points.append(Point(ratio, len(names), low, high, title))
            names.append(f"{factor} = {level}")
            rows.append((factor, level, ratio, low, high, estimate.n))
        share = f", {shares[factor] * 100:.1f} % of variance" if factor in shares else ""
        series.append(Series(f"{factor}{share}", tuple(points), slot))
    title = group_title(verdict, group)
    return ChartSpec(
        name=f"main_effects-{slug(title)}",
        kind="rows",
        title=f"Main effects: {title}",
        caption=_main_caption(shares, series, verdict)
        + interaction_text(verdict.closer.factor_effects, group, verdict.compared_factor),
        x=Axis("◂ worse · ratio to the mean of everything · better ▸", scale="log", is_ratio=True),
        y=Axis("factor = level", categories=tuple(names)),
        panels=(Panel("", tuple(series)),),
        table=Table(COLUMNS, tuple(rows)),
        band=Band(1.0, 1.0, 1.0, "the mean of everything"),
    )


def _main_caption(shares: dict[str, float], series: list[Series], verdict: StudyVerdict) -> str:
    if shares:
        top = max(shares, key=lambda name: shares[name])
        own = shares.get(verdict.compared_factor)
        text = f"Most of the variance comes from {top} ({shares[top] * 100:.1f} %)"
        if own is not None and top != verdict.compared_factor:
            text += f"; {verdict.compared_factor} explains {own * 100:.1f} %"
        return f"{text}."
    spans = {
        s.name: max(p.x for p in s.points) / min(p.x for p in s.points) for s in series if s.points
    }
    top = max(spans, key=lambda name: spans[name])
    span = f"{percent(spans[top] - 1)}"
    if spans[top] >= TIMES_FROM:
        span = f"a factor of {format_significant(spans[top], 2)}"
    return f"The widest effect is that of {top}: {span} between its levels."


def _inside(
    data: StudyData,
    table: Balanced,
    verdict: StudyVerdict,
    factors: list[Factor],
    other: Factor,
) -> ChartSpec:
    """Draw the compared levels against the baseline inside each level of another factor."""
    (_, every, _), (name, others, read) = factors[0], other
    slots = level_slots(data, verdict)
    levels = [level for level in every if slots.get(level, GREY) != GREY]
    baseline = verdict.baseline if verdict.baseline in levels else levels[0]
    rows: list[tuple[Value, ...]] = []
    series: list[Series] = []
    for level in levels:
        if level == baseline:
            continue
        points: list[Point] = []
        for row, place in enumerate(others):
            estimate = _difference(table, (level, baseline), lambda p, v=place: read(p) == v)
            low, high = _ends(estimate)
            ratio = ratio_of_log(estimate.mean)
            title = f"{level_text(verdict.compared_factor, level)}, {place}:"
            title += f" {format_significant(ratio)}"
            points.append(
                Point(ratio, row, low, high, f"{title} (n = {counted(estimate.n, 'round')})")
            )
            rows.append((place, level, ratio, low, high, estimate.n))
        series.append(Series(level, tuple(points), slots.get(level, 0)))
    edge, title = 1 + verdict.margin, group_title(verdict, table.group)
    return ChartSpec(
        name=f"interaction-{slug(name)}-{slug(title)}",
        kind="rows",
        title=f"Interaction of {verdict.compared_factor} and {name}: {title}",
        caption=_inside_caption(series, name, others, verdict) + grey_note(slots),
        x=Axis(f"◂ worse · ratio to {baseline} · better ▸", scale="log", is_ratio=True),
        y=Axis(name, categories=tuple(others)),
        panels=(Panel("", tuple(series)),),
        table=Table((name, verdict.compared_factor, "ratio", *COLUMNS[3:]), tuple(rows)),
        band=Band(1 / edge, edge, 1.0, "differences that do not matter"),
    )


def _difference(
    table: Balanced, levels: tuple[str, str], is_there: Callable[[Place], bool]
) -> MeanEstimate:
    ours, theirs = (
        table.means([p for p in table.values if p[1] == level and is_there(p)]) for level in levels
    )
    sign = _orientation(table)
    return estimate_mean([sign * (ours[r] - theirs[r]) for r in table.rounds])


def _inside_caption(
    series: list[Series], name: str, others: list[str], verdict: StudyVerdict
) -> str:
    """Say which level changes most between the levels of the other factor."""
    spans = {
        s.name: (min(s.points, key=lambda p: p.x), max(s.points, key=lambda p: p.x)) for s in series
    }
    if not spans:
        return "One level only."
    widest = max(spans, key=lambda level: spans[level][1].x / spans[level][0].x)
    low, high = spans[widest]
    overlap = (low.high or math.inf) >= (high.low or 0)
    end = "; the intervals overlap" if overlap else ""
    return (
        f"{level_text(verdict.compared_factor, widest)} depends most on {name}: from"
        f" {format_significant(low.x)} at {others[int(low.y)]} to"
        f" {format_significant(high.x)} at {others[int(high.y)]}{end}."
    )
