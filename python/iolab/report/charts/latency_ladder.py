"""The latency ladder: median, p99, p99.9 and longest per treatment, on a log axis."""

from __future__ import annotations

from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Series, Table
from iolab.report.charts.common import (
    Group,
    cap_panels,
    grey_note,
    group_title,
    level_slots,
    slug,
    summary_columns,
    summary_point,
    summary_row,
)
from iolab.stats.sentence import trade_offs
from iolab.stats.verdict import StudyVerdict, TreatmentSummary
from iolab.store.rows import StudyData

STEPS = (("p50", "median"), ("p99", "p99"), ("p999", "p99.9"), ("max", "longest"))
FAMILIES = (("latency_ns_", "latency"), ("response_ns_", "response time"))


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one chart per workload, mode and clock; one panel per cell."""
    specs: list[ChartSpec] = []
    groups = dict.fromkeys((t.workload, t.is_direct) for t in verdict.treatments)
    for group in groups:
        for prefix, noun in FAMILIES:
            rungs = {prefix + step: row for row, (step, _) in enumerate(STEPS)}
            found = [
                t
                for t in verdict.treatments
                if (t.workload, t.is_direct) == group and t.metric in rungs
            ]
            if found:
                specs.append(_spec(data, verdict, group, noun, (found, rungs)))
    return specs


def _spec(
    data: StudyData,
    verdict: StudyVerdict,
    group: Group,
    noun: str,
    content: tuple[list[TreatmentSummary], dict[str, int]],
) -> ChartSpec:
    found, rungs = content
    slots = level_slots(data, verdict)
    cells: dict[str, dict[str, list[TreatmentSummary]]] = {}
    for t in found:
        name = f"{t.operation} · {t.cell_label}" if t.cell_label else t.operation
        cells.setdefault(name, {}).setdefault(t.level or "all", []).append(t)
    panels, note = cap_panels(
        [
            Panel(
                name,
                tuple(
                    Series(
                        level,
                        tuple(summary_point(t, None, rungs[t.metric]) for t in members),
                        slots.get(level, GREY),
                    )
                    for level, members in by_level.items()
                ),
            )
            for name, by_level in cells.items()
        ]
    )
    title = group_title(verdict, group)
    return ChartSpec(
        name=f"latency_ladder-{slug(noun)}-{slug(title)}",
        kind="rows",
        title=f"{noun.capitalize()} ladder: {title}",
        caption=_caption(verdict, group) + note + grey_note(slots),
        x=Axis(f"{noun}, geometric mean over trials", "µs", "log"),
        y=Axis("percentile", categories=tuple(label for _, label in STEPS)),
        panels=panels,
        table=Table(summary_columns(verdict, "µs"), tuple(summary_row(t) for t in found)),
    )


def _caption(verdict: StudyVerdict, group: Group) -> str:
    """State the trade-off with throughput, if there is one, else what p99 says by itself."""
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
        f"{len(levels)} level{'' if len(levels) == 1 else 's'} with clearly {word} p99 than"
        f" {verdict.baseline}"
        for levels, word in ((better, "lower"), (worse, "higher"))
        if levels
    ]
    if not parts:
        return f"No level's p99 is clearly different from that of {verdict.baseline}."
    return f"There {'is' if len(better or worse) == 1 else 'are'} {' and '.join(parts)}."
