"""fio's terse output, versions 2 to 5: one line of fields between semicolons per job.

Fields are told apart by their count, since a line ends with nine fields per disk and maybe a
description. Latencies are in microseconds, in version 5 and those before it alike.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from iolab.frozen import frozen
from iolab.imported.foreign.fio_result import (
    PERCENTILES,
    PrintedJob,
    PrintedRun,
    Way,
    number,
    whole,
)
from iolab.imported.foreign.found import Source, shown


@frozen
class _Form:
    """Fields of a version: those before the directions, directions, and fields of each."""

    head: int
    directions: tuple[str, ...]
    fields: int

    @property
    def count(self) -> int:
        """All fields of a job without disks and description."""
        return self.head + len(self.directions) * self.fields + _TAIL


_TAIL: Final = 5 + 7 + 10 + 12
"""Processor, depths, buckets of microseconds and of milliseconds."""
_DISK: Final = 9
_TWO: Final = ("read", "write")
_THREE: Final = ("read", "write", "trim")
_FORMS: Final = {
    "2": (_Form(4, _TWO, 41), _Form(4, _THREE, 41)),
    "3": (_Form(5, _TWO, 41), _Form(5, _THREE, 41)),
    "4": (_Form(5, _THREE, 41),),
    "5": (_Form(5, _THREE, 47),),
}
"""Directions of version 2 and 3 were two at first; later version 2 has three."""
_LINE: Final = re.compile(r"([2-5]);(?:fio-|[^;]{0,60};)")
_SIGNS_MIN: Final = 60
"""Semicolons of a line that means to be a result."""
_PERCENTILES_AT: Final = 12
_PERCENTILES: Final = 20
_LINE_MAX: Final = 64 << 10


def is_terse_line(line: str) -> bool:
    """Tell whether a line is, or means to be, a terse result."""
    return (
        len(line) < _LINE_MAX
        and _LINE.match(line) is not None
        and line.count(";") >= _SIGNS_MIN
        and "%=" in line
    )


def read_terse(source: Source, lines: list[str]) -> list[PrintedRun]:
    """All results of a text; a group that begins again begins another run.

    Raises
    ------
    TableError : a line has another number of fields than its version.
    """
    runs: list[tuple[str, list[PrintedJob]]] = []
    seen: set[tuple[int, str]] = set()
    names: list[str] = []
    for at, line in enumerate(lines, start=1):
        if not is_terse_line(line):
            continue
        version, job = _read_line(source, at, line.strip())
        is_again = bool(names) and (
            job.group < runs[-1][1][-1].group
            or ((job.group, job.name) in seen and names[-1] != job.name)
        )
        if not runs or is_again or runs[-1][0] != version:
            runs.append((version, []))
            seen, names = set(), []
        runs[-1][1].append(job)
        seen.add((job.group, job.name))
        names.append(job.name)
    return [PrintedRun(version, jobs) for version, jobs in runs]


def _read_line(source: Source, at: int, line: str) -> tuple[str, PrintedJob]:
    fields = line.split(";")
    if fields[-1] == "":
        fields.pop()
    form = _form(source, at, fields)
    version = fields[1] if form.head == 5 else ""
    name = fields[form.head - 3]
    job = PrintedJob(at, name[:100] or "(unnamed)")
    job.group = whole(source, fields[form.head - 2], at, "the group")
    job.error = whole(source, fields[form.head - 1].removeprefix("-"), at, "the error")
    for place, direction in enumerate(form.directions):
        start = form.head + place * form.fields
        _add_way(source, job, direction, fields[start : start + form.fields])
    start = form.head + len(form.directions) * form.fields
    job.user_percent = _percent(source, at, fields[start], "user time")
    job.system_percent = _percent(source, at, fields[start + 1], "system time")
    job.runtime_ms = max((way.runtime_ms for way in job.ways), default=Decimal(0))
    return version[:60], job


def _form(source: Source, at: int, fields: list[str]) -> _Form:
    """Form of a line by its version and count; the rest are disks and a description."""
    forms = _FORMS[fields[0]]
    for form in reversed(forms):
        if len(fields) >= form.count and (len(fields) - form.count) % _DISK <= 1:
            return form
    counts = " or ".join(str(form.count) for form in forms)
    source.fail(
        f"{len(fields)} fields, but terse version {fields[0]} has {counts}, {_DISK} per disk and a"
        " description",
        "is the line cut, or does the description hold a semicolon?",
        line=at,
    )
    return None


def _add_way(source: Source, job: PrintedJob, direction: str, fields: list[str]) -> None:
    what = f"job {shown(job.name)}, {direction}"

    def at(place: int, name: str) -> Decimal | None:
        return number(source, fields[place], job.line, f"{what}: {name}")

    moved, runtime = at(0, "amount"), at(3, "run time")
    if not moved:
        return
    way = Way(direction, runtime_ms=runtime or Decimal(0))
    for place, unit in ((1, "KiB/s"), (2, "IOPS")):
        value = at(place, unit)
        if value is not None:
            way.amounts[unit] = value
    for place, unit in ((9, "latency_ns_max"), (10, "latency_ns_mean")):
        value = at(place, unit)
        if value is not None:
            way.amounts[unit] = value * 1000
    printed: dict[Decimal, Decimal] = {}
    for field in fields[_PERCENTILES_AT : _PERCENTILES_AT + _PERCENTILES]:
        share, sign, text = field.partition("%=")
        if not sign:
            source.fail(
                f"{what}: {shown(field)} is no percentile", "is the line cut?", line=job.line
            )
        key = number(source, share, job.line, f"{what}: a percentile")
        value = number(source, text, job.line, f"{what}: {share} %")
        if key and value is not None:
            printed[key] = value * 1000
    way.amounts |= {unit: printed[key] for unit, key in PERCENTILES.items() if key in printed}
    job.ways.append(way)


def _percent(source: Source, at: int, text: str, what: str) -> Decimal | None:
    return number(source, text.removesuffix("%"), at, what)
