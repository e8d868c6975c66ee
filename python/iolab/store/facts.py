"""Facts of the machine that each record saw: a set that most records share, and those beside it.

Nearly all facts are the same in every trial. A set of them is stored once, by its digest; a record
names a set and the facts that it saw beside it, in one row. The set is that of the record before,
or what of it was seen again: after a few records those facts are left that never change. The view
`record_fact` has a row per record and fact, as the table of that name had before schema 6.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from iolab.digest import sha256
from iolab.store.cells import read_json

FIRST_VERSION: Final = 6
"""Schema version since which records name a set."""
_DIGITS: Final = 32
"""Hexadecimal digits of the digest of a fact, and of a set."""
_OTHER_BELOW: Final = 0.5
"""A record that saw less than this part of its own facts before begins a new set."""
_VIEW: Final = (
    "CREATE VIEW record_fact AS "
    "SELECT record_id, one.value AS digest FROM record_facts "
    "JOIN fact_set ON fact_set.digest = record_facts.fact_set, json_each(facts_json) AS one "
    "UNION ALL "
    "SELECT record_id, one.value AS digest FROM record_facts, json_each(more_json) AS one"
)


def has_sets(connection: sqlite3.Connection) -> bool:
    """Tell whether records name sets of facts."""
    return bool(connection.execute("PRAGMA table_info(record_facts)").fetchall())


def fact_digest(name: str, value: str) -> str:
    """Key of a fact in table ``fact``."""
    return sha256(f"{name}\0{value}".encode()).hexdigest()[:_DIGITS]


def set_digest(facts_json: str) -> str:
    """Key of a set in table ``fact_set``."""
    return sha256(facts_json.encode()).hexdigest()[:_DIGITS]


def insert(connection: sqlite3.Connection, record_id: int, facts: Mapping[str, str]) -> None:
    """Store the facts that a record saw, inside the caller's transaction."""
    rows = [(fact_digest(name, value), name, value) for name, value in facts.items()]
    connection.executemany(
        "INSERT INTO fact SELECT ?1, ?2, ?3 WHERE NOT EXISTS "
        "(SELECT 1 FROM fact WHERE digest = ?1)",
        rows,
    )
    _insert_row(connection, record_id, {digest for digest, *_ in rows})


def take_over(connection: sqlite3.Connection) -> None:
    """Make rows and view of what the table of earlier schemas holds, which is dropped.

    The caller has checked the digests, and makes those of the records again.
    """
    for record_id, joined in connection.execute(
        "SELECT record_id, group_concat(digest) FROM record_fact "
        "GROUP BY record_id ORDER BY record_id"
    ).fetchall():
        _insert_row(connection, record_id, set(joined.split(",")))
    connection.execute("DROP TABLE record_fact")
    connection.execute(_VIEW)


def _insert_row(connection: sqlite3.Connection, record_id: int, facts: set[str]) -> None:
    if not facts:
        return
    last = connection.execute(
        "SELECT digest, facts_json FROM fact_set WHERE digest = "
        "(SELECT fact_set FROM record_facts ORDER BY record_id DESC LIMIT 1)"
    ).fetchone()
    usual = set[str](json.loads(last[1])) if last is not None else set[str]()
    if last is not None and usual <= facts:
        key = last[0]
    else:
        again = usual & facts
        usual = again if len(again) >= len(facts) * _OTHER_BELOW else facts
        text = _written(usual)
        key = set_digest(text)
        connection.execute(
            "INSERT INTO fact_set SELECT ?1, ?2 WHERE NOT EXISTS "
            "(SELECT 1 FROM fact_set WHERE digest = ?1)",
            (key, text),
        )
    connection.execute(
        "INSERT INTO record_facts VALUES (?, ?, ?)", (record_id, key, _written(facts - usual))
    )


def _written(facts: Iterable[str]) -> str:
    """Digests of facts as a JSON array, in one order whoever writes them."""
    return json.dumps(sorted(facts), separators=(",", ":"))


def read(connection: sqlite3.Connection) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield each record that saw any with the digests of its facts, in the order of the records.

    Equal ones that follow each other are mostly one object.
    """
    if not has_sets(connection):
        for record_id, joined in connection.execute(
            "SELECT record_id, group_concat(digest) FROM record_fact "
            "GROUP BY record_id ORDER BY record_id"
        ):
            yield record_id, frozenset(joined.split(","))
        return
    sets = {
        key: frozenset[str](read_json(text, "fact_set", key, "facts_json"))
        for key, text in connection.execute("SELECT digest, facts_json FROM fact_set")
    }
    for record_id, key, text in connection.execute(
        "SELECT record_id, fact_set, more_json FROM record_facts ORDER BY record_id"
    ):
        usual = sets.get(key, frozenset[str]())
        more = read_json(text, "record_facts", record_id, "more_json")
        yield record_id, usual.union(more) if more else usual


def values_of(connection: sqlite3.Connection, name: str) -> list[str]:
    """Every value of a fact in the finished trials, in the order of first appearance."""
    values = dict(connection.execute("SELECT digest, value FROM fact WHERE name = ?", (name,)))
    is_finished = _is_finished(connection)
    found = dict[str, None]()
    left = set(values)
    for record_id, facts in read(connection):
        if not left:
            break
        if is_finished(record_id):
            for digest in left & facts:
                found[values[digest]] = None
            left -= facts
    return list(found)


def _is_finished(connection: sqlite3.Connection) -> Callable[[int], bool]:
    rows = connection.execute("SELECT record_id FROM record WHERE status = 'ok'")
    return {record_id for (record_id,) in rows}.__contains__


def problems(connection: sqlite3.Connection) -> Iterator[str]:
    """Facts and sets that are not those by whose digest records name them."""
    for digest, name, value in connection.execute("SELECT digest, name, value FROM fact"):
        if fact_digest(name, value) != digest:
            yield f"table fact, {name}: not as it was stored (another digest)"
    if has_sets(connection):
        for digest, text in connection.execute("SELECT digest, facts_json FROM fact_set"):
            if set_digest(text) != digest:
                yield f"table fact_set, {digest}: not as it was stored (another digest)"


class NamedFacts:
    """Facts and sets of facts that records name, of which each is to be there."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._there = {"fact": _keys(connection, "fact"), "fact_set": frozenset[bytes]()}
        self._missing: dict[str, set[bytes]] = {"fact": set(), "fact_set": set()}
        if has_sets(connection):
            self._there["fact_set"] = _keys(connection, "fact_set")
            for (text,) in connection.execute("SELECT CAST(facts_json AS BLOB) FROM fact_set"):
                self._look("fact", _members(text))

    def look_at_joined(self, line: bytes) -> None:
        """Look at the line of a record's facts before there were sets (`digests`)."""
        self._look("fact", line.partition(b'"')[2].rpartition(b'"')[0].split(b",") if line else ())

    def look_at_set(self, line: bytes) -> None:
        """Look at the line of a record's set and the facts beside it (`digests`)."""
        _, key, more = (*line.split(b"\x1f"), b"", b"")[:3]
        if key not in self._there["fact_set"]:
            self._look("fact_set", [key])
        self._look("fact", _members(more))

    def _look(self, table: str, keys: Iterable[bytes]) -> None:
        if not self._there[table].issuperset(keys):
            self._missing[table] |= {*keys} - self._there[table]

    def missing(self) -> list[str]:
        """Table and key of those that are not there."""
        return [
            f"{table} {key.decode(errors='replace')}"
            for table, keys in self._missing.items()
            for key in sorted(keys)
        ]


def problems_of_missing(missing: Iterable[str]) -> Iterator[str]:
    """Sentences about what :meth:`NamedFacts.missing` of several found."""
    count = {"fact": 0, "fact_set": 0}
    for one in missing:
        count[one.partition(" ")[0]] += 1
    if count["fact"]:
        yield f"table fact: {count['fact']} of the facts that records name are not there"
    if count["fact_set"]:
        yield f"table fact_set: {count['fact_set']} of the sets that records name are not there"


def _keys(connection: sqlite3.Connection, table: str) -> frozenset[bytes]:
    return frozenset(row[0].encode() for row in connection.execute(f"SELECT digest FROM {table}"))


def _members(text: bytes) -> list[bytes]:
    """Digests in an array as this module writes it: digits, between which nothing is quoted."""
    return text[2:-2].split(b'","') if len(text) > 2 else []
