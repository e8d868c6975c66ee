"""Digests of everything a verdict rests on, so that a changed bit is named and never believed.

Rows are digested as the database gives them back, in the transaction that stored them: one digest
for the question, for each session, for each round of planned trials, and for each record with all
that was derived from it. They find damage, not forgery: whoever changes a study can make them anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import Final, Literal

from iolab.digest import blake2b
from iolab.frozen import frozen
from iolab.json_text import compact_encoder
from iolab.store import facts
from iolab.store.natures import has_natures

Made = Literal["with_rows", "later"]
"""Time at which a digest was made: together with its rows, or for rows that an older program had
stored.
"""

FIRST_VERSION: Final = 3
"""Schema version from which on there are digests."""
PIECE_BYTES: Final = 8
"""Of the digest of a table's rows; chance lets a damage pass once in 2**64."""
_ENCODE: Final = compact_encoder()
_NUMBER: Final = itemgetter(0)
_END: Final = (1 << 64, b"")
"""Stands for the record behind the last one: beyond all numbers that SQLite has."""
Chosen = tuple[str, Sequence[int]]
"""Condition for rows, with its values."""
_ALL: Final[Chosen] = ("", ())

_RECORD_TABLES: Final = ("record", "phase", "measurement", "series")
"""Tables with rows of a record; its digest is a piece for each of them, in this order, and one for
its facts.
"""
_COLUMNS: Final = {
    "record": "record_id, trial_id, session_id, status, started_at_unix_ns, elapsed_ns, error, "
    "caveats_json, record_zlib",
    "phase": "record_id, operation, ordinal, io_size_bytes, elapsed_ns, cache_share, "
    "harness_ns_per_op, cpu_user_ns, cpu_system_ns, device_read_bytes, device_write_bytes, "
    "device_flushed_write_bytes, depth_reached_mean, workers_json, caveats_json",
    "measurement": "record_id, operation, metric, value",
    # Tables of long texts, put together by SQLite: keys of facts are plain digits in whose line an
    # encoder quotes nothing, and texts of a series need no quotes to be told apart.
    "series": "record_id, CAST(operation || x'1f' || interval_ns || x'1f' || ops_json || x'1f' || "
    "bytes_json || x'1f' || latency_ns_max_json AS BLOB)",
    "record_fact": "record_id, CAST("
    "'[[' || record_id || ',\"' || group_concat(digest) || '\"]]' || x'0a' AS BLOB)",
    "record_facts": "record_id, CAST(record_id || x'1f' || fact_set || x'1f' || more_json AS BLOB)",
}
_ORDERS: Final = {
    "record": "ORDER BY record_id",
    "phase": "ORDER BY record_id, operation",
    "measurement": "ORDER BY record_id, operation, metric",
    "series": "ORDER BY record_id, operation",
    "record_fact": "GROUP BY record_id",
    "record_facts": "ORDER BY record_id",
}
_LOOKS: Final = {
    "record_fact": facts.NamedFacts.look_at_joined,
    "record_facts": facts.NamedFacts.look_at_set,
}
"""Functions that look at the facts in the line of a record."""


@frozen
class _Part:
    """Kind of digest: the query for its rows, whose first column is the digest's number."""

    name: str
    query: str
    order: str
    key: str
    told: Callable[[int], str]


_PARTS: Final = (
    _Part("study", "SELECT 0, * FROM study", "", "0", lambda _: "table study"),
    _Part(
        "session",
        "SELECT session_id, * FROM session",
        " ORDER BY session_id",
        "session_id",
        lambda number: f"table session, row {number}",
    ),
    _Part(
        "round",
        "SELECT round, * FROM trial",
        " ORDER BY round, position",
        "round",
        lambda number: f"table trial, the trials of round {number}",
    ),
)


def store_digests(
    connection: sqlite3.Connection,
    part: str,
    number: int | None = None,
    *,
    made: Made = "with_rows",
) -> None:
    """Add the digests of a part that it still lacks, of all its rows or those of one number.

    The caller's transaction also stores the rows.
    """
    known = (
        {row for (row,) in connection.execute("SELECT number FROM digest WHERE part = ?", (part,))}
        if number is None
        else set[int]()
    )
    connection.executemany(
        "INSERT INTO digest (part, number, made, digest) VALUES (?, ?, ?, ?)",
        (
            (part, found, made, digest)
            for found, digest in list(_computed(connection, part, number))
            if found not in known
        ),
    )


def store_all(connection: sqlite3.Connection) -> None:
    """Make the digests of a study that was stored without them."""
    for part in (*(row.name for row in _PARTS), "record"):
        store_digests(connection, part, made="later")


def store_again(connection: sqlite3.Connection, part: str) -> None:
    """Replace the digests of a part whose rows were checked and then changed by a migration."""
    connection.executemany(
        "UPDATE digest SET digest = ? WHERE part = ? AND number = ?",
        [(digest, part, number) for number, digest in list(_computed(connection, part))],
    )


def made_later(connection: sqlite3.Connection) -> int:
    """Number of records whose digest was made long after them."""
    query = "SELECT count(*) FROM digest WHERE part = 'record' AND made <> 'with_rows'"
    return int(connection.execute(query).fetchone()[0])


@frozen
class RecordFaults:
    """Faults of some of the records, found by :func:`look_at_records`."""

    changed: list[str]
    """Records that are not as they were stored, in their order."""
    missing: list[str]
    """Table and key of the facts and sets of facts that they name and that are not there."""
    lost: list[int]
    """Numbers of records of which only the digest is there."""


FaultsOfRecords = Callable[[], Iterable[RecordFaults]]


def problems(connection: sqlite3.Connection, looks: FaultsOfRecords | None = None) -> Iterator[str]:
    """Contents that are not as they were stored: table and row, or trial and table.

    `looks` gives what was found of all records; without it they are looked at here.
    """
    stored = _stored(connection, "part <> 'record'")
    for part in _PARTS:
        for number, digest in _computed(connection, part.name):
            if stored.pop((part.name, number), None) != digest:
                yield f"{part.told(number)}: not as it was stored (another digest)"
    yield from facts.problems(connection)
    missing, lost = set[str](), set[tuple[str, int]]()
    for look in looks() if looks is not None else [look_at_records(connection)]:
        yield from look.changed
        missing.update(look.missing)
        lost.update(("record", number) for number in look.lost)
    yield from facts.problems_of_missing(missing)
    yield from _problems_of_names(connection)
    yield from _problems_of_numbers(connection)
    for name, number in sorted(lost.union(stored)):
        yield f"table digest, {name} {number}: what it was made of is not there"


def look_at_records(
    connection: sqlite3.Connection,
    first: int | None = None,
    end: int | None = None,
    *,
    most: int | None = None,
) -> RecordFaults:
    """Compare records with their digests: all, or those from number `first` to below `end`.

    It ends after `most` faults.
    """
    part, bounds = "part = 'record'", list[int]()
    where = list[str]()
    for sign, bound in ((">=", first), ("<", end)):
        if bound is not None:
            part += f" AND number {sign} {bound}"
            where.append(f"record_id {sign} ?")
            bounds.append(bound)
    stored = _stored(connection, part)
    chosen = (" WHERE " + " AND ".join(where) if where else "", bounds)
    named, changed = facts.NamedFacts(connection), list[str]()
    for number, digest in _computed_of_records(connection, chosen, named):
        known = stored.pop(("record", number), b"")
        if known != digest:
            changed.append(
                f"{_trial_of(connection, number)}: {_changed_tables(connection, known, digest)}"
            )
            if most is not None and len(changed) >= most:
                return RecordFaults(changed, [], [])
    return RecordFaults(changed, named.missing(), [number for _, number in stored])


def _stored(connection: sqlite3.Connection, where: str) -> dict[tuple[str, int], bytes]:
    rows = connection.execute(f"SELECT part, number, digest FROM digest WHERE {where}")
    return {(part, number): digest for part, number, digest in rows}


def _record_tables(connection: sqlite3.Connection) -> tuple[str, ...]:
    of_facts = "record_facts" if facts.has_sets(connection) else "record_fact"
    return (*_RECORD_TABLES, of_facts)


def _changed_tables(connection: sqlite3.Connection, stored: bytes, found: bytes) -> str:
    if len(stored) != len(found):
        return "its rows have no digest, or a damaged one"
    tables = [
        table
        for index, table in enumerate(_record_tables(connection))
        if _piece(stored, index) != _piece(found, index)
    ]
    return f"rows of table {', '.join(tables)} are not as they were stored (another digest)"


def _piece(digest: bytes, index: int) -> bytes:
    return digest[index * PIECE_BYTES : (index + 1) * PIECE_BYTES]


def _trial_of(connection: sqlite3.Connection, record_id: int) -> str:
    row = connection.execute(
        "SELECT trial_id FROM record WHERE record_id = ?", (record_id,)
    ).fetchone()
    return f"trial {row[0] if row else '?'} (record {record_id})"


def _problems_of_numbers(connection: sqlite3.Connection) -> Iterator[str]:
    """Records whose numbers are missing: each has the next one, and none is ever removed.

    With its digest and all that names it a record is gone without another trace.
    """
    first, last, count = connection.execute(
        "SELECT min(record_id), max(record_id), count(*) FROM record"
    ).fetchone()
    if count and (first, last) != (1, count):
        lost = last - count
        yield f"table record: {lost} of the records up to number {last} are not there"


def _problems_of_names(connection: sqlite3.Connection) -> Iterator[str]:
    """Operations that would make one row of a series look like two, or two like one.

    The rows are digested as lines (`_COLUMNS`): nothing that separates them may stand in a name.
    Other texts of a row are JSON, in which it stands escaped.
    """
    query = (
        "SELECT record_id FROM series "
        "WHERE instr(operation, char(10)) OR instr(operation, char(31)) LIMIT 1"
    )
    for (number,) in connection.execute(query):
        yield f"{_trial_of(connection, number)}: table series names an operation of several lines"


def _computed(
    connection: sqlite3.Connection, part: str, number: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """Number and digest of the rows that are there."""
    found = next((row for row in _PARTS if row.name == part), None)
    key = found.key if found is not None else "record_id"
    chosen = (f" WHERE {key} = ?", (number,)) if number is not None else _ALL
    if found is None:
        yield from _computed_of_records(connection, chosen)
        return
    where, values = chosen
    rows = connection.execute(found.query + where + found.order, values)
    for key, group in groupby(rows, _NUMBER):
        yield key, _digest_of(_ENCODE(list(group)))


def _computed_of_records(
    connection: sqlite3.Connection, chosen: Chosen, named: facts.NamedFacts | None = None
) -> Iterator[tuple[int, bytes]]:
    """Pieces of all tables, put together record by record: each table comes in their order.

    `named` looks at the facts of each record.
    """
    names = _record_tables(connection)
    tables = [_pieces(connection, table, chosen, named) for table in names]
    nothing = bytes(PIECE_BYTES)
    while True:
        heads = list[tuple[int, bytes]]()
        for row in zip_longest(*tables, fillvalue=_END):
            if not row[0][0] == row[1][0] == row[2][0] == row[3][0] == row[4][0]:
                heads = list(row)
                break
            # As nearly all records are.
            yield row[0][0], row[0][1] + row[1][1] + row[2][1] + row[3][1] + row[4][1]
        if not heads:
            return
        # The records that not all tables have, until these are at one record again.
        while (record_id := min(heads)[0]) != max(heads)[0]:
            pieces = [piece if number == record_id else nothing for number, piece in heads]
            heads = [
                next(table, _END) if head[0] == record_id else head
                for head, table in zip(heads, tables, strict=True)
            ]
            yield record_id, b"".join(pieces)
        if heads[0] is _END:
            return
        yield record_id, b"".join([piece for _, piece in heads])


def _pieces(
    connection: sqlite3.Connection,
    table: str,
    chosen: Chosen,
    named: facts.NamedFacts | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Digest of each record's rows in one table, in the order of their keys."""
    where, values = chosen
    columns = _COLUMNS[table]
    if table == "phase" and has_natures(connection):
        columns += ", kind, access"
    query = f"SELECT {columns} FROM {table}{where} {_ORDERS[table]}"
    rows = connection.execute(query, values)
    if table == "record":
        for *columns, packed in rows:
            yield columns[0], _digest_of(_ENCODE(columns), packed)
    elif table == "measurement":  # By far the most rows.
        for record_id, group in groupby(rows, _NUMBER):
            yield record_id, _digest_of(_ENCODE(list(zip(*group, strict=True))[1:]))
    elif table == "series":
        for record_id, group in groupby(rows, _NUMBER):
            yield record_id, _digest(b"\n".join([_known(line) for _, line in group]) + b"\n")
    elif table in _LOOKS:
        look = _LOOKS[table]
        for record_id, line in rows:
            if named is not None:
                look(named, _known(line))
            yield record_id, _digest(_known(line))
    else:
        for record_id, group in groupby(rows, _NUMBER):
            yield record_id, _digest_of(_ENCODE(list(group)))


def _known(line: bytes | None) -> bytes:
    """A line that SQLite put together; there is none if a part has no value, which is damage."""
    return line if line is not None else b""


def _digest_of(text: str, packed: bytes = b"") -> bytes:
    """Digest of lines of text, each with its end, and of what is packed behind them."""
    return _digest(b"%b\n%b" % (text.encode(), packed))


def _digest(packed: bytes) -> bytes:
    return blake2b(packed, digest_size=PIECE_BYTES).digest()
