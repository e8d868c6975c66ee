"""Wide tables: several values in a row, which become one value per row, as the rest of the import
expects it.

Heads that end in a unit are measured columns: in ``scheduler,read MB/s,write MB/s`` what stands
before the unit is the operation. Heads that end in 1, 2, ... are runs: ``noop 1,noop 2,cfq 1`` of
levels, ``run 1,run 2`` of what the row says. Left out: tables that are wide in both ways.
"""

from __future__ import annotations

import re
from typing import Final

from iolab.frozen import replace
from iolab.imported.mapping import OPTION, ROLES, Wishes, factor_of_levels
from iolab.imported.quantities import KNOWN_UNITS
from iolab.imported.table import Row, Table
from iolab.imported.values import MEANS
from iolab.study.factors import is_factor
from iolab.wording import counted

OPERATION: Final = "operation"
VALUE: Final = "value"
UNIT: Final = "unit"
RUN: Final = "run"
_BEFORE_UNIT: Final = " _([-"
_GENERAL: Final = ("throughput", "bandwidth", "rate", "speed", "result", "value", "")
"""Heads that name no operation."""
_SPELLED: Final = {"mb_s": "MB/s", "mbs": "MB/s", "kb_s": "KB/s", "kbs": "KB/s"}
"""Units as heads of columns spell them, beside their own names; ``mbps`` may be bits."""
_OF_A_RUN: Final = re.compile(rf"(.*?)[ _#.:-]*([1-9]\d{{0,3}}|{'|'.join(MEANS)})", re.I | re.S)
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", re.IGNORECASE)


def in_long_form(table: Table, wishes: Wishes) -> Table:
    """Table with one value per row; one that has a column of values stays as it is."""
    folded = {column.lower(): column for column in table.columns}
    if VALUE in wishes.columns or any(name in folded for name in ROLES["value"]):
        return table
    runs = _runs(table, {*wishes.columns.values(), *wishes.factors})
    if runs:
        return _by_run(table, runs)
    return table if wishes.unit else _by_unit(table, wishes, folded)


def _runs(table: Table, taken: set[str]) -> dict[str, tuple[str, str]]:
    """Level and run of each column that holds a run of one, or the mean of its runs.

    The numbers of a level go from 1 on without a gap, and there are two at least: `disk 1, disk 4`
    is no such thing, nor is a factor of iolab's own.
    """
    found: dict[str, tuple[str, str]] = {}
    for column in table.columns:
        match = _OF_A_RUN.fullmatch(column)
        if match and column not in taken and not is_factor(match[1].lower().replace(" ", "_")):
            level = "" if match[1].lower() in ROLES[RUN] else match[1]
            found[column] = (level, "mean" if match[2].lower() in MEANS else match[2])
    for level in {level for level, _ in found.values()}:
        runs = {column: run for column, (of, run) in found.items() if of == level}
        numbers = sorted(int(run) for run in runs.values() if run != "mean")
        cells = [row.cells[column] for row in table.rows for column in runs]
        are_runs = len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1))
        if not are_runs or not all(_NUMBER.fullmatch(cell) for cell in cells if cell):
            for column in runs:
                del found[column]
    return found


def _by_run(table: Table, runs: dict[str, tuple[str, str]]) -> Table:
    """Table with a row for each run, and with the levels if they have names."""
    kept = [column for column in table.columns if column not in runs]
    levels = list(dict.fromkeys(level for level, _ in runs.values() if level))
    names = (factor_of_levels(levels), OPTION, "level") if levels else ()
    named = [name for name in names if name not in kept][:1]
    rows = tuple(
        Row(
            row.line,
            {c: row.cells[c] for c in kept}
            | dict.fromkeys(named, level)
            | {RUN: run, VALUE: row.cells[column]},
            row.file,
            row.background,
        )
        for row in table.rows
        for column, (level, run) in runs.items()
    )
    note = f"{counted(len(runs), 'column')} of numbers are runs"
    note += f" of {', '.join(levels)} (factor {named[0]})" if named else " of their row"
    columns = (*kept, *named, RUN, VALUE)
    return replace(table, columns=columns, rows=rows, notes=(*table.notes, note))


def _by_unit(table: Table, wishes: Wishes, folded: dict[str, str]) -> Table:
    """Table with a row for each measured column."""
    taken = {*wishes.columns.values(), *wishes.factors}
    measured = {c: found for c in table.columns if c not in taken and (found := _measured(c))}
    if not measured or {VALUE, UNIT} & {*folded, *wishes.factors.values()}:
        return table
    named = wishes.columns.get(OPERATION) or next(
        (folded[name] for name in ROLES["operation"] if name in folded), None
    )
    kept = [c for c in table.columns if c not in measured and c != named]
    rows = tuple(
        Row(
            row.line,
            {c: row.cells[c] for c in kept}
            | {named or OPERATION: _operation(row.cells.get(named or "", ""), what)}
            | {VALUE: row.cells[column], UNIT: unit},
            row.file,
            row.background,
        )
        for row in table.rows
        for column, (what, unit) in measured.items()
    )
    return replace(table, columns=(*kept, named or OPERATION, VALUE, UNIT), rows=rows)


def _measured(head: str) -> tuple[str, str] | None:
    """Subject of a column and its unit; None for a head that ends with no unit."""
    bare = head.rstrip(")] ").lower()
    spelled = {unit.lower(): unit for unit in KNOWN_UNITS} | _SPELLED
    for spelling, unit in sorted(spelled.items(), key=lambda it: len(it[0]), reverse=True):
        before = bare.removesuffix(spelling)
        if before != bare and (not before or before[-1] in _BEFORE_UNIT):
            what = head[: len(before)].rstrip(_BEFORE_UNIT)
            return what, unit
    return None


def _operation(named: str, what: str) -> str:
    parts = (named, "" if what.lower() in _GENERAL else what)
    return " ".join(part for part in parts if part) or "all"
