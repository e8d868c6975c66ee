"""The report as a workbook: numbers as numbers, units in headers, native charts.

Sheets: Verdict, Runs (the tables that people used to make by hand: per level, record size by
operation, every round and the mean), Percentiles, TimeSeries, Environment. No text is ever taken
for a formula or a link. The same study gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, Final

from iolab.report.chart import ChartSpec, Value
from iolab.report.charts.common import group_title, levels_of, primary_summaries
from iolab.report.collect import (
    DrawnChart,
    kind_figures,
    throughput_mode,
    trust_figures,
)
from iolab.report.facts import varying_rows
from iolab.report.html import question
from iolab.report.streams import change_table, stream_table
from iolab.report.xlsx_charts import CHART_ROWS, HEADER_HEIGHT, SheetWriter, write_charts
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.sentence import kind_word, source_text
from iolab.stats.verdict import Comparison, StudyVerdict, TreatmentSummary, mode_word
from iolab.store.rows import Measurement, StudyData

SHEETS: Final = ("Verdict", "Runs", "Percentiles", "TimeSeries", "Environment")
PAPER_A4: Final = 9
"""Excel's number for A4."""


def render_xlsx(data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart]) -> bytes:
    """Compose the workbook.

    Returns
    -------
    The bytes of an ``.xlsx`` file.
    """
    import xlsxwriter

    buffer = BytesIO()
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "nan_inf_to_errors": True,
    }
    book = xlsxwriter.Workbook(buffer, options)
    made = datetime.fromtimestamp(data.study.created_at_unix_ns // 10**9, tz=UTC)
    properties = {"title": f"iolab: {data.study.name}", "created": made.replace(tzinfo=None)}
    if kind_word(data.study):
        properties["subject"] = kind_word(data.study)
    book.set_properties(properties)
    formats = _formats(book)
    sheets = {name: SheetWriter(book, book.add_worksheet(name), formats) for name in SHEETS}
    specs = {name: [s for d in charts if d.row.sheet == name for s in d.specs] for name in SHEETS}
    for out in sheets.values():
        out.sheet.set_landscape()
        out.sheet.set_paper(PAPER_A4)
        out.sheet.fit_to_pages(1, 0)
    _verdict_sheet(sheets["Verdict"], data, verdict, specs["Verdict"])
    _runs_sheet(sheets["Runs"], data, verdict, specs["Runs"])
    _percentiles_sheet(sheets["Percentiles"], verdict, specs["Percentiles"])
    _series_sheet(sheets["TimeSeries"], specs["TimeSeries"])
    _environment_sheet(sheets["Environment"], data)
    book.close()
    return buffer.getvalue()


def _formats(book: Any) -> dict[str, Any]:
    return {
        "title": book.add_format({"bold": True, "font_size": 13}),
        "bold": book.add_format({"bold": True}),
        "soft": book.add_format({"font_color": "#5C6670", "italic": True}),
        "header": book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"}),
        "sentence": book.add_format({"text_wrap": True, "valign": "top", "font_size": 13}),
        "number": book.add_format({"num_format": "#,##0.0###"}),
        "rate": book.add_format({"num_format": "#,##0"}),
    }


def _verdict_sheet(
    out: SheetWriter, data: StudyData, verdict: StudyVerdict, specs: list[ChartSpec]
) -> None:
    out.sheet.set_column(0, 0, 34)
    out.sheet.set_column(1, 12, 14)
    out.sheet.write_string(0, 0, data.study.name, out.formats["title"])
    out.sheet.write_string(1, 0, question(data), out.formats["soft"])
    out.sheet.merge_range(2, 0, 2, 9, verdict.sentence, out.formats["sentence"])
    out.sheet.set_row(2, 18 * (2 + len(verdict.sentence) // 110))
    columns = (
        "workload",
        "mode",
        "metric",
        verdict.compared_factor,
        "baseline",
        "ratio (above 1 = better)",
        "95 % low",
        "95 % high",
        "confidence",
        "verdict",
        "further rounds",
        "rounds used",
        "rounds left out",
        "trials used",
        "trials left out",
    )
    rows = [_comparison_row(c) for c in [*verdict.pooled, *verdict.secondary]]
    row = _table(out, 4, columns, rows) + 1
    for label, value in [*trust_figures(data, verdict), *kind_figures(data)[1:]]:
        out.sheet.write_string(row, 0, label)
        out.sheet.write_string(row, 1, value)
        row += 1
    caveats = [(c.code, c.count, c.sentences) for c in verdict.caveats]
    row = _table(out, row + 1, ("caveat", "count", "message and what to do"), caveats) + 1
    lines = -(-sum(len(spec.panels) for spec in specs) // 2)
    write_charts(out, specs, data_row=row + lines * CHART_ROWS + 1, chart_row=row, chart_column=0)


def _comparison_row(c: Comparison) -> tuple[Value, ...]:
    effect, interval = c.effect, c.effect.interval_95
    further = "more than 200" if effect.is_further_rounds_above_limit else effect.further_rounds
    if effect.is_further_rounds_at_least:
        further = f"at least {further}"
    return (
        c.workload,
        mode_word(c.is_direct),
        c.metric,
        c.level,
        c.baseline,
        effect.ratio,
        interval.low if interval else None,
        interval.high if interval else None,
        interval.confidence if interval else None,
        effect.word,
        further,
        c.rounds_used,
        c.rounds_excluded,
        c.trials_used,
        c.trials_excluded,
    )


def _runs_sheet(
    out: SheetWriter, data: StudyData, verdict: StudyVerdict, specs: list[ChartSpec]
) -> None:
    """Write one table per level: cells down, rounds across, then the means."""
    rounds = sorted({t.round for t in data.trials})
    out.sheet.set_column(0, 1, 16)
    out.sheet.set_column(2, len(rounds) + 7, 15)
    values = _values_by_cell(data, {t.metric for t in _all_primary(verdict)})
    row = 0
    for group, summaries in primary_summaries(verdict).items():
        metric = METRIC_BY_NAME[summaries[0].metric]
        for level in [*levels_of(data), None]:
            found = [t for t in summaries if t.level == level]
            if not found:
                continue
            name = level or "all trials"
            kind = kind_word(data.study)
            name = f"{name} ({kind})" if kind else name
            title = f"{name}: {metric.label} in {metric.unit}, {group_title(verdict, group)}"
            out.sheet.write_string(row, 0, title, out.formats["title"])
            row = _runs_table(out, row + 1, found, values, rounds) + 1
    for title, table in (
        ("Streams", stream_table(verdict)),
        ("Changed while it ran", change_table(verdict)),
    ):
        if table is not None:
            out.sheet.write_string(row, 0, title, out.formats["title"])
            row = _table(out, row + 1, table.columns, list(table.rows)) + 1
    threads = throughput_mode(data)
    if threads is not None:
        out.sheet.write_string(row, 0, "Throughput mode", out.formats["title"])
        row = _table(out, row + 1, threads.columns, list(threads.rows)) + 1
    write_charts(out, specs, data_row=row + 1, chart_row=0, chart_column=len(rounds) + 9)


Values = dict[tuple[object, ...], dict[int, list[float]]]


def _all_primary(verdict: StudyVerdict) -> list[TreatmentSummary]:
    return [t for found in primary_summaries(verdict).values() for t in found]


def _values_by_cell(data: StudyData, metrics: set[str]) -> Values:
    ok = {t.trial_id for t in data.trials if t.status == "ok"}
    found: Values = {}
    for m in data.measurements:
        if m.metric in metrics and m.trial_id in ok:
            found.setdefault(_cell_of(m), {}).setdefault(m.round, []).append(m.value)
    return found


def _cell_of(item: Measurement | TreatmentSummary) -> tuple[object, ...]:
    levels = tuple(sorted(item.levels.items()))
    return (item.workload, item.operation, item.is_direct, item.metric, levels)


def _runs_table(
    out: SheetWriter, row: int, found: list[TreatmentSummary], values: Values, rounds: list[int]
) -> int:
    """Write the table of one level; the arithmetic mean is a formula over the rounds."""
    from xlsxwriter.utility import xl_range

    unit = METRIC_BY_NAME[found[0].metric].unit
    headers = [
        "record size / cell",
        "operation",
        *(f"round {r} ({unit})" for r in rounds),
        f"mean ({unit})",
        f"geometric mean ({unit})",
        f"95 % low ({unit})",
        f"95 % high ({unit})",
        "n",
    ]
    out.sheet.set_row(row, HEADER_HEIGHT)
    for column, header in enumerate(headers):
        out.sheet.write_string(row, column, header, out.formats["header"])
    rate = out.formats["rate"]
    for t in sorted(found, key=lambda t: [x.cell_label for x in found].index(t.cell_label)):
        row += 1
        by_round = values.get(_cell_of(t), {})
        out.sheet.write_string(row, 0, t.cell_label or t.levels.get("record_size", ""))
        out.sheet.write_string(row, 1, t.operation)
        means: list[float] = []
        for column, r in enumerate(rounds, start=2):
            if r in by_round:
                means.append(sum(by_round[r]) / len(by_round[r]))
                out.sheet.write_number(row, column, means[-1], rate)
        column = len(rounds) + 2
        if means:
            cells = xl_range(row, 2, row, column - 1)
            mean = sum(means) / len(means)
            out.sheet.write_formula(row, column, f"=AVERAGE({cells})", rate, mean)
        out.sheet.write_number(row, column + 1, t.geometric_mean, rate)
        if t.interval is not None:
            out.sheet.write_number(row, column + 2, t.interval.low, rate)
            out.sheet.write_number(row, column + 3, t.interval.high, rate)
        out.sheet.write_number(row, column + 4, t.n)
    return row + 1


def _percentiles_sheet(out: SheetWriter, verdict: StudyVerdict, specs: list[ChartSpec]) -> None:
    columns = (
        "workload",
        "operation",
        "mode",
        verdict.compared_factor,
        "cell",
        "metric",
        "geometric mean (µs)",
        "95 % low (µs)",
        "95 % high (µs)",
        "n",
    )
    out.sheet.set_column(0, len(columns), 16)
    rows: list[tuple[Value, ...]] = []
    for t in verdict.treatments:
        metric = METRIC_BY_NAME[t.metric]
        if metric.unit == "ns":
            rows.append(
                (
                    t.workload,
                    t.operation,
                    mode_word(t.is_direct),
                    t.level,
                    t.cell_label,
                    t.metric,
                    metric.display(t.geometric_mean),
                    metric.display(t.interval.low) if t.interval else None,
                    metric.display(t.interval.high) if t.interval else None,
                    t.n,
                )
            )
    end = _table(out, 0, columns, rows)
    write_charts(out, specs, data_row=end + 2, chart_row=0, chart_column=len(columns) + 1)


def _series_sheet(out: SheetWriter, specs: list[ChartSpec]) -> None:
    """Write the series; charts stand above their data, which may be long."""
    lines = -(-sum(len(spec.panels) for spec in specs) // 2)
    if not specs:
        out.sheet.write_string(0, 0, "No series were recorded.", out.formats["soft"])
    write_charts(out, specs, data_row=lines * CHART_ROWS + 1, chart_row=0, chart_column=0)


def _environment_sheet(out: SheetWriter, data: StudyData) -> None:
    out.sheet.set_column(0, 0, 44)
    out.sheet.set_column(1, 2, 60)
    varying = varying_rows(data)
    if kind_word(data.study):
        text = "Facts of the simulated stack; nothing here was read from this machine."
        if data.study.kind == "imported":
            text = f"{source_text(data.study)}: what the table says of itself, nothing more."
        out.sheet.write_string(0, 0, text, out.formats["bold"])
    first = 2 if kind_word(data.study) else 0
    row = _table(out, first, ("fact that changed between trials", "value", "trials"), varying) + 1
    row = (
        _table(out, row, ("fact, the same in all trials", "value"), sorted(data.facts.items())) + 1
    )
    settings: list[tuple[Value, ...]] = [
        (name, ", ".join(levels), "varied") for name, levels in data.study.factors.items()
    ]
    settings += [(name, level, "held") for name, level in data.study.settings.items()]
    row = _table(out, row, ("factor or setting", "levels", "role"), settings) + 1
    if data.study.kind == "imported":
        return
    out.sheet.write_string(row, 0, "study.toml that reproduces this", out.formats["header"])
    for offset, line in enumerate(data.study.spec_toml.splitlines(), start=1):
        out.sheet.write_string(row + offset, 0, line)


def _table(
    out: SheetWriter, row: int, columns: tuple[str, ...], rows: Sequence[tuple[Value, ...]]
) -> int:
    """Write headers and rows; return the first free row."""
    out.sheet.set_row(row, HEADER_HEIGHT)
    for column, header in enumerate(columns):
        out.sheet.write_string(row, column, header, out.formats["header"])
    for line, values in enumerate(rows, start=row + 1):
        for column, value in enumerate(values):
            if isinstance(value, float):
                out.sheet.write_number(line, column, value, out.formats["number"])
            elif isinstance(value, int):
                out.sheet.write_number(line, column, value)
            elif value is not None:
                out.sheet.write_string(line, column, value)
    return row + 1 + len(rows)
