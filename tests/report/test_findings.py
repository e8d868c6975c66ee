"""Findings of every kind in every format: shown where the severity says so, and once."""

from __future__ import annotations

import dataclasses
import re
from io import BytesIO
from types import ModuleType
from typing import Any

import openpyxl
import pytest

from iolab.report.collect import DrawnChart, draw_all
from iolab.report.findings import FIRST_SCREEN_MAX, blocks, findings_document, listed
from iolab.report.html import render_html
from iolab.report.markdown import render_markdown
from iolab.report.terminal import render
from iolab.report.verdict_json import verdict_document
from iolab.report.xlsx import render_xlsx
from iolab.stats.collect_findings import is_count_said
from iolab.stats.finding import FORMATS, SHOWN, Evidence, Finding
from iolab.stats.findings import FINDINGS, kind_of
from iolab.stats.judge import judge
from iolab.stats.verdict import Interval, MidwayChange, StudyVerdict
from iolab.store.rows import Caveat, StudyData
from iolab.wording import percent_range

LISTED = [kind for kind in FINDINGS if kind.is_listed]
RESULTS = [kind for kind in FINDINGS if not kind.is_listed]
CHANGE = MidwayChange(
    *("contention", "reader", "bfq", 5_000_000_000, "nomerges 0 -> 2", "throughput_bytes_per_s"),
    *(1e6, 2e6, 2.0, Interval(1.9, 2.1, 0.95), 4),
)


def _mark(name: str) -> str:
    """Write a text of one word that no renderer folds or escapes."""
    return f"Seen{sum(ord(c) * 31**i for i, c in enumerate(name)) % 10**12}"


@pytest.fixture(scope="module")
def study(canned: ModuleType) -> tuple[StudyData, StudyVerdict, list[DrawnChart]]:
    """Give a study with a finding of every kind."""
    data = canned.demo()
    caveats = [
        Finding(kind.name, _mark(kind.name), evidence=(Evidence("size", 4096.0, "ns", 1.0, 2.0),))
        for kind in LISTED
    ]
    verdict = dataclasses.replace(judge(data), caveats=caveats, changes=[CHANGE])
    return data, verdict, draw_all(data, verdict)


@pytest.fixture(scope="module")
def page(study: tuple[StudyData, StudyVerdict, list[DrawnChart]]) -> tuple[str, str]:
    """Give the page in two parts: the first screen, and what is below."""
    first, _, rest = render_html(*study).partition("<main>")
    return first, rest


@pytest.fixture(scope="module")
def cells(study: tuple[StudyData, StudyVerdict, list[DrawnChart]]) -> list[str]:
    """Give every text of the workbook."""
    book = openpyxl.load_workbook(BytesIO(render_xlsx(*study)))
    rows = (row for sheet in book for row in sheet.iter_rows(values_only=True))
    return [value for row in rows for value in row if isinstance(value, str)]


def test_the_marks_of_kinds_are_different() -> None:
    assert len({_mark(kind.name) for kind in FINDINGS}) == len(FINDINGS)


def test_a_caveat_of_each_kind_is_in_each_format_once(
    study: tuple[StudyData, StudyVerdict, list[DrawnChart]],
    page: tuple[str, str],
    cells: list[str],
) -> None:
    data, verdict, _ = study
    text, markdown = render(data, verdict), render_markdown(data, verdict)
    document = verdict_document(data, verdict)
    quoted = document["methods"]  # The paragraph for a paper says how a study was to end.
    assert quoted.count("Seen") == sum(kind.is_in_methods for kind in FINDINGS) == 1
    for kind in LISTED:
        mark = _mark(kind.name)
        times = {
            "terminal": text.count(mark),
            "markdown": markdown.count(mark),
            "page": page[1].count(mark),
            "workbook": sum(cell.count(mark) for cell in cells),
            "verdict.json": [f["says"] for f in document["findings"]].count(mark),
        }
        wanted = {name: int(name in SHOWN[kind.severity]) for name in times}
        for name in ("markdown", "page", "workbook"):
            wanted[name] += quoted.count(mark)
        assert times == wanted, kind.name
        assert f"- {kind.name_shown}: {mark}" in text
        assert [c["message"] for c in document["caveats"]].count(mark) == 1


def test_the_first_screen_has_the_first_doubts_and_counts_the_rest(
    study: tuple[StudyData, StudyVerdict, list[DrawnChart]], page: tuple[str, str]
) -> None:
    shown = [kind.name for kind in LISTED if _mark(kind.name) in page[0]]
    doubts = [kind.name for kind in LISTED if kind.weight == "meaning"]
    assert shown == doubts[:FIRST_SCREEN_MAX]
    assert f"{len(LISTED) - FIRST_SCREEN_MAX} more, under" in page[0]


def test_a_study_of_notes_alone_says_that_there_are_some(canned: ModuleType) -> None:
    data = canned.demo()
    note = Finding("fixed_order", "Rows ran in order.")
    verdict = dataclasses.replace(judge(data), caveats=[note])
    first = render_html(data, verdict, draw_all(data, verdict)).partition("<main>")[0]
    assert "1 more, under" in first
    assert "No caveats." not in first
    assert "Rows ran in order." not in first
    bare = dataclasses.replace(verdict, caveats=[])
    nothing = render_html(data, bare, draw_all(data, bare))
    assert "No caveats." in nothing.partition("<main>")[0]


def test_every_result_is_in_the_terminal_once(
    study: tuple[StudyData, StudyVerdict, list[DrawnChart]],
) -> None:
    data, verdict, _ = study
    text = render(data, verdict, width=240)
    for block in blocks(data, verdict, "terminal"):
        assert text.count(block.kind.title) == 1
        if block.kind.has_rows:
            for finding in block.findings:
                label = re.escape(finding.about.label)
                assert len(re.findall(rf"^  {label} +{re.escape(finding.brief)}$", text, re.M)) == 1
        if block.closing:
            assert text.count(block.closing[:80].replace("\N{NARROW NO-BREAK SPACE}", " ")) == 1
    assert {b.kind.name for b in blocks(data, verdict, "terminal")} == {k.name for k in RESULTS}


def test_every_result_is_in_markdown_page_and_workbook_once(
    study: tuple[StudyData, StudyVerdict, list[DrawnChart]],
    page: tuple[str, str],
    cells: list[str],
) -> None:
    """A kind that a chart of the page prints has no second table there."""
    data, verdict, charts = study
    markdown = render_markdown(data, verdict)
    drawn = {chart.row.name for chart in charts if chart.built}
    for kind in RESULTS:
        head = kind.title.partition(" [")[0]
        is_drawn = bool(set(kind.charts) & drawn)
        assert markdown.count(f"<summary>{head}") == 1
        assert page[1].count(f"<h2>{kind.title}</h2>") == (0 if is_drawn else 1), kind.name
        assert cells.count(kind.title) == 1, kind.name
    assert any(kind.charts for kind in RESULTS)
    for block in blocks(data, verdict, "workbook"):
        assert sum(block.closing in cell for cell in cells if block.closing) <= 1
    (fit,) = verdict.request_times[:1]
    assert page[1].count(f"<td>{fit.label}</td>") == 1
    assert cells.count(fit.label) >= 1


def test_results_have_evidence_with_units_and_intervals(
    study: tuple[StudyData, StudyVerdict, list[DrawnChart]],
) -> None:
    data, verdict, _ = study
    found = {block.kind.name: block for block in blocks(data, verdict, "workbook")}
    change = found["change_midway"]
    assert change.table().columns == (
        *("knob", "change", "before", "after", "after / before", "95 % interval", "trials"),
    )
    assert change.table().rows[0][4] == "2 [1.9, 2.1]"
    assert change.table(are_numbers=True).rows[0][2:5] == (1e6, 2e6, 2.0)
    assert change.table(are_numbers=True).columns[2] == "before (bytes/s)"
    assert change.findings[0].strength == "shown"
    alone = dataclasses.replace(verdict, changes=[dataclasses.replace(CHANGE, interval=None)])
    (block,) = [b for b in blocks(data, alone, "page") if b.kind.name == "change_midway"]
    assert block.findings[0].strength == "suggested"
    assert "one run is no experiment" in block.findings[0].brief


def test_the_document_has_what_a_program_needs(
    study: tuple[StudyData, StudyVerdict, list[DrawnChart]],
) -> None:
    _, verdict, _ = study
    found = {f["kind"]: f for f in findings_document(verdict)}
    assert set(found) == {kind.name for kind in FINDINGS}
    change = found["change_midway"]
    assert change["about"]["scope"] == "knob"
    assert change["about"]["knob"] == "nomerges 0 -> 2"
    assert change["evidence"][2] == {
        **{"name": "after / before", "value": 2.0, "unit": "ratio", "low": 1.9, "high": 2.1},
    }
    assert found["page_cache"]["severity"] == "doubt"


def test_the_severity_alone_decides_where_a_finding_is_shown(canned: ModuleType) -> None:
    verdict = judge(canned.demo())
    for severity, places in SHOWN.items():
        kinds = [kind for kind in LISTED if kind.severity == severity]
        mine = dataclasses.replace(verdict, caveats=[Finding(kind.name, "x.") for kind in kinds])
        for where in FORMATS:
            assert len(listed(mine, where)) == (len(kinds) if where in places else 0)


def test_a_kind_of_another_version_is_a_doubt(canned: ModuleType) -> None:
    data = canned.demo()
    verdict = dataclasses.replace(judge(data), caveats=[Finding("a_later_code", "Something.")])
    assert kind_of("a_later_code").severity == "doubt"
    assert "- a later code: Something." in render(data, verdict)
    assert "Something." in render_html(data, verdict, draw_all(data, verdict))


def test_a_warning_of_many_trials_says_how_many_and_from_where_to_where(
    canned: ModuleType,
) -> None:
    """Symptom: "4.5 % of the CPU time away during the trial (11 times)": which trial, of how many?

    It was the first that had it.
    """

    def caveats(trial: Any) -> tuple[Caveat, ...]:
        text = f"the host took {trial.ordinal + 1.5} % of the CPU time away during the trial"
        return (Caveat("cpu_steal", text, "wait"),) if trial.ordinal < 3 else ()

    data = canned.make_study(caveats=caveats)
    (found,) = (f for f in judge(data).caveats if f.kind == "cpu_steal")
    assert found.count == 3
    assert found.says == (
        f"the host took 1.5 to 3.5 % of the CPU time away during 3 of {len(data.trials)} trials"
    )
    assert percent_range(["a 5 % b", "a 5 % b"]) == "a 5 % b"
    assert percent_range(["a 5 % b", "c 6 % b"]) == "a 5 % b"
    assert percent_range(["no number"]) == "no number"


def test_a_number_that_a_text_has_is_not_repeated() -> None:
    """Symptom: "during 4 of 12 trials (4 trials)"."""
    assert is_count_said("tasks waited during 4 of 12 trials", 4)
    assert is_count_said("2 of 3 planned trials were interrupted", 2)
    assert not is_count_said("tasks waited during 14 of 15 trials", 4)
    assert not is_count_said("closed loop", 9)
