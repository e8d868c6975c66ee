"""IOzone's spreadsheet report, as text (`-R`) and as the worksheet that `-b` writes.

Both hold the same blocks: per test a matrix of file size by record size, or in the throughput mode
one row per test and one column per number of processes. Reports of CPU use are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.imported.foreign.found import Found, Source, kib, shown
from iolab.imported.foreign.iozone_command import Command
from iolab.imported.foreign.iozone_names import REPORTS, ROWS, TOOL, note_of, operation_name

Cell = str | float
_RECORD: Final = re.compile(r"\s*Record size = (\d{1,12}) kBytes\s*", re.IGNORECASE)
_UNIT: Final = re.compile(r"\s*Output is in (\S+)")
_TITLE: Final = re.compile(r'"\s*([A-Za-z\- ]{3,40})\s+report"', re.IGNORECASE)
_THROUGHPUT: Final = '"Throughput report'
_QUOTED: Final = re.compile(r'"([^"]*)"')


@frozen
class Block:
    """Rows of cells between two titles, with the line of each."""

    title: str
    rows: tuple[tuple[int, tuple[Cell, ...]], ...]


def has_report(lines: Sequence[str]) -> bool:
    """Tell whether a text holds a spreadsheet report."""
    return any(
        line.startswith(_THROUGHPUT) or ((m := _TITLE.match(line)) and m[1].lower() in REPORTS)
        for line in lines
    )


def read_report(source: Source, lines: Sequence[str], command: Command) -> None:
    """Read the report that `-R` prints.

    Raises
    ------
    TableError : a row is none.
    """
    for block in _text_blocks(source, lines):
        read_block(source, block, command)


def read_block(source: Source, block: Block, command: Command) -> None:
    """Understand one block.

    Raises
    ------
    TableError : a row is none.
    """
    folded = block.title.strip().lower()
    if folded.startswith("throughput report"):
        _throughput(source, block, command)
        return
    operation = REPORTS.get(folded.removesuffix("report").strip())
    if operation is not None:
        _matrix(source, block, operation, command)


def _text_blocks(source: Source, lines: Sequence[str]) -> Iterator[Block]:
    title, rows = "", list[tuple[int, tuple[Cell, ...]]]()
    for number, line in enumerate(lines, start=1):
        starts = line.startswith('"') and ("report" in line.lower())
        if starts or line.startswith("iozone test complete"):
            if title:
                yield Block(title, tuple(rows))
            title, rows = (_QUOTED.match(line) or ["", line])[1] if starts else "", []
        elif title and line.strip():
            rows.append((number, _text_row(source, number, line)))
    if title:
        yield Block(title, tuple(rows))


def _text_row(source: Source, number: int, line: str) -> tuple[Cell, ...]:
    labels = _QUOTED.findall(line)
    rest = _QUOTED.sub(" ", line).split()
    if not labels or not all(re.fullmatch(r"\d{1,18}(\.\d{1,9})?", word) for word in rest):
        source.fail(
            f"not a row of IOzone's report: {shown(line)}",
            "cut the file before this line if the report ends there",
            line=number,
        )
    return (*labels, *map(float, rest))


def _matrix(source: Source, block: Block, operation: str, command: Command) -> None:
    if len(block.rows) < 2:
        source.fail(
            f"report {shown(block.title)} has no rows", "the file is not complete",
            line=block.rows[0][0] if block.rows else 0,
        )  # fmt: skip
    head_line, head = block.rows[0]
    records = [_size(source, head_line, cell) for cell in head]
    for line, cells in block.rows[1:]:
        file_size = _size(source, line, cells[0])
        values = cells[1:]
        if len(values) > len(records):
            source.fail("more values than record sizes", "is the file damaged?", line=line)
        for record, value in zip(records, values, strict=False):
            if isinstance(value, str):
                source.fail(f"{shown(value)} is no number", "is the file damaged?", line=line)
            if value <= 0:
                continue
            about = (
                ("iozone_options", command.flags),
                ("file_size", file_size),
                ("record_size", record),
            )
            note = note_of(operation, is_direct=command.is_direct)
            name = operation_name(operation, command.unit)
            source.add(Found(line, TOOL, name, _text(value), command.unit, note, about))


def _size(source: Source, line: int, cell: Cell) -> str:
    text = cell.strip() if isinstance(cell, str) else _text(cell)
    if not (text.isascii() and text.isdecimal() and len(text) < 13 and int(text)):
        source.fail(f"{shown(text)} is no size in kB", "is the file damaged?", line=line)
    return kib(text)


def _throughput(source: Source, block: Block, command: Command) -> None:
    record, unit = "", command.unit
    for line, cells in block.rows:
        label = str(cells[0]).strip()
        values = [cell for cell in cells[1:] if not isinstance(cell, str)]
        if match := _RECORD.fullmatch(label):
            record = kib(match[1])
        elif match := _UNIT.match(label):
            unit = {"kbytes/sec": "KB/s", "ops/sec": "1/s"}.get(match[1].lower(), unit)
        elif (operation := ROWS.get(label.lower())) is None:
            source.fail(f"unknown row {shown(label)}", "is the file damaged?", line=line)
        else:
            _throughput_row(source, (line, operation, values), (record, unit), command)


def _throughput_row(
    source: Source,
    row: tuple[int, str, Sequence[float]],
    known: tuple[str, str],
    command: Command,
) -> None:
    line, operation, values = row
    record, unit = known
    counts = [str(count) for count in command.processes]
    if len(counts) != len(values):
        counts = [f"column {i}" for i, _ in enumerate(values, start=1)] if len(values) > 1 else [""]
    for count, value in zip(counts, values, strict=False):
        if value <= 0:
            continue
        about = {"iozone_options": command.flags, "processes": count, "record_size": record}
        note = note_of(operation, is_direct=command.is_direct)
        known_about = tuple((name, text) for name, text in about.items() if text)
        source.add(Found(line, TOOL, operation, _text(value), unit, note, known_about))


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() and value < 1e18 else f"{value:.17g}"
