"""The worksheet that IOzone's `-b` writes: BIFF2, a plain stream of records.

Source: files written by IOzone 3.489, and the record layout of the Excel 2.x format: opcode and
length, both 16 bits, little-endian. Only what IOzone writes is understood: BOF, LABEL, NUMBER, EOF.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from typing import Final

from iolab.imported.foreign.found import Source
from iolab.imported.foreign.iozone_command import Command, read_command
from iolab.imported.foreign.iozone_report import Block, Cell, read_block

START: Final = bytes((9, 0, 4, 0, 2, 0, 0x10, 0))
_EOF: Final = 10
_NUMBER: Final = 3
_LABEL: Final = 4
_CELLS_MAX: Final = 100_000


def read_sheet(source: Source, content: bytes) -> None:
    """Read a worksheet.

    Raises
    ------
    TableError : a record is broken, or there is no report in it.
    """
    cells = _cells(source, content)
    rows = [(row + 1, _row(cells[row])) for row in sorted(cells)]
    command = Command()
    blocks: list[tuple[str, list[tuple[int, tuple[Cell, ...]]]]] = []
    for number, row in rows:
        first = row[0] if row else ""
        if number == 1 and isinstance(first, str):
            command = read_command(first)
        elif isinstance(first, str) and " report" in first.lower():
            blocks.append((first, []))
        elif blocks and any(cell != "" for cell in row):
            blocks[-1][1].append((number, row))
    for title, found in blocks:
        read_block(source, Block(title, tuple(found)), command)
    if not blocks:
        source.fail("a worksheet without a report of IOzone", "name the file that -b wrote")


def _row(cells: dict[int, Cell]) -> tuple[Cell, ...]:
    """Cells from the left; what is empty on the way is left out, the first column excepted."""
    return tuple(cells[column] for column in sorted(cells))


def _cells(  # noqa: RET503 - it ends by raising
    source: Source, content: bytes
) -> dict[int, dict[int, Cell]]:
    cells: dict[int, dict[int, Cell]] = defaultdict(dict)
    place, count = 0, 0
    while place + 4 <= len(content):
        opcode, length = struct.unpack_from("<HH", content, place)
        body = content[place + 4 : place + 4 + length]
        if len(body) < length or count > _CELLS_MAX:
            break
        if opcode == _EOF:
            return cells
        if opcode in (_NUMBER, _LABEL):
            if length < (15 if opcode == _NUMBER else 8):
                source.fail(f"record {opcode} is too short", "is the file damaged?", line=place,
                            place="byte")  # fmt: skip
            row, column = struct.unpack_from("<HH", body)
            cells[row][column] = _cell(source, opcode, body, place)
            count += 1
        place += 4 + length
    source.fail("the worksheet is broken off", "copy it again", line=place, place="byte")


def _cell(source: Source, opcode: int, body: bytes, place: int) -> Cell:
    if opcode == _LABEL:
        return body[8 : 8 + body[7]].rstrip(b"\0").decode("latin-1")
    (value,) = struct.unpack_from("<d", body, 7)
    if not math.isfinite(value):
        source.fail("a number that is none", "is the file damaged?", line=place, place="byte")
    return float(value)
