"""Check that a database that others may have made is a study that can be used.

Left out: whether its numbers are true, which no file can show.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from iolab.errors import StoreError
from iolab.store import digests, schema
from iolab.store.cells import SHAPES, STRANGE, CellError, read_json, unpack_record
from iolab.store.db import Store
from iolab.store.from_records import read_records
from iolab.store.read import load_study_data
from iolab.store.record_types import problem_of
from iolab.store.rows import StudyData
from iolab.store.shape import PROBLEMS_MAX, check_version, problems_of_pages

MARGIN_MAX: Final = 100.0
VALUE_MAX: Final = 1e24
"""Larger than any metric; beyond it ratios are no numbers any more."""
VALUE_MIN: Final = 1e-24
"""Smaller than any metric but 0."""
RUN_MAX: Final = 100_000
"""Largest number of a run that a table may name; they need not be without gaps."""


Look: TypeAlias = Callable[[Store, StudyData], Iterable[str]]
"""Yields further faults of a study of which every part can be read."""


def problems_of_study(path: Path, more: Look | None = None) -> tuple[str, ...]:
    """Faults of a database; nothing if every part of iolab can read it.

    Parameters
    ----------
    path : is opened to be read; the caller gives a copy of his own, in a directory of his own.
    more : looks for what only the caller knows of.
    """
    try:
        with Store.open_reader(path, is_checked=False) as store:
            return tuple(islice(_problems(store, more), PROBLEMS_MAX))
    except StoreError as error:
        # Told below a line that says the same of the file.
        return (error.message.replace(f"{path} is damaged: ", "").replace(str(path), path.name),)
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        return (f"{path.name} is damaged ({error})",)
    except STRANGE as error:  # Whoever reads it would end in the same way.
        return (f"{path.name} is not as iolab stores it ({type(error).__name__}: {error})",)


def _problems(store: Store, more: Look | None) -> Iterator[str]:
    connection = store.contents.connection
    for look in (problems_of_pages, _of_references, _of_columns):
        found = list(look(connection))
        yield from found
        if found:
            return  # What comes next relies on it.
    try:
        found = list(islice(_of_numbers(connection), PROBLEMS_MAX))
        yield from found
        if found:
            return  # Who divides by them may never end.
        data = load_study_data(connection)
        yield from _of_question(data)
        yield from _of_rounds(data)
        yield from _of_records(connection, data)
        read_records(connection)
        store.contents.sessions()
        if check_version(connection, store.path.name) >= digests.FIRST_VERSION:
            yield from digests.problems(connection)
        if more is not None:
            yield from more(store, data)
    except CellError as error:
        yield error.message
    except StoreError as error:
        yield error.message.replace(str(store.path), store.path.name)


def _of_references(connection: sqlite3.Connection) -> Iterator[str]:
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        where = "a row" if row is None else f"row {row}"
        yield f"table {table}, {where}: what it refers to in table {parent} is not there"


def _of_columns(connection: sqlite3.Connection) -> Iterator[str]:
    """Every JSON column of every row, also those that no report needs."""
    for table, keys in schema.TABLES.items():
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        columns = [name for name in names if name in SHAPES]
        if not columns:
            continue
        for row in connection.execute(f"SELECT {', '.join([*keys, *columns])} FROM {table}"):
            place = " ".join(map(str, row[: len(keys)]))
            for column, text in zip(columns, row[len(keys) :], strict=True):
                try:
                    read_json(text, table, place, column)
                except CellError as error:
                    yield error.message


def _of_question(data: StudyData) -> Iterator[str]:
    """Check that ranked values exist, and that every trial has a level of every factor or none."""
    study = data.study
    if study.factors and study.compared_factor not in study.factors:
        yield f"table study: the compared factor {study.compared_factor!r} is none of the factors"
    elif study.factors and study.baseline not in study.factors[study.compared_factor]:
        yield f"table study: the baseline {study.baseline!r} is no level"
    for trial in data.trials:
        for factor, level in trial.levels.items():
            if factor in study.factors and level not in study.factors[factor]:
                yield f"table trial, row {trial.trial_id}: {factor} {level!r} is no level"


def _of_rounds(data: StudyData) -> Iterator[str]:
    """Numbers that somebody counts up to are such that this ends."""
    if not 0 <= data.study.margin <= MARGIN_MAX:
        yield f"table study: the margin {data.study.margin} is none"
    rounds_max = RUN_MAX if data.study.kind == "imported" else len(data.trials)
    for trial in data.trials:
        if not 1 <= trial.round <= rounds_max:
            yield f"table trial, row {trial.trial_id}: there is no round {trial.round}"


def _of_numbers(connection: sqlite3.Connection) -> Iterator[str]:
    """Every number with a fraction can be multiplied and divided by any other one."""
    for table, keys in schema.TABLES.items():
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        # The margin has a bound of its own.
        reals = [one[1] for one in columns if one[2] == "REAL" and table != "study"]
        for name in reals:
            rows = connection.execute(
                f"SELECT {', '.join(keys)}, {name} FROM {table} WHERE {name} IS NOT NULL "
                f"AND NOT ({name} = 0 OR abs({name}) BETWEEN ? AND ?)",
                (VALUE_MIN, VALUE_MAX),
            )
            for *key, value in rows:
                place = " ".join(map(str, key))
                yield f"table {table}, row {place}, column {name}: {value} is no measured value"


def _of_records(connection: sqlite3.Connection, data: StudyData) -> Iterator[str]:
    """Every record can be unpacked, and has the types that its readers rely on."""
    for record_id, packed in connection.execute("SELECT record_id, record_zlib FROM record"):
        record = unpack_record(packed, record_id)
        if data.study.kind == "imported":
            continue  # The rows of a table, in place of a record.
        found = problem_of(record)
        if found:
            yield f"table record, row {record_id}, column record_zlib:{found}"
