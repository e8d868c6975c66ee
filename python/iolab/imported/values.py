"""From rows to what they say: runs, printed means, and values that are no measurements."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal, InvalidOperation
from typing import Final, Literal

from iolab import units
from iolab.frozen import frozen, replace
from iolab.imported.mapping import FactorColumn, Mapping, Wishes
from iolab.imported.quantities import KNOWN_UNITS, Quantity, quantity_of
from iolab.imported.table import Background, Row, Table

Kind = Literal["run", "mean", "derived"]
RUN_MAX: Final = 100_000
_DERIVED: Final = re.compile(r"\d+\s*\(derived\)", re.IGNORECASE)
MEANS: Final = ("mean", "average", "avg")
"""Words in place of a run that mean: this is what the table says their mean is."""
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_OPERATION: Final = "all"
"""Name of the operation where a table has no column for it."""

Levels = tuple[tuple[str, str], ...]


@frozen
class Value:
    """One row that holds a number."""

    line: int
    workload: str
    levels: Levels
    operation: str
    kind: Kind
    run: int
    """0 unless `kind` is run."""
    printed: str
    unit: str
    quantity: Quantity | None
    """Quantity; None where no verdict can rest on the unit."""
    notes: str
    file: str = ""
    """File of the row, where the table was put together from several: the name of the value's
    own.
    """
    background: Background | None = None

    @property
    def place(self) -> tuple[str, Levels, str, str]:
        """Place of the value: its row without the run."""
        return (self.workload, self.levels, self.operation, self.unit)

    @property
    def text(self) -> str:
        """Operation and levels for people."""
        return " · ".join([self.operation, *(level for _, level in self.levels)])


@frozen
class Reading:
    """A table, understood row by row."""

    table: Table
    mapping: Mapping
    values: tuple[Value, ...]
    missing: tuple[int, ...]
    """Lines without a value."""
    unexplained: tuple[int, ...]
    """Those of them that carry no note."""
    settings: tuple[int, ...]
    """Lines that are no measurement: their run is empty."""
    are_runs_numbered_here: bool
    """No column says the run: rows of the same thing were counted."""
    failed: tuple[Value, ...] = ()
    """Rows that stand for a failed run: they hold no number."""

    @property
    def runs(self) -> list[Value]:
        """Values that are runs."""
        return [value for value in self.values if value.kind == "run"]


def read_values(table: Table, mapping: Mapping, wishes: Wishes) -> Reading:
    """Understand every row.

    Raises
    ------
    TableError : a cell is not what its column holds; names the place.
    """
    values: list[Value] = []
    failed: list[Value] = []
    missing: list[int] = []
    settings: list[int] = []
    counted: Counter[object] = Counter()
    first_line: dict[object, int] = {}
    for row in table.rows:
        value = _value(table, mapping, wishes, row)
        if value is None:
            run = mapping.roles.get("run")
            (settings if run and not row.cells[run] else missing).append(row.line)
            continue
        if value.background is not None and value.background.error:
            failed.append(value)
            continue
        if "run" not in mapping.roles:
            counted[value.place] += 1
            value = _numbered(value, counted[value.place])
        key = (value.place, value.kind, value.run)
        if key in first_line:
            table.fail(
                f"run {value.run or value.kind} of {value.text} stands in line"
                f" {first_line[key]} already",
                "number the runs, or name the column that tells them apart with --factor",
                line=row.line,
            )
        first_line[key] = row.line
        values.append(value)
    noted = {row.line for row in table.rows if _cell(mapping, row, "notes")}
    reading = Reading(
        table,
        mapping,
        tuple(values),
        tuple(missing),
        tuple(line for line in missing if line not in noted),
        tuple(settings),
        "run" not in mapping.roles,
        tuple(failed),
    )
    _check(reading)
    return reading


def _check(reading: Reading) -> None:
    table = reading.table
    if reading.runs:
        return
    if reading.failed:
        first = reading.failed[0]
        error = first.background.error if first.background is not None else ""
        table.fail(
            f"nothing was measured, every run failed ({error})",
            "look at what the program said when it ran, and measure again",
            line=first.line,
        )
    if reading.settings and not reading.values:
        table.fail(
            "no row is a measurement: the run is empty in all of them",
            "these are settings, there is nothing to compare",
        )
    if reading.values:
        table.fail("there are printed means but no runs", "a mean of unknown runs has no interval")
    table.fail("no row has a value", "fill the column of values")


def _value(table: Table, mapping: Mapping, wishes: Wishes, row: Row) -> Value | None:
    """Understand one row; None if it has no value or is no measurement."""
    kind, run = _run(table, mapping, row)
    if kind is None:
        return None
    levels = tuple(
        (factor.name, _level(table, factor, row))
        for factor in mapping.factors
        if row.cells[factor.column]
    )
    operation = _cell(mapping, row, "operation") or _OPERATION
    if "/" in operation and operation.endswith("/all"):
        table.fail("an operation may not end in '/all'", "rename it", line=row.line)
    printed = row.cells[mapping.roles["value"]]
    is_failed = row.background is not None and bool(row.background.error)
    if not printed and not is_failed:
        return None
    if is_failed:
        printed = "0"
    if not _NUMBER.fullmatch(printed) or not _is_number(printed):
        table.fail(
            f"'{printed}' is not a number",
            _number_hint(printed),
            line=row.line,
            column=mapping.roles["value"],
        )
    unit = _cell(mapping, row, "unit") if "unit" in mapping.roles else wishes.unit
    quantity = quantity_of(unit, operation)
    if quantity is not None and float(printed) < 0:
        table.fail(
            f"{printed} {unit} is below zero",
            "throughputs and times are not",
            line=row.line,
            column=mapping.roles["value"],
        )
    workload = _cell(mapping, row, "workload") or "imported"
    notes = _cell(mapping, row, "notes")
    return Value(
        line=row.line,
        workload=workload,
        levels=levels,
        operation=operation,
        kind=kind,
        run=run,
        printed=printed,
        unit=unit,
        quantity=quantity,
        notes=notes,
        file=row.file,
        background=row.background,
    )


def _numbered(value: Value, run: int) -> Value:
    return replace(value, kind="run", run=run)


def _cell(mapping: Mapping, row: Row, role: str) -> str:
    column = mapping.roles.get(role)
    return row.cells[column] if column else ""


def _run(table: Table, mapping: Mapping, row: Row) -> tuple[Kind | None, int]:
    column = mapping.roles.get("run")
    if column is None:
        return "run", 0
    text = row.cells[column]
    if not text:
        return None, 0
    if text.lower() in MEANS:
        return "mean", 0
    if _DERIVED.fullmatch(text):
        return "derived", 0
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= RUN_MAX:
        table.fail(
            f"'{text[:60]}' is not a run",
            f"write a whole number from 1 to {RUN_MAX}, 'mean' for a printed mean,"
            " 'N (derived)' for what was not printed, or nothing for a setting",
            line=row.line,
            column=column,
        )
    return "run", int(text)


def _level(table: Table, factor: FactorColumn, row: Row) -> str:
    text = row.cells[factor.column]
    if factor.bytes_per_unit is None:
        return text
    try:
        if text.isascii() and text.isdecimal():
            return units.format_bytes(units.parse_bytes(int(text[:20]) * factor.bytes_per_unit))
        return units.format_bytes(units.parse_bytes(text))
    except ValueError as error:
        table.fail(str(error), "4096 and 4k are sizes", line=row.line, column=factor.column)


def _is_number(text: str) -> bool:
    try:
        return Decimal(text).is_finite() and abs(float(text)) < float("inf")
    except (InvalidOperation, OverflowError):
        return False


def _number_hint(text: str) -> str:
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        return "leave the thousands separators out"
    if re.fullmatch(r"\d+,\d+", text):
        return "write a decimal point, not a comma"
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity", "-", "n/a", "na", "null"):
        return "leave the cell empty where there is no value"
    if re.match(r"[\d.]+\s*[A-Za-zµ%]", text):
        return f"put the unit into a column of its own, or say --unit ({', '.join(KNOWN_UNITS)})"
    return "write a number such as 20247.65"
