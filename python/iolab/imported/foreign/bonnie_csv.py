"""bonnie++'s CSV lines: 1.98 (50 fields), 1.97 and 1.96 (48), and those before 1.90 (27).

Fields are taken by version and count, never by the header, which in 1.98 lacks two names. Lines of
several machines, sizes and runs may stand in one file; what is no such line is passed over, but a
line that starts like one and is none is an error.
"""

from __future__ import annotations

import re
from typing import Final

from iolab.frozen import frozen
from iolab.imported.foreign.bonnie_names import (
    FILE_PHASES,
    IO_PHASES,
    Place,
    add_cpu,
    add_latency,
    add_rate,
    size_level,
)
from iolab.imported.foreign.found import Source, shown


@frozen
class Form:
    """Places of the fields of a format; -1 for what it lacks."""

    fields: int
    version: int
    name: int
    concurrency: int
    file_size: int
    chunk: int
    seeks: int
    seekers: int
    rates: int
    files: int
    file_rates: int
    latencies: int


FORMS: Final = {
    "1.98": Form(50, 1, 2, 3, 5, 6, 7, 8, 9, 21, 26, 38),
    "1.97": Form(48, 1, 2, 3, 5, 6, -1, -1, 7, 19, 24, 36),
    "1.96": Form(48, 1, 2, 3, 5, 6, -1, -1, 7, 19, 24, 36),
    "1": Form(27, -1, 0, -1, 1, -1, -1, -1, 2, 14, 15, -1),
}
_HEADERS: Final = ("format_version,", "name,")
_VERSIONED: Final = re.compile(r"(\d{1,2}\.\d{1,3}[a-z]?),(\d{1,2}\.\d{1,3}[a-z]{0,2}),")
_OLD_SIZE: Final = re.compile(r"\d{1,8}[MGT]?(:\d{1,8}k?)?", re.IGNORECASE)
_OLD_FIELD: Final = re.compile(r"(\d{0,12}(\.\d{1,3})?|\++)")
_LINE_MAX: Final = 2000


def is_csv_line(line: str) -> bool:
    """Tell whether a line is, or means to be, a result of bonnie++."""
    if len(line) > _LINE_MAX or line.count(",") < 20:
        return False
    return _VERSIONED.match(line) is not None or _is_old(line)


def read_csv_lines(source: Source, lines: list[str]) -> bool:
    """Read all CSV lines of a text; whether there was one.

    Raises
    ------
    TableError : a line has a version or a field that bonnie++ does not write.
    """
    is_any = False
    for number, line in enumerate(lines, start=1):
        if is_csv_line(line):
            _read_line(source, number, line.strip())
            is_any = True
    return is_any


def _is_old(line: str) -> bool:
    fields = line.strip().split(",")
    if len(fields) != FORMS["1"].fields or line.startswith(_HEADERS):
        return False
    rates = [*fields[2:14], *fields[15:27]]
    return bool(_OLD_SIZE.fullmatch(fields[1])) and all(map(_OLD_FIELD.fullmatch, rates))


def _read_line(source: Source, number: int, line: str) -> None:
    fields = line.split(",")
    version = fields[0] if _VERSIONED.match(line) else "1"
    form = FORMS.get(version)
    if form is None:
        source.fail(
            f"bonnie++'s CSV format {shown(version)} is not known",
            f"formats are {', '.join(FORMS)}",
            line=number,
        )
    if len(fields) != form.fields:
        source.fail(
            f"{len(fields)} fields, but format {version} has {form.fields}",
            "is the line cut, or does the machine's name hold a comma?",
            line=number,
        )
    place = Place(number, tuple(_about(fields, form)))
    for index, phase in enumerate(IO_PHASES):
        _pair(source, place, phase, fields[form.rates + 2 * index :])
    for index, phase in enumerate(FILE_PHASES):
        _pair(source, place, phase, fields[form.file_rates + 2 * index :])
    if form.latencies >= 0:
        for phase, text in zip((*IO_PHASES, *FILE_PHASES), fields[form.latencies :], strict=True):
            add_latency(source, place, phase, text)


def _pair(source: Source, place: Place, phase: str, fields: list[str]) -> None:
    add_rate(source, place, phase, fields[0])
    add_cpu(source, place, phase, fields[1])


def _about(fields: list[str], form: Form) -> list[tuple[str, str]]:
    def at(place: int) -> str:
        return fields[place].strip() if place >= 0 else ""

    size, _, chunk = at(form.file_size).partition(":")
    files = at(form.files)
    if form.latencies >= 0:
        largest, least, directories = (at(form.files + i) for i in (1, 2, 4))
        shape = [files, largest, least] if least else [files, largest] if largest else [files]
        files = ":".join(shape) + (f"/{directories}" if directories else "")
    known = {
        "machine": at(form.name),
        "version": at(form.version),
        "concurrency": at(form.concurrency),
        "file_size": size_level(size),
        "chunk_size": at(form.chunk) or chunk,
        "seeks": at(form.seeks),
        "seekers": at(form.seekers),
        "files": files,
    }
    return [(name, text) for name, text in known.items() if text]
