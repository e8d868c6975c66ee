"""Ratios to the baseline: pooled comparisons and, hollow unless discovered, the single cells."""

from __future__ import annotations

import math

from iolab.report.chart import Axis, Band, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import level_slots
from iolab.stats.effect import DISCOVERY_RATE
from iolab.stats.ledger import level_text
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.sentence import bounds_text, margin_text, mode_text, size_of_effect
from iolab.stats.verdict import CellComparison, Comparison, Effect, StudyVerdict
from iolab.store.rows import StudyData

CELLS_ON_FIRST_PAGE = 24
CELLS_MAX = 100
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


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw pooled and cell ratios together, or apart when there are many cells."""
    pooled = [c for c in verdict.pooled if c.effect.ratio is not None]
    cells = [c for c in verdict.cells if c.effect.ratio is not None]
    if not pooled:
        return []
    slots = level_slots(data, verdict)
    if len(cells) <= CELLS_ON_FIRST_PAGE and len(pooled) < len(cells):
        return [_spec("forest", verdict, slots, _interleaved(pooled, cells), _caption(verdict))]
    specs = [_spec("forest", verdict, slots, list(pooled), _caption(verdict))]
    if len(pooled) < len(cells):
        shown = sorted(cells, key=lambda c: -abs(math.log(c.effect.ratio or 1)))[:CELLS_MAX]
        found = sum(_is_discovery(c) for c in cells)
        caption = (
            f"{found} of {len(cells)} single cells differ from {verdict.baseline} (exploratory,"
            f" Benjamini-Hochberg); filled marks are those."
        )
        if len(shown) < len(cells):
            caption += f" Drawn: the {len(shown)} largest differences; the table has all."
        specs.append(_spec("forest_cells", verdict, slots, list(shown), caption, list(cells)))
    return specs


def _interleaved(
    pooled: list[Comparison], cells: list[CellComparison]
) -> list[Comparison | CellComparison]:
    """Put each pooled comparison above its own cells."""
    rows: list[Comparison | CellComparison] = []
    for c in pooled:
        rows.append(c)
        own = [
            x
            for x in cells
            if (x.workload, x.is_direct, x.level) == (c.workload, c.is_direct, c.level)
        ]
        rows += own if len(own) > 1 else []
    return rows


def _spec(  # noqa: PLR0913 - one caller chain, plain parts
    name: str,
    verdict: StudyVerdict,
    slots: dict[str, int],
    rows: list[Comparison | CellComparison],
    caption: str,
    tabled: list[Comparison | CellComparison] | None = None,
) -> ChartSpec:
    series: dict[str, list[Point]] = {}
    for index, row in enumerate(rows):
        series.setdefault(row.level, []).append(_point(row, index, verdict))
    edge = 1 + verdict.margin
    return ChartSpec(
        name=name,
        kind="rows",
        title=f"Ratio to {verdict.baseline}",
        caption=caption,
        x=Axis(f"◂ worse · ratio to {verdict.baseline} · better ▸", scale="log"),
        y=Axis(verdict.compared_factor, categories=tuple(_label(row, verdict) for row in rows)),
        panels=(
            Panel(
                "",
                tuple(
                    Series(level, tuple(points), slots.get(level, 0))
                    for level, points in series.items()
                ),
            ),
        ),
        table=Table(COLUMNS, tuple(_row(row, verdict) for row in tabled or rows)),
        band=Band(
            1 / edge, edge, 1.0, f"differences below {margin_text(verdict.margin)} do not matter"
        ),
    )


def _is_discovery(row: Comparison | CellComparison) -> bool:
    p = row.effect.p_adjusted
    return p is not None and p < DISCOVERY_RATE


def _point(row: Comparison | CellComparison, index: int, verdict: StudyVerdict) -> Point:
    interval = row.effect.interval_95
    metric = METRIC_BY_NAME[row.metric]
    ratio = row.effect.ratio or 1.0
    title = (
        f"{_label(row, verdict).strip()}: {size_of_effect(metric, ratio)}"
        f" ({bounds_text(metric, row.effect)}), {row.effect.word}, {row.rounds_used} rounds"
    )
    is_pooled = isinstance(row, Comparison)
    return Point(
        ratio,
        index,
        interval.low if interval else None,
        interval.high if interval else None,
        title,
        is_hollow=not is_pooled and not _is_discovery(row),
        is_emphasised=is_pooled,
    )


def _label(row: Comparison | CellComparison, verdict: StudyVerdict) -> str:
    level = level_text(verdict.compared_factor, row.level)
    if isinstance(row, CellComparison):
        return f"{row.label} · {level}"
    mode = mode_text(verdict.compared_factor, row.is_direct).removesuffix(" I/O")
    return " · ".join(part for part in (level, row.workload, mode) if part)


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
    """Count the words of the headline in one line."""
    words = [c.effect.word for c in verdict.headline]
    margin = margin_text(verdict.margin)
    base = verdict.baseline
    phrases = {
        "better": f"clearly better than {base}",
        "worse": f"clearly worse than {base}",
        "same": f"the same as {base} within {margin}",
        "trivial": "different, but by too little to matter",
        "undecided": "undecided",
    }
    counts = [f"{words.count(w)} {phrase}" for w, phrase in phrases.items() if w in words]
    return (
        f"Of {len(words)} level{'' if len(words) == 1 else 's'}: {', '.join(counts)}. Diamonds are"
        f" pooled over cells, the grey band is ±{margin}; hollow marks are exploratory."
    )
