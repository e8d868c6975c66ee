"""Wide tables: several measured columns in a row, each with its unit in its head.

``scheduler,read MB/s,write MB/s`` becomes one value per row, as the rest of the import expects it:
what stands before the unit is the operation. Left out: wide tables whose columns are runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from iolab.imported.mapping import ROLES, Wishes
from iolab.imported.quantities import KNOWN_UNITS
from iolab.imported.table import Row, Table

OPERATION: Final = "operation"
VALUE: Final = "value"
UNIT: Final = "unit"
_BEFORE_UNIT: Final = " _([-"
_GENERAL: Final = ("throughput", "bandwidth", "rate", "speed", "result", "value", "")
"""Heads that name no operation."""


def in_long_form(table: Table, wishes: Wishes) -> Table:
    """Table with one value per row; one that has a column of values stays as it is."""
    folded = {column.lower(): column for column in table.columns}
    if VALUE in wishes.columns or wishes.unit or any(name in folded for name in ROLES["value"]):
        return table
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
    for unit in sorted(KNOWN_UNITS, key=len, reverse=True):
        before = bare.removesuffix(unit.lower())
        if before != bare and (not before or before[-1] in _BEFORE_UNIT):
            what = head[: len(before)].rstrip(_BEFORE_UNIT)
            return what, unit
    return None


def _operation(named: str, what: str) -> str:
    parts = (named, "" if what.lower() in _GENERAL else what)
    return " ".join(part for part in parts if part) or "all"
