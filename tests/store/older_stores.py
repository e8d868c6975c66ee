"""Stores as earlier versions of the schema would have held them."""

import sqlite3
from pathlib import Path

from iolab.store import digests, facts, long_form, natures, schema

_NATURES = ("kind", "access")


def as_version(path: Path, version: int) -> None:
    """Make of a study of a later schema what an earlier version would have held."""
    connection = sqlite3.connect(path, isolation_level=None)
    for table in schema._tables(connection):
        for event in ("update", "delete", "replace"):
            connection.execute(f"DROP TRIGGER IF EXISTS {table}_no_{event}")
    if version < long_form.FIRST_VERSION:
        connection.execute("DROP VIEW IF EXISTS long_form")
    if version < facts.FIRST_VERSION and facts.has_sets(connection):
        _forget_sets(connection)
    if version < natures.FIRST_VERSION and natures.has_natures(connection):
        for column in _NATURES:
            connection.execute(f"ALTER TABLE phase DROP COLUMN {column}")
    if version < digests.FIRST_VERSION:
        connection.execute("DROP TABLE digest")
    else:
        digests.store_again(connection, "record")
    if version == schema.FIRST_VERSION:
        _forget_imports(connection)
    schema._create_triggers(connection)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def _forget_imports(connection: sqlite3.Connection) -> None:
    """Give the study the table that knew no imported ones."""
    script = (schema._HERE / "schema.sql").read_text()
    first = script[
        script.index("CREATE TABLE study (") : script.index(") STRICT;") + len(") STRICT;")
    ]
    connection.executescript(
        "ALTER TABLE study RENAME TO other;"
        + first.replace(", 'imported'", "")
        + "INSERT INTO study SELECT * FROM other; DROP TABLE other;"
    )


def _forget_sets(connection: sqlite3.Connection) -> None:
    """Give the facts of records the table that had a row for each of them."""
    script = (schema._HERE / "schema.sql").read_text()
    begin = script.index("CREATE TABLE record_fact (")
    rows = connection.execute("SELECT record_id, digest FROM record_fact").fetchall()
    for kind, name in (("VIEW", "record_fact"), ("TABLE", "record_facts"), ("TABLE", "fact_set")):
        connection.execute(f"DROP {kind} {name}")
    connection.execute(script[begin : script.index(";", begin)])
    connection.executemany("INSERT INTO record_fact VALUES (?, ?)", rows)
