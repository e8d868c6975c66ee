"""Several files as one table: which level a file stands for, and which run a number belongs to.

``LEVEL=FILE`` says it. Else the options do that the program echoes (fio), or the name of a file:
what follows its last ``-``, ``_``, ``.`` or blank is the run if it is a number (``run3`` and ``r3``
too) and the numbers of one stem count on from 0 or 1; the rest is the level, without what all of
them begin with. One stem alone is no level. Files of the same name are told apart by their
directories.
Within a file, what was measured twice in the same way was measured in two runs.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

from iolab.frozen import frozen, replace
from iolab.imported.foreign.fio_logs import Log, add_logs, is_empty_log, is_log, read_log
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


@frozen
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


def read_files(
    named: list[Named], level_column: str = "", *, unit: str = "", factors: tuple[str, ...] = ()
) -> Table | None:
    """Read files that programs wrote as one table; None for a single file that is a table.

    Parameters
    ----------
    named : the files.
    level_column : factor that their levels are of; empty for one that is called `option`.
    unit : of a log of fio whose name does not say it.
    factors : columns that are levels; empty for all that vary.

    Raises
    ------
    TableError : one cannot be read or is none of theirs.
    """
    if len(named) > _FILES_MAX:
        raise TableError(f"more than {_FILES_MAX} files", "import them in parts")
    twice = [path for path, count in Counter(n.path for n in named).items() if count > 1]
    if twice:
        raise TableError(f"{twice[0]} is named twice", "name every file once")
    unnamed = [name.path for name in named if not name.level]
    if 0 < len(unnamed) < len(named):
        raise TableError(
            f"{unnamed[0]} is of no level, but other files are (LEVEL=FILE)",
            f"name its level, too, as in default={unnamed[0]}",
        )
    sources: list[Source] = []
    origins: list[Origin] = []
    logs: list[Log] = []
    for name in named:
        content = read_content(name.path)
        if is_log(content):
            logs.append(read_log(Source(name.path), content, unit))
            source = logs[-1].source
        elif len(named) > 1 and is_empty_log(name.path, content):
            source = Source(name.path, is_named=False)
        else:
            source = read_foreign(name.path, content)
        if source is None and len(named) == 1 and not name.level:
            return None
        if source is None:
            raise TableError(
                f"{name.path}: not recognised as output of fio, iozone or bonnie++",
                "a table of measurements is imported alone; join tables into one file",
            )
        sources.append(source)
        origins.append(Origin(name.path, hashlib.sha256(content).hexdigest(), len(content)))
    add_logs(logs)
    for source in sources:
        source.numbers = [_printable_found(found) for found in source.numbers]
    if not any(source.numbers for source in sources):
        sources[0].fail("no number in it", "the run was broken off before its first result")
    return _table(named, sources, origins, level_column, factors)


def _table(
    named: list[Named],
    sources: list[Source],
    origins: list[Origin],
    level_column: str,
    factors: tuple[str, ...],
) -> Table:
    levels = levels_of(named, are_named=all(source.is_named for source in sources))
    columns = _columns(sources)
    defaults = {name: text for source in sources for name, text in source.defaults.items()}
    level_name = _level_name(level_column, levels, columns)
    tied = _tied(sources, columns, defaults) if not factors else {}
    columns = tuple(column for column in columns if column not in tied)
    keyed = {*(factors or columns), level_name}
    numbers = _RunNumbers()
    rows: list[Row] = []
    places = _places(named, levels)
    at = -1
    for index, found in _in_order_of_time([(i, f) for i in places for f in sources[i].numbers]):
        if index != at:
            numbers.begin_file(levels[index])
            at = index
        cells = _cells(found, columns, defaults if sources[index].defaults else {})
        cells[level_name] = levels[index]
        key = tuple(cells[name] for name in sorted(keyed) if name in cells)
        cells["run"] = str(numbers.of(found, index, key))
        rows.append(Row(found.line, cells, str(origins[index].path), found.background))
        if len(rows) > _ROWS_MAX:
            raise TableError(f"more than {_ROWS_MAX} numbers", "import the files in parts")
    heads = ("tool", level_name, *columns, "operation", "run", "value", "unit", "notes")
    notes = tuple(note for source in sources for note in source.notes)
    return Table(*_identity(origins), heads, tuple(rows), tuple(origins), notes, _said(tied))


_Tied = dict[str, dict[str, str]]


def _tied(sources: list[Source], columns: tuple[str, ...], defaults: dict[str, str]) -> _Tied:
    """Columns that say of each task one thing, and not the same of all: no levels, but facts."""
    seen: dict[str, dict[str, set[str]]] = {c: defaultdict(set) for c in columns}
    for source in sources:
        for found in source.numbers:
            if found.background is None or not found.background.task:
                return {}
            about = dict(found.about)
            for column in columns:
                text = about.get(column, defaults.get(column, "default"))
                seen[column][found.background.task].add(text)
    return {
        column: {task: next(iter(values)) for task, values in tasks.items()}
        for column, tasks in seen.items()
        if all(len(values) == 1 for values in tasks.values())
        and len({value for values in tasks.values() for value in values}) > 1
    }


def _said(tied: _Tied) -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"{column}.{task}", text) for column in tied for task, text in tied[column].items()
    )


def _in_order_of_time(found: list[tuple[int, Found]]) -> list[tuple[int, Found]]:
    """Numbers in the order in which their runs began, if that is known of all; else as named."""
    began = [f.background.started_at_unix_ns if f.background is not None else 0 for _, f in found]
    if not all(began):
        return found
    return [found[i] for i in sorted(range(len(found)), key=lambda i: began[i])]


def _level_name(wanted: str, levels: list[str], columns: tuple[str, ...]) -> str:
    """Column of the levels of files.

    Raises
    ------
    TableError : a factor was asked for that no column holds.
    """
    taken = {"tool", "operation", "run", "value", "unit", "notes", *columns}
    free = wanted and wanted not in taken and len(set(levels)) > 1
    if wanted and not free and wanted not in taken:
        raise TableError(
            f"--compare {wanted}: there is no such factor{nearest(wanted, columns)}",
            "name several files with levels, LEVEL=FILE, to have one of your own",
        )
    return wanted if free else LEVEL


class _RunNumbers:
    """Numbers of runs: those of a file are counted, and begin where its level's last ended.

    Where a program says what ran together, a run is one such execution of one treatment.
    """

    def __init__(self) -> None:
        self._used: Counter[str] = Counter()
        self._counted: Counter[object] = Counter()
        self._level = ""
        self._base = self._runs = 0
        self._executions: dict[object, dict[tuple[int, int], int]] = defaultdict(dict)

    def begin_file(self, level: str) -> None:
        """Begin a file of a level; the last one ends."""
        self._used[self._level] += self._runs
        self._counted.clear()
        self._level, self._base, self._runs = level, self._used[level], 0

    def of(self, found: Found, index: int, key: object) -> int:
        """Number of the run that a number belongs to."""
        if found.background is not None:
            known = self._executions[key, found.background.task]
            return known.setdefault((index, found.background.execution), len(known) + 1)
        place = (found.tool, found.operation, found.unit, found.about)
        self._counted[place] += 1
        self._runs = max(self._runs, self._counted[place])
        return self._base + self._counted[place]


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


def _cells(found: Found, columns: tuple[str, ...], defaults: dict[str, str]) -> dict[str, str]:
    about = dict(found.about)
    if defaults:
        about = {name: defaults.get(name, "default") for name in columns} | about
    cells = {name: _printable(about.get(name, "")) for name in columns}
    return cells | {
        "tool": found.tool,
        "operation": found.operation,
        "value": found.value,
        "unit": found.unit,
        "notes": found.notes,
    }


def _printable_found(found: Found) -> Found:
    """Number with nothing in its words that cannot be printed or stored."""
    words = [found.operation, found.unit, found.notes]
    words += [text for pair in found.about for text in pair]
    background = found.background
    if background is not None:
        words += [background.task, background.error]
    if all(map(str.isprintable, words)):
        return found
    if background is not None:
        background = replace(
            background, task=_visible(background.task), error=_visible(background.error)
        )
    return replace(
        found,
        operation=_visible(found.operation),
        unit=_visible(found.unit),
        notes=_visible(found.notes),
        about=tuple((_visible(name), _visible(text)) for name, text in found.about),
        background=background,
    )


def _visible(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _printable(text: str) -> str:
    return _visible(text)[:_LEVEL_LENGTH_MAX]


def _places(named: list[Named], levels: list[str]) -> list[int]:
    """Order of the files: as named, but the runs of a level by their number."""
    first = {level: place for place, level in reversed(list(enumerate(levels)))}
    numbers = [_split(label)[1] for label in _labels(named)]
    return sorted(range(len(named)), key=lambda i: (first[levels[i]], numbers[i] or 0, i))


def levels_of(named: list[Named], *, are_named: bool = True) -> list[str]:
    """Level that each file stands for; empty where all stand for the same.

    Of a program that says itself how it was called (`are_named` is false) no file name is asked.
    """
    if not are_named:
        return [_printable(name.level) for name in named]
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
