"""The report as a workbook: numbers as numbers, units in headers, native charts.

Sheets: Verdict; Rounds (the sample behind every verdict, with the rule as formulas); Runs (the
tables that people used to make by hand); Percentiles; TimeSeries; CloserLook; BlockLayer (of a
study with traces); Values (one row per value, as `iolab export` writes them); Environment (with
methods and citation). What follows from other cells is a formula that carries iolab's value, and
charts follow the tables. No text is ever taken for a formula or a link. The same study gives the
same bytes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from typing import Final, cast

from iolab.report import xlsx_traced
from iolab.report.chart import ChartSpec, Value
from iolab.report.charts.common import group_title, summary_columns, summary_point, summary_row
from iolab.report.collect import (
    DrawnChart,
    kind_figures,
    throughput_mode,
    trust_figures,
)
from iolab.report.facts import same_rows, setting_rows, varying_rows
from iolab.report.findings import write_findings
from iolab.report.html import question
from iolab.report.methods import citation_bibtex, environment_rows, methods_paragraph
from iolab.report.streams import stream_table
from iolab.report.workbook import Book, CellFormat
from iolab.report.xlsx_cells import (
    ROW_POINTS_MAX,
    Links,
    Place,
    SheetWriter,
    cell,
    write_headers,
    write_table,
    write_value,
)
from iolab.report.xlsx_charts import Spot, layout, write_charts
from iolab.report.xlsx_paper import charts_room, lay_on_paper
from iolab.report.xlsx_runs import FIRST_ROUND, write_rounds, write_runs
from iolab.report.xlsx_secondary import write_closer
from iolab.report.xlsx_values import write_long_form
from iolab.stats.ledger import factor_head
from iolab.stats.methods.verdict_rule import FURTHER_ROUNDS_LIMIT
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.sentence import kind_word, source_text
from iolab.stats.verdict import Comparison, StudyVerdict, mode_word
from iolab.stats.winners import winner_rows
from iolab.store.continuing import FILE, command_again
from iolab.store.rows import StudyData

SHEETS: Final = (
    "Verdict",
    "Rounds",
    "Runs",
    "Percentiles",
    "TimeSeries",
    "CloserLook",
    "Values",
    "Environment",
)
"""Sheets that every workbook has."""
LAST_OF_PAGE: Final = 8
"""Last column of the first printed page of the sheet Verdict."""
PAGE_ROOM: Final = 130
"""Characters of a line over the columns of that page."""
VALUE_ROOM: Final = 95
"""Characters of a line over these columns but the first."""


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
    typed = cast("Book", book)  # Its own types have neither results nor plain mappings.
    formats = _formats(typed)
    names = sheet_names(data)
    sheets = {name: SheetWriter(typed, book.add_worksheet(name), formats) for name in names}
    specs = {name: [s for d in charts if d.row.sheet == name for s in d.specs] for name in SHEETS}
    links = Links()
    lines = write_rounds(sheets["Rounds"], verdict, links)
    _verdict_sheet((sheets["Verdict"], links), data, verdict, charts, lines)
    _runs_sheet((sheets["Runs"], links), data, verdict, specs["Runs"])
    _percentiles_sheet((sheets["Percentiles"], links), verdict, specs["Percentiles"])
    _series_sheet(sheets["TimeSeries"], specs["TimeSeries"])
    write_closer(sheets["CloserLook"], verdict)
    if xlsx_traced.NAME in sheets:
        stages = [s for d in charts if d.row.name == xlsx_traced.CHART for s in d.built]
        xlsx_traced.write_traced(sheets[xlsx_traced.NAME], data, verdict, stages)
    write_long_form(sheets["Values"], data)
    _environment_sheet(sheets["Environment"], data, verdict)
    for name in ("Rounds", "CloserLook", xlsx_traced.NAME, "Values", "Environment"):
        if name in sheets:  # The others know which part of them are data of their charts.
            out = sheets[name]
            lay_on_paper(out, out.used_columns, None, has_charts=name == "CloserLook")
    book.close()
    return buffer.getvalue()


def sheet_names(data: StudyData) -> tuple[str, ...]:
    """Names of the sheets of a study; that of the block layer is there only if it was traced."""
    place = SHEETS.index("Values")
    return (*SHEETS[:place], *((xlsx_traced.NAME,) if data.traced else ()), *SHEETS[place:])


def _formats(book: Book) -> dict[str, CellFormat]:
    return {
        "title": book.add_format({"bold": True, "font_size": 13}),
        "bold": book.add_format({"bold": True}),
        "soft": book.add_format({"font_color": "#5C6670", "italic": True}),
        "header": book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"}),
        "sentence": book.add_format({"text_wrap": True, "valign": "top", "font_size": 13}),
        "plain": book.add_format({}),
        "word": book.add_format({"indent": 1}),
        "message": book.add_format({"text_wrap": True, "valign": "top", "indent": 1}),
        "question": book.add_format(
            {"font_color": "#5C6670", "italic": True, "text_wrap": True, "valign": "top"}
        ),
        "paragraph": book.add_format({"text_wrap": True, "valign": "top"}),
        "number": book.add_format({"num_format": "#,##0.0###"}),
        "rate": book.add_format({"num_format": "#,##0"}),
        "percent": book.add_format({"num_format": "0.0###%", "bg_color": "#FFF6D6", "border": 1}),
        "exact": book.add_format({"num_format": "0.0#####"}),
    }


# What was decided.

_COLUMNS_OF_ROUNDS: Final = {5: 6, 6: 7, 7: 8, 8: 13, 9: 11, 11: 5}
"""Columns of the verdict table that follow columns of the sheet Rounds."""
_STYLES: Final[dict[type, str]] = {float: "number", str: "word"}


def _verdict_sheet(
    sheet: tuple[SheetWriter, Links],
    data: StudyData,
    verdict: StudyVerdict,
    charts: list[DrawnChart],
    lines: list[int],
) -> None:
    out, links = sheet
    # The answers are on the first page: ratio, interval and verdict.
    for column, characters in enumerate((28, 13, 23, 12, 12, 12, 10, 10, 11)):
        out.columns(column, column, characters)
    out.columns(LAST_OF_PAGE + 1, 14, 14)
    out.text(0, 0, data.study.name, "title")
    out.wrapped(1, (0, LAST_OF_PAGE), question(data), "question", PAGE_ROOM)
    out.sheet.merge_range(2, 0, 2, LAST_OF_PAGE, verdict.sentence, out.formats["sentence"])
    out.sheet.set_row(2, min(ROW_POINTS_MAX, 18 * (2 + len(verdict.sentence) // 105)))
    columns = (
        "workload",
        "mode",
        "metric",
        factor_head(verdict.compared_factor),
        "baseline",
        "ratio (above 1 = better)",
        "95 % low",
        "95 % high",
        "verdict",
        "confidence",
        "further rounds",
        "rounds used",
        "rounds left out",
        "trials used",
        "trials left out",
    )
    write_headers(out, 4, columns)
    row = 5
    for c, line in zip([*verdict.pooled, *verdict.secondary], lines, strict=True):
        for column, value in enumerate(_comparison_row(c)):
            source = _COLUMNS_OF_ROUNDS.get(column)
            if source is None or value is None:
                write_value(out, row, column, value)
                continue
            style = out.formats[_STYLES.get(type(value), "rate")]
            formula = f"={cell('Rounds', line, source)}"
            out.sheet.write_formula(row, column, formula, style, value)
        row += 1
    row += 1
    for group, text in winner_rows(verdict):
        out.labelled(row, group_title(verdict, group), text, LAST_OF_PAGE, VALUE_ROOM)
        row += 1
    for label, value in [*trust_figures(data, verdict), *kind_figures(data)[1:]]:
        out.labelled(row, label, value, LAST_OF_PAGE, VALUE_ROOM)
        row += 1
    row = write_findings(out, row + 1, data, verdict, charts)
    specs = [s for d in charts if d.row.sheet == out.name for s in d.specs]
    below = row + layout(specs)[1] + 1
    write_charts(out, specs, Spot(below, row, 0), links)
    lay_on_paper(out, len(columns), below - 1, has_charts=bool(specs))  # Not the charts' data.
    out.sheet.freeze_panes(0, 1)


def _comparison_row(c: Comparison) -> tuple[Value, ...]:
    effect, interval = c.effect, c.effect.interval_95
    further = effect.further_rounds
    if effect.is_further_rounds_above_limit:
        further = f"more than {FURTHER_ROUNDS_LIMIT}"
    elif effect.is_further_rounds_at_least:
        further = "too few to tell"
    elif effect.further_rounds_least is not None and further != effect.further_rounds_least:
        further = f"{effect.further_rounds_least} to {further}"
    return (
        ", ".join(text for text in (c.workload, c.kind) if text),
        mode_word(c.is_direct),
        c.metric,
        c.level,
        c.baseline,
        effect.ratio,
        interval.low if interval else None,
        interval.high if interval else None,
        effect.word,
        interval.confidence if interval else None,
        further,
        c.rounds_used,
        c.rounds_excluded,
        c.trials_used,
        c.trials_excluded,
    )


# What was measured.


def _runs_sheet(
    sheet: tuple[SheetWriter, Links],
    data: StudyData,
    verdict: StudyVerdict,
    specs: list[ChartSpec],
) -> None:
    """Write the tables of rounds, then streams and throughput mode, then the charts."""
    out, links = sheet
    row = write_runs(out, data, verdict, links)
    for title, table in (
        ("Streams", stream_table(verdict)),
        ("Throughput mode", throughput_mode(data)),
    ):
        if table is not None:
            read = table.for_reading()
            out.text(row, 0, title, "title")
            row = write_table(out, row + 1, read.columns, read.rows) + 1
    wide = FIRST_ROUND + len({t.round for t in data.trials})
    out.sheet.freeze_panes(0, 2)
    _charts_and_paper(sheet, specs, row, wide)


def _charts_and_paper(
    sheet: tuple[SheetWriter, Links], specs: list[ChartSpec], row: int, columns: int
) -> None:
    """Write charts below the tables of a sheet, their data below them, which is not printed.

    Parameters
    ----------
    sheet, specs : the sheet and its charts.
    row : first free row.
    columns : of the tables.
    """
    out, links = sheet
    below = row + (layout(specs)[1] + 1 if specs else 0)
    write_charts(out, specs, Spot(below + 1, row, 0), links)
    wide = max(columns, charts_room(out)[1]) if specs else columns
    lay_on_paper(out, wide, below - 1, has_charts=bool(specs))


def _percentiles_sheet(
    sheet: tuple[SheetWriter, Links], verdict: StudyVerdict, specs: list[ChartSpec]
) -> None:
    out, links = sheet
    columns = summary_columns(verdict, "µs")
    out.columns(0, len(columns) - 1, 14)
    rows: list[tuple[Value, ...]] = []
    for t in verdict.treatments:
        if METRIC_BY_NAME[t.metric].unit != "ns":
            continue
        rows.append(summary_row(t))
        place = Place.of_row(out.name, len(rows), 6)
        point = summary_point(t, None, 0)
        links.add(point.title, (point.x, point.low, point.high), place)
    end = write_table(out, 0, columns, rows)
    _charts_and_paper(sheet, specs, end + 1, len(columns))
    out.sheet.freeze_panes(1, 0)
    out.sheet.repeat_rows(0)


def _series_sheet(out: SheetWriter, specs: list[ChartSpec]) -> None:
    """Write the series; charts stand above their data, which may be long."""
    if not specs:
        out.text(0, 0, "No series were recorded.", "soft")
    below = layout(specs)[1] + 1
    write_charts(out, specs, Spot(below, 0, 0), Links())
    lay_on_paper(out, charts_room(out)[1], max(0, below - 1), has_charts=bool(specs))
    out.sheet.freeze_panes(0, 1)


# Where it was measured.


def _environment_sheet(out: SheetWriter, data: StudyData, verdict: StudyVerdict) -> None:
    paragraph = out.formats["paragraph"]
    out.columns(0, 0, 36, paragraph)
    out.columns(1, 1, 78, paragraph)
    out.columns(2, 2, 10)
    out.sheet.freeze_panes(0, 1)
    first = 0
    if kind_word(data.study):
        text = "Facts of the simulated stack; nothing here was read from this machine."
        if data.study.kind == "imported":
            text = f"{source_text(data.study)}: what the table says of itself, nothing more."
        out.text(0, 0, text, "bold")
        first = 2
    row = write_table(out, first, ("for a paper", "value"), environment_rows(data)) + 1
    methods = methods_paragraph(data, verdict)
    out.text(row, 0, "methods, for a paper", "header")
    out.wrapped(row, (1, 2), methods, "paragraph", 84)
    out.text(row + 1, 0, "citation (BibTeX)", "header")
    out.text(row + 1, 1, citation_bibtex(data))
    row += 3
    columns = ("fact that changed between trials", "value", "trials")
    row = write_table(out, row, columns, varying_rows(data)) + 1
    columns = ("fact, the same in all trials", "value")
    row = write_table(out, row, columns, same_rows(data)) + 1
    columns = ("factor or setting", "levels", "role")
    row = write_table(out, row, columns, setting_rows(data.study)) + 1
    if data.study.kind == "imported":
        return
    title = f"{FILE} that reproduces this"
    if data.study.command:
        title = "this again: " + command_again(data.study)
    out.text(row, 0, title, "header")
    for offset, line in enumerate(data.study.spec_toml.splitlines(), start=1):
        out.text(row + offset, 0, line, "plain")
