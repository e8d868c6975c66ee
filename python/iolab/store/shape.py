"""Check that a file that anybody may have made has the shape of a study, and nothing beside it.

A view, a trigger or a virtual table in the place of a table, a generated column or an index with an
expression would run what its author wrote, perhaps for ever. Nothing of a database is asked for
before its schema is, statement by statement, the one that this program writes.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from typing import Final

from iolab.errors import DamageError, StoreError
from iolab.store import long_form, schema
from iolab.store.cells import CellError
from iolab.store.store_errors import PUT_BACK

PROBLEMS_MAX: Final = 20
_OBJECTS_MAX: Final = 200
_TEXT_MAX: Final = 1 << 18
"""Of a statement; a longer one is none of ours."""
_LENGTH_MAX: Final = 64 << 20
"""Of one value; the largest is a packed record, of at most 16 MiB."""
_TABLES_OF_ALL: Final = set(schema.TABLES) - {"digest", "fact_set", "record_facts"}
"""Tables of a study of any version."""
_IMPORTED: Final = ", 'imported'"
"""Kind of study that the first version did not know."""
_DEFENSIVE: Final = ("SQLITE_DBCONFIG_DEFENSIVE", "SQLITE_DBCONFIG_TRUSTED_SCHEMA")

_STUDY: Final = ("table", "study")

Objects = dict[tuple[str, str], str]
"""Statement by type and name."""


def distrust(connection: sqlite3.Connection) -> None:
    """Let nothing that is written in a schema do more than hold rows."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LENGTH_MAX)
    configure = getattr(connection, "setconfig", None)  # Since Python 3.12.
    if configure is not None:
        for name, is_on in zip(_DEFENSIVE, (True, False), strict=True):
            configure(getattr(sqlite3, name), is_on)


def check_version(connection: sqlite3.Connection, name: str) -> int:
    """Schema version of an existing study.

    Two numbers in the file's header say that it is a study, and which version. Where the tables say
    otherwise it is the header that is damaged.

    Raises
    ------
    StoreError : not a study, or made by a newer program.
    DamageError : a study, but its header is not as it was.
    """
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application_id != schema.APPLICATION_ID:
        rows = connection.execute("SELECT name FROM sqlite_schema LIMIT ?", (_OBJECTS_MAX,))
        if {row[0] for row in rows} >= _TABLES_OF_ALL:
            raise DamageError(
                f"{name} is damaged: it has the tables of a study, and not the mark of one "
                f"(application_id {application_id})",
                PUT_BACK,
            )
        raise StoreError(f"{name} is not a study of iolab", "name the directory that --out made")
    newest = schema.SCHEMA_VERSION
    if version < schema.FIRST_VERSION:
        raise DamageError(f"{name} is damaged: it has schema {version}", PUT_BACK)
    if version != newest and not list(problems_of_shape(connection, newest)):
        raise DamageError(
            f"{name} is damaged: it has schema {version}, but the tables of schema {newest}",
            PUT_BACK,
        )
    if version > newest:
        raise StoreError(
            f"{name} was written by a newer iolab (schema {version}, this one knows {newest})",
            "update iolab",
        )
    return int(version)


def problems_of_shape(connection: sqlite3.Connection, version: int) -> Iterator[str]:
    """Parts that are missing, other than expected, or more than a study of this version has."""
    # Every row, or none is believed: what is not looked at may hold anything.
    rows = connection.execute(
        "SELECT type, name, iif(length(sql) > ?, '-- too long', sql) FROM sqlite_schema LIMIT ?",
        (_TEXT_MAX, _OBJECTS_MAX + 1),
    ).fetchall()
    if len(rows) > _OBJECTS_MAX:
        yield f"its schema has more than {_OBJECTS_MAX} objects, which iolab never makes"
        return
    found: Objects = {(kind, name): _plain(sql) for kind, name, sql in rows}
    if len(found) < len(rows):
        yield "its schema has two objects of one name"
        return
    model = dict(_model(version))
    if version >= long_form.FIRST_VERSION and found.get(_STUDY) == model[_STUDY]:
        try:
            view = long_form.expected_view(connection)
        except CellError as error:  # Its columns are the factors, which cannot be read.
            yield error.message
            return
        model["view", long_form.NAME] = _plain(view)
    for (kind, name), sql in model.items():
        there = found.pop((kind, name), None)
        if there is None and kind != "trigger":  # They keep writers from mistakes, no more.
            yield f"there is no {kind} {name}"
        elif there is not None and there != sql:
            yield f"{kind} {name} is not the one that iolab makes"
    for kind, name in sorted(found):
        place = "in the place of a table" if ("table", name) in model else "that iolab never makes"
        yield f"there is a {kind} {name} {place}"


def problems_of_pages(connection: sqlite3.Connection) -> Iterator[str]:
    """Faults that SQLite itself finds: pages, their links, indexes."""
    for (answer,) in connection.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})"):
        if answer != "ok":
            yield f"integrity_check: {answer}"


def _plain(sql: str | None) -> str:
    """A statement without what a renamed table adds: quotes around its name, other spaces."""
    return re.sub(r'^(CREATE TABLE )"(\w+)"', r"\1\2", " ".join((sql or "").split()))


@cache
def _model(version: int) -> Objects:
    """Objects of a study of a version."""
    connection = sqlite3.connect(":memory:")
    try:
        schema.create_schema(connection, max(version, schema.BASE_VERSION))
        rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    finally:
        connection.close()
    found = {(kind, name): _plain(sql) for kind, name, sql in rows}
    if version == schema.FIRST_VERSION:
        found["table", "study"] = found["table", "study"].replace(_IMPORTED, "")
    return found
