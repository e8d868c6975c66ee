"""Program that wrote a file, told by its content, never by its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from iolab.frozen import frozen
from iolab.imported.foreign import (
    bonnie_csv,
    bonnie_text,
    fio_json,
    fio_terse,
    fio_text,
    iozone_report,
    iozone_sheet,
    iozone_text,
)
from iolab.imported.foreign.fio_result import add_runs
from iolab.imported.foreign.found import FILE_BYTES_MAX, Source
from iolab.imported.foreign.iozone_command import Command

_COMPOUND: Final = bytes.fromhex("d0cf11e0a1b11ae1")
"""Start of a compound file, in which Excel 97 and later keep .xls."""
_ZIP: Final = b"PK\x03\x04"


@frozen
class TextForm:
    """A form that text of a program takes."""

    name: str
    is_any: Callable[[list[str]], bool]
    """Tells whether a text holds it."""
    read: Callable[[Source, list[str]], object]


def read_foreign(path: Path, content: bytes) -> Source | None:
    """Everything that a program printed into a file; None if it is a table, or nothing known.

    Raises
    ------
    TableError : it is such output but broken, or a spreadsheet that Excel has rewritten.
    """
    source = Source(path)
    if content.startswith(iozone_sheet.START):
        _check_size(source, content)
        iozone_sheet.read_sheet(source, content)
        return source
    if content.startswith((_COMPOUND, _ZIP)):
        source.fail(
            "a spreadsheet as Excel or LibreOffice saves it, not the file that iozone wrote",
            "import what iozone's -b wrote, or save the sheet as CSV with one value per row",
        )
    if fio_json.is_json(content):
        add_runs(source, fio_json.read_json(source, content.decode("utf-8-sig", errors="replace")))
        return source
    lines = content[: FILE_BYTES_MAX + 1].decode("utf-8-sig", errors="replace").split("\n")
    lines = [line.rstrip("\r") for line in lines]
    form = next((form for form in FORMS if form.is_any(lines)), None)
    if form is None:
        return None
    _check_size(source, content)
    form.read(source, lines)
    if not source.numbers:
        source.fail("no number in it", "the run was broken off before its first result")
    return source


def _check_size(source: Source, content: bytes) -> None:
    if len(content) > FILE_BYTES_MAX:
        source.fail(f"larger than {FILE_BYTES_MAX >> 20} MiB", "split it")


def _is_of_iozone_or_bonnie(lines: list[str]) -> bool:
    return (
        any(map(bonnie_csv.is_csv_line, lines))
        or bonnie_text.has_table(lines)
        or any("reclen" in line or "Children see throughput for" in line for line in lines)
        or iozone_report.has_report(lines)
    )


def _read_iozone_or_bonnie(source: Source, lines: list[str]) -> None:
    """Read each program's output once: tables before reports, CSV lines before tables."""
    if not iozone_text.read_text(source, lines) and iozone_report.has_report(lines):
        iozone_report.read_report(source, lines, Command())
    if not bonnie_csv.read_csv_lines(source, lines):
        bonnie_text.read_tables(source, lines)


FORMS: Final = (
    TextForm(
        "fio terse",
        lambda lines: any(map(fio_terse.is_terse_line, lines)),
        lambda source, lines: add_runs(source, fio_terse.read_terse(source, lines)),
    ),
    TextForm(
        "fio text",
        lambda lines: any(map(fio_text.is_status_line, lines)),
        lambda source, lines: add_runs(source, fio_text.read_text(source, lines)),
    ),
    TextForm("iozone, bonnie++", _is_of_iozone_or_bonnie, _read_iozone_or_bonnie),
)
"""Forms of text, the one with most digits first where a file holds several of the same run."""
