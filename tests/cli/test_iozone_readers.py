"""Readers of the original's `-b` file read ours: xlrd and LibreOffice.

Both are independent of this repository; where one is missing its test is skipped, and counted.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import TestbedError
from iolab.testbed.command import find_agent

Sheet = list[list[str]]
COMMANDS: Final = {
    "table": "-R -a -i 0 -i 1 -n 64k -g 128k -y 16k -q 64k -b out.xls -f t.tmp",
    "throughput": "-t 1 -t 2 -R -i 0 -i 1 -+n -s 256k -r 16k -F a b -b out.xls",
}


def agent_reason() -> str | None:
    try:
        find_agent()
    except TestbedError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(agent_reason() is not None, reason=str(agent_reason()))


def by_xlrd(path: Path, _: Path) -> Sheet:
    xlrd: Any = importlib.import_module("xlrd")
    sheet = xlrd.open_workbook(str(path)).sheet_by_index(0)
    rows = [sheet.row_values(row) for row in range(sheet.nrows)]
    return [[shown(value) for value in row] for row in rows]


def by_libreoffice(path: Path, folder: Path) -> Sheet:
    office = shutil.which("soffice")
    assert office is not None
    profile = f"-env:UserInstallation=file://{folder / 'profile'}"
    convert = ["--headless", "--convert-to", "csv", "--outdir", str(folder), str(path)]
    done = subprocess.run([office, profile, *convert], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = (folder / path.with_suffix(".csv").name).read_text()
    return [[shown(value) for value in row] for row in csv.reader(io.StringIO(text))]


def shown(value: Any) -> str:
    """A cell as text; numbers without a point if they are whole, otherwise with two digits."""
    try:
        number = float(value)
    except ValueError:
        return str(value).strip()
    return str(int(number)) if number.is_integer() else f"{number:.2f}"


has_xlrd = importlib.util.find_spec("xlrd") is not None
READERS: Final = [
    pytest.param(by_xlrd, marks=pytest.mark.skipif(not has_xlrd, reason="needs xlrd")),
    pytest.param(by_libreoffice, marks=pytest.mark.needs_libreoffice),
]


def iozone(folder: Path, words: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    stored = str(folder / "stored")
    code = main(["iozone", "--out", stored, *words.split()], console=Console(out, err))
    assert code == 0, err.getvalue()
    return out.getvalue()


def table_of(text: str, title: str) -> list[list[str]]:
    """Numbers below a title of the `-R` text, without their quotes."""
    lines = text.split(f'"{title}"\n')[1].split("\n\n")[0].splitlines()
    return [[word.strip('"') for word in line.split()] for line in lines]


@pytest.mark.parametrize("read", READERS)
def test_the_table_that_was_printed_is_the_table_that_is_read(
    read: Callable[[Path, Path], Sheet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = iozone(tmp_path, COMMANDS["table"])
    sheet = read(tmp_path / "out.xls", tmp_path)
    assert sheet[0][0] == f"iozone --out {tmp_path / 'stored'} {COMMANDS['table']}"
    for title, other in [
        ("Writer report", "Writer Report"),
        ("Re-Reader report", "Re-reader Report"),
    ]:
        at = next(row for row, cells in enumerate(sheet) if cells[0] == other)
        head, *rows = table_of(printed, title)
        assert [cell for cell in sheet[at + 1] if cell] == head
        for offset, row in enumerate(rows, start=2):
            assert [cell for cell in sheet[at + offset] if cell] == row


@pytest.mark.parametrize("read", READERS)
def test_a_throughput_report_is_read_with_its_empty_column(
    read: Callable[[Path, Path], Sheet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = iozone(tmp_path, COMMANDS["throughput"])
    sheet = read(tmp_path / "out.xls", tmp_path)
    row = next(cells for cells in sheet if cells[0] == "Initial write")
    line = next(line for line in printed.splitlines() if line.startswith('"  Initial write'))
    values = [float(word) for word in line.split('"')[2].split()]
    assert row[1] == ""
    assert [float(cell) for cell in row[2:4]] == pytest.approx(values, abs=0.011)
