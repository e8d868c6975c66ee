"""Wide tables: several values in a row, which become one value per row, as the rest of the import
expects it.

Heads that end in a unit are measured columns: in ``scheduler,read MB/s,write MB/s`` what stands
before the unit is the operation. A knob (``slice_idle_ms``) is none, nor is a time or a count
beside a rate whose few values repeat: these are settings, and a note says so. Heads that end in 1,
2, ... are runs: ``noop 1,noop 2,cfq 1`` of levels, ``run 1,run 2`` of what the row says. Left out:
tables that are wide in both ways.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from iolab.frozen import replace
from iolab.imported.latency_words import names_a_statistic
from iolab.imported.mapping import OPTION, ROLES, Wishes, factor_of_levels
from iolab.imported.quantities import KNOWN_UNITS, doubt_of, is_count, is_time, quantity_of
from iolab.imported.table import Row, Table
from iolab.imported.values import MEANS
from iolab.study.factors import FACTORS, find_factor, is_factor
from iolab.wording import counted

OPERATION: Final = "operation"
VALUE: Final = "value"
UNIT: Final = "unit"
RUN: Final = "run"
_BEFORE_UNIT: Final = " _([-"
_GENERAL: Final = ("throughput", "bandwidth", "rate", "speed", "result", "value", "")
"""Heads that name no operation."""
_SPELLED: Final = {"mb_s": "MB/s", "mbs": "MB/s", "kb_s": "KB/s", "kbs": "KB/s"}
"""Units as heads of columns spell them, beside their own names."""
_PER_SECOND: Final = ("kbps", "mbps", "gbps")
"""Units whose capitals alone say whether they are bits or bytes."""
_OF_A_RUN: Final = re.compile(rf"(?<!\d)0{{0,3}}([1-9]\d{{0,3}})\Z|({'|'.join(MEANS)})\Z", re.I)
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", re.IGNORECASE)
_JOINTS: Final = " _#.:-"
"""Signs between a level and the number of a run."""
_DECIMAL: Final = re.compile(r"\d\.\Z")
"""End of what is before a number that is no run: `5.` of `kernel 5.1`."""
_TIMINGS: Final = frozenset(
    (
        *("time", "elapsed", "real", "user", "sys", "system", "wall", "total", "duration"),
        *("runtime", "cpu"),
    )
)
"""Words of a head that name a measured time."""
_OPERATIONS: Final = frozenset(
    (
        *(
            "read",
            "write",
            "reads",
            "writes",
            "rewrite",
            "reread",
            "rand",
            "random",
            "seq",
            "mixed",
        ),
        *("sequential", "randread", "randwrite", "randrw", "rw", "trim", "fsync", "sync", "flush"),
    )
)
_TUNABLES: Final = frozenset(
    name
    for factor in FACTORS
    if "." in factor.name
    for name in (factor.name.partition(".")[2], factor.name.replace(".", "_"))
)
"""Knobs as tables call them: without the scheduler whose they are, or with another sign."""


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
        parts = _level_and_run(column)
        if parts and column not in taken and not is_factor(_plain(parts[0])):
            level = "" if parts[0].lower() in ROLES[RUN] else parts[0]
            found[column] = (level, parts[1])
    for level in {level for level, _ in found.values()}:
        runs = {column: run for column, (of, run) in found.items() if of == level}
        numbers = sorted(int(run) for run in runs.values() if run != "mean")
        cells = [row.cells[column] for row in table.rows for column in runs]
        are_runs = len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1))
        if not are_runs or not all(_NUMBER.fullmatch(cell) for cell in cells if cell):
            for column in runs:
                del found[column]
    return found


def _level_and_run(head: str) -> tuple[str, str] | None:
    """Level and run of a head that ends in a number or a word for the mean."""
    match = _OF_A_RUN.search(head)
    if match is None:
        return None
    before = head[: match.start()]
    if match[1] and _DECIMAL.search(before):
        return None
    return before.rstrip(_JOINTS), match[1] or "mean"


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


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
    named_units = {c: found for c in table.columns if c not in taken and (found := _measured(c))}
    if {VALUE, UNIT} & {*folded, *wishes.factors.values()}:
        return table
    measured, settings = _without_settings(table, named_units)
    if not measured:
        return table
    _refuse_twice(table, measured)
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
    notes = [*table.notes, *settings]
    if len(measured) > 1:
        notes.append(f"measured are the columns {', '.join(measured)}")
    columns = (*kept, named or OPERATION, VALUE, UNIT)
    return replace(table, columns=columns, rows=rows, notes=tuple(notes))


_Measured = dict[str, tuple[str, str]]


def _without_settings(table: Table, found: _Measured) -> tuple[_Measured, list[str]]:
    """Columns that were measured, and sentences about those that only look like it."""
    named = [column for column, about in found.items() if _is_of_iolab(column, *about)]
    notes = [f"column {column} is a setting, as its name says" for column in named]
    rest = {column: about for column, about in found.items() if column not in named}
    measured = dict(rest)
    for column, (what, unit) in rest.items():
        others = [other for name, (_, other) in rest.items() if name != column]
        is_beside = any(not is_time(u) and not (is_count(unit) and is_count(u)) for u in others)
        if is_beside and _reads_like_a_setting(table, column, what, unit):
            del measured[column]
            notes.append(
                f"column {column} is taken for a setting, since its values repeat; if it was"
                " measured, say so in its head, as in 'p99 latency us'"
            )
    return measured, notes


def _is_of_iolab(column: str, what: str, unit: str) -> bool:
    """Tell whether a head is a factor or a knob of iolab's own, with or without its unit."""
    name, bare = _plain(column), _plain(what)
    if is_factor(name) or name in _TUNABLES:
        return True
    is_knob = is_factor(bare) and find_factor(bare).is_knob
    return is_time(unit) and (is_knob or bare in _TUNABLES)


def _reads_like_a_setting(table: Table, column: str, what: str, unit: str) -> bool:
    """Tell whether a time or a count without a word for a measured one has few values, each of
    them several times.
    """
    words = set(re.findall(r"[a-z]+", what.lower()))
    is_rate = not is_time(unit) and not is_count(unit)
    is_named = what.lower() in _GENERAL or words <= _OPERATIONS or words & _TIMINGS
    if is_rate or is_named or (is_time(unit) and names_a_statistic(what)):
        return False
    counts = Counter(row.cells[column] for row in table.rows)
    return "" not in counts and min(counts.values()) > 1


def _refuse_twice(table: Table, measured: _Measured) -> None:
    """Refuse two columns of the same quantity of the same thing."""
    first: dict[object, str] = {}
    for column, (what, unit) in measured.items():
        operation = _operation("", what)
        quantity = quantity_of(unit, operation)
        key = (operation.lower(), quantity.metric if quantity is not None else unit)
        if key in first:
            table.fail(
                f"columns '{first[key]}' and '{column}' hold the same quantity of the same thing",
                "leave one of them out, or name what each is of, as in 'read MB/s', 'write MB/s'",
            )
        first[key] = column


def _measured(head: str) -> tuple[str, str] | None:
    """Subject of a column and its unit; None for a head that ends with no unit."""
    bare = head.rstrip(")] ")
    folded = bare.lower()
    spelled = (
        {unit.lower(): unit for unit in KNOWN_UNITS}
        | _SPELLED
        | {unit: unit for unit in _PER_SECOND}
    )
    for spelling, unit in sorted(spelled.items(), key=lambda it: len(it[0]), reverse=True):
        before = folded.removesuffix(spelling)
        if before != folded and (not before or before[-1] in _BEFORE_UNIT):
            what = head[: len(before)].rstrip(_BEFORE_UNIT)
            if is_time(unit) and unit != "s" and what.lower() in MEANS:
                what += " latency"  # Over calls, where a bare mean is one over operations.
            return what, _as_written(bare[len(before) :], unit)
    return None


def _as_written(own: str, unit: str) -> str:
    """Unit of a head: its own spelling where capitals decide between bits and bytes."""
    with_sign = own.replace("_", "/")
    if "/" not in with_sign and with_sign[-2:].lower() == "bs":
        with_sign = f"{with_sign[:-1]}/s"
    own_quantity = quantity_of(with_sign, "")
    if doubt_of(with_sign) or (own_quantity is not None and own_quantity != quantity_of(unit, "")):
        return with_sign
    return unit


def _operation(named: str, what: str) -> str:
    parts = (named, "" if what.lower() in _GENERAL else what)
    return " ".join(part for part in parts if part) or "all"
