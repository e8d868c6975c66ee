"""Tables of the page: verdicts, chart data, facts; plain HTML, numbers to the right."""

from __future__ import annotations

from urllib.parse import quote

from iolab.report.chart import Table, Value
from iolab.report.column_help import explained
from iolab.report.markup import Markup, join, tag
from iolab.report.metric_label import metric_label
from iolab.stats.ledger import level_text
from iolab.stats.methods.verdict_rule import FURTHER_ROUNDS_LIMIT
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.metrics.metric import format_significant
from iolab.stats.sentence import (
    bounds_text,
    level_shown,
    mode_text,
    rounds_range,
    rounds_text,
    size_text,
    unit_of,
)
from iolab.stats.verdict import CellComparison, Comparison, Effect, StudyVerdict
from iolab.wording import counted

ROWS_SHOWN_MAX = 100
"""Rows of a data table that the page shows; the CSV always has all."""
CELLS_SHOWN_MAX = 400
_BASELINE = "Value of the baseline."
IN_ADDRESS = " ,;:.+-_/()[]=|*!@"
"""Characters that a data address holds as they are; quotes, angles, # and % are not among them."""


def data_table(
    table: Table, name: str, command: str = "", *, rows_max: int = ROWS_SHOWN_MAX
) -> Markup:
    """Fold a chart's data away, with a CSV that the browser can save and the command it is from."""
    shown = Table(table.columns, table.rows[:rows_max]).for_reading()
    rest = len(table.rows) - len(shown.rows)
    note = tag("p", f"{rest} more rows are in the CSV.", class_="soft") if rest else None
    encoded = quote(table.to_csv(), safe=IN_ADDRESS)
    link = tag(
        "a",
        f"data, {counted(len(table.rows), 'row')} (CSV)",
        href=Markup(f"data:text/csv;charset=utf-8,{encoded}"),
        download=f"{name}.csv",
        class_="csv",
    )
    folded = tag(
        "details",
        tag("summary", "show data"),
        plain_table(shown.columns, shown.rows),
        note,
    )
    typed = tag("details", tag("summary", "command"), tag("code", command)) if command else None
    return tag("div", link, folded if shown.rows else None, typed, class_="data")


def plain_table(columns: tuple[str, ...], rows: tuple[tuple[Value, ...], ...]) -> Markup:
    """Draw a table; a column is numeric if its first known value is."""
    numeric = [
        isinstance(next((row[i] for row in rows if row[i] is not None), None), int | float)
        for i in range(len(columns))
    ]
    css = ["number" if is_number else None for is_number in numeric]
    head = tag("tr", *(head_cell(c, css=k) for c, k in zip(columns, css, strict=True)))
    body = (
        tag("tr", *(tag("td", cell_text(v), class_=k) for v, k in zip(row, css, strict=True)))
        for row in rows
    )
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")


def head_cell(text: str, about: str | None = None, *, css: str | None = None) -> Markup:
    """Draw the head of a column; what it means appears under the mouse."""
    return tag("th", text, class_=css, title=about or explained(text))


def cell_text(value: Value) -> str:
    """Write a table cell: four significant digits for numbers, a dash for nothing."""
    if value is None:
        return "–"
    return format_significant(value, 4) if isinstance(value, float) else str(value)


def verdict_table(verdict: StudyVerdict) -> Markup:
    """Draw the pooled comparisons, the secondary metrics below their primary one."""
    best = {(b.group, b.metric, level) for b in verdict.best_levels for level in b.members}
    head = (
        "workload",
        "metric",
        "level",
        f"against {verdict.baseline}",
        f"{level_shown(verdict)} interval",
        "verdict",
        "rounds" if verdict.is_paired else "runs a side",
        "trials used / left out",
    )
    rows = [
        _pooled_row(c, verdict, is_best=(c.group, c.metric, c.level) in best)
        for c in [*verdict.pooled, *verdict.secondary]
    ]
    note = tag(
        "p",
        "A green edge marks the best level and those shown to be within the margin of it, where no"
        " other may be the best. Each interval"
        f" holds its ratio in {level_shown(verdict)} of studies; words are adjusted for all pairs"
        " of a family, so that one may be undecided where its own interval is not. Secondary"
        " metrics are exploratory.",
        class_="soft",
    )
    table = tag("table", tag("thead", tag("tr", *map(head_cell, head))), tag("tbody", *rows))
    return join(tag("div", table, class_="scroll"), note)


def _pooled_row(c: Comparison, verdict: StudyVerdict, *, is_best: bool) -> Markup:
    metric = METRIC_BY_NAME[c.metric]
    mode = mode_text(verdict.compared_factor, c.is_direct)
    return tag(
        "tr",
        tag("td", ", ".join(text for text in (c.workload, mode, c.kind) if text)),
        tag("td", metric_label(verdict, [c]), title=metric.about),
        tag("td", level_text(verdict.compared_factor, c.level)),
        *_effect_cells(c.effect, c.metric, unit_of(verdict)),
        tag("td", f"{c.rounds_used}", class_="number"),
        tag("td", f"{c.trials_used} / {c.trials_excluded}", class_="number"),
        class_="best" if is_best else None,
    )


def _effect_cells(effect: Effect, metric_name: str, unit: str) -> list[Markup]:
    metric = METRIC_BY_NAME[metric_name]
    if effect.ratio is None:
        return [tag("td", "–"), tag("td", "–"), word_cell(effect, unit)]
    return [
        tag("td", size_text(metric, effect)),
        tag("td", bounds_text(metric, effect)),
        word_cell(effect, unit),
    ]


def word_cell(effect: Effect, unit: str = "round") -> Markup:
    """Draw the verdict word; for `undecided` also how many more rounds (or runs) would decide."""
    rest = None
    if effect.word == "undecided":
        text = f" {_rounds_short(effect, unit)}"
        rest = tag("span", text, class_="soft", title=rounds_text(effect, unit))
    return tag("td", tag("span", effect.word, class_=f"word {effect.word}"), rest)


def _rounds_short(effect: Effect, unit: str) -> str:
    """Write in a cell's room how many more rounds would decide, or that something withholds it."""
    if effect.reason:
        return "withheld"
    if effect.is_further_rounds_above_limit:
        return f"> {FURTHER_ROUNDS_LIMIT} more {unit}s"
    if effect.further_rounds is None:
        return ""
    if effect.is_further_rounds_at_least:
        return f"too few {unit}s"
    return rounds_range(effect, unit)


def cell_table(verdict: StudyVerdict) -> Markup:
    """Draw the exploratory cells, absolute values beside every ratio."""
    base = verdict.baseline
    head = (
        "cell",
        "level",
        base,
        "value",
        "difference",
        "95 % interval",
        "verdict",
        "BH p",
        "warmth",
    )
    rows = [_cell_row(c, verdict) for c in verdict.cells[:CELLS_SHOWN_MAX]]
    rest = len(verdict.cells) - len(rows)
    note = tag("p", f"{rest} more cells are in verdict.json.", class_="soft") if rest else None
    table = tag(
        "table",
        tag("thead", tag("tr", *(head_cell(h, _BASELINE if h is base else None) for h in head))),
        tag("tbody", *rows),
    )
    return join(tag("div", table, class_="scroll"), note)


def _cell_row(c: CellComparison, verdict: StudyVerdict) -> Markup:
    metric = METRIC_BY_NAME[c.metric]
    labels = [
        text
        for text, is_set in (
            ("page cache", c.is_page_cache),
            ("generator bound", c.is_generator_bound),
        )
        if is_set
    ]
    p = c.effect.p_adjusted
    return tag(
        "tr",
        tag("td", f"{c.workload}: {c.label}"),
        tag("td", level_text(verdict.compared_factor, c.level)),
        tag("td", metric.format(c.baseline_value) if c.baseline_value else "–", class_="number"),
        tag("td", metric.format(c.value) if c.value else "–", class_="number"),
        *_effect_cells(c.effect, c.metric, unit_of(verdict)),
        tag("td", "–" if p is None else f"{p:.2g}", class_="number"),
        tag("td", ", ".join(labels) or ("–" if c.cache_share is None else "device")),
    )
