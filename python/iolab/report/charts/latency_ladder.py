"""The latency ladder: p50 to p99.999 and the longest, log-log; the whole distribution beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iolab.report.chart import GREY, PANELS_MAX, Axis, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import (
    Group,
    cells_in_order,
    grey_note,
    group_title,
    level_slots,
    operations_first,
    slug,
)
from iolab.report.curves import CLOCKS, Distributions, Step, Where, distributions
from iolab.stats.ledger import factor_head
from iolab.stats.longest_latencies import longest_sentence
from iolab.stats.metrics.metric import format_ns
from iolab.stats.sentence import margin_text
from iolab.stats.trade_offs import trade_offs
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData
from iolab.wording import counted

NOUNS: Final = {"latency": "latency", "response": "response time"}
RUNGS: Final = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
TEXTS: Final = ("p50", "p90", "p99", "p99.9", "p99.99", "p99.999")
BODY_MIN: Final = 8
"""Fewer quantiles than this are no distribution."""
FOLDED_MAX: Final = 24
_LONGEST: Final = (("○", "the longest of all trials, no mean"),)
Cells = dict[str, dict[str, list[Step]]]
"""Cell to level to steps."""


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw per workload, mode and clock the ladder and the distribution; panels are cells."""
    found = distributions(data, verdict)
    slots = level_slots(data, verdict)
    specs: list[ChartSpec] = []
    for group in dict.fromkeys((w.workload, w.is_direct) for w in found):
        for clock in CLOCKS:
            cells = _cells(found, group, clock, list(slots))
            if not cells:
                continue
            order = operations_first(cells_in_order(data, list(cells)))
            first, rest = order[:PANELS_MAX], order[PANELS_MAX:][:FOLDED_MAX]
            note = grey_note(slots)
            if rest:
                note += f" Here {len(first)} of {len(order)} cells, the others folded below."
            said = f"{_caption(verdict, group)}{_longest_said(verdict, group, clock)}{note}"
            base = _Base(verdict, group, clock, slots, said)
            specs += base.views({name: cells[name] for name in first}, "")
            if rest:
                specs += base.views({name: base.lit(cells[name]) for name in rest}, "-rest")
    return specs


def _cells(found: Distributions, group: Group, clock: str, levels: list[str]) -> Cells:
    mine = [w for w in found if (w.workload, w.is_direct, w.clock) == (*group, clock)]
    cells: Cells = {}

    def rank(where: Where) -> int:
        return levels.index(where.level) if where.level in levels else 0

    for where in sorted(mine, key=rank):
        cells.setdefault(where.cell, {})[where.level] = found[where]
    order = dict.fromkeys(w.cell for w in mine)
    return {name: cells[name] for name in order}


_Place = Callable[[Step], Point | None]


class _Base:
    """Common part of the views of one group."""

    def __init__(
        self,
        verdict: StudyVerdict,
        group: Group,
        clock: str,
        slots: dict[str, int],
        caption: str,
    ) -> None:
        self.title = group_title(verdict, group)
        self.noun = NOUNS[clock]
        self.factor = verdict.compared_factor
        self.slots = slots
        self.caption = caption

    def lit(self, by_level: dict[str, list[Step]]) -> dict[str, list[Step]]:
        """Leave the grey levels out."""
        return {v: steps for v, steps in by_level.items() if self.slots.get(v, 0) != GREY}

    def views(self, cells: Cells, suffix: str) -> list[ChartSpec]:
        """Draw ladder and distribution of some cells."""
        steps = [s for by_level in cells.values() for found in by_level.values() for s in found]
        rungs = [q for q in RUNGS if any(s.quantile == q for s in steps)]
        has_longest = any(s.quantile == 1.0 for s in steps)
        end = 10 / (1 - rungs[-1]) if rungs else 10.0
        name = f"latency_ladder-{slug(self.noun)}-{slug(self.title)}{suffix}"
        ticks = tuple((1 / (1 - q), TEXTS[RUNGS.index(q)]) for q in rungs)
        if has_longest:
            ticks = (*ticks, (end, "longest"))
        is_cdf = len({s.quantile for s in steps}) >= BODY_MIN
        table = self._table(cells)
        heading = f"{self.noun.capitalize()} by percentile: {self.title}"
        ladder = ChartSpec(
            name=name,
            kind="plane",
            title=f"{heading}, other cells" if suffix else heading,
            caption=self.caption,
            x=Axis("percentile", "", "log", ticks=ticks),
            y=Axis(self.noun, "µs", "log"),
            panels=self._panels(cells, lambda step: self._rung(step, end)),
            table=table,
            tab=(name, "percentiles") if is_cdf else None,
            notes=(("┃", "95 % interval over trials"), *(_LONGEST if has_longest else ())),
            is_folded=bool(suffix),
        )
        if not is_cdf:
            return [ladder]
        cumulative = ChartSpec(
            name=f"{name}-cdf",
            kind="plane",
            title=f"{self.noun.capitalize()} distribution: {self.title}",
            caption=self.caption,
            x=Axis(self.noun, "µs", "log"),
            y=Axis("share of operations", "%", is_from_zero=True),
            panels=self._panels(cells, self._share),
            table=table,
            tab=(name, "distribution (CDF)"),
            is_folded=bool(suffix),
        )
        return [ladder, cumulative]

    def _panels(self, cells: Cells, place: _Place) -> tuple[Panel, ...]:
        return tuple(
            Panel(
                name,
                tuple(
                    Series(
                        level,
                        tuple(p for step in steps if (p := place(step)) is not None),
                        self.slots.get(level, GREY if level != "all" else 0),
                        is_joined=True,
                    )
                    for level, steps in by_level.items()
                ),
            )
            for name, by_level in cells.items()
        )

    @staticmethod
    def _rung(step: Step, end: float) -> Point | None:
        if step.quantile not in (*RUNGS, 1.0):
            return None
        at = end if step.quantile == 1.0 else 1 / (1 - step.quantile)
        low = None if step.low is None else step.low / 1000
        high = None if step.high is None else step.high / 1000
        text = _percentile(step.quantile)
        where = f", {step.where}" if step.where else ""
        return Point(
            at,
            step.value / 1000,
            low,
            high,
            f"{text}: {format_ns(step.value)} (n = {step.n}{where})",
            is_hollow=step.quantile == 1.0,
        )

    @staticmethod
    def _share(step: Step) -> Point | None:
        if step.quantile == 1.0:
            return None
        text = f"{_percentile(step.quantile)}: {format_ns(step.value)} (n = {step.n})"
        return Point(step.value / 1000, step.quantile * 100, title=text)

    def _table(self, cells: Cells) -> Table:
        rows: list[tuple[Value, ...]] = [
            (
                name,
                level,
                _percentile(step.quantile),
                step.value / 1000,
                None if step.low is None else step.low / 1000,
                None if step.high is None else step.high / 1000,
                step.n,
                step.where,
            )
            for name, by_level in cells.items()
            for level, steps in by_level.items()
            for step in steps
        ]
        return Table(
            (
                "cell",
                factor_head(self.factor),
                "percentile",
                "geometric mean over trials, or longest of all (µs)",
                "95 % low (µs)",
                "95 % high (µs)",
                "n",
                "where the longest was",
            ),
            tuple(rows),
        )


def _percentile(quantile: float) -> str:
    if quantile == 1.0:
        return "longest"
    return f"p{quantile * 100:.7g}"


def _caption(verdict: StudyVerdict, group: Group) -> str:
    """State the trade-off with throughput, if there is one, else what p99 says by itself."""
    if not verdict.compared_factor:
        return "One configuration, nothing is compared."
    mine = [
        c
        for c in verdict.secondary
        if (c.workload, c.is_direct) == group and c.metric.endswith("_p99")
    ]
    pooled = [c for c in verdict.pooled if (c.workload, c.is_direct) == group]
    found = trade_offs(pooled, mine, [], verdict.compared_factor)
    if found:
        return found[0]
    better = [c.level for c in mine if c.effect.word == "better"]
    worse = [c.level for c in mine if c.effect.word == "worse"]
    parts = [
        f"{counted(len(levels), 'level')} with clearly {word} p99 than {verdict.baseline}"
        for levels, word in ((better, "lower"), (worse, "higher"))
        if levels
    ]
    if parts:
        return f"There {'is' if len(better or worse) == 1 else 'are'} {' and '.join(parts)}."
    return (
        f"No level's p99 differs from that of {verdict.baseline} by clearly more than"
        f" {margin_text(verdict.margin)}."
    )


def _longest_said(verdict: StudyVerdict, group: Group, clock: str) -> str:
    mine = [t for t in verdict.treatments if (t.workload, t.is_direct) == group]
    said = longest_sentence(verdict, mine, f"{clock}_ns_max")
    return f" {said}" if said else ""
