"""A study in full: every record, every session, and the database as one file.

For those who hand a study on (archives) or translate it (exports); judging and drawing need
`iolab.store.read` only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from iolab.errors import DamageError
from iolab.frozen import frozen
from iolab.store.cells import read_json, unpack_record
from iolab.store.long_form import LongGroup, long_columns, long_groups
from iolab.store.opening import snapshot
from iolab.store.store_errors import PUT_BACK, errors_named

if TYPE_CHECKING:
    from iolab.protocol import Record


class SessionRow(TypedDict):
    """A start of the campaign."""

    run_id: str
    started_at_unix_ns: int
    iolab_version: str
    testbed: dict[str, object]
    """As the agent described it."""


@frozen
class Contents:
    """Content of one open database."""

    path: Path
    connection: sqlite3.Connection

    def records(self) -> Iterator[tuple[str, Record]]:
        """Every finished trial with its record as the agent sent it, in the order of execution."""
        with errors_named(self.path):
            for record_id, trial_id, record in self.connection.execute(
                "SELECT record_id, trial_id, record_zlib FROM record WHERE status = 'ok' "
                "ORDER BY record_id"
            ):
                yield trial_id, unpack_record(record, record_id)

    def attempts(self) -> Iterator[tuple[str, str, Record]]:
        """Every attempt at a trial with its status and record, in the order of execution."""
        with errors_named(self.path):
            for record_id, trial_id, status, record in self.connection.execute(
                "SELECT record_id, trial_id, status, record_zlib FROM record ORDER BY record_id"
            ):
                yield trial_id, status, unpack_record(record, record_id)

    def sessions(self) -> list[SessionRow]:
        """Every start of the campaign, with the agent's description of the testbed."""
        with errors_named(self.path):
            rows = self.connection.execute(
                "SELECT session_id, run_id, started_at_unix_ns, iolab_version, testbed_json "
                "FROM session ORDER BY session_id"
            )
            return [
                {
                    "run_id": run_id,
                    "started_at_unix_ns": started,
                    "iolab_version": version,
                    "testbed": read_json(testbed, "session", session_id, "testbed_json"),
                }
                for session_id, run_id, started, version, testbed in rows
            ]

    def n_trials(self) -> int:
        """Number of trials that are planned so far, whole rounds at a time."""
        with errors_named(self.path):
            return int(self.connection.execute("SELECT count(*) FROM trial").fetchone()[0])

    def values(self) -> tuple[tuple[str, ...], Generator[LongGroup]]:
        """Columns and rows of the values in long form, by operation of a trial, read as they are
        taken.
        """
        with errors_named(self.path):
            return long_columns(self.connection), self._long_groups()

    def _long_groups(self) -> Generator[LongGroup]:
        with errors_named(self.path), snapshot(self.connection):  # A study that runs grows.
            yield from long_groups(self.connection)

    @contextmanager
    def one_moment(self) -> Generator[None]:
        """Let everything that is read meanwhile be as it is now."""
        with errors_named(self.path), snapshot(self.connection):
            self.connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # Begins here.
            yield

    def image(self) -> bytes:
        """The database as one file, what is still in its write-ahead log included.

        The bytes are a function of the content: SQLite copies its pages as they are.

        Raises
        ------
        DamageError : a part of it is damaged.
        """
        with errors_named(self.path):
            self.connection.execute("BEGIN")
            try:
                answer = str(self.connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
                if answer != "ok":
                    raise DamageError(f"{self.path} is damaged ({answer})", PUT_BACK)
                return self.connection.serialize()
            finally:
                self.connection.execute("ROLLBACK")
