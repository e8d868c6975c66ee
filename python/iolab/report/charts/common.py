"""Common part of several charts: choice of levels and colours, grouping, axes, captions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Final

from iolab import units
from iolab.report.chart import (
    GREY,
    PANELS_MAX,
    SPOTLIGHT_MAX,
    Axis,
    ChartSpec,
    Panel,
    Point,
    Value,
)
from iolab.stats.effect_words import NO_WIDTH, no_interval
from iolab.stats.ledger import Group as ClassGroup
from iolab.stats.ledger import factor_head
from iolab.stats.longest_latencies import trial_text
from iolab.stats.metrics import METRIC_BY_NAME, METRICS, Metric
from iolab.stats.metrics.metric import format_significant
from iolab.stats.numeric_levels import numeric_level
from iolab.stats.sentence import mode_text
from iolab.stats.verdict import (
    Comparison,
    Interval,
    StudyVerdict,
    TreatmentSummary,
    mode_word,
)
from iolab.store.rows import StudyData, TrialRow

LOG_SPAN: Final = 10.0
"""Values that span more than this factor go on a log axis."""
OPERATIONS_LOOKED_AT: Final = 5000
"""Measurements whose operations are known to be all that a study has."""
Group = tuple[str, bool | None]


def levels_of(data: StudyData) -> list[str]:
    """Return the compared factor's levels, as given, then others that were run."""
    factor = data.study.compared_factor
    seen = [t.levels[factor] for t in data.trials if factor in t.levels]
    return list(dict.fromkeys([*data.study.factors.get(factor, []), *seen]))


def level_slots(data: StudyData, verdict: StudyVerdict) -> dict[str, int]:
    """Give each level its colour slot, the same in all charts.

    With more levels than colours the baseline and those with the strongest pooled effects keep
    colours, half of them from the top, half from the bottom; the others are grey.
    """
    levels = levels_of(data)
    if len(levels) <= SPOTLIGHT_MAX:
        return {level: slot for slot, level in enumerate(levels)}
    ratios = {c.level: c.effect.ratio for c in verdict.headline if c.effect.ratio is not None}
    ranked = sorted(ratios, key=lambda level: -(ratios[level] or 0))
    lit = [data.study.baseline, *ranked[:4], *ranked[4:][-3:]]
    ordered = [level for level in levels if level in lit]
    return {level: ordered.index(level) if level in ordered else GREY for level in levels}


def noise_floor(verdict: StudyVerdict) -> float | None:
    """Return the noise floor of the headline."""
    return floor_of(verdict.headline)


def floor_of(comparisons: Sequence[Comparison]) -> float | None:
    """Return the smallest ratio (above 1) that the rounds of comparisons can tell from none.

    Half the width of the 95 % intervals on ln, their median over the levels: what a level without
    any effect stays below in 19 of 20 studies of this size. A level with an effect of this size is
    told from none in half of them. None below two rounds, and where rounds are equal because they
    were simulated.
    """
    halves = [
        (math.log(i.high) - math.log(i.low)) / 2
        for c in comparisons
        if (i := c.effect.interval_95) is not None and i.low > 0 and math.isfinite(i.high)
    ]
    if not halves or median(halves) < NO_WIDTH:
        return None
    return math.exp(min(700.0, median(halves)))


def cell_name(data: StudyData, verdict: StudyVerdict, trial: TrialRow, operation: str) -> str:
    """Name the cell of a trial: operation and the varying levels that are not compared."""
    varying = [f for f, levels in data.study.factors.items() if len(levels) > 1]
    rest = [trial.levels[f] for f in varying if f != verdict.compared_factor and f in trial.levels]
    return " · ".join([operation, *rest])


def cells_in_order(data: StudyData, names: Sequence[str]) -> list[str]:
    """Sort cells (`cell_name`) as the study lists operations and levels, not as they ran."""
    levels = [level for given in data.study.factors.values() for level in given]
    seen = list(dict.fromkeys(m.operation for m in data.measurements[:OPERATIONS_LOOKED_AT]))

    def place(name: str) -> tuple[int, list[int]]:
        operation, *rest = name.split(" · ")
        first = seen.index(operation) if operation in seen else len(seen)
        return first, [levels.index(part) if part in levels else len(levels) for part in rest]

    return sorted(names, key=place)


def operations_first(names: Sequence[str]) -> list[str]:
    """Order cells so that the first ones are of different operations."""
    seen: dict[str, int] = {}
    ranked: list[tuple[int, int, str]] = []
    for place, name in enumerate(names):
        operation = name.split(" · ")[0]
        ranked.append((seen.get(operation, 0), place, name))
        seen[operation] = seen.get(operation, 0) + 1
    return [name for *_, name in sorted(ranked)]


def grey_note(slots: dict[str, int]) -> str:
    """Say how many levels are grey, if any."""
    grey = sum(slot == GREY for slot in slots.values())
    return f" {grey} of {len(slots)} levels are grey; the table has all." if grey else ""


def primary_metrics(verdict: StudyVerdict) -> dict[Group, Metric]:
    """Return the metric each group is judged by: the study's own, or the first of `METRICS`."""
    judged = {(c.workload, c.is_direct): METRIC_BY_NAME[c.metric] for c in verdict.pooled}
    found: dict[Group, set[str]] = {}
    for t in verdict.treatments:
        found.setdefault((t.workload, t.is_direct), set()).add(t.metric)
    return {
        group: judged.get(group) or next(metric for metric in METRICS if metric.name in names)
        for group, names in found.items()
    }


def primary_summaries(verdict: StudyVerdict) -> dict[Group, list[TreatmentSummary]]:
    """Return, per group, the summaries of its primary metric."""
    metrics = primary_metrics(verdict)
    found: dict[Group, list[TreatmentSummary]] = {}
    for t in verdict.treatments:
        group = (t.workload, t.is_direct)
        if metrics[group].name == t.metric:
            found.setdefault(group, []).append(t)
    return found


def per_group(
    verdict: StudyVerdict, draw: Callable[[Group, list[TreatmentSummary]], ChartSpec | None]
) -> list[ChartSpec]:
    """Draw each group's primary metric, where there is something to draw."""
    drawn = (draw(group, found) for group, found in primary_summaries(verdict).items())
    return [spec for spec in drawn if spec is not None]


def group_title(verdict: StudyVerdict, group: Group | ClassGroup) -> str:
    """Name a group: workload, mode and, if it has one, class of cells."""
    mode = mode_text(verdict.compared_factor, group[1])
    return ", ".join(text for text in (group[0], mode, *group[2:]) if text)


def slug(text: str) -> str:
    """Make an identifier out of a name."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower()).strip("-")


def value_axis(metric: Metric, values: Iterable[float]) -> Axis:
    """Make the axis of a metric: linear from zero, or log when the values span over 10x."""
    known = [value for value in values if value > 0]
    is_log = bool(known) and max(known) / min(known) > LOG_SPAN
    scale = "log" if is_log else "linear"
    return Axis(metric.label, metric.display_unit, scale, is_from_zero=not is_log)


def summary_point(t: TreatmentSummary, x: float | None, y: float) -> Point:
    """Make the mark of a treatment; `x` None puts the value on x (rows), else on y (plane)."""
    metric = METRIC_BY_NAME[t.metric]
    value = metric.display(t.value)
    low = metric.display(t.value_interval.low) if t.value_interval else None
    high = metric.display(t.value_interval.high) if t.value_interval else None
    where = " · ".join(part for part in (t.level or "", t.operation, t.cell_label) if part)
    if t.statistic == "maximum":
        spread = f"the longest of all, {trial_text(t.maximum_round, t.maximum_trial)}"
    elif t.value_interval is None:
        spread = "one trial"
    else:
        bounds = (t.value_interval.low, t.value_interval.high)
        ends = (metric.format(bounds[0]), metric.format(bounds[1]))
        spread = no_interval(t.n, bounds) or f"95 % {ends[0]} to {ends[1]}"
    cached = ", page cache" if t.is_page_cache else ""
    title = f"{where}: {metric.format(t.value)} ({spread}, n = {t.n}{cached})"
    return Point(
        value if x is None else x,
        y if x is None else value,
        low,
        high,
        title,
        is_hollow=t.is_page_cache,
    )


def summary_row(t: TreatmentSummary) -> tuple[Value, ...]:
    """Make the table row of a treatment; throughputs are bytes/s."""
    metric = METRIC_BY_NAME[t.metric]
    return (
        t.workload,
        t.operation,
        mode_word(t.is_direct),
        t.level,
        t.cell_label,
        t.metric,
        metric.as_data(t.value),
        metric.as_data(t.value_interval.low) if t.value_interval else None,
        metric.as_data(t.value_interval.high) if t.value_interval else None,
        t.n,
        "page cache" if t.is_page_cache else "",
        t.statistic,
        t.maximum_trial if t.statistic == "maximum" else "",
    )


def summary_columns(verdict: StudyVerdict, unit: str) -> tuple[str, ...]:
    """Return the headers of `summary_row`."""
    return (
        "workload",
        "operation",
        "mode",
        factor_head(verdict.compared_factor),
        "cell",
        "metric",
        f"geometric mean or maximum ({unit})",
        f"95 % low ({unit})",
        f"95 % high ({unit})",
        "n",
        "warmth",
        "statistic",
        "trial of the maximum",
    )


def interval_text(interval: Interval) -> str:
    """Write an interval of ratios: ``[0.98, 1.02]``, digits in groups as everywhere."""
    return f"[{format_significant(interval.low)}, {format_significant(interval.high)}]"


def size_ticks(levels: Sequence[str]) -> tuple[tuple[float, str], ...]:
    """Make fixed ticks at sizes or numbers, as they were typed."""
    return tuple(
        (number, level) for level in levels if (number := numeric_level(level)) is not None
    )


def size_text(value: float) -> str:
    """Write a size in bytes as it would be typed."""
    return units.format_bytes(int(value))


def cap_panels(panels: Sequence[Panel]) -> tuple[tuple[Panel, ...], str]:
    """Keep at most `PANELS_MAX` panels; return them with a note about the rest."""
    if len(panels) <= PANELS_MAX:
        return tuple(panels), ""
    note = f" Drawn: {PANELS_MAX} of {len(panels)} panels; the table has all."
    return tuple(panels[:PANELS_MAX]), note
