"""Looks for damage in all that a study stores: first SQLite's pages, then the digests of the rows.

Of a large study all is looked for at once: SQLite goes through its pages in C, in a thread with a
connection of its own, while the first half of the records is digested here, and the other one in
another process. Answers come in the same order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final, cast

from iolab.store import digests
from iolab.store.log import size_of
from iolab.store.opening import connect_read_only, snapshot
from iolab.store.owner import distrusted
from iolab.store.shape import PROBLEMS_MAX, problems_of_pages

_SHARE_HERE: Final = 0.46
"""Part of the records; less than half, since all that is no record is looked at here, too."""
LARGE_BYTES: Final = 64 << 20
"""Size of a database, some 4,000 trials, from which on a second worker saves time."""


def is_large(path: Path) -> bool:
    """Tell whether checks of a study are shared out among workers that open it by its name.

    A directory that others may change is read once, into a private copy.
    """
    return size_of(path) >= LARGE_BYTES and distrusted(path.parent) is None


def problems_of_all(
    path: Path, connection: sqlite3.Connection, *, has_digests: bool
) -> Iterator[Iterator[str] | Sequence[str]]:
    """Yield the faults of the pages, then those of the rows: the latter rely on sound pages.

    Parameters
    ----------
    path : database of a study whose schema is the right one.
    connection : reads it, in a transaction.
    has_digests : whether its version keeps digests.
    """
    if not (has_digests and is_large(path)):
        yield problems_of_pages(connection)
        if has_digests:
            yield digests.problems(connection)
        return
    from concurrent.futures import ThreadPoolExecutor

    from iolab.store.beside import Beside

    rows, error = list[str](), None
    middle = _middle(connection)
    with (
        ThreadPoolExecutor(1, "pages") as worker,
        Beside(f"{__name__}:look_from", str(path), str(middle)) as beside,
    ):
        pages = worker.submit(_pages_of, path)

        def looks() -> Iterator[digests.RecordFaults]:
            yield digests.look_at_records(connection, end=middle, most=PROBLEMS_MAX)
            try:
                yield digests.RecordFaults(
                    *cast("tuple[list[str], list[str], list[int]]", beside.answer())
                )
            except ValueError:
                yield digests.look_at_records(connection, middle, most=PROBLEMS_MAX)

        try:
            rows = list(islice(digests.problems(connection, looks), PROBLEMS_MAX))
        except Exception as raised:  # Damaged pages may give any rows.
            error = raised
        yield pages.result()
    if error is not None:
        raise error
    yield rows


def look_from(path: str, first: str) -> list[list[str] | list[int]]:
    """Look at the records from a number on, by a connection of its own, for who reads JSON.

    As the one of the pages it begins after the caller's transaction; what was added since has its
    digests with it.
    """
    with closing(connect_read_only(Path(path))) as connection, snapshot(connection):
        look = digests.look_at_records(connection, int(first), most=PROBLEMS_MAX)
        return [look.changed, look.missing, look.lost]


def _middle(connection: sqlite3.Connection) -> int:
    """Number of a record before which somewhat less than half of them lie.

    Who looks at these looks at all that is no record, too.
    """
    query = "SELECT min(record_id), max(record_id) FROM record"
    first, last = connection.execute(query).fetchone()
    return 0 if first is None else first + int((last - first) * _SHARE_HERE)


def _pages_of(path: Path) -> list[str]:
    """Faults of the pages, by a connection that this thread opened.

    It begins after the caller's transaction, so that it sees at least what the caller sees.
    """
    with closing(connect_read_only(path)) as connection:
        return list(problems_of_pages(connection))
