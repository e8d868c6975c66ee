"""Pages that the renderers make of canned studies: HTML, Excel, JSON, text."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from types import ModuleType

import jsonschema
import openpyxl
import pytest

from iolab.errors import AnalysisError
from iolab.report import write_all
from iolab.report.charts import CHARTS
from iolab.report.collect import draw_all, throughput_mode
from iolab.report.html import render_html
from iolab.report.svg import render_svg
from iolab.report.terminal import render
from iolab.report.verdict_json import render_json
from iolab.report.xlsx import SHEETS, render_xlsx
from iolab.stats.judge import judge
from iolab.store.rows import StudyData

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "python" / "iolab" / "report" / "verdict.schema.json"
REFERENCE = ROOT / "docs" / "reference" / "verdict-json.md"
VOID = {
    "input",
    "meta",
    "br",
    "hr",
    "rect",
    "line",
    "path",
    "circle",
    "polyline",
    "polygon",
    "link",
    "img",
}


class _Page(HTMLParser):
    """Checks nesting and collects what a browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(
    params=["demo", "record_sizes", "published_d2", "simulated", "single", "empty", "threads"]
)
def study(request: pytest.FixtureRequest, canned: ModuleType) -> StudyData:
    """Give each canned study in turn."""
    makers = {
        "single": lambda: canned.make_study(
            rounds=1, workloads=(canned.Workload("iozone", ("read",), ("4k",)),)
        ),
        "empty": lambda: canned.make_study(rounds=0),
        "threads": lambda: canned.make_study(workers=4, cache_share=0.8),
    }
    return makers[request.param]() if request.param in makers else getattr(canned, request.param)()


def _html(study: StudyData) -> str:
    verdict = judge(study)
    return render_html(study, verdict, draw_all(study, verdict))


def test_page_is_well_formed_and_loads_nothing(study: StudyData) -> None:
    text = _html(study)
    page = _Page()
    page.feed(text)
    assert page.open == []
    assert not re.search(r"https?://|@import|url\(", text)
    assert all(load.startswith(("data:text/csv", "#")) for load in page.loads)
    assert not page.tags & {"script", "iframe", "object", "link", "img"}


def test_first_page_comes_first(canned: ModuleType) -> None:
    text = _html(canned.demo())
    marks = [
        'class="question"',
        'class="verdict ',
        'id="forest"',
        ">How far to trust",
        ">Verdicts<",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    for wanted in ("harness cost per op", "85 ns", "44 / 45", "Methods", "study.toml", "Changed"):
        assert wanted in text


def test_hostile_names_are_escaped_everywhere(canned: ModuleType) -> None:
    evil = "<script>alert('1')</script>&\"=cmd|' /C calc'!A0"
    study = canned.make_study(levels=("none", evil))
    verdict = judge(study)
    text = render_html(study, verdict, draw_all(study, verdict))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    for drawn in draw_all(study, verdict):
        for spec in drawn.specs:
            ET.fromstring(render_svg(spec))
    book = openpyxl.load_workbook(BytesIO(render_xlsx(study, verdict, draw_all(study, verdict))))
    formulas = [c.value for s in book for row in s.iter_rows() for c in row if c.data_type == "f"]
    assert formulas
    for value in formulas:
        text = str(getattr(value, "text", value))
        assert re.fullmatch(r"=[A-Z$0-9'!a-z:(),.<>+*/\"-]+", text), text
        assert "script" not in text
        assert "calc" not in text


def test_terminal_escape_codes_are_removed(canned: ModuleType) -> None:
    study = canned.make_study(levels=("none", "a\x1b[31mb\nc"))
    assert "\x1b" not in render(study, judge(study))


def test_every_figure_has_caption_table_and_csv(study: StudyData) -> None:
    verdict = judge(study)
    for drawn in draw_all(study, verdict):
        for spec in drawn.specs:
            assert spec.caption.endswith((".", "."))
            assert spec.table.rows
            assert all(len(row) == len(spec.table.columns) for row in spec.table.rows)
            assert spec.table.to_csv().count("\n") >= len(spec.table.rows)
            for series in (s for p in spec.panels for s in p.series):
                assert not (series.is_joined and spec.kind != "plane")
    text = render_html(study, verdict, draw_all(study, verdict))
    assert text.count("<figure") == text.count("<figcaption")
    assert text.count('class="data"') >= text.count("<figure")


def test_wide_values_use_a_log_axis_and_narrow_ones_start_at_zero(canned: ModuleType) -> None:
    for sizes, scale in ((("4k", "8k"), "linear"), (("4k", "4m"), "log")):
        study = canned.make_study(workloads=(canned.Workload("iozone", ("read",), sizes),))
        (spec,) = next(r for r in CHARTS if r.name == "by_level").build(study, judge(study))
        assert spec.x.scale == scale
        assert spec.x.is_from_zero == (scale == "linear")


def test_svg_is_xml_with_titles(study: StudyData) -> None:
    verdict = judge(study)
    for drawn in draw_all(study, verdict):
        for spec in drawn.specs:
            root = ET.fromstring(render_svg(spec))
            assert root.tag == "svg"
            assert root.get("aria-label")
            for number in re.findall(r'\s(?:x|y|x1|y1|cx|cy|r)="([^"]*)"', render_svg(spec)):
                assert -1e6 < float(number) < 1e6


def test_many_treatments_and_sizes(canned: ModuleType) -> None:
    study = canned.many()
    verdict = judge(study)
    charts = draw_all(study, verdict)
    text = render_html(study, verdict, charts)
    assert len(text) < 12_000_000
    assert "levels are grey" in text
    assert max(map(len, render(study, verdict).splitlines())) <= 80
    assert zipfile.ZipFile(BytesIO(render_xlsx(study, verdict, charts))).testzip() is None


def test_xlsx_has_the_reports_tables_and_native_charts(canned: ModuleType) -> None:
    study = canned.published_d2()
    verdict = judge(study)
    content = render_xlsx(study, verdict, draw_all(study, verdict))
    book = openpyxl.load_workbook(BytesIO(content))
    assert tuple(book.sheetnames) == SHEETS
    runs = book["Runs"]
    assert runs["A1"].value == "noop: throughput in bytes/s, iozone, direct I/O"
    assert [runs.cell(2, column).value for column in (3, 8, 10)] == [
        *("mean (bytes/s)", "round 1 (bytes/s)", "round 3 (bytes/s)")
    ]
    assert (runs["A3"].value, runs["B3"].value) == ("4k", "initial-write")
    assert runs["H3"].value == pytest.approx(20247.65 * 1024)
    assert runs["C3"].value == "=AVERAGE(H3:J3)"
    cached = openpyxl.load_workbook(BytesIO(content), data_only=True)["Runs"]
    # D2 printed 20061.98 KB/s as the mean of these three runs.
    assert cached["C3"].value / 1024 == pytest.approx(20061.98, abs=0.01)
    with zipfile.ZipFile(BytesIO(content)) as archive:
        charts = [archive.read(n).decode() for n in archive.namelist() if "charts/chart" in n]
    assert len(charts) >= 10
    bars = [chart for chart in charts if "<c:errBars>" in chart]
    assert bars
    assert all(re.search(r"<c:plus><c:numRef><c:f>'?\w+'?!\$", chart) for chart in bars)
    assert not any("<c:barChart>" in chart for chart in charts)


def test_xlsx_opens_for_every_study(study: StudyData) -> None:
    verdict = judge(study)
    book = openpyxl.load_workbook(BytesIO(render_xlsx(study, verdict, draw_all(study, verdict))))
    assert tuple(book.sheetnames) == SHEETS
    assert book["Verdict"]["A3"].value == verdict.sentence


def test_throughput_mode_adds_up(canned: ModuleType) -> None:
    table = throughput_mode(canned.make_study(workers=4))
    assert table is not None
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["children (bytes/s)"] == pytest.approx(4 * row["mean per worker (bytes/s)"])
    assert row["parent (bytes/s)"] <= row["children (bytes/s)"]
    assert row["min per worker (bytes/s)"] <= row["max per worker (bytes/s)"]
    assert throughput_mode(canned.make_study()) is None


def test_json_follows_its_schema(study: StudyData) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(render_json(study, judge(study)))
    jsonschema.validate(document, schema)


def _keys(node: object) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(_keys, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    found = set(node.get("properties", {})) if isinstance(node.get("properties"), dict) else set()
    return found.union(*map(_keys, node.values()))


def test_every_key_is_documented() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    keys = _keys(json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("is_unicode", [True, False])
def test_terminal_fits(study: StudyData, width: int, is_unicode: bool) -> None:
    verdict = judge(study)
    text = render(study, verdict, width=width, is_unicode=is_unicode)
    assert max(len(line) for line in text.splitlines()) <= width
    assert text.isascii() or is_unicode
    assert " ".join(text.split()).replace("- ", "-")[:20] == verdict.sentence[:20]
    for caveat in verdict.caveats:
        assert text.count(f"- {caveat.kind.replace('_', ' ')}") == 1


def test_terminal_bars_lean_the_right_way(canned: ModuleType) -> None:
    study = canned.make_study(throughput={"bfq": 0.8})
    line = next(x for x in render(study, judge(study)).splitlines() if x.startswith("  bfq"))
    assert line.index("●") < line.index("│")
    assert line.endswith("worse")


def test_write_all_is_deterministic_and_leaves_nothing_else(
    canned: ModuleType, tmp_path: Path
) -> None:
    study = canned.demo()
    first = write_all(study, judge(study), tmp_path / "a")
    second = write_all(study, judge(study), tmp_path / "b")
    for name in ("html", "xlsx", "verdict_json"):
        assert getattr(first, name).read_bytes() == getattr(second, name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == [
        "report.html",
        "report.xlsx",
        "verdict.json",
    ]


def test_unwritable_directory_is_a_users_error(canned: ModuleType, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x")
    study = canned.make_study()
    with pytest.raises(AnalysisError, match="cannot be written"):
        write_all(study, judge(study), blocker)


def test_a_simulation_says_so_wherever_numbers_stand(canned: ModuleType) -> None:
    """Every number of a simulation stands beside the word, so that none is taken for a measured
    one.
    """
    study = canned.simulated()
    verdict = judge(study)
    charts = draw_all(study, verdict)
    assert verdict.sentence.startswith("Simulated on sim:disk. ")
    provenance = "12 from data sheets, 3 assumed"
    text = render(study, verdict)
    assert "\niozone, simulated, writes, throughput" in text
    assert provenance in " ".join(text.split())
    page = render_html(study, verdict, charts)
    assert "<title>iolab: scheduler study (simulated)</title>" in page
    assert page.index(provenance) < page.index("How far to trust this")
    assert "<h2>Simulated stack</h2>" in page
    assert "too few trials to test" not in page
    assert "<h2>Environment</h2>" not in page
    book = openpyxl.load_workbook(BytesIO(render_xlsx(study, verdict, charts)))
    assert book.properties.subject == "simulated"
    assert "(simulated)" in book["Verdict"]["A2"].value
    assert "(simulated)" in book["Runs"]["A1"].value
    assert json.loads(render_json(study, verdict))["study"]["kind"] == "simulated"


def test_rounds_that_are_equal_are_explained(canned: ModuleType) -> None:
    verdict = judge(canned.simulated())
    words = {(c.kind, c.level): c.effect.word for c in verdict.pooled}
    assert words == {
        (kind, level): word
        for kind in ("writes", "reads")
        for level, word in (("deadline", "same"), ("cfq", "worse"))
    }
    intervals = [c.effect.interval_95 for c in verdict.pooled]
    assert all(interval and interval.low == pytest.approx(interval.high) for interval in intervals)
    message = next(c.says for c in verdict.caveats if c.kind == "rounds_by_seed")
    assert "rounds differ only by seed" in message
    assert "In 4 of 4 comparisons" in message
    assert verdict.position is None


def test_a_real_study_is_not_called_anything_else(canned: ModuleType) -> None:
    study = canned.demo()
    verdict = judge(study)
    assert "imulated" not in render(study, verdict)
    assert "imulated" not in _html(study)


def test_a_thousand_levels_fit_on_a_terminal(canned: ModuleType) -> None:
    """The largest differences are shown, the rest is counted; the page has all."""
    study = canned.demo()
    verdict = judge(study)
    level = verdict.pooled[0]
    ratios = (replace(level.effect, ratio=1 + index / 1000) for index in range(1000))
    pooled = [
        replace(level, level=f"l{index}", effect=effect) for index, effect in enumerate(ratios)
    ]
    text = render(study, replace(verdict, pooled=pooled, secondary=[]))
    assert "the 40 largest differences of 1000:" in text
    assert "l999 " in text
    assert "l500 " not in text
    assert len(text.splitlines()) < 160


def test_a_terminal_gets_ordinary_spaces_inside_large_numbers(canned: ModuleType) -> None:
    data = canned.make_study(levels=("none",), noise=0.01)
    data = replace(data, study=replace(data.study, factors={"scheduler": ["none"]}))
    many = [replace(m, value=m.value * 1e4) for m in data.measurements]
    data = replace(data, measurements=many)
    verdict = judge(data)
    assert "\N{NARROW NO-BREAK SPACE}" in verdict.sentence, "the number is not large enough"
    for is_unicode in (True, False):
        text = render(data, verdict, is_unicode=is_unicode)
        assert not any(space in text for space in ("\N{NARROW NO-BREAK SPACE}", "\xa0"))
        assert "?" not in text
        assert re.search(r"\d \d{3} MiB/s", text)
