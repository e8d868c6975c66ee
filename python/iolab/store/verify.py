"""Check that a database that others may have made is a study that can be used.

Left out: whether its numbers are true, which no file can show.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from iolab.errors import StoreError
from iolab.store import digests, schema
from iolab.store.cells import SHAPES, CellError, read_json
from iolab.store.db import Store
from iolab.store.read import load_study_data
from iolab.store.rows import StudyData
from iolab.store.shape import PROBLEMS_MAX, check_version, problems_of_pages

MARGIN_MAX: Final = 100.0
VALUE_MAX: Final = 1e24
"""Larger than any metric; beyond it ratios are no numbers any more."""
RUN_MAX: Final = 100_000
"""Largest number of a run that a table may name; they need not be without gaps."""


def problems_of_study(path: Path) -> tuple[str, ...]:
    """Faults of a database; nothing if every part of iolab can read it.

    The file is opened to be read; the caller gives a copy of his own, in a directory of his own.
    """
    try:
        with Store.open_reader(path, is_checked=False) as store:
            return tuple(_problems(store))[:PROBLEMS_MAX]
    except StoreError as error:
        # Told below a line that says the same of the file.
        return (error.message.replace(f"{path} is damaged: ", "").replace(str(path), path.name),)
    except (sqlite3.Error, OSError, UnicodeDecodeError, OverflowError) as error:
        return (f"{path.name} is damaged ({error})",)


def _problems(store: Store) -> Iterator[str]:
    connection = store.contents.connection
    for look in (problems_of_pages, _of_references, _of_columns):
        found = list(look(connection))
        yield from found
        if found:
            return  # What comes next relies on it.
    try:
        data = load_study_data(connection)
        yield from _of_question(data)
        yield from _of_numbers(data)
        for _ in store.contents.records():
            pass
        store.contents.sessions()
        if check_version(connection, store.path.name) >= digests.FIRST_VERSION:
            yield from digests.problems(connection)
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


def _of_numbers(data: StudyData) -> Iterator[str]:
    """Numbers that somebody counts up to, or divides by, are such that this ends."""
    if not 0 <= data.study.margin <= MARGIN_MAX:
        yield f"table study: the margin {data.study.margin} is none"
    rounds_max = RUN_MAX if data.study.kind == "imported" else len(data.trials)
    for trial in data.trials:
        if not 1 <= trial.round <= rounds_max:
            yield f"table trial, row {trial.trial_id}: there is no round {trial.round}"
    for row in data.measurements:
        if not abs(row.value) <= VALUE_MAX:
            yield (
                f"table measurement, trial {row.trial_id}, {row.operation}, {row.metric}: "
                f"{row.value} is no measured value"
            )
