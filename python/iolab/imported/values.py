"""From rows to what they say: runs, printed means, and values that are no measurements."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, NoReturn

from iolab import units
from iolab.frozen import frozen, replace
from iolab.imported.mapping import FactorColumn, Mapping, Wishes
from iolab.imported.quantities import KNOWN_UNITS, Quantity, doubt_of, quantity_of
from iolab.imported.table import Background, Row, Table
from iolab.store.verify import RUN_MAX, VALUE_MAX, VALUE_MIN

Kind = Literal["run", "mean", "derived"]
COUNTED_MAX: Final = 1000
"""Rows of the same thing that are counted as runs; more are a series within a run."""
_DERIVED: Final = re.compile(r"\d+\s*\(derived\)", re.IGNORECASE)
MEANS: Final = ("mean", "average", "avg")
"""Words in place of a run that mean: this is what the table says their mean is."""
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_COUNTRIES: Final = (";", "\t")
"""Separators of files from countries whose decimal sign is a comma."""
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(\.\d{3})+")
_RUN_DIGITS: Final = len(str(RUN_MAX))
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
        """Place of the value: its row without the run; two units of one quantity are one place."""
        what = self.quantity.metric if self.quantity is not None else self.unit
        return (self.workload, self.levels, self.operation, what)

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
    first: dict[object, Value] = {}
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
            value = _counted(table, value, counted[value.place], first)
        key = (value.place, value.kind, value.run)
        if key in first:
            _refuse_twice(table, value, first[key])
        first[key] = value
        values.append(value)
    _refuse_grouped(table, mapping, values)
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
    quantity = _quantity(table, mapping, row, operation, unit)
    _check_amount(table, mapping, row, quantity, f"{printed} {unit}")
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


def _quantity(
    table: Table, mapping: Mapping, row: Row, operation: str, unit: str
) -> Quantity | None:
    doubt = doubt_of(unit)
    if doubt:
        table.fail(
            f"'{unit}' is printed for bits and for bytes: nobody can know which",
            f"write {doubt}",
            line=row.line,
            column=mapping.roles.get("unit", ""),
        )
    return quantity_of(unit, operation)


def _check_amount(
    table: Table, mapping: Mapping, row: Row, quantity: Quantity | None, amount: str
) -> None:
    """Refuse what no machine measures, by which ratios would be no numbers."""
    if quantity is None:
        return
    own = float(amount.partition(" ")[0]) * quantity.scale
    column = mapping.roles["value"]
    if own < 0:
        table.fail(
            f"{amount} is below zero",
            "throughputs and times are not",
            line=row.line,
            column=column,
        )
    if own > VALUE_MAX or 0 < own < VALUE_MIN:
        size = "large" if own > VALUE_MAX else "small"
        table.fail(
            f"{amount} is too {size} to be measured",
            "is the number or its unit misprinted?",
            line=row.line,
            column=column,
        )


def _counted(table: Table, value: Value, run: int, first: dict[object, Value]) -> Value:
    """Value as the next run of what it is of."""
    if run > COUNTED_MAX:
        table.fail(
            f"more than {COUNTED_MAX} rows of {value.text}, and no column says which run a row is",
            "a series within a run is not so many runs: write one value per run, or name the"
            " column with --map run=COLUMN",
            line=value.line,
        )
    before = first.get((value.place, "run", 1))
    if before is not None and before.unit != value.unit:
        table.fail(
            f"{value.text} is in {value.unit}, in line {before.line} in {before.unit}, and no"
            " column says which run a row is",
            "write one unit, or name the column with --map run=COLUMN",
            line=value.line,
        )
    return replace(value, kind="run", run=run)


def _refuse_twice(table: Table, value: Value, before: Value) -> NoReturn:
    """Refuse a second value of the same run of the same thing."""
    units = f" in {before.unit}" if before.unit != value.unit else ""
    table.fail(
        f"run {value.run or value.kind} of {value.text} stands in line {before.line} already"
        f"{units}",
        "leave one of the units out"
        if units
        else "number the runs, or name the column that tells them apart with --factor",
        line=value.line,
    )


def _refuse_grouped(table: Table, mapping: Mapping, values: list[Value]) -> None:
    """Refuse points that may part thousands: 1.180 beside 980, in a file as spreadsheets of
    countries write it whose decimal sign is a comma.
    """
    if table.separator not in _COUNTRIES:
        return
    alike: dict[object, list[Value]] = defaultdict(list)
    for value in values:
        alike[value.workload, value.operation, value.unit].append(value)
    for found in alike.values():
        with_point = [value for value in found if "." in value.printed]
        if not with_point or len(with_point) == len(found):
            continue
        if all(_THOUSANDS.fullmatch(value.printed) for value in with_point):
            text = with_point[0].printed
            other = next(value for value in found if "." not in value.printed)
            table.fail(
                f"'{text}' may be {text.replace('.', '')} or {float(text):g}: line {other.line}"
                f" has '{other.printed}', without a point",
                "leave the thousands separators out, or write all values with as many decimals"
                f" ({other.printed}.000)",
                line=with_point[0].line,
                column=mapping.roles["value"],
            )


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
    digits = text.lstrip("0")
    is_whole = text.isascii() and text.isdecimal() and 0 < len(digits) <= _RUN_DIGITS
    if not is_whole or int(digits) > RUN_MAX:
        table.fail(
            f"'{text[:60]}' is not a run",
            f"write a whole number from 1 to {RUN_MAX}, 'mean' for a printed mean,"
            " 'N (derived)' for what was not printed, or nothing for a setting",
            line=row.line,
            column=column,
        )
    return "run", int(digits)


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
    if re.fullmatch(r"\d{1,3}((,\d{3})+(\.\d+)?|(\.\d{3}){2,}(,\d+)?|(\.\d{3})+,\d+)", text):
        return "leave the thousands separators out"
    if re.fullmatch(r"\d+,\d+", text):
        return "write a decimal point, not a comma"
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity", "-", "n/a", "na", "null"):
        return "leave the cell empty where there is no value"
    if re.match(r"[\d.]+\s*[A-Za-zµ%]", text):
        return f"put the unit into a column of its own, or say --unit ({', '.join(KNOWN_UNITS)})"
    return "write a number such as 20247.65"
