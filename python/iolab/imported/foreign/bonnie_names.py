"""bonnie++'s phases, sizes and marks, as all its forms of output have them in common."""

from __future__ import annotations

import re
from typing import Final

from iolab.frozen import frozen
from iolab.imported.foreign.found import Found, Source, shown

TOOL: Final = "bonnie++"
IO_PHASES: Final = ("putc", "put_block", "rewrite", "getc", "get_block", "seeks")
FILE_PHASES: Final = ("seq_create", "seq_stat", "seq_del", "ran_create", "ran_stat", "ran_del")
TOO_SHORT_NOTE: Final = "+++++: the tool gives no rate because the phase took less than 0.5 s"
FALSE_RATE_NOTE: Final = (
    "the table of bonnie++ 2 prints the number of files where the rate should stand; its CSV"
    " line has the rate"
)
_SIZE: Final = re.compile(r"(\d{1,12})([KMGT]?)", re.IGNORECASE)
_RATE: Final = re.compile(r"\d{1,15}(\.\d{1,9})?")
_LATENCY: Final = re.compile(r"(\d{1,15})(us|ms|s)")


@frozen
class Place:
    """Place of a number and the facts about its run."""

    line: int
    about: tuple[tuple[str, str], ...]


def rate_unit(phase: str) -> str:
    """Unit of a phase's rate."""
    return "KB/s" if phase in IO_PHASES[:-1] else "1/s"


def add_rate(source: Source, place: Place, phase: str, text: str) -> None:
    """Keep a rate; nothing for a phase that did not run.

    Raises
    ------
    TableError : it is no rate.
    """
    text = text.strip()
    if not text:
        return
    note = ""
    if set(text) == {"+"}:
        text, note = "", TOO_SHORT_NOTE
    elif not _RATE.fullmatch(text):
        source.fail(
            f"{phase}: {shown(text)} is no rate",
            "a number, +++++ or nothing stands there",
            line=place.line,
        )
    elif float(text) == 0:
        text, note = "", "printed 0"
    source.add(Found(place.line, TOOL, phase, text, rate_unit(phase), note, place.about))


def add_cpu(source: Source, place: Place, phase: str, text: str) -> None:
    """Keep the share of a processor that was printed.

    Raises
    ------
    TableError : it is none.
    """
    text = text.strip()
    if not text or set(text) == {"+"}:
        return
    if not _RATE.fullmatch(text):
        source.fail(
            f"{phase}: {shown(text)} is no share of a processor",
            "a whole number, +++ or nothing stands there",
            line=place.line,
        )
    source.add(Found(place.line, TOOL, f"{phase}_cpu", text, "%CPU", "", place.about))


def add_latency(source: Source, place: Place, phase: str, text: str) -> None:
    """Keep the longest step of a phase.

    Raises
    ------
    TableError : it is none.
    """
    text = text.strip()
    if not text:
        return
    match = _LATENCY.fullmatch(text)
    if match is None:
        source.fail(
            f"{phase}: {shown(text)} is no latency",
            "a number with us, ms or s stands there",
            line=place.line,
        )
    value, note = (match[1], "") if int(match[1]) else ("", "printed 0")
    source.add(Found(place.line, TOOL, f"{phase}_latency", value, match[2], note, place.about))


def size_level(text: str) -> str:
    """A size as bonnie++ prints it, as a level: 64M is 64m, 7168 is in MiB; empty for none."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or not int(match[1]):
        return ""
    number, unit = int(match[1]), match[2].lower() or "m"
    larger = {"k": "m", "m": "g", "g": "t"}
    while number % 1024 == 0 and unit in larger:
        number, unit = number // 1024, larger[unit]
    return f"{number}{unit}"
