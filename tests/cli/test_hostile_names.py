"""Names of levels that would be markup, formulas or commands of a terminal somewhere.

They come with tables and archives of other people, and end in pages, drawings, workbooks, tables
and on terminals.
"""

import csv
import io
import json
import xml.etree.ElementTree as ET

import openpyxl
import pytest

from iolab.cli.console import Console
from iolab.cli.main import main

SCRIPT = "<script>alert('1')</script>"
FORMULA = "=cmd|' /C calc'!A0"
ENTITY = '&amp;"><img src=x>[/bold]'
LEVELS = (SCRIPT, FORMULA, ENTITY)


def iolab(*words):
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    code = main([str(word) for word in words], console=Console(out, err))
    out.flush()
    text = out.buffer.getvalue().decode()
    assert code == 0, (text, err.getvalue())
    return text


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for name, base in ("one", 100), ("two", 120):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["level", "run", "value"])
            table.writerows(
                [level, run, base + 10 * i + run]
                for i, level in enumerate(LEVELS)
                for run in range(1, 5)
            )
        words = ("--map", "value=value", "--map", "run=run", "--unit", "MB/s", "--quiet")
        iolab("import", folder / f"{name}.csv", *words, "--out", folder / name)
    return folder


def refuse_markup(text):
    assert "<script" not in text
    assert "<img" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("ending", ["html", "svg"])
def test_charts_and_histories_hold_names_as_text(studies, tmp_path, ending):
    chart, history = tmp_path / f"chart.{ending}", tmp_path / f"history.{ending}"
    iolab("report", studies / "one", "--chart", "throughput:level", "--out", chart)
    iolab("history", studies / "one", studies / "two", "--out", history)
    for path in chart, history:
        text = path.read_text()
        refuse_markup(text)
        if ending == "svg":
            ET.fromstring(text)
    assert "&lt;script&gt;" in chart.read_text()
    if ending == "html":
        assert "%27=cmd" in chart.read_text()
        assert ",=cmd" not in chart.read_text(), "no formula in its CSV"


def test_what_a_terminal_shows_has_no_commands(studies):
    for words in (
        ("report", studies / "one", "--full"),
        ("watch", studies / "one", "--once"),
        ("history", studies / "one", studies / "two"),
    ):
        assert "\x1b" not in iolab(*words)


def test_exported_values_are_no_formulas_and_come_back(studies):
    rows = list(csv.DictReader(io.StringIO(iolab("export", studies / "one"))))
    found = {row["level_level"] if "level_level" in row else row["level"] for row in rows}
    assert SCRIPT in found
    assert f"'{FORMULA}" in found
    assert not any(name.startswith(("=", "+", "-", "@")) for name in found)
    told = {
        str(v)
        for row in json.loads(iolab("export", studies / "one", "--json"))
        for v in row.values()
    }
    assert {SCRIPT, FORMULA} <= told


def test_the_workbook_has_no_formula_of_a_name(studies):
    book = openpyxl.load_workbook(studies / "one" / "report.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert any(cell.value == FORMULA and cell.data_type == "s" for cell in cells)
    formulas = [str(getattr(c.value, "text", c.value)) for c in cells if c.data_type == "f"]
    assert not any("calc" in text or "script" in text for text in formulas)
