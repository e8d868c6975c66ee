"""Options of the other programs whose command lines are understood, from their own tables.

The tables are those of the reference pages: the extension has a row for every option. Only man
pages and completion read them; a command line is read by the extension itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Protocol, cast

from iolab.frozen import frozen
from iolab.library.services import Services

_AS_THERE: Final = ("", "as the original")
"""Words of a table's last column that add nothing."""
_ABOUT: Final = ("does", "meaning", "is")
"""Columns of which one says what a row is."""
_CELL: Final = re.compile(r"\|(?=(?:[^`]*`[^`]*`)*[^`]*$)")
"""A bar between cells: one in code is part of it."""


class _Tables(Protocol):
    def dialect_reference(self, dialect: str, /) -> str: ...


@frozen
class Row:
    """One option, or another word of a program's language."""

    names: tuple[str, ...]
    """As they are typed, without a value: ``--rw`` and ``--readwrite``."""
    shown: str
    """The same with the value: ``-i N``."""
    about: str


@frozen
class Section:
    """One table."""

    title: str
    rows: tuple[Row, ...]
    has_options: bool
    """True if its rows stand on a command line; others are words of a file."""


def program_sections(program: str) -> list[Section]:
    """Tables of a program, in the order of its reference page."""
    found = list[Section]()
    core = cast("_Tables", Services().load_core())
    for part in core.dialect_reference(program).split("### ")[1:]:
        title, _, rest = part.partition("\n")
        table = [_cells(line) for line in rest.splitlines() if line.startswith("|")]
        if len(table) < 3:
            continue
        header = table[0]
        has_options = header[0] == "option"
        rows = tuple(_row(header, cells, has_options) for cells in table[2:])
        found.append(Section(title.strip(), rows, has_options))
    return found


def program_options(program: str) -> Iterator[tuple[str, str, bool]]:
    """Name of every option of a command line, its help, and whether it takes a value."""
    for section in program_sections(program):
        if section.has_options:
            for row in section.rows:
                for name in row.names:
                    yield name, row.about, row.shown != ", ".join(row.names)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _CELL.split(line)[1:-1]]


def _row(header: Sequence[str], cells: Sequence[str], has_options: bool) -> Row:
    named = dict(zip(header, cells, strict=False))
    typed = re.findall(r"`([^`]+)`", cells[0])
    value = named.get("value") or named.get("values") or ""
    if not typed:  # A remark on the rest of the command line.
        shown = cells[0]
    elif has_options and not typed[0].startswith("-"):  # A line of a job file is an option, too.
        typed = [f"--{name}" for name in typed]
        shown = ", ".join(f"{name}=VALUE" for name in typed) if value else ", ".join(typed)
    else:
        shown = ", ".join(typed)
    names = tuple(re.split(r"[ =\[]", text, maxsplit=1)[0] for text in typed)
    about = next((named[column] for column in _ABOUT if named.get(column)), "")
    form = named.get("form") or named.get("parameters") or ""
    told = [f"{form}: {about}" if form and about else form or about]
    told += [f"one of: {value}" if "," in value else ""]
    default = named.get("default", "").strip("`")
    told += [f"default: {default}" if default else ""]
    here = named.get("here", "").replace("**", "")
    told += [f"here: {here}" if here not in _AS_THERE else ""]
    return Row(names, shown, "; ".join(text for text in told if text))
