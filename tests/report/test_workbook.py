"""The workbook: formulas that count as iolab does, charts that follow cells, limits of Excel."""

from __future__ import annotations

import dataclasses
import math
import re
import subprocess
import warnings
import zipfile
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import openpyxl
import pytest
from openpyxl.utils import column_index_from_string

from iolab.report import xlsx_runs
from iolab.report.collect import draw_all
from iolab.report.xlsx import render_xlsx
from iolab.report.xlsx_charts import PAGE_ROWS, layout, rounded_limits
from iolab.stats.judge import judge
from iolab.store.rows import StudyData

SERIES_OF_EXCEL = 255
SHEET_NAME_OF_EXCEL = 31


def _workbook(study: StudyData) -> bytes:
    verdict = judge(study)
    return render_xlsx(study, verdict, draw_all(study, verdict))


def _charts(content: bytes) -> list[str]:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if "charts/chart" in name]
        return [archive.read(name).decode() for name in names]


def _formulas(sheet: Any) -> dict[str, str]:
    found = {}
    for row in sheet.iter_rows():
        for cell in row:
            if cell.data_type == "f":
                found[cell.coordinate] = str(getattr(cell.value, "text", cell.value))
    return found


def _recalculated(content: bytes, folder: Path) -> Any:
    """Workbook that LibreOffice makes of the formulas, once it knows none of our values."""
    bare = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(bare, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.startswith("xl/worksheets/sheet"):
                text = re.sub(rb"(<f[^>]*>[^<]*</f>)<v>[^<]*</v>", rb"\1", text)
            new.writestr(name, text)
    source = folder / "bare.xlsx"
    source.write_bytes(bare.getvalue())
    return openpyxl.load_workbook(_converted(source, "xlsx"), data_only=True)


def _converted(source: Path, suffix: str) -> Path:
    out = source.parent / "converted"
    command = ["soffice", f"-env:UserInstallation=file://{source.parent}/profile", "--headless"]
    command += ["--convert-to", suffix, "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=220)
    return out / f"{source.stem}.{suffix}"


def test_verdicts_are_formulas_over_rounds(canned: ModuleType) -> None:
    study = canned.demo()
    verdict = judge(study)
    content = _workbook(study)
    formulas = _formulas(openpyxl.load_workbook(BytesIO(content))["Rounds"])
    known = openpyxl.load_workbook(BytesIO(content), data_only=True)["Rounds"]
    lines = [row for row in range(1, 40) if known.cell(row, 7).value not in (None, "ratio")]
    found = [*verdict.pooled, *verdict.secondary]
    assert len(lines) == len(found)
    for row, c in zip(lines, found, strict=True):
        assert known.cell(row, 7).value == pytest.approx(c.effect.ratio)
        assert c.effect.interval_95 is not None
        assert known.cell(row, 8).value == pytest.approx(c.effect.interval_95.low)
        assert known.cell(row, 14).value == c.effect.word
        assert f"G{row}" in formulas
        assert (f"N{row}" in formulas) == (c in verdict.pooled)
        ratios = [known.cell(row, column).value for column in range(15, 20)]
        assert [r for r in ratios if r is not None] == pytest.approx(list(c.round_ratios.values()))


def test_charts_follow_the_tables_that_a_student_changes(canned: ModuleType) -> None:
    book = openpyxl.load_workbook(BytesIO(_workbook(canned.demo())))
    verdict, runs = _formulas(book["Verdict"]), _formulas(book["Runs"])
    assert any(text.startswith("='Rounds'!$G$") for text in verdict.values())
    assert any(re.fullmatch(r"='Runs'!\$\w+\$\d+/1048576", text) for text in runs.values())
    ladder = _formulas(book["Percentiles"])
    assert any(re.fullmatch(r"='Percentiles'!\$G\$\d+", text) for text in ladder.values())
    assert any(re.fullmatch(r"=[A-Z]+\d+-'Percentiles'!\$H\$\d+", t) for t in ladder.values())


def test_values_that_cannot_be_told_apart_are_plain_numbers(canned: ModuleType) -> None:
    """In a simulation all ratios may be 1: a chart must not follow the row of another level."""
    study = canned.simulated()
    content = _workbook(study)
    verdict = openpyxl.load_workbook(BytesIO(content), data_only=True)["Verdict"]
    shown = [verdict.cell(6 + i, 6).value for i in range(len(judge(study).pooled))]
    assert shown == pytest.approx([c.effect.ratio for c in judge(study).pooled])


def test_a_round_of_several_values_keeps_the_judged_mean(canned: ModuleType) -> None:
    """A round that is no single trial keeps the judged mean: its own would not give iolab's
    interval again.
    """
    study = canned.make_study(
        extra_factors={"nr_requests": ("64", "128")},
        workloads=(canned.Workload("iozone", ("read",), ("4k",)),),
    )
    twice = [*study.measurements, *study.measurements]
    book = openpyxl.load_workbook(BytesIO(_workbook(_replaced(study, twice))))
    formulas = _formulas(book["Runs"]).values()
    assert any(text.startswith("=AVERAGE(") for text in formulas)
    assert not any("TINV" in text for text in formulas)


def test_no_formula_gives_a_share_above_100_percent(canned: ModuleType) -> None:
    """Symptom: the page ended the interval of a share at 100 %, the workbook's formula did not.

    Whoever opened it and changed a cell, or had it recalculated, read an interval above 100 %.
    """
    study = canned.make_study(rounds=3)
    base = [m for m in study.measurements if m.metric == "latency_ns_p99"]
    shares = [
        dataclasses.replace(m, metric="flowing_time_share", value=(0.2, 0.95, 0.5)[i % 3])
        for i, m in enumerate(base)
    ]
    asked = dataclasses.replace(study.study, metric="flowing_time_share")
    study = dataclasses.replace(study, study=asked)
    content = _workbook(_replaced(study, [*study.measurements, *shares]))
    formulas = _formulas(openpyxl.load_workbook(BytesIO(content))["Runs"])
    values = openpyxl.load_workbook(BytesIO(content), data_only=True)["Runs"]
    ends = {place: text for place, text in formulas.items() if "TINV" in text}
    bounded = [text for place, text in ends.items() if values[place].value == 1.0]
    assert bounded
    assert all(text.startswith("=MIN(1,EXP(") for text in bounded)


def _replaced(study: StudyData, measurements: list[Any]) -> StudyData:
    return dataclasses.replace(study, measurements=measurements)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("name", ["demo", "record_sizes", "published_d2", "simulated", "many"])
def test_charts_are_native_with_error_bars_from_cells(canned: ModuleType, name: str) -> None:
    content = _workbook(getattr(canned, name)())
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = re.findall(r'<sheet name="([^"]*)"', archive.read("xl/workbook.xml").decode())
    assert all(len(name) <= SHEET_NAME_OF_EXCEL for name in names)
    charts = _charts(content)
    for chart in charts:
        assert 1 <= chart.count("<c:ser>") <= SERIES_OF_EXCEL
        bars = re.findall(r"<c:errBars>.*?</c:errBars>", chart, re.DOTALL)
        assert all(re.search(r"<c:plus><c:numRef><c:f>'?\w+'?!\$", bar) for bar in bars)
    for sheet in ("Verdict", "Runs", "CloserLook"):
        assert any(re.search(rf"<c:f>'?{sheet}'?!", chart) for chart in charts), sheet


def test_charts_do_not_cover_each_other(canned: ModuleType) -> None:
    study = canned.many()
    specs = [spec for drawn in draw_all(study, judge(study)) for spec in drawn.specs]
    wide = [spec for spec in specs if len(spec.y.categories) > 10 and len(spec.panels) == 1]
    half = [spec for spec in specs if spec not in wide]
    for order in ([*wide, *half], [*half, *wide], [wide[0], half[0], wide[0], half[0]]):
        places, rows = layout(order)
        assert len(set(places)) == len(places) == sum(len(spec.panels) for spec in order)
        drawn = [spec for spec in order for _ in spec.panels]
        for (row, column), spec in zip(places, drawn, strict=True):
            height = 27 if spec in wide else 18
            below = {r for r, c in places if row < r < row + height}
            beside = {c for r, c in places if r == row and c != column}
            assert not below
            assert not (beside and spec in wide)
            assert row + height <= rows


def test_values_that_span_more_than_ten_times_have_a_log_axis(canned: ModuleType) -> None:
    study = canned.make_study(
        workloads=(canned.Workload("iozone", ("read",), ("4k", "4m")),),
    )
    with zipfile.ZipFile(BytesIO(_workbook(study))) as archive:
        texts = [archive.read(n).decode() for n in archive.namelist() if "charts/chart" in n]
    mine = [text for text in texts if "'Runs'!" in text or "Runs!" in text]
    assert any('<c:logBase val="10"/>' in text for text in mine)
    assert not any("<c:barChart>" in text for text in mine)


def test_bars_begin_at_zero(canned: ModuleType) -> None:
    for chart in _charts(_workbook(canned.demo())):
        if "<c:barChart>" in chart:
            assert '<c:min val="0"/>' in chart
            assert "<c:logBase" not in chart


def test_text_that_no_cell_can_hold_is_cut_not_lost(canned: ModuleType) -> None:
    import dataclasses

    study = canned.make_study()
    row = dataclasses.replace(study.study, spec_toml="# " + "x" * 40_000)
    book = openpyxl.load_workbook(BytesIO(_workbook(dataclasses.replace(study, study=row))))
    texts = [c.value for r in book["Environment"].iter_rows() for c in r if c.value]
    assert any(str(text).endswith("x …") for text in texts)


def test_more_rounds_than_a_sheet_has_columns(
    canned: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx_runs, "COLUMNS_MAX", 40)
    study = canned.make_study(
        rounds=50,
        workloads=(canned.Workload("iozone", ("read",), ("4k",)),),
    )
    verdict = judge(study)
    book = openpyxl.load_workbook(BytesIO(render_xlsx(study, verdict, [])), data_only=True)
    assert book["Rounds"]["G7"].value == pytest.approx(verdict.pooled[0].effect.ratio)
    for name in ("Rounds", "Runs"):
        texts = _formulas(openpyxl.load_workbook(BytesIO(_workbook(study)))[name])
        assert book[name].max_column <= 40
        assert not any("TINV" in text for text in texts.values())


@pytest.mark.needs_libreoffice
@pytest.mark.parametrize("name", ["demo", "published_d2"])
def test_libreoffice_counts_as_iolab_does(canned: ModuleType, tmp_path: Path, name: str) -> None:
    """Every formula, without our values: ratios, intervals, words, means, chart data."""
    content = _workbook(getattr(canned, name)())
    ours = openpyxl.load_workbook(BytesIO(content), data_only=True)
    theirs = _recalculated(content, tmp_path)
    compared = 0
    for sheet in openpyxl.load_workbook(BytesIO(content)):
        for place in _formulas(sheet):
            mine, found = ours[sheet.title][place].value, theirs[sheet.title][place].value
            if isinstance(mine, int | float):
                assert found == pytest.approx(mine, rel=1e-6, abs=1e-9), (sheet.title, place)
            else:
                assert found == mine, (sheet.title, place)
            compared += 1
    assert compared > 100


@pytest.mark.needs_libreoffice
@pytest.mark.parametrize("name", ["demo", "many"])
def test_libreoffice_opens_the_workbook_with_its_charts(
    canned: ModuleType, tmp_path: Path, name: str
) -> None:
    content = _workbook(getattr(canned, name)())
    source = tmp_path / "report.xlsx"
    source.write_bytes(content)
    with zipfile.ZipFile(_converted(source, "ods")) as archive:
        objects = [archive.read(n) for n in archive.namelist() if n.endswith("/content.xml")]
    charts = [text for text in objects if b"<chart:chart" in text]
    assert len(charts) == len(_charts(content)) > 5
    assert all(b"<chart:series" in text for text in charts)
    assert any(b"<chart:error-indicator" in text for text in charts)


def _pixels_of_columns(sheet: Any) -> list[int]:
    """Widths of the printed columns, as Excel counts them."""
    set_widths = {
        place: round(about.width * 7)
        for about in sheet.column_dimensions.values()
        for place in range(about.min, about.max + 1)
    }
    area = re.search(r"\$([A-Z]+)\$\d+$", sheet.print_area or "")
    last = column_index_from_string(area[1]) if area else sheet.max_column
    return [set_widths.get(place, 64) for place in range(1, last + 1)]


def _printed(sheet: Any, wider: float = 1.0) -> tuple[float, list[float]]:
    """Scale of a sheet that is fitted to its pages, and the pixels at which these end.

    `wider` is how much wider than Excel's the reader's columns are.
    """
    widths = [width * wider for width in _pixels_of_columns(sheet)]
    margins = sheet.page_margins.left + sheet.page_margins.right
    room = (297 / 25.4 - margins) * 96
    for percent in range(100, 9, -1):
        ends, used = [0.0], 0.0
        for width in widths:
            if used + width - ends[-1] > room * 100 / percent:
                ends.append(used)
            used += width
        if len(ends) <= int(sheet.page_setup.fitToWidth or 1):
            return percent / 100, ends[1:]
    raise AssertionError(sheet.title)


EMU_OF_PIXEL = 9525
TEXT_POINTS = 11
POINTS_LEAST = 8


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["demo", "record_sizes", "published_d2"])
@pytest.mark.parametrize("wider", [1.0, 1.03])
def test_every_sheet_prints_in_letters_of_8_points(
    canned: ModuleType, name: str, wider: float
) -> None:
    """No page ends in a chart.

    Symptoms: Values and Percentiles were fitted to one page, with text of 6 points; LibreOffice,
    whose columns are wider, cut charts in two and printed slivers of them on pages of their own.
    """
    for sheet in openpyxl.load_workbook(BytesIO(_workbook(getattr(canned, name)()))):
        assert sheet.freeze_panes, sheet.title
        assert sheet.page_setup.orientation == "landscape"
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
        assert int(sheet.page_setup.fitToWidth or 1) <= 2, sheet.title
        assert int(sheet.page_setup.fitToHeight or 0) == 0, sheet.title
        scale, ends = _printed(sheet, wider)
        widths = [width * wider for width in _pixels_of_columns(sheet)]
        assert scale * TEXT_POINTS >= POINTS_LEAST, (sheet.title, scale)
        for chart in sheet._charts:
            left, right = (
                sum(widths[: end.col]) + end.colOff / EMU_OF_PIXEL
                for end in (chart.anchor._from, chart.anchor.to)
            )
            assert right - left > 400
            assert not any(left < end < right for end in ends), (sheet.title, ends)


def test_a_table_too_wide_for_paper_says_so_at_its_foot(canned: ModuleType) -> None:
    study = canned.make_study(rounds=60, workloads=(canned.Workload("iozone", ("read",), ("4k",)),))
    book = openpyxl.load_workbook(BytesIO(_workbook(study)))
    runs, rounds = book["Runs"], book["Rounds"]
    assert [runs.cell(2, c).value for c in (3, 7)] == ["mean (bytes/s)", "n"]
    for sheet in (runs, rounds):
        assert _printed(sheet)[0] * TEXT_POINTS >= POINTS_LEAST
        wide = len(_pixels_of_columns(sheet))
        assert (
            sheet.oddFooter.left.text == f"{sheet.max_column - wide} more columns are in the "
            "workbook, not on paper"
        )
    assert len(_pixels_of_columns(runs)) > 7


def test_raw_values_stand_in_long_form(canned: ModuleType) -> None:
    study = canned.demo()
    sheet = openpyxl.load_workbook(BytesIO(_workbook(study)))["Values"]
    head, *rows = list(sheet.values)
    assert head[:6] == ("trial", "round", "position", "workload", "scheduler", "record_size")
    assert head[-3:] == ("metric", "value", "unit")
    assert len(rows) == len(study.measurements)
    assert {row[-1] for row in rows if row[-3] == "throughput_bytes_per_s"} == {"bytes/s"}
    assert [row[-2] for row in rows] == pytest.approx([m.value for m in study.measurements])
    assert [row[4] for row in rows] == [m.levels["scheduler"] for m in study.measurements]
    assert sheet.auto_filter.ref == f"A1:{sheet.cell(1, len(head)).column_letter}{len(rows) + 1}"


def test_too_many_values_for_a_sheet_name_the_command(
    canned: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iolab.report.xlsx_values.VALUES_MAX", 10)
    sheet = openpyxl.load_workbook(BytesIO(_workbook(canned.demo())))["Values"]
    assert "iolab export DIR --out values.csv" in sheet["A1"].value
    assert sheet.max_row == 1


@pytest.mark.parametrize(("factor", "is_log"), [(0.97, False), (30.0, True)])
def test_axes_of_ratios_cross_at_one_in_their_middle(
    canned: ModuleType, factor: float, is_log: bool
) -> None:
    study = canned.make_study(throughput={"bfq": factor})
    (forest,) = [c for c in _charts(_workbook(study)) if "ratio to none" in c][:1]
    axis = forest[forest.index("<c:valAx>") :]
    low, high = (float(re.findall(rf'<c:{end} val="([^"]+)"', axis)[0]) for end in ("min", "max"))
    assert '<c:crossesAt val="1"/>' in forest
    assert ("<c:logBase" in axis) == is_log
    assert low * high == pytest.approx(1) if is_log else low + high == pytest.approx(2)
    assert low < factor < high
    if is_log:  # Else no tick would be at 1: they are the least value times powers of ten.
        assert '<c:logBase val="10"/>' in axis
        assert math.log10(low) == pytest.approx(round(math.log10(low)))


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_ratios_of_a_few_times_have_an_axis_with_a_tick_at_one(
    canned: ModuleType, factor: float
) -> None:
    """Symptom: ticks at 0.06, 0.63 and 6.25, or at 0.5 alone."""
    study = canned.make_study(throughput={"bfq": factor})
    (forest,) = [c for c in _charts(_workbook(study)) if "ratio to none" in c][:1]
    axis = forest[forest.index("<c:valAx>") :]
    low, step = (
        float(re.findall(rf'<c:{name} val="([^"]+)"', axis)[0]) for name in ("min", "majorUnit")
    )
    assert "<c:logBase" not in axis
    assert (1 - low) / step == pytest.approx(round((1 - low) / step))


@pytest.mark.parametrize(
    ("ends", "limits"),
    [((20566.15, 26123.4), (20000, 28000, 2000)), ((0.981, 1.043), (0.98, 1.06, 0.02))],
)
def test_limits_of_an_axis_are_rounded(
    ends: tuple[float, float], limits: tuple[float, float, float]
) -> None:
    """Symptom: ticks at 20,566.15 and 21,566.15."""
    found = rounded_limits(*ends)
    assert (found["min"], found["max"], found["major_unit"]) == pytest.approx(limits)


def test_texts_are_folded_and_values_have_room(canned: ModuleType) -> None:
    """Symptom: "###" instead of values, and paper with text of 2.5 points, so wide were lines."""
    study = canned.demo()
    book = openpyxl.load_workbook(BytesIO(_workbook(study)))
    values = book["Values"]
    last = values.cell(1, values.max_column - 1).column_letter
    longest = max(len(f"{m.value:,.4f}") for m in study.measurements)
    assert values.column_dimensions[last].width > longest
    verdict = book["Verdict"]
    heads = [row for row in range(1, verdict.max_row) if verdict.cell(row, 1).value == "caveat"]
    message = verdict.cell(heads[0] + 1, 3)
    assert message.alignment.wrap_text
    assert any(message.coordinate in merged for merged in verdict.merged_cells.ranges)
    assert verdict.page_setup.fitToWidth == 2
    environment = book["Environment"]
    widths = [environment.column_dimensions[c].width for c in "ABC"]
    assert sum(widths) <= 130


def test_names_are_no_references_to_sheets(canned: ModuleType) -> None:
    """Symptom: of a level with "!" XlsxWriter warned, with whatever else a stranger named it."""
    study = canned.make_study(levels=("none", "a!B1\x1b]0;x\x07"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _workbook(study)


def test_no_page_ends_inside_a_chart(canned: ModuleType) -> None:
    study = canned.demo()
    book = openpyxl.load_workbook(BytesIO(_workbook(study)))
    for name in ("Verdict", "CloserLook"):
        sheet = book[name]
        ends = [0, *(page.id for page in sheet.row_breaks.brk)]
        places = [(c.anchor._from.row, c.anchor.to.row, c.anchor._from.col) for c in sheet._charts]
        assert min(places)[0] in ends, "charts begin on a page of their own"
        for top, bottom, _ in places:
            begin = max(end for end in ends if end <= top)
            assert bottom - begin <= PAGE_ROWS, name
        assert len({column for *_, column in places}) >= 2, "charts stand next to each other"


def test_two_charts_of_a_line_stand_next_to_each_other(canned: ModuleType) -> None:
    study = canned.demo()
    specs = [spec for drawn in draw_all(study, judge(study)) for spec in drawn.specs]
    assert {right for _, right in layout(specs)[0]} == {False, True}
