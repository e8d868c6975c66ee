"""Whether a database that somebody else may have made is a study that can be used.

Left out: whether its numbers are true, which no file can show.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from iolab.errors import StoreError
from iolab.store import schema
from iolab.store.cells import SHAPES, CellError, read_json
from iolab.store.db import Store
from iolab.store.read import load_study_data
from iolab.store.rows import StudyData

PROBLEMS_MAX: Final = 20


def problems_of_study(path: Path) -> tuple[str, ...]:
    """What is wrong with a database; nothing if every reader of ours can use it.

    The file is opened to be read; the caller gives a copy of his own, in a directory of his own.
    """
    try:
        with Store.open_reader(path) as store:
            return tuple(_problems(store))[:PROBLEMS_MAX]
    except StoreError as error:
        return (error.message.replace(str(path), path.name),)
    except (sqlite3.Error, OSError) as error:
        return (f"{path.name} is damaged ({error})",)


def _problems(store: Store) -> Iterator[str]:
    connection = store.contents.connection
    connection.execute("PRAGMA trusted_schema = OFF")
    for look in (_of_tables, _of_pages, _of_references, _of_columns):
        found = list(look(connection))
        yield from found
        if found:
            return  # What comes next relies on it.
    try:
        data = load_study_data(connection)
        yield from _of_question(data)
        for _ in store.contents.records():
            pass
        store.contents.sessions()
    except CellError as error:
        yield error.message
    except StoreError as error:
        yield error.message.replace(str(store.path), store.path.name)


def _of_tables(connection: sqlite3.Connection) -> Iterator[str]:
    """Tables are those that `schema` makes: real, strict, with their columns."""
    model = sqlite3.connect(":memory:")
    try:
        schema.create_schema(model)
        for table in schema.TABLES:
            expected, found = _description(model, table), _description(connection, table)
            if not found:
                yield f"there is no table {table}"
            elif found != expected:
                yield f"table {table} is not the one that iolab makes"
    finally:
        model.close()


def _description(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    """Kind, strictness, and all columns, hidden ones too."""
    kinds = connection.execute(
        "SELECT type, strict FROM pragma_table_list(?) WHERE schema = 'main'", (table,)
    ).fetchall()
    columns = connection.execute(
        'SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid', (table,)
    ).fetchall()
    return [*kinds, *columns] if kinds else []


def _of_pages(connection: sqlite3.Connection) -> Iterator[str]:
    for (answer,) in connection.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})"):
        if answer != "ok":
            yield f"integrity_check: {answer}"


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
    """What is ranked exists, and every trial has a level of every factor or none."""
    study = data.study
    if study.factors and study.compared_factor not in study.factors:
        yield f"table study: the compared factor {study.compared_factor!r} is none of the factors"
    elif study.factors and study.baseline not in study.factors[study.compared_factor]:
        yield f"table study: the baseline {study.baseline!r} is no level"
    for trial in data.trials:
        for factor, level in trial.levels.items():
            if factor in study.factors and level not in study.factors[factor]:
                yield f"table trial, row {trial.trial_id}: {factor} {level!r} is no level"
