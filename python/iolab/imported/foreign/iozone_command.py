"""Facts that an IOzone command line, as IOzone repeats it, tells about the numbers below it.

Only what changes the meaning of a number is read: how files are accessed, what is timed, the unit,
the numbers of processes. Which options take a word: IOzone 3.489, its -h text.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from iolab.frozen import frozen

_TAKES_WORD: Final = "bdfgijklnqrstuyFHJLPSUVXY"
_PLUS_TAKES_WORD: Final = "abchimpqwxyACKORSW"
_MEANING: Final = "IoBDGHkWTxmpceZKV"
"""Flags that change what a number means; shown as they are typed."""
_PLUS_MEANING: Final = "rDlVL"
_PROCESSES_MAX: Final = 1024


@frozen
class Command:
    """Facts that the options tell."""

    text: str = ""
    flags: str = "none"
    unit: str = "KB/s"
    processes: tuple[int, ...] = ()

    @property
    def is_direct(self) -> bool:
        """Tell whether files were opened with O_DIRECT, as far as -I goes."""
        return "-I" in self.flags.split()


def read_command(text: str) -> Command:
    """Understand a command line; what is not understood is passed over."""
    options = list(_options(text))
    names = {name for name, _ in options}
    flags = [f"-{c}" for c in _MEANING if c in names]
    flags += [f"-+{c}" for c in _PLUS_MEANING if f"+{c}" in names]
    unit = "1/s" if "O" in names else "us" if "N" in names else "KB/s"
    return Command(text.strip(), " ".join(flags) or "none", unit, tuple(_processes(options)))


def _options(text: str) -> Iterator[tuple[str, str]]:
    try:
        words = shlex.split(text)[1:]
    except ValueError:
        words = text.split()[1:]
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if not word.startswith("-") or len(word) < 2:
            continue
        if word[1] == "+":
            name = word[2:3]
            yield f"+{name}", ""
            place += bool(name) and name in _PLUS_TAKES_WORD
            continue
        name, rest = word[1], word[2:]
        while name and name not in _TAKES_WORD:
            yield name, ""
            name, rest = rest[:1], rest[1:]
        if name:
            if not rest and place < len(words):
                rest = words[place]
                place += 1
            yield name, rest


def _processes(options: list[tuple[str, str]]) -> Iterator[int]:
    """Number of processes of each table of the throughput mode, in order."""
    lower = upper = 0
    for name, word in options:
        count = int(word) if word.isascii() and word.isdecimal() and len(word) < 5 else 0
        if name == "t":
            yield count or 8
        elif name == "l":
            lower = count
        elif name == "u":
            upper = count
    if lower or upper:
        yield from range(lower or 1, min(upper or lower, _PROCESSES_MAX) + 1)
