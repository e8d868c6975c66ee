"""Creating and migrating the database, and the triggers that make it append-only."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from iolab.store import digests, facts, long_form, natures

SCHEMA_VERSION: Final = 6
FIRST_VERSION: Final = 1
BASE_VERSION: Final = 2
"""Version that `schema.sql` makes."""
APPLICATION_ID: Final = 0x696F6C62
"""``iolb``: lets `file` and this program recognise a study."""

_HERE: Final = Path(__file__).parent
TABLES: Final = {
    "study": ("study_id",),
    "session": ("session_id",),
    "trial": ("trial_id",),
    "record": ("record_id",),
    "phase": ("record_id", "operation"),
    "measurement": ("record_id", "operation", "metric"),
    "series": ("record_id", "operation"),
    "fact": ("digest",),
    "record_fact": ("record_id", "digest"),
    "fact_set": ("digest",),
    "record_facts": ("record_id",),
    "digest": ("part", "number"),
}
"""Every table and its key; `record_fact` is a view where there is `record_facts`."""


def create_schema(connection: sqlite3.Connection, version: int = SCHEMA_VERSION) -> None:
    """Make an empty database of a version from the second on, inside the caller's transaction."""
    for statement in _statements((_HERE / "schema.sql").read_text(encoding="utf-8")):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {BASE_VERSION}")
    _take_steps(connection, BASE_VERSION, version, _HERE / "migrations")
    _create_triggers(connection)


def migrate(
    connection: sqlite3.Connection,
    version: int,
    *,
    newest: int = SCHEMA_VERSION,
    folder: Path = _HERE / "migrations",
) -> None:
    """Apply the steps from `version` to `newest`, inside the caller's transaction."""
    if version >= newest:
        return
    for table in _tables(connection):
        for event in ("update", "delete", "replace"):
            connection.execute(f"DROP TRIGGER IF EXISTS {table}_no_{event}")
    _take_steps(connection, version, newest, folder)
    _create_triggers(connection)


def _take_steps(connection: sqlite3.Connection, version: int, newest: int, folder: Path) -> None:
    """Apply steps to a database without triggers."""
    for step in range(version + 1, newest + 1):
        script = (folder / f"{step:04d}.sql").read_text(encoding="utf-8")
        for statement in _statements(script):
            connection.execute(statement)
        if step == digests.FIRST_VERSION:
            digests.store_all(connection)
        if step == natures.FIRST_VERSION:
            _add_natures(connection)
        if step == long_form.FIRST_VERSION and long_form.has_study(connection):
            long_form.create_view(connection)
        if step == facts.FIRST_VERSION:
            facts.take_over(connection)
            digests.store_again(connection, "record")
        connection.execute(f"PRAGMA user_version = {step}")


def _add_natures(connection: sqlite3.Connection) -> None:
    """Say what the operations of a study are that knows nothing of it yet.

    Whoever migrates has checked the digests of the records; they are made again, since the rows
    have more columns, and still say when the first ones were made.
    """
    if connection.execute("SELECT count(*) FROM study").fetchone()[0]:
        natures.fill(connection)
    digests.store_again(connection, "record")


def _create_triggers(connection: sqlite3.Connection) -> None:
    """Refuse UPDATE and DELETE, and INSERT OR REPLACE, which fires no delete trigger."""
    for table in _tables(connection):
        keys = " AND ".join(f"{key} = NEW.{key}" for key in TABLES[table])
        refusal = f"SELECT RAISE(ABORT, '{table} is append-only')"
        for event in ("update", "delete"):
            connection.execute(
                f"CREATE TRIGGER {table}_no_{event} BEFORE {event.upper()} ON {table} "
                f"BEGIN {refusal}; END"
            )
        connection.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {keys}) BEGIN {refusal}; END"
        )


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    return [name for (name,) in rows if name in TABLES]


def _statements(script: str) -> list[str]:
    """Statements of a script; ``executescript`` would commit the caller's transaction."""
    statements, current = list[str](), ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
