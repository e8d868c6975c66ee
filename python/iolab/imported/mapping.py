"""Meaning of the columns: by the names that tables usually have, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import Final, Literal

from iolab.frozen import frozen
from iolab.imported.table import Table
from iolab.study import simulated
from iolab.study.factors import find_factor, is_factor
from iolab.wording import nearest

Role = Literal["operation", "run", "value", "unit", "workload", "notes"]
ROLES: Final[dict[Role, tuple[str, ...]]] = {
    "operation": ("operation", "op", "test", "phase", "benchmark"),
    "run": ("run", "rep", "repetition", "iteration", "round", "trial"),
    "value": ("value", "result", "measurement", "throughput", "bandwidth", "bw"),
    "unit": ("unit", "units"),
    "workload": ("tool", "workload"),
    "notes": ("notes", "note", "comment", "remarks"),
}
"""Role to the header names that mean it without being asked."""
OPTION: Final = "option"
"""Column of levels whose factor is what they are names of: schedulers, if all are."""
_SIZES: Final = ("record_size", "block_size", "io_size", "bs")
_SIZE_SUFFIXES: Final = {"_bytes": 1, "_b": 1, "_kb": 1024, "_kib": 1024, "": 1}


@frozen
class Wishes:
    """Statements of the user about a table."""

    columns: dict[str, str] = field(default_factory=dict[str, str])
    """Role to column."""
    factors: dict[str, str] = field(default_factory=dict[str, str])
    """Column to the name of its factor; if any is given, no other column is a factor."""
    unit: str = ""
    name: str = ""
    compare: str = ""
    baseline: str = ""
    margin: float = 0.05


@frozen
class FactorColumn:
    """A column whose values are levels."""

    column: str
    name: str
    bytes_per_unit: int | None = None
    """For sizes: what a bare number counts."""


@frozen
class Mapping:
    """Every column's meaning."""

    roles: dict[str, str]
    factors: tuple[FactorColumn, ...]
    constants: tuple[str, ...]
    """Columns with the same value everywhere: statements about the table as a whole."""
    option: str | None
    """Name of the factor that column ``option`` holds."""


def understand_columns(table: Table, wishes: Wishes) -> Mapping:
    """Give each column its meaning.

    Raises
    ------
    TableError : a column that was named is not there, or the value's column is not found.
    """
    roles = _roles(table, wishes)
    rest = [c for c in table.columns if c not in roles.values()]
    for column in wishes.factors:
        _require(table, column, "--factor")
    factors: list[FactorColumn] = []
    constants: list[str] = []
    option: str | None = None
    for column in rest:
        values = list(dict.fromkeys(row.cells[column] for row in table.rows if row.cells[column]))
        is_option = column == OPTION or column in wishes.factors
        if wishes.factors and column not in wishes.factors:
            constants += [column] if len(values) == 1 else []
        elif len(values) > 1 or (values and (is_option or _is_known(column))):
            factor = _factor(column, wishes.factors.get(column, ""), values)
            factors.append(factor)
            option = factor.name if column == OPTION else option
        elif values:
            constants.append(column)
    return Mapping(roles, tuple(factors), tuple(constants), option)


def _is_known(column: str) -> bool:
    """Tell whether a column is a factor of iolab's own, which names a configuration even if
    constant.
    """
    return is_factor(column.lower()) or _factor(column, "", ()).bytes_per_unit is not None


def _roles(table: Table, wishes: Wishes) -> dict[str, str]:
    roles: dict[str, str] = {}
    folded = {column.lower(): column for column in table.columns}
    for role, column in wishes.columns.items():
        if role not in ROLES:
            table.fail(
                f"--map {role}={column}: there is no role '{role}'{nearest(role, ROLES)}",
                f"roles are {', '.join(ROLES)}",
            )
        _require(table, column, f"--map {role}")
        roles[role] = column
    for role, names in ROLES.items():
        if role not in roles:
            found = next((folded[n] for n in names if n in folded), None)
            alike = [c for c in table.columns if found is not None and c.lower() == found.lower()]
            if len(alike) > 1:
                table.fail(
                    f"columns {' and '.join(map(repr, alike))} may both be the {role}",
                    f"say which one, as in --map {role}={alike[0]}",
                )
            if found is not None and found not in roles.values() and found not in wishes.factors:
                roles[role] = found
    if "value" not in roles:
        table.fail(
            f"no column holds the values (columns: {', '.join(table.columns)})",
            f"name it, as in --map value={_numeric(table)} --unit MB/s; columns of levels need the"
            " number of their run in the head, as in 'noop 1'",
        )
    if "unit" not in roles and not wishes.unit:
        table.fail("no column with the unit", "add --unit KB/s or --map unit=COLUMN")
    return roles


def _numeric(table: Table) -> str:
    """The last column that holds numbers only, as an example."""
    found = [
        column
        for column in table.columns
        if all(re.fullmatch(r"-?[\d.]+", row.cells[column]) for row in table.rows)
    ]
    return found[-1] if found else "COLUMN"


def _require(table: Table, column: str, flag: str) -> None:
    if column not in table.columns:
        table.fail(
            f"{flag}: there is no column '{column}'{nearest(column, table.columns)}",
            f"columns are {', '.join(table.columns)}",
        )


def factor_of_levels(levels: Iterable[str]) -> str:
    """Name the factor whose levels these are, as far as they tell."""
    known = {scheduler.name for scheduler in simulated.SCHEDULERS}
    known |= set(find_factor("scheduler").choices)
    return "scheduler" if set(levels) <= known else OPTION


def _factor(column: str, wish: str, values: Iterable[str]) -> FactorColumn:
    name = wish or (factor_of_levels(values) if column == OPTION else column)
    folded = name.lower()
    for size in _SIZES:
        for suffix, scale in _SIZE_SUFFIXES.items():
            if folded == size + suffix:
                return FactorColumn(column, "record_size", scale)
    if is_factor(folded) and find_factor(folded).is_numeric and folded.endswith("_size"):
        return FactorColumn(column, folded, 1)
    return FactorColumn(column, name)
