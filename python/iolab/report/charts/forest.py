"""Ratios to the baseline by metric and workload; the single cells, hollow unless discovered."""

from __future__ import annotations

import math

from iolab.report.chart import Axis, Band, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import floor_of, interval_text, level_slots, noise_floor
from iolab.stats.effect import DISCOVERY_RATE
from iolab.stats.effect_words import percent, size_of_effect
from iolab.stats.ledger import level_text
from iolab.stats.methods.verdict_rule import OPEN_WORDS
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.metrics.metric import format_significant
from iolab.stats.sentence import bounds_text, margin_text, mode_text, size_text
from iolab.stats.verdict import CellComparison, Comparison, Effect, StudyVerdict
from iolab.store.rows import StudyData
from iolab.wording import counted, sentence_case

LEVELS_FIRST = 10
"""Levels drawn on the first page: the strongest effects of the headline, from both ends."""
LEVELS_NAMED = 3
PANELS_FIRST = 6
CELLS_MAX = 40
COLUMNS = (
    "comparison",
    "kind",
    "metric",
    "ratio (above 1 = better)",
    "low",
    "high",
    "confidence",
    "adjusted p",
    "verdict",
    "rounds",
)
Panels = dict[str, list[Comparison]]


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw pooled ratios, one panel per metric and workload, and the cells apart."""
    panels = _panels(verdict)
    cells = [c for c in verdict.cells if c.effect.ratio is not None]
    if not panels:
        return []
    slots = level_slots(data, verdict)
    levels = list(dict.fromkeys(c.level for found in panels.values() for c in found))
    shown = _strongest(verdict, levels)
    note = ""
    if len(shown) < len(levels):
        note = f" Drawn: the {len(shown)} levels farthest from 1; all {len(levels)} are below."
    first = dict(list(_first(verdict, panels).items())[:PANELS_FIRST])
    specs = [_pooled("forest", verdict, slots, (first, shown), _caption(verdict) + note)]
    if len(shown) < len(levels) or len(first) < len(panels):
        every = f"All {len(levels)} levels. " if len(levels) > 1 else ""
        caption = f"{every}{_caption(verdict)}"
        specs.append(_pooled("forest_all", verdict, slots, (panels, levels), caption))
    if len(verdict.pooled) < len(cells):
        specs.append(_cells(verdict, slots, cells))
    return specs


def _panels(verdict: StudyVerdict) -> Panels:
    """Sort the pooled comparisons by workload, mode and metric, the headline's first."""
    found: Panels = {}
    groups = dict.fromkeys(c.group for c in [*verdict.pooled, *verdict.secondary])
    for group in groups:
        for c in [*verdict.pooled, *verdict.secondary]:
            if c.group == group and c.effect.ratio is not None:
                mode = mode_text(verdict.compared_factor, c.is_direct)
                metric = METRIC_BY_NAME[c.metric].label
                title = ", ".join(
                    text for text in (sentence_case(metric), c.workload, mode, c.kind) if text
                )
                found.setdefault(title, []).append(c)
    return found


def _first(verdict: StudyVerdict, panels: Panels) -> Panels:
    """Leave out what stands beside the headline, where that alone has several panels."""
    if len({c.group for c in verdict.headline}) < 2:
        return panels
    return {title: found for title, found in panels.items() if found[0].is_headline}


def _strongest(verdict: StudyVerdict, levels: list[str]) -> list[str]:
    if len(levels) <= LEVELS_FIRST:
        return levels
    size = {c.level: abs(math.log(c.effect.ratio)) for c in verdict.headline if c.effect.ratio}
    kept = sorted(levels, key=lambda level: -size.get(level, 0))[:LEVELS_FIRST]
    ratio = {c.level: c.effect.ratio or 1 for c in verdict.headline}
    return sorted(kept, key=lambda level: -ratio.get(level, 1))


def _pooled(
    name: str,
    verdict: StudyVerdict,
    slots: dict[str, int],
    content: tuple[Panels, list[str]],
    caption: str,
) -> ChartSpec:
    panels, levels = content
    drawn = tuple(
        Panel(
            title,
            tuple(
                Series(c.level, (_point(c, levels.index(c.level), verdict),), slots.get(c.level, 0))
                for c in found
                if c.level in levels
            ),
            guides=_guides(found),
        )
        for title, found in panels.items()
    )
    named = tuple(level_text(verdict.compared_factor, level) for level in levels)
    rows = tuple(_row(c, verdict) for found in panels.values() for c in found)
    return _spec(name, verdict, drawn, (named, rows), caption)


def _cells(verdict: StudyVerdict, slots: dict[str, int], cells: list[CellComparison]) -> ChartSpec:
    shown = sorted(cells, key=lambda c: -abs(math.log(c.effect.ratio or 1)))[:CELLS_MAX]
    found = sum(_is_discovery(c) for c in cells)
    caption = (
        f"{found} of {len(cells)} single cells differ from {verdict.baseline} (exploratory,"
        f" Benjamini-Hochberg); filled marks are those."
    )
    if shown:
        widest = shown[0]
        size = size_of_effect(METRIC_BY_NAME[widest.metric], widest.effect.ratio or 1)
        caption += f" Farthest: {_label(widest, verdict)}, {size}."
    if len(shown) < len(cells):
        caption += f" Drawn: the {len(shown)} largest differences; the table has all."
    series: dict[str, list[Point]] = {}
    for index, row in enumerate(shown):
        series.setdefault(row.level, []).append(_point(row, index, verdict))
    panel = Panel(
        "",
        tuple(Series(level, tuple(p), slots.get(level, 0)) for level, p in series.items()),
    )
    names = tuple(_label(row, verdict) for row in shown)
    rows = tuple(_row(row, verdict) for row in cells)
    return _spec("forest_cells", verdict, (panel,), (names, rows), caption)


def _spec(
    name: str,
    verdict: StudyVerdict,
    panels: tuple[Panel, ...],
    content: tuple[tuple[str, ...], tuple[tuple[Value, ...], ...]],
    caption: str,
) -> ChartSpec:
    names, rows = content
    edge, margin = 1 + verdict.margin, margin_text(verdict.margin)
    floor = noise_floor(verdict) if name != "forest_cells" else None
    notes = [("▒", f"below ±{margin}: does not matter")]
    if floor is not None and floor > 1:
        about = "" if len(panels) == 1 else "about "
        notes.append(("┊", f"noise floor of these rounds, {about}±{percent(floor - 1)}"))
    titles = {
        "forest": f"Ratio to {verdict.baseline}",
        "forest_all": f"Ratio to {verdict.baseline}: all levels",
        "forest_cells": f"Ratio to {verdict.baseline} in single cells",
    }
    return ChartSpec(
        name=name,
        kind="rows",
        title=titles[name],
        caption=caption,
        x=Axis(f"◂ worse · ratio to {verdict.baseline} · better ▸", scale="log", is_ratio=True),
        y=Axis(verdict.compared_factor, categories=names),
        panels=panels,
        table=Table(COLUMNS, rows),
        band=Band(1 / edge, edge, 1.0, f"differences below {margin} do not matter"),
        has_own_scales=True,
        notes=tuple(notes),
        is_folded=name == "forest_all",
    )


def _guides(found: list[Comparison]) -> tuple[tuple[float, str], ...]:
    floor = floor_of(found)
    if floor is None or floor <= 1:
        return ()
    label = f"noise floor of these rounds: ±{percent(floor - 1)}"
    return ((1 / floor, label), (floor, label))


def _is_discovery(row: Comparison | CellComparison) -> bool:
    p = row.effect.p_adjusted
    return p is not None and p < DISCOVERY_RATE


def _point(row: Comparison | CellComparison, index: int, verdict: StudyVerdict) -> Point:
    interval = row.effect.interval_95
    metric = METRIC_BY_NAME[row.metric]
    ratio = row.effect.ratio or 1.0
    title = (
        f"{_label(row, verdict).strip()}: {size_text(metric, row.effect)}"
        f" ({bounds_text(metric, row.effect)}), {row.effect.word},"
        f" {counted(row.rounds_used, 'round')}"
    )
    is_pooled = isinstance(row, Comparison)
    return Point(
        ratio,
        index,
        interval.low if interval else None,
        interval.high if interval else None,
        title,
        is_hollow=row.effect.word in OPEN_WORDS if is_pooled else not _is_discovery(row),
        is_emphasised=is_pooled,
    )


def _label(row: Comparison | CellComparison, verdict: StudyVerdict) -> str:
    level = level_text(verdict.compared_factor, row.level)
    if isinstance(row, CellComparison):
        return f"{row.label} · {level}"
    mode = mode_text(verdict.compared_factor, row.is_direct).removesuffix(" I/O")
    return " · ".join(part for part in (level, row.workload, mode, row.kind) if part)


def _row(row: Comparison | CellComparison, verdict: StudyVerdict) -> tuple[Value, ...]:
    effect: Effect = row.effect
    interval = effect.interval_95
    kind = "pooled" if isinstance(row, Comparison) else "cell, exploratory"
    return (
        _label(row, verdict),
        kind,
        row.metric,
        effect.ratio,
        interval.low if interval else None,
        interval.high if interval else None,
        interval.confidence if interval else None,
        effect.p_adjusted,
        effect.word,
        row.rounds_used,
    )


def _caption(verdict: StudyVerdict) -> str:
    """Say the headline's ratios, or count its words when there are many."""
    headline = [c for c in verdict.headline if c.effect.ratio is not None]
    rounds = max((c.rounds_used for c in headline), default=0)
    unit = "rounds" if verdict.is_paired else "runs a side"
    if len(headline) <= LEVELS_NAMED:
        said = "; ".join(_said(c, verdict) for c in headline)
        return f"Against {verdict.baseline}: {said} (pooled over cells, n = {rounds} {unit})."
    words = [c.effect.word for c in headline]
    margin, base = margin_text(verdict.margin), verdict.baseline
    phrases = {
        "better": f"clearly better than {base}",
        "worse": f"clearly worse than {base}",
        "same": f"the same as {base} within {margin}",
        "trivial": "different, but by too little to matter",
        "depends": "better here and not there",
        "undecided": "undecided",
    }
    counts = [f"{words.count(w)} {phrase}" for w, phrase in phrases.items() if w in words]
    noun = "levels" if len({c.level for c in headline}) == len(words) else "comparisons"
    return (
        f"Of {len(words)} {noun}: {', '.join(counts)} (pooled over cells, n = {rounds} {unit};"
        " hollow = undecided)."
    )


def _said(c: Comparison, verdict: StudyVerdict) -> str:
    level = level_text(verdict.compared_factor, c.level)
    interval = c.effect.interval_95
    bounds = f" {interval_text(interval)}" if interval else ""
    return f"{level} {format_significant(c.effect.ratio or 1.0)}{bounds} {c.effect.word}"
