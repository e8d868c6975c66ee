"""Connections to a study's database: one that writes, and those that leave everything as it is.

A connection that closes last copies SQLite's write-ahead log into the database and removes it. A
reader never does: it opens a log that is there with ``mode=ro``, which cannot, and one that came
meanwhile is kept by a second connection of that kind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from iolab.errors import DamageError
from iolab.store.lock import is_held
from iolab.store.log import (
    JOURNAL,
    LOG,
    Lost,
    lost_in,
    open_plain,
    read_log,
    side_file,
    size_of,
)
from iolab.store.owner import distrusted
from iolab.store.shape import distrust
from iolab.store.store_errors import PUT_BACK

_BUSY_TIMEOUT_S: Final = 10.0


def connect(path: Path) -> sqlite3.Connection:
    """Connection that may write."""
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    distrust(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Connection that only reads.

    Where there is no log SQLite makes its side files and removes them, if the disk lets it; a study
    on a read-only disk has no room for them and cannot change either.
    """
    if distrusted(path.parent) is not None:
        return _private_copy(path)
    has_log = side_file(path, LOG).exists()
    for query in ("mode=rw", "mode=ro", "immutable=1"):
        if query == "mode=rw" and has_log:
            continue  # It could remove it.
        if query == "immutable=1" and size_of(side_file(path, LOG)):
            return _private_copy(path)  # SQLite would not look at the log there.
        connection = _connect_by(path, query)
        try:
            distrust(connection)
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return connection
        except sqlite3.OperationalError:
            connection.close()
            if query == "immutable=1":
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _connect_by(path: Path, query: str) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?{query}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """Let everything that is read meanwhile be of one moment."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


@contextmanager
def log_kept(path: Path) -> Generator[None, None, None]:
    """Let no reader that is closed meanwhile be the last, if a log lies there by now."""
    if not size_of(side_file(path, LOG)) or distrusted(path.parent) is not None:
        yield
        return
    with closing(_connect_by(path, "mode=ro")) as keeper:
        with suppress(sqlite3.DatabaseError):  # Whoever opens it next is told.
            keeper.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield


def lost_records(path: Path) -> Lost | None:
    """Records of a study's log that SQLite would leave out without a word.

    A log that another process writes changes while it is read, and is not judged.

    Raises
    ------
    DamageError : a journal lies there, which would change the database.
    """
    is_in_place = distrusted(path.parent) is None  # A private copy is made without a journal.
    while True:
        journal, content = side_file(path, JOURNAL), read_log(path)
        lost, has_journal = lost_in(content), is_in_place and size_of(journal) > 0
        if (lost is None and not has_journal) or is_held(path):
            return None
        if read_log(path) != content:
            continue  # A writer came and went.
        if has_journal:
            raise DamageError(
                f"{journal} is there, which iolab never leaves: an older version that was killed "
                f"while it began the study may have, or {path.name} and it do not belong together",
                f"if the study had just begun, remove both and begin it anew; else {PUT_BACK}",
            )
        return lost


def _private_copy(path: Path) -> sqlite3.Connection:
    """Connection to a copy that nobody else can reach and that is gone when it is closed.

    In a directory that others may change root must not make SQLite's side files: their names are
    known, and a link may have one of them.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        copy = Path(folder) / path.name
        for source, target in ((path, copy), (side_file(path, LOG), side_file(copy, LOG))):
            _copy_plain(source, target)
        connection = connect(copy)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return connection


def _copy_plain(source: Path, target: Path) -> None:
    """Copy a regular file that may be missing."""
    import shutil

    file = open_plain(source)
    if file is not None:
        with file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
