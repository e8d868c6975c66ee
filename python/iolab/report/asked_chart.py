"""One metric by any factor: a chart that the user asks for, beside those that a report always has.

Marks are means with intervals, not bars: they need no axis that begins at zero. An axis is linear
from zero, or logarithmic where its values span more than 10 times. Nothing is averaged over what is
not named: every other factor that varies, and every operation, has panels of its own. Left out:
values that cannot carry a mean (zero or negative), whose number the caption tells.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from iolab.errors import StudyError
from iolab.frozen import frozen
from iolab.report.chart import GREY, SPOTLIGHT_MAX, Axis, ChartSpec, Panel, Series, Table, Value
from iolab.report.charts.common import (
    LOG_SPAN,
    cap_panels,
    size_ticks,
    slug,
    summary_point,
    value_axis,
)
from iolab.report.side_by_side import tidied
from iolab.stats.ledger import Ledger, build_ledger, level_text
from iolab.stats.metrics import METRIC_BY_NAME, METRICS, Metric
from iolab.stats.numeric_levels import numeric_levels
from iolab.stats.summaries import summaries
from iolab.stats.verdict import TreatmentSummary, mode_word
from iolab.store.rows import StudyData
from iolab.study.metric_names import SHORT_NAMES, parse_metric
from iolab.wording import counted, nearest, sentence_case

FORM: Final = "METRIC:FACTOR[:BY]"
OPERATION: Final = "operation"
_TEST: Final = "test"
"""Name of an operation in dialects and after ``--test``."""
WORKLOAD: Final = "workload"
MODE: Final = "mode"
_ALWAYS: Final = (WORKLOAD, OPERATION, MODE)
"""Names beside the factors of a study: they differ without being varied."""
_NAMED_MAX: Final = 3
_OTHERS_MAX: Final = 8
"""Metrics without a short name that are named; more are counted."""
_ROWS_MAX: Final = 40
"""Levels that are drawn as rows."""


@frozen
class AskedChart:
    """Question that a chart answers: names as the study knows them."""

    metric: str
    factor: str
    by: str | None = None

    @property
    def text(self) -> str:
        """The question as it is typed."""
        return ":".join(part for part in (self.metric, self.factor, self.by) if part)

    @property
    def name(self) -> str:
        """Name of its file, without an ending."""
        return "chart-" + "-".join(
            slug(part) for part in (self.metric, self.factor, self.by or "") if part
        )


def parse_chart(text: str, data: StudyData) -> AskedChart:
    """Understand ``METRIC:FACTOR[:BY]`` for one study.

    Parameters
    ----------
    text : as typed, such as ``p99:scheduler:record_size``; a name may hold a colon.
    data : the study, which knows its factors.

    Raises
    ------
    StudyError : it has another form, or names something that the study does not have.
    """
    metric, colon, rest = text.strip().partition(":")
    if not colon or not metric.strip() or not rest.strip():
        raise StudyError(
            f"chart '{text}': this is not of the form {FORM}",
            "as in p99:scheduler, or throughput:record_size:scheduler",
        )
    parts = [part.strip() for part in rest.split(":")]
    names = factor_names(data)
    for end in range(len(parts), 0, -1):
        factor, by = ":".join(parts[:end]), ":".join(parts[end:])
        if _known(factor, names) and (not by or _known(by, names)):
            return asked_chart(data, metric.strip(), factor, by or None)
    return asked_chart(data, metric.strip(), parts[0], ":".join(parts[1:]) or None)


def asked_chart(data: StudyData, metric: str, factor: str, by: str | None) -> AskedChart:
    """Check the names of a chart.

    Raises
    ------
    StudyError : the study has no such metric or factor; says what it has.
    """
    found = AskedChart(
        _metric(data, metric), _factor(data, factor), None if by is None else _factor(data, by)
    )
    if found.factor == found.by:
        raise StudyError(
            f"chart: {found.factor} is named twice", f"write {found.metric}:{found.factor}"
        )
    return found


def factor_names(data: StudyData) -> tuple[str, ...]:
    """Names that an axis may have: factors with several levels, then what differs anyhow."""
    varied = [name for name, levels in data.study.factors.items() if len(levels) > 1]
    return (*varied, *(name for name in _ALWAYS if name not in varied))


def _known(name: str, names: Sequence[str]) -> str | None:
    plain = name.replace("-", "_")
    found = next((known for known in names if plain in (known, known.replace("-", "_"))), None)
    return OPERATION if found is None and plain == _TEST else found


def _metric(data: StudyData, typed: str) -> str:
    try:
        name = typed if typed in METRIC_BY_NAME else parse_metric(typed)
    except ValueError:
        name = ""
    measured = {m.metric for m in data.measurements}
    if name in measured and name in METRIC_BY_NAME:
        return name
    shown = [metric.name for metric in METRICS if metric.name in measured]
    short = [alias for alias, long in SHORT_NAMES.items() if long in measured]
    why = f"this study has not measured {name}" if name else f"there is no metric '{typed}'"
    why += nearest(typed, [*shown, *short])
    if not shown:
        raise StudyError(f"chart: {why}", "nothing was measured yet")
    rest = [one for one in shown if one not in SHORT_NAMES.values()]
    hint = f"it has, by short names: {', '.join(short)}" if short else ""
    if rest:
        others = f"and {', '.join(rest)}" if len(rest) <= _OTHERS_MAX else f"and {len(rest)} more"
        hint = f"{hint}, {others}" if short else f"it has {others.removeprefix('and ')}"
    raise StudyError(f"chart: {why}", hint)


def _factor(data: StudyData, typed: str) -> str:
    names = factor_names(data)
    found = _known(typed, names)
    if found is not None:
        return found
    held = data.study.settings | {
        name: levels[0] for name, levels in data.study.factors.items() if len(levels) == 1
    }
    fixed = _known(typed, list(held))
    if fixed is not None:
        why = f"{fixed} was {held[fixed]} in all trials, so there is nothing to draw along it"
    else:
        why = f"the study has no factor '{typed}'{nearest(typed, names)}"
    raise StudyError(f"chart: {why}", f"name one of {', '.join(names)}")


def draw_asked(data: StudyData, asked: AskedChart) -> ChartSpec:
    """Draw one metric by one factor, a colour for each level of another one.

    Parameters
    ----------
    data : the study.
    asked : checked names (`asked_chart`).

    Raises
    ------
    StudyError : no finished trial has a value that could be drawn.
    """
    ledger, metric = build_ledger(data), METRIC_BY_NAME[asked.metric]
    found = [t for t in summaries(ledger) if t.metric == metric.name]
    placed = [t for t in found if _level(t, asked.factor) and (_level(t, asked.by) or not asked.by)]
    if not placed:
        raise StudyError(
            f"chart: no finished trial has a value of {metric.name} with a level of {asked.factor}",
            "draw it when more trials are done, or by another factor",
        )
    levels = _in_order(data, asked.factor, placed)
    numbers = numeric_levels(asked.factor, levels) if len(levels) > 1 else None
    series = _in_order(data, asked.by, placed) if asked.by else [metric.label]
    panels, note = cap_panels(
        [
            Panel(title, _series(members, asked, (levels, series), numbers))
            for title, members in _by_panel(data, asked, placed).items()
        ]
    )
    values = value_axis(metric, (t.value for t in placed))
    caption = _caption(ledger, metric, asked, placed, values.scale == "log")
    names = _factor_axis(asked.factor, levels, numbers)
    is_plane = numbers is not None
    by = f" and {_words(asked.by)}" if asked.by else ""
    drawn = ChartSpec(
        name=asked.name,
        kind="plane" if is_plane else "rows",
        title=f"{sentence_case(metric.label)} by {_words(asked.factor)}{by}",
        caption=caption + note + _left_out(len(found) - len(placed), asked),
        x=names if is_plane else values,
        y=values if is_plane else names,
        panels=panels,
        table=_table(asked, metric, placed),
    )
    return tidied(drawn)


def _words(name: str | None) -> str:
    return (name or "").replace("_", " ")


def _level(t: TreatmentSummary, name: str | None) -> str | None:
    if name == OPERATION:
        return t.operation
    if name == WORKLOAD:
        return t.workload
    if name == MODE:
        return mode_word(t.is_direct)
    return t.levels.get(name or "")


def _in_order(data: StudyData, name: str | None, found: Sequence[TreatmentSummary]) -> list[str]:
    """Levels that have values: as the study lists them, or as they come."""
    present = dict.fromkeys(level for t in found if (level := _level(t, name)) is not None)
    planned = data.study.factors.get(name or "", [])
    return [
        *(level for level in planned if level in present),
        *(level for level in present if level not in planned),
    ]


def _factor_axis(factor: str, levels: Sequence[str], numbers: dict[str, float] | None) -> Axis:
    if numbers is None:
        return Axis(factor, categories=tuple(levels[:_ROWS_MAX]))
    low, high = min(numbers.values()), max(numbers.values())
    scale = "log" if low > 0 and high / low > LOG_SPAN else "linear"
    return Axis(_words(factor), "", scale, ticks=size_ticks(levels))


def _by_panel(
    data: StudyData, asked: AskedChart, found: Sequence[TreatmentSummary]
) -> dict[str, list[TreatmentSummary]]:
    """Treatments by what differs among them and is on no axis."""
    shown = (asked.factor, asked.by)
    rest = [name for name in (*_ALWAYS, *data.study.factors) if name not in shown]
    rest = [name for name in dict.fromkeys(rest) if len({_level(t, name) for t in found}) > 1]
    panels: dict[str, list[TreatmentSummary]] = {}
    for t in found:
        parts = [(name, level) for name in rest if (level := _level(t, name))]
        title = " · ".join(
            level if name in _ALWAYS else level_text(name, level) for name, level in parts
        )
        panels.setdefault(title, []).append(t)
    return panels


def _series(
    members: Sequence[TreatmentSummary],
    asked: AskedChart,
    order: tuple[list[str], list[str]],
    numbers: dict[str, float] | None,
) -> tuple[Series, ...]:
    levels, names = order
    rows = {level: place for place, level in enumerate(levels[:_ROWS_MAX])}
    found: list[Series] = []
    for slot, name in enumerate(names):
        mine = {
            level: t
            for t in members
            if (level := _level(t, asked.factor)) and (not asked.by or _level(t, asked.by) == name)
        }
        if numbers is None:
            points = [
                summary_point(mine[level], None, rows[level]) for level in rows if level in mine
            ]
        else:
            ordered = sorted(mine, key=lambda level: numbers[level])
            points = [summary_point(mine[level], numbers[level], 0) for level in ordered]
        if points:
            is_lit = len(names) <= SPOTLIGHT_MAX or slot < SPOTLIGHT_MAX
            found.append(
                Series(name, tuple(points), slot if is_lit else GREY, is_joined=numbers is not None)
            )
    return tuple(found)


def _caption(
    ledger: Ledger,
    metric: Metric,
    asked: AskedChart,
    found: Sequence[TreatmentSummary],
    is_log: bool,
) -> str:
    """Tell how to read the marks, and what they do not show."""
    counts = sorted({t.n for t in found})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    trials = "trial" if counts[-1] == 1 else "trials"
    said = [f"Marks are geometric means of {n} {trials} with 95 % intervals"]
    if metric.is_maximum:
        said = [f"Marks are the longest of {n} {trials}: a maximum has no interval"]
    single = sum(t.value_interval is None for t in found)
    if single and not metric.is_maximum:
        of = "no mark has an interval" if single == len(found) else f"{single} have none"
        said.append(f"{of}: one trial each")
    direction = "higher" if metric.is_higher_better else "lower"
    said.append(f"{direction} is better")
    text = "; ".join(said) + "."
    if any(t.value_interval for t in found):
        text += " An interval that cannot be seen is narrower than its mark."
    text += _only(ledger, found)
    if is_log:
        text += " The axis is logarithmic: the largest value is more than"
        text += f" {LOG_SPAN:.0f} times the smallest."
    if any(t.is_page_cache for t in found):
        text += " Hollow marks: most bytes came from the page cache."
    rejected = ledger.rejected.get(metric.name, 0)
    if rejected:
        text += f" Left out: {counted(rejected, 'value')} that are zero or negative."
    levels = len({_level(t, asked.factor) for t in found})
    if levels > _ROWS_MAX:
        text += f" Drawn: {_ROWS_MAX} of {levels} levels; the table has all."
    series = len({_level(t, asked.by) for t in found}) if asked.by else 1
    if series > SPOTLIGHT_MAX:
        text += f" {series - SPOTLIGHT_MAX} of {series} levels of {asked.by} are grey."
    if ledger.data.study.is_simulated:
        text += " Simulated, not measured."
    return text


def _only(ledger: Ledger, found: Sequence[TreatmentSummary]) -> str:
    """Tell which varied factors have values at one level only."""
    said = ""
    for name, levels in ledger.data.study.factors.items():
        present = {t.levels[name] for t in found if name in t.levels}
        if len(levels) > 1 and len(present) == 1:
            said += f" Only {_words(name)} {present.pop()} has values."
    measured = dict.fromkeys(m.operation for m in ledger.data.measurements)
    without = [name for name in measured if name not in {t.operation for t in found}]
    if without:
        shown = ", ".join(without[:_NAMED_MAX])
        more = f" and {len(without) - _NAMED_MAX} more" if len(without) > _NAMED_MAX else ""
        said += f" Without values: {shown}{more}."
    return said


def _left_out(n: int, asked: AskedChart) -> str:
    names = " or ".join(name for name in (asked.factor, asked.by) if name)
    return f" Left out: {counted(n, 'treatment')} without a level of {names}." if n else ""


def _table(asked: AskedChart, metric: Metric, found: Sequence[TreatmentSummary]) -> Table:
    factors = list(dict.fromkeys(itertools.chain.from_iterable(t.levels for t in found)))
    unit = metric.read_unit
    bounds = ("95 % low", "95 % high")
    columns = (
        *(WORKLOAD, OPERATION, MODE, *factors),
        f"{metric.statistic} ({unit})",
        *(f"{bound} ({unit})" for bound in bounds),
        "n",
    )
    return Table(columns, tuple(_row(metric, factors, t) for t in found))


def _row(metric: Metric, factors: Sequence[str], t: TreatmentSummary) -> tuple[Value, ...]:
    interval = t.value_interval
    return (
        *(t.workload, t.operation, mode_word(t.is_direct), *map(t.levels.get, factors)),
        metric.as_data(t.value),
        metric.as_data(interval.low) if interval else None,
        metric.as_data(interval.high) if interval else None,
        t.n,
    )
