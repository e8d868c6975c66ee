"""Numbers that the readers of other programs' output hand on: one number, and all that is said of
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from iolab.frozen import frozen
from iolab.imported.table import Background, TableError

FILE_BYTES_MAX: Final = 16 << 20
"""Of one file; what iozone and bonnie++ print in a whole night is below a MiB."""
NUMBERS_MAX: Final = 100_000
"""In one file."""
SHOWN: Final = 60


@frozen
class Found:
    """One number of a program's output."""

    line: int
    """1-based; of a worksheet, the row."""
    tool: str
    operation: str
    value: str
    """As printed; empty where the program printed that it has none."""
    unit: str
    notes: str = ""
    about: tuple[tuple[str, str], ...] = ()
    """Column to what the program says of how it was measured: sizes, processes, version."""
    background: Background | None = None


@dataclass(slots=True)
class Source:
    """One file, and the place of whatever is wrong with it."""

    path: Path
    numbers: list[Found] = field(default_factory=list[Found])
    is_named: bool = True
    """True if a file's name stands for a level where the user names none."""
    defaults: dict[str, str] = field(default_factory=dict[str, str])
    """Level of a column that another file has and this one does not; others are left empty."""
    notes: list[str] = field(default_factory=list[str])
    """Sentences for the user about what was passed over."""

    def add(self, found: Found) -> None:
        """Keep one number.

        Raises
        ------
        TableError : there are too many.
        """
        if len(self.numbers) >= NUMBERS_MAX:
            self.fail(f"more than {NUMBERS_MAX} numbers", "split the file", line=found.line)
        self.numbers.append(found)

    def fail(self, message: str, hint: str, *, line: int = 0, place: str = "line") -> NoReturn:
        """Raise an error that names the place."""
        where = f"{self.path}, {place} {line}" if line else str(self.path)
        raise TableError(f"{where}: {message}", hint)


def shown(text: str) -> str:
    """A piece of foreign text that is safe to print."""
    safe = "".join(c if c.isprintable() else "?" for c in text.strip())
    return repr(safe if len(safe) <= SHOWN else safe[:SHOWN] + "…")


def kib(text: str) -> str:
    """A number of KiB as a size of the fewest digits: 1024 is 1m, 12 is 12k."""
    count = int(text)
    for suffix, unit in (("g", 1 << 20), ("m", 1 << 10)):
        if count and count % unit == 0:
            return f"{count // unit}{suffix}"
    return f"{count}k"
