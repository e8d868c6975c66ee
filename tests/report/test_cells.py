"""Cells of other people's texts in tables that a spreadsheet opens.

Issue 14, point 9. Seen: a level or machine called `=HYPERLINK(...)` stood in exported CSV as it is,
and the workbook of `iolab iozone -R` wrote the command line as a formula. Now a text that would be
a formula begins with an apostrophe in CSV, and workbooks hold it as a text; numbers stay numbers.
"""

import csv
import io

import pytest

from iolab.report.chart import Table
from iolab.visible import cell_text


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cmd", "-cmd|x", "@SUM(A1)", "\t=1", "\n=1", " =1", '=HYPERLINK("x")', "-", "--1"],
)
def test_a_text_that_would_be_a_formula_is_none(text):
    assert cell_text(text) == "'" + text
    rows = list(csv.reader(io.StringIO(Table((text,), ((text,),)).to_csv(), newline="")))
    assert all(cell == "'" + text for row in rows for cell in row)


def test_a_carriage_return_begins_no_cell():
    assert Table(("a\r=1", "\r=1"), ()).to_csv() == "a =1,' =1\n"


@pytest.mark.parametrize("text", ["-1", "-1.5", "+4", "-1e-9", "-3 %"[:2], "bfq", "4k", "", "a=b"])
def test_numbers_and_names_stay_as_they_are(text):
    assert cell_text(text) == text


def test_negative_numbers_stay_numbers():
    assert Table(("a",), ((-1.5,), (-2,), (None,))).to_csv() == 'a\n-1.5\n-2\n""\n'
