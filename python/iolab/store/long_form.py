"""The values of a study in long form: one row per value, the level of each factor as a column.

The same rows stand in the view `long_form` of `study.db`, whose statement follows from the factors
of the study, so that nothing but it is accepted there (`iolab.store.shape`). `long_groups` reads
them trial by trial and holds one trial at a time.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from operator import itemgetter
from typing import Any, Final, TypeAlias

from iolab.store.cells import CellError, read_json
from iolab.store.natures import has_natures, unknown_natures

FIRST_VERSION: Final = 5
"""Schema version since which a study has the view."""
NAME: Final = "long_form"
BEFORE: Final = ("trial", "round", "position", "workload")
"""Columns before those of the factors."""
AFTER: Final = ("operation", "kind", "access", "io_size_bytes", "cache_share", "metric", "value")
"""Columns after them."""
_TEXT, _NAME = "'", '"'
"""Quotes of SQL."""

Value: TypeAlias = str | int | float | None
LongRow: TypeAlias = tuple[Value, ...]
LongGroup: TypeAlias = tuple[LongRow, list[tuple[str, float]]]
"""Cells that the values of an operation of a trial share, and its values: metric and number."""


def factor_columns(kind: str, factors: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Factor to the name of its column; of a study that compares nothing there are none.

    A factor that is called like another column gets `_level` behind its name.
    """
    is_comparison = any(len(levels) > 1 for levels in factors.values())
    taken = {name.casefold() for name in (*BEFORE, *AFTER)}
    found = dict[str, str]()
    for name in factors if is_comparison or kind == "imported" else ():
        column = name
        while column.casefold() in taken:
            column += "_level"
        taken.add(column.casefold())
        found[name] = column
    return found


def has_study(connection: sqlite3.Connection) -> bool:
    """Tell whether a study is stored, whose factors name the columns."""
    return connection.execute("SELECT count(*) FROM study").fetchone()[0] == 1


def create_view(connection: sqlite3.Connection) -> None:
    """Make the view of a study whose row is stored."""
    connection.execute(view_statement(*_kind_and_factors(connection)))


def expected_view(connection: sqlite3.Connection) -> str:
    """Statement of the view that belongs to what is stored.

    Raises
    ------
    CellError : no study is stored, or its factors cannot be read.
    """
    return view_statement(*_kind_and_factors(connection))


def _kind_and_factors(connection: sqlite3.Connection) -> tuple[str, dict[str, list[str]]]:
    row = connection.execute("SELECT kind, factors_json FROM study").fetchone()
    if row is None:
        raise CellError("table study has no row")
    return row[0], read_json(row[1], "study", 1, "factors_json")


def view_statement(kind: str, factors: Mapping[str, Sequence[str]]) -> str:
    """Statement that makes the view."""
    levels = "".join(
        f" (SELECT value FROM json_each(levels_json) WHERE key = {_quoted(name, _TEXT)})"
        f" AS {_quoted(column, _NAME)},"
        for name, column in factor_columns(kind, factors).items()
    )
    return (
        f"CREATE VIEW {NAME} AS SELECT trial_id AS trial, round, position, workload,{levels} "
        "operation, kind, access, io_size_bytes, cache_share, metric, value FROM trial "
        "JOIN record USING (trial_id) JOIN phase USING (record_id) "
        "JOIN measurement USING (record_id, operation) WHERE status = 'ok'"
    )


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace("\0", "").replace(mark, 2 * mark) + mark


def long_columns(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Names of the columns, in order."""
    return (*BEFORE, *factor_columns(*_kind_and_factors(connection)).values(), *AFTER)


def long_groups(connection: sqlite3.Connection) -> Iterator[LongGroup]:
    """Values of each operation of the finished trials, in the order in which these ran."""
    factors = list(factor_columns(*_kind_and_factors(connection)))
    known, levels_of = unknown_natures(connection), dict[str, LongRow]()
    natures = "kind, access" if has_natures(connection) else "NULL, NULL"
    trials = connection.execute(
        "SELECT record_id, trial_id, round, position, workload, levels_json FROM trial "
        "JOIN record USING (trial_id) WHERE status = 'ok' ORDER BY ordinal"
    ).fetchall()
    phases = _phases(connection, natures, [row[0] for row in trials])
    for record_id, trial, number, position, workload, text in trials:
        levels = levels_of.get(text)
        if levels is None:
            chosen = read_json(text, "trial", trial, "levels_json")
            levels = levels_of[text] = tuple(chosen.get(name) for name in factors)
        before = (trial, number, position, sys.intern(workload), *levels)
        for (operation, kind, access, size, share), values in phases(record_id):
            nature = known.get((record_id, operation)) if known else None
            if nature is not None:
                kind, access, size = nature.kind, nature.access, nature.io_size_bytes
            yield (*before, operation, kind, access, size, share), values


_Phase: TypeAlias = tuple[str, Value, Value, Value, Value]
_Phases: TypeAlias = list[tuple[_Phase, list[tuple[str, float]]]]
_IN_ONE_GO: Final = (
    "SELECT record_id, operation, ordinal, {natures}, io_size_bytes, cache_share FROM phase "
    "ORDER BY record_id, operation",
    "SELECT record_id, operation, count(*) FROM measurement GROUP BY record_id, operation "
    "ORDER BY record_id, operation",
    "SELECT metric, value FROM measurement ORDER BY record_id, operation, metric",
)
"""Phases, numbers of values and values, all in one order."""


def _phases(
    connection: sqlite3.Connection, natures: str, order: Sequence[int]
) -> Callable[[int], _Phases]:
    """Function that reads the phases of a record with their values, when it is asked for it.

    Records in increasing order, as nearly all are, come from a few queries for all of them.
    """
    if all(a < b for a, b in pairwise(order)):
        return _InOneGo(connection, natures).take
    columns = f"operation, {natures}, io_size_bytes, cache_share"
    one = f"SELECT {columns} FROM phase WHERE record_id = ? ORDER BY ordinal"
    two = (
        "SELECT metric, value FROM measurement WHERE record_id = ? AND operation = ? "
        "ORDER BY metric"
    )

    def read(record_id: int) -> _Phases:
        found = connection.execute(one, (record_id,)).fetchall()
        return [(row, connection.execute(two, (record_id, row[0])).fetchall()) for row in found]

    return read


class _InOneGo:
    """Phases and values that come in the order of their records, taken record by record.

    How many values a phase has is asked for beside them, so that these come without names, which
    cost as much as they do.
    """

    def __init__(self, connection: sqlite3.Connection, natures: str) -> None:
        phases, counts, values = _IN_ONE_GO
        self._phases = connection.execute(phases.format(natures=natures))
        self._counts = connection.execute(counts)
        self._values = connection.execute(values)
        self._next: tuple[Any, ...] | None = self._phases.fetchone()
        self._count: tuple[Any, ...] | None = self._counts.fetchone()

    def take(self, record_id: int) -> _Phases:
        """Phases of a record in their order; those of records before it are passed over."""
        found = list[tuple[int, tuple[_Phase, list[tuple[str, float]]]]]()
        row = self._next
        while row is not None and row[0] <= record_id:
            values = self._values_of(row[0], row[1])
            if row[0] == record_id:
                found.append((row[2], ((row[1], *row[3:]), values)))
            row = self._phases.fetchone()
        self._next = row
        if len(found) > 1:
            found.sort(key=itemgetter(0))
        return [phase for _, phase in found]

    def _values_of(self, record_id: int, operation: str) -> list[tuple[str, float]]:
        """Values of a phase; those of none before it are passed over."""
        place, values = (record_id, operation), list[tuple[str, float]]()
        while self._count is not None and self._count[:2] <= place:
            values = list(islice(self._values, self._count[2]))
            is_of_it = self._count[:2] == place
            self._count = self._counts.fetchone()
            if is_of_it:
                return values
        return []
