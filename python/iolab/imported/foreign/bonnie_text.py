"""bonnie++'s tables for people: of 2.00 (`Name:Size etc`), 1.9x and 1.03 (`Machine   Size`), and
those that bon_csv2txt makes of CSV lines.

Where a text holds a CSV line of the same run that line is read instead: it has more digits, and
the file rates of the table of 2.00 are wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from iolab.imported.foreign.bonnie_names import (
    FALSE_RATE_NOTE,
    FILE_PHASES,
    IO_PHASES,
    TOOL,
    Place,
    add_cpu,
    add_latency,
    add_rate,
    size_level,
)
from iolab.imported.foreign.found import Found, Source, shown

_RULER: Final = re.compile(r"(Version +(\d[\w.]{1,7}))? +------Sequential (Output|Create)------ ")
_FIRST: Final = 19
"""Columns of name and size, or of the files' shape."""
_PAIR: Final = 10
_LATENCY_FIRST: Final = 17
_LATENCY_WIDTH: Final = 10
_LETTERS: Final = {
    "k": Decimal(1),
    "m": Decimal(1024),
    "g": Decimal(1 << 20),
    "t": Decimal(1 << 30),
}
_IO_RATE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,3})?)([kmgt]?)")
_SIZE_WORD: Final = re.compile(r"(.*?) *(\d{1,8}[MGT]?)((?::\w*)*) *", re.IGNORECASE)
_FILES_WORD: Final = re.compile(r"(.*?) *(\d{1,8}(?::[\w]*){0,2}(?:/\d+)?) *")
_HEAD_LINES: Final = 2
_CONCURRENCY: Final = re.compile(r"Concurrency +(\d{1,4}) ")


@dataclass(slots=True)
class _State:
    """The table that is open."""

    phases: tuple[str, ...] = ()
    version: str = ""
    head: list[str] = field(default_factory=list[str])
    start: int = 0
    machine: str = ""
    place: Place = field(default_factory=lambda: Place(0, ()))
    rows: int = 0


def has_table(lines: list[str]) -> bool:
    """Tell whether a text holds a table of bonnie++."""
    return any(_RULER.match(line) for line in lines)


def read_tables(source: Source, lines: list[str]) -> bool:
    """Read all tables of a text; whether there was one.

    Raises
    ------
    TableError : a row of a table is none.
    """
    state = _State()
    is_any = False
    for number, line in enumerate(lines, start=1):
        if match := _RULER.match(line):
            _complete(source, state, number)
            phases = IO_PHASES if match[3] == "Output" else FILE_PHASES
            state = _State(phases, match[2] or state.version, [], number)
            is_any = True
        elif state.phases and len(state.head) < _HEAD_LINES:
            state.head.append(line)
        elif state.phases and line.startswith("Latency"):
            _latency(source, state, number, line)
        elif state.phases and _is_row(line):
            _row(source, state, number, line)
        else:
            _complete(source, state, number)
            state.phases = ()
    _complete(source, state, len(lines))
    return is_any


def _is_row(line: str) -> bool:
    return bool(line.strip()) and line.count(",") < _PAIR and len(line) > _FIRST + _PAIR


def _complete(source: Source, state: _State, number: int) -> None:
    if state.phases and not state.rows:
        source.fail(
            f"the table that starts in line {state.start} has no row",
            "the text is not complete, or bonnie++ failed",
            line=number,
        )


def _row(source: Source, state: _State, number: int, line: str) -> None:
    label, pairs = _split(source, state, number, line)
    state.place = Place(number, tuple(_about(source, state, number, label)))
    state.rows += 1
    for phase, (rate, cpu) in zip(state.phases, pairs, strict=True):
        if phase in FILE_PHASES and state.version.startswith("2.") and rate.isdecimal():
            source.add(Found(number, TOOL, phase, "", "1/s", FALSE_RATE_NOTE, state.place.about))
        else:
            add_rate(source, state.place, phase, _plain(phase, rate))
        add_cpu(source, state.place, phase, cpu)


def _split(
    source: Source, state: _State, number: int, line: str
) -> tuple[str, list[tuple[str, str]]]:
    label, rest = line[:_FIRST], line[_FIRST:].rstrip()
    words = rest.split()
    if len(words) == 2 * len(state.phases):
        return label, list(zip(words[::2], words[1::2], strict=True))
    pairs: list[tuple[str, str]] = []
    for index in range(len(state.phases)):
        found = rest[index * _PAIR : (index + 1) * _PAIR].split()
        if len(found) not in (0, 2):
            source.fail(
                f"not a row of the table that starts in line {state.start}: {shown(line)}",
                "its columns are 10 wide after the first 19",
                line=number,
            )
        pairs.append((found[0], found[1]) if found else ("", ""))
    if len(rest) > _PAIR * len(state.phases) or not any(rate for rate, _ in pairs):
        source.fail(
            f"not a row of the table that starts in line {state.start}: {shown(line)}",
            "cut what does not belong to the table",
            line=number,
        )
    return label, pairs


def _plain(phase: str, rate: str) -> str:
    """A rate with a letter in KiB/s; ``0k`` is what bon_csv2txt makes of ``+++++``."""
    if phase not in IO_PHASES[:-1]:
        return rate
    match = _IO_RATE.fullmatch(rate)
    if match is None:
        return rate
    value = Decimal(match[1]) * _LETTERS[match[2] or "k"]
    if not value:
        return "+++++"
    return str(value.quantize(Decimal(1))) if value == value.to_integral() else str(value)


def _about(source: Source, state: _State, number: int, label: str) -> list[tuple[str, str]]:
    known: dict[str, str] = {"version": state.version}
    if state.phases == IO_PHASES:
        match = _SIZE_WORD.fullmatch(label)
        if match is None:
            source.fail(f"{shown(label)} has no size", "the first 19 columns hold name and size",
                        line=number)  # fmt: skip
        known |= {"machine": match[1].strip(), "file_size": size_level(match[2])}
        known["settings"] = match[3].strip(":")
        concurrency = _CONCURRENCY.match(state.head[0]) if state.head else None
        known["concurrency"] = concurrency[1] if concurrency else ""
    else:
        match = _FILES_WORD.fullmatch(label)
        if match is None:
            source.fail(f"{shown(label)} has no number of files",
                        "the first 19 columns hold it", line=number)  # fmt: skip
        head = state.head[0][:_FIRST].strip() if state.head else ""
        known |= {"machine": match[1].strip() or head, "files": match[2]}
    return [(name, text) for name, text in known.items() if text]


def _latency(source: Source, state: _State, number: int, line: str) -> None:
    rest = line[_LATENCY_FIRST:].rstrip()
    words = rest.split()
    if len(words) != len(state.phases):
        words = [
            rest[i * _LATENCY_WIDTH : (i + 1) * _LATENCY_WIDTH].strip()
            for i in range(len(state.phases))
        ]
    place = Place(number, state.place.about)
    for phase, word in zip(state.phases, words, strict=True):
        add_latency(source, place, phase, word)
