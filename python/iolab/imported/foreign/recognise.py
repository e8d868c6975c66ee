"""Program that wrote a file, told by its content, never by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iolab.imported.foreign import bonnie_csv, bonnie_text, iozone_report, iozone_sheet, iozone_text
from iolab.imported.foreign.found import FILE_BYTES_MAX, Source
from iolab.imported.foreign.iozone_command import Command

_COMPOUND: Final = bytes.fromhex("d0cf11e0a1b11ae1")
"""Start of a compound file, in which Excel 97 and later keep .xls."""
_ZIP: Final = b"PK\x03\x04"


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
    lines = content[: FILE_BYTES_MAX + 1].decode("utf-8", errors="replace").split("\n")
    lines = [line.rstrip("\r") for line in lines]
    if not _is_text_of_a_program(lines):
        return None
    _check_size(source, content)
    _read_lines(source, lines)
    if not source.numbers:
        source.fail("no number in it", "the run was broken off before its first result")
    return source


def _check_size(source: Source, content: bytes) -> None:
    if len(content) > FILE_BYTES_MAX:
        source.fail(f"larger than {FILE_BYTES_MAX >> 20} MiB", "split it")


def _is_text_of_a_program(lines: list[str]) -> bool:
    return (
        any(map(bonnie_csv.is_csv_line, lines))
        or bonnie_text.has_table(lines)
        or any("reclen" in line or "Children see throughput for" in line for line in lines)
        or iozone_report.has_report(lines)
    )


def _read_lines(source: Source, lines: list[str]) -> None:
    """Read each program's output once: tables before reports, CSV lines before tables."""
    if not iozone_text.read_text(source, lines) and iozone_report.has_report(lines):
        iozone_report.read_report(source, lines, Command())
    if not bonnie_csv.read_csv_lines(source, lines):
        bonnie_text.read_tables(source, lines)
