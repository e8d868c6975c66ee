"""Several files as one table: which level a file stands for, and which run a number belongs to.

``LEVEL=FILE`` says it. Else a file's name does: what follows its last ``-``, ``_``, ``.`` or blank
is the run if it is a number (``run3`` and ``r3`` too) and the numbers of one stem count on from 0
or 1; the rest is the level, without what all of them begin with. One stem alone is no level. Files
of the same name are told apart by their directories.
Within a file, what was measured twice in the same way was measured in two runs.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab.imported.foreign.found import Found, Source
from iolab.imported.foreign.recognise import read_foreign
from iolab.imported.table import Origin, Row, Table, TableError, read_content
from iolab.wording import nearest

LEVEL: Final = "option"
"""Column of the files' levels; schedulers are recognised in it."""
_FILES_MAX: Final = 1000
_ROWS_MAX: Final = 200_000
_RUN: Final = re.compile(
    r"(?:(.*?)[-_. ])?(?:run|rep|trial|round|r)?[-_]?([0-9]{1,5})", re.IGNORECASE
)
_LEVEL_LENGTH_MAX: Final = 100
_JOINTS: Final = "-_. "


@dataclass(frozen=True, slots=True)
class Named:
    """A file and what the user says it stands for."""

    path: Path
    level: str = ""


def parse_argument(text: str) -> Named:
    """Understand ``FILE`` or ``LEVEL=FILE``; a file of that very name comes first.

    Raises
    ------
    TableError : the level is empty or cannot be printed.
    """
    level, sign, rest = text.partition("=")
    if not sign or Path(text).exists() or "/" in level:
        return Named(Path(text))
    if not level.strip() or not rest or not level.isprintable() or len(level) > _LEVEL_LENGTH_MAX:
        raise TableError(f"{text}: not of the form LEVEL=FILE", "write bfq=bfq-1.txt")
    return Named(Path(rest), level.strip())


def read_files(named: list[Named], level_column: str = "") -> Table | None:
    """Read files that programs wrote as one table; None for a single file that is a table.

    Raises
    ------
    TableError : one cannot be read or is none of theirs.
    """
    if len(named) > _FILES_MAX:
        raise TableError(f"more than {_FILES_MAX} files", "import them in parts")
    twice = [path for path, count in Counter(n.path for n in named).items() if count > 1]
    if twice:
        raise TableError(f"{twice[0]} is named twice", "name every file once")
    sources: list[Source] = []
    origins: list[Origin] = []
    for name in named:
        content = read_content(name.path)
        source = read_foreign(name.path, content)
        if source is None and len(named) == 1 and not name.level:
            return None
        if source is None:
            raise TableError(
                f"{name.path}: not recognised as output of iozone or bonnie++",
                "a table of measurements is imported alone; join tables into one file",
            )
        sources.append(source)
        origins.append(Origin(name.path, hashlib.sha256(content).hexdigest(), len(content)))
    return _table(named, sources, origins, level_column)


def _table(
    named: list[Named], sources: list[Source], origins: list[Origin], level_column: str
) -> Table:
    levels = levels_of(named)
    places = _places(named, levels)
    used: Counter[str] = Counter()
    rows: list[Row] = []
    columns = _columns(sources)
    taken = {"tool", "operation", "run", "value", "unit", "notes", *columns}
    free = level_column and level_column not in taken and len(set(levels)) > 1
    level_name = level_column if free else LEVEL
    if level_column and not free and level_column not in taken:
        raise TableError(
            f"--compare {level_column}: there is no such factor{nearest(level_column, columns)}",
            "name several files with levels, LEVEL=FILE, to have one of your own",
        )
    for index in places:
        runs = 0
        counted: Counter[object] = Counter()
        for found in sources[index].numbers:
            key = (found.tool, found.operation, found.unit, found.about)
            counted[key] += 1
            runs = max(runs, counted[key])
            run = used[levels[index]] + counted[key]
            cells = _cells(found, columns) | {"run": str(run)}
            cells[level_name] = levels[index]
            rows.append(Row(found.line, cells, str(origins[index].path)))
        used[levels[index]] += runs
        if len(rows) > _ROWS_MAX:
            raise TableError(f"more than {_ROWS_MAX} numbers", "import the files in parts")
    heads = ("tool", level_name, *columns, "operation", "run", "value", "unit", "notes")
    return Table(*_identity(origins), heads, tuple(rows), tuple(origins))


def _identity(origins: list[Origin]) -> tuple[Path, str, int]:
    if len(origins) == 1:
        return origins[0].path, origins[0].sha256, origins[0].size_bytes
    first = origins[0].path
    together = hashlib.sha256("".join(o.sha256 for o in origins).encode()).hexdigest()
    path = first.with_name(f"{first.name} and {len(origins) - 1} more")
    return path, together, sum(o.size_bytes for o in origins)


def _columns(sources: list[Source]) -> tuple[str, ...]:
    seen = (name for source in sources for found in source.numbers for name, _ in found.about)
    return tuple(dict.fromkeys(seen))


def _cells(found: Found, columns: tuple[str, ...]) -> dict[str, str]:
    about = dict(found.about)
    cells = {name: _printable(about.get(name, "")) for name in columns}
    return cells | {
        "tool": found.tool,
        "operation": found.operation,
        "value": found.value,
        "unit": found.unit,
        "notes": found.notes,
    }


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:_LEVEL_LENGTH_MAX]


def _places(named: list[Named], levels: list[str]) -> list[int]:
    """Order of the files: as named, but the runs of a level by their number."""
    first = {level: place for place, level in reversed(list(enumerate(levels)))}
    numbers = [_split(label)[1] for label in _labels(named)]
    return sorted(range(len(named)), key=lambda i: (first[levels[i]], numbers[i] or 0, i))


def levels_of(named: list[Named]) -> list[str]:
    """Level that each file stands for; empty where all stand for the same."""
    labels = _labels(named)
    splits = [_split(label) for label in labels]
    stems: dict[str, list[int]] = defaultdict(list)
    for stem, number in splits:
        if number is not None:
            stems[stem].append(number)
    counted = {s for s, n in stems.items() if sorted(n) in (_count(0, n), _count(1, n))}
    levels = [
        name.level or (stem if number is not None and stem in counted else label)
        for name, label, (stem, number) in zip(named, labels, splits, strict=True)
    ]
    if len(set(levels)) == 1:
        return [name.level for name in named]
    if not any(name.level for name in named):
        levels = _without_common_start(levels)
    return [_printable(level) or "(unnamed)" for level in levels]


def _labels(named: list[Named]) -> list[str]:
    """Labels that tell the files apart: names without suffix, else with that of their directory."""
    stems = [name.path.stem for name in named]
    if len(set(stems)) == len(stems):
        return stems
    parents = [name.path.absolute().parent.name for name in named]
    if len(set(stems)) == 1:
        return parents
    return [f"{parent}-{stem}" for parent, stem in zip(parents, stems, strict=True)]


def _count(start: int, numbers: list[int]) -> list[int]:
    return list(range(start, start + len(numbers)))


def _split(label: str) -> tuple[str, int | None]:
    """Text before the number of a run, and that number."""
    match = _RUN.fullmatch(label)
    return (match[1] or "", int(match[2])) if match else (label, None)


def _without_common_start(levels: list[str]) -> list[str]:
    first, last = min(levels), max(levels)
    length = next(
        (i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(last)),
    )
    cut = max((first.rfind(joint, 0, length) for joint in _JOINTS), default=-1) + 1
    return [level[cut:] or level for level in levels]
