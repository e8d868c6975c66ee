"""A CSV file as rows that know their line; whatever is wrong with it is told with its place.

Comma, semicolon or tab separate, whichever the header uses; quotes as in RFC 4180; UTF-8 with or
without a byte order mark. Left out: other encodings, comments inside the file, several tables.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from pathlib import Path
from typing import Final, NoReturn

from iolab.errors import IolabError
from iolab.frozen import frozen, replace
from iolab.regular_file import refuse_endless
from iolab.store.derived import SeriesPart
from iolab.study.operations import Access, Kind
from iolab.wording import counted

_WANTED: Final = "name a file: what fio, iozone or bonnie++ wrote, or a CSV table"
BYTES_MAX: Final = 64 << 20
CELL_MAX: Final = 500
"""Characters of one cell; more is a quote that nobody closed."""
COLUMNS_MAX: Final = 500
_SEPARATORS: Final = (",", ";", "\t")


class TableError(IolabError):
    """A table cannot be imported; the message names file, line and column."""


@frozen
class Background:
    """Facts that a program tells beside a number: when, how, and whether it went wrong."""

    execution: int
    """Number within its file of what ran at the same time; 0 is the first."""
    task: str = ""
    """Name of the work, the same in every run of it."""
    error: str = ""
    """Failure that the program reports; such an execution has no values."""
    started_at_unix_ns: int = 0
    """0 where the file does not say it."""
    elapsed_ns: int = 0
    kind: Kind | None = None
    access: Access | None = None
    io_size_bytes: int | None = None
    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    series: SeriesPart | None = None


@frozen
class Row:
    """One line of the table."""

    line: int
    """1-based, of the file; where a cell spans lines, the last."""
    cells: dict[str, str]
    file: str = ""
    """Name of its file; empty if the table is a file of its own."""
    background: Background | None = None


@frozen
class Origin:
    """One of the files that a table was put together from."""

    path: Path
    sha256: str
    size_bytes: int


@frozen
class Table:
    """A whole file."""

    path: Path
    sha256: str
    size_bytes: int
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    origins: tuple[Origin, ...] = ()
    """Files of other programs that it was read from; empty for a CSV file."""
    notes: tuple[str, ...] = ()
    """Sentences about what was passed over."""
    facts: tuple[tuple[str, str], ...] = ()
    """Statements about single operations, which are no levels."""
    separator: str = ""
    """Sign between its cells; empty for what was put together from other files."""

    def fail(self, message: str, hint: str, *, line: int = 0, column: str = "") -> NoReturn:
        """Raise an error that names the place."""
        place = [str(self.path)]
        place += [f"line {line}"] if line else []
        place += [f"column '{column}'"] if column else []
        raise TableError(f"{', '.join(place)}: {message}", hint)


def read_table(path: Path) -> Table:
    """Read a CSV file.

    Raises
    ------
    TableError : it cannot be read, or is no table with a header and at least one row.
    """
    content = read_content(path)
    empty = Table(path, hashlib.sha256(content).hexdigest(), len(content), (), ())
    text = _decode(empty, content)
    lines = text.splitlines()
    if not text.strip():
        empty.fail("the file is empty", "it needs a header line and one line per value")
    separator = _separator(lines[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns = _header(empty, cells, reader.line_num)
                continue
            rows.append(_row(empty, columns, cells, reader.line_num))
    except csv.Error as error:
        empty.fail(
            f"not well-formed CSV ({error})",
            'close every quote, and write a quote inside quotes twice: ""',
            line=reader.line_num,
        )
    if not rows:
        empty.fail("there is a header but no row", "one line per value is needed")
    return replace(empty, columns=columns, rows=tuple(rows), separator=separator)


def read_content(path: Path) -> bytes:
    """Read a file of reasonable size.

    Raises
    ------
    IolabError : it is no regular file.
    TableError : it cannot be read, or is too large.
    """
    refuse_endless(path)
    try:
        # Not by its size: a pipe or a device says 0, and may have no end.
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise TableError(f"{path}: there is no such file", _WANTED) from None
        raise TableError(f"{path} cannot be read: {error.strerror}", _WANTED) from None
    if len(content) > BYTES_MAX:
        raise TableError(f"{path} is larger than {BYTES_MAX >> 20} MiB", "split it")
    return content


def _decode(table: Table, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        table.fail("not UTF-8 text", "save it as UTF-8", line=line)
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        table.fail("there is a NUL character", "this is not a text file", line=line)
    return text


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)


def _header(table: Table, cells: list[str], line: int) -> tuple[str, ...]:
    # Spreadsheets break lines within heads.
    names = tuple(c if c.isprintable() else " ".join(c.split()) for c in map(str.strip, cells))
    if "" in names:
        place = names.index("") + 1
        table.fail(f"column {place} has no name", "name every column", line=line)
    if len(names) > COLUMNS_MAX:
        table.fail(
            f"{len(names)} columns, more than {COLUMNS_MAX}",
            "write one value per row, with columns for what tells the values apart",
            line=line,
        )
    for place, name in enumerate(names, start=1):
        _check_cell(table, name, line, f"column {place}: a name")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        table.fail("there are two columns of this name", "rename one", line=line, column=twice[0])
    if len(names) < 2:
        table.fail(
            f"the header has one column only: {cells[0][:60]!r}",
            "separate columns by commas, semicolons or tabs",
            line=line,
        )
    return names


def _row(table: Table, columns: tuple[str, ...], cells: list[str], line: int) -> Row:
    if len(cells) != len(columns):
        table.fail(
            f"{counted(len(cells), 'cell')}, but the header has {counted(len(columns), 'column')}",
            "quote cells that contain the separator"
            if len(cells) > len(columns)
            else "write an empty cell for what is missing",
            line=line,
        )
    row = {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}
    for name, cell in row.items():
        _check_cell(table, cell, line, "a cell", name)
    return Row(line, row)


def _check_cell(table: Table, cell: str, line: int, what: str, column: str = "") -> None:
    if len(cell) > CELL_MAX:
        table.fail(
            f"{what} of {len(cell)} characters, more than {CELL_MAX}",
            "is a quote not closed?",
            line=line,
            column=column,
        )
    if not cell.isprintable():
        table.fail(
            f"{what} with a character that cannot be printed",
            "remove it",
            line=line,
            column=column,
        )
