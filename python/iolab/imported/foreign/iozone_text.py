"""IOzone's text: the table of sizes, and the throughput mode. Its spreadsheet part: see beside.

A file may hold several runs one after the other, and whatever a script printed between them. What
stands inside a table and is no row of it is an error: IOzone prints its own failures there.
Columns may touch (``1495343515164624``); they are told apart by IOzone's fixed widths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from iolab.frozen import replace
from iolab.imported.foreign.found import Found, Source, kib, shown
from iolab.imported.foreign.iozone_command import Command, read_command
from iolab.imported.foreign.iozone_names import (
    COLUMNS,
    HEADS,
    NOUNS,
    TOOL,
    note_of,
    operation_name,
)

_VERSION: Final = re.compile(r"Version \$Revision: ([\w.]{1,20}) \$")
_COMMAND: Final = re.compile(r"\s*Command line used:(.*)")
_HEAD: Final = re.compile(r"\s*kB\s+reclen\s", re.IGNORECASE)
_EACH: Final = re.compile(r"\s*Each (?:process|thread) writes a +(\d+) kByte file in +(\d+) kByte")
_CHILDREN: Final = re.compile(
    r"\s*Children see throughput for +(\d{1,5}) +([a-z\- ]+?)\s*= *(\d[\d.]*) (\w+)/sec"
)
_PARENT: Final = re.compile(r"\s*Parent sees throughput for .*?= *(\d[\d.]*) ")
_STRAY: Final = re.compile(r"Allocate buffer2 0x[0-9a-f]+ Size \d+\s*$")
"""A line of debugging that the build prints into the middle of rows with -H."""
_MODES: Final = {"OPS Mode.": "1/s", "Microseconds/op Mode.": "us"}
_WIDTHS: Final = (16, 8, 9, 9, 9, 9, 9, 9, 9, 10, 10, 9, 9, 9, 9, 9, 9, 8, 9)
"""Of values, sizes first, as IOzone 3.489 prints them with all tests; a lone blank differs."""
_DIGITS_MAX: Final = 9
_GAP_MAX: Final = 4
"""Columns between the end of a value and of its head, at most: heads and values differ by 1."""
_FAR: Final = 2.0
_ZERO: Final = "printed 0: not run, or too fast for a whole number"


@dataclass(slots=True)
class _State:
    """Facts from the lines so far."""

    version: str = ""
    command: Command = field(default_factory=Command)
    file_size: str = ""
    record_size: str = ""
    ends: tuple[int, ...] = ()
    """Of the heads of the table that is open; none if none is."""
    operations: tuple[str, ...] = ()
    head_line: int = 0
    rows: int = 0
    partial: str = ""
    """A row that stray lines have broken."""


def read_text(source: Source, lines: list[str]) -> bool:
    """Read all runs of a text; whether there was a table or a throughput run.

    Raises
    ------
    TableError : a table is broken, or a line cannot be what it seems.
    """
    state = _State()
    is_any = False
    for number, line in enumerate(lines, start=1):
        if state.ends:
            _row(source, state, number, line)
            continue
        if _HEAD.match(line):
            _open_table(source, state, number, line)
            is_any = True
        elif "Children see throughput for" in line:
            _children(source, state, number, line)
            is_any = True
        elif match := _PARENT.match(line):
            _parent(source, match[1])
        else:
            _setting(state, line)
    if state.ends:
        _close_table(source, state, len(lines))
    return is_any


def about(state: _State, **more: str) -> tuple[tuple[str, str], ...]:
    """Facts about how a number came about."""
    known = {"version": state.version, "iozone_options": state.command.flags, **more}
    return tuple((name, text) for name, text in known.items() if text)


def _setting(state: _State, line: str) -> None:
    if match := _VERSION.search(line):
        state.version = match[1]
        state.command = Command()
        state.file_size = state.record_size = ""
    elif match := _COMMAND.match(line):
        unit = state.command.unit
        state.command = read_command(match[1])
        if unit != "KB/s":
            state.command = replace(state.command, unit=unit)
    elif match := _EACH.match(line):
        state.file_size, state.record_size = kib(match[1][:12]), kib(match[2][:12])
    else:
        for text, unit in _MODES.items():
            if line.strip().startswith(text):
                state.command = replace(state.command, unit=unit)


def _open_table(source: Source, state: _State, number: int, line: str) -> None:
    heads = list(re.finditer(r"\S+", line))
    names = [match[0] for match in heads[2:]]
    first = min(len(names), len(COLUMNS))
    unknown = [name for name in names[first:] if name not in HEADS]
    if not names or unknown or len(names) > len(COLUMNS) + len(HEADS):
        source.fail(
            f"the head of IOzone's table has an unknown column {shown((unknown or [line])[0])}",
            "is the file damaged?",
            line=number,
        )
    state.operations = (*COLUMNS[:first], *names[first:])
    state.ends = tuple(match.end() for match in heads)
    state.head_line, state.rows, state.partial = number, 0, ""


def _row(source: Source, state: _State, number: int, line: str) -> None:
    if stray := _STRAY.search(line):
        state.partial += line[: stray.start()]
        return
    if not line.strip():
        if not state.partial:
            _close_table(source, state, number)
        return
    line, state.partial = state.partial + line, ""
    cells = _cells(state.ends, line)
    if cells is None:
        source.fail(
            f"not a row of the table that starts in line {state.head_line}: {shown(line)}",
            "iozone may have failed here; to import the rows above, cut the file before this line",
            line=number,
        )
    state.rows += 1
    sizes = {"file_size": kib(cells[0])}
    if int(cells[1]):
        sizes["record_size"] = kib(cells[1])
    command = state.command
    for operation, value in zip(state.operations, cells[2:], strict=False):
        if not value:
            continue
        note = note_of(operation, is_direct=command.is_direct)
        name = operation_name(operation, command.unit)
        known = about(state, **sizes)
        if int(value):
            source.add(Found(number, TOOL, name, value, command.unit, note, known))
        else:
            source.add(Found(number, TOOL, name, "", command.unit, _ZERO, known))


def _close_table(source: Source, state: _State, number: int) -> None:
    if not state.rows or state.partial:
        source.fail(
            f"the table that starts in line {state.head_line} ends without a row"
            if not state.rows
            else "the last row is broken off",
            "the file is not complete, or iozone failed",
            line=number,
        )
    state.ends = ()


def _cells(ends: tuple[int, ...], line: str) -> list[str] | None:
    """Digits of each column, empty where nothing stands; None for what is no row."""
    tokens = list(re.finditer(r"\S+", line.rstrip()))
    if len(tokens) < 2 or not all(re.fullmatch(r"[0-9]{1,40}", t[0]) for t in tokens):
        return None
    if any(len(token[0]) > _DIGITS_MAX for token in tokens[1:]):
        return _fixed(ends, line.rstrip())
    cells = [""] * len(ends)
    last = -1
    for token in tokens:
        gap, place = min((abs(end - token.end()), i) for i, end in enumerate(ends))
        if gap > _GAP_MAX or place <= last:
            return None
        cells[place], last = token[0], place
    return cells if cells[0] and cells[1] and last > 1 else None


def _fixed(ends: tuple[int, ...], line: str) -> list[str] | None:
    """Cut a row whose columns touch, by the widths of IOzone 3.489."""
    cells: list[str] = []
    place = 0
    for width in _WIDTHS[: len(ends)]:
        cell = line[place : place + width].strip()
        if not re.fullmatch(r"[0-9]{0,16}", cell):
            return None
        cells.append(cell)
        place += width
    complete = len(cells) == len(ends) and all(cells) and not line[place:].strip()
    return cells if complete else None


def _children(source: Source, state: _State, number: int, line: str) -> None:
    match = _CHILDREN.match(line)
    operation = NOUNS.get(match[2]) if match else None
    unit = {"kB": "KB/s", "KB": "KB/s", "ops": "1/s"}.get(match[4]) if match else None
    if match is None or operation is None or unit is None or not _is_decimal(match[3]):
        source.fail(f"not a line of IOzone: {shown(line)}", "is the file damaged?", line=number)
    more = {
        "processes": str(int(match[1])),
        "file_size": state.file_size,
        "record_size": state.record_size,
    }
    note = note_of(operation, is_direct=state.command.is_direct)
    value = match[3] if float(match[3]) > 0 else ""
    if not value:
        note = "printed 0: not run, or no child counted"
    source.add(Found(number, TOOL, operation, value, unit, note, about(state, **more)))


def _parent(source: Source, text: str) -> None:
    """Say so where the children's sum is far from what the parent saw."""
    if not source.numbers or not _is_decimal(text):
        return
    last = source.numbers[-1]
    if last.notes or not last.value or float(last.value) < _FAR * float(text):
        return
    note = f"the sum of the children; over the whole phase the parent saw {text}"
    source.numbers[-1] = replace(last, notes=note)


def _is_decimal(text: str) -> bool:
    return re.fullmatch(r"\d{1,18}(\.\d{1,9})?", text) is not None
