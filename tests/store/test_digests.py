"""Digests say the same of rows whichever way their text is made."""

import sqlite3

import pytest

from iolab.store import digests


@pytest.fixture
def connection():
    with sqlite3.connect(":memory:") as made:
        made.execute("CREATE TABLE record_fact (record_id, digest)")
        made.execute(
            "CREATE TABLE series "
            "(record_id, operation, interval_ns, ops_json, bytes_json, latency_ns_max_json)"
        )
        yield made
    made.close()


@pytest.mark.parametrize("facts", [["0"], ["0123456789abcdef"], [f"{i:032x}" for i in range(111)]])
def test_the_line_of_facts_is_that_of_the_encoder(connection, facts):
    connection.executemany("INSERT INTO record_fact VALUES (17, ?)", [(fact,) for fact in facts])
    expected = digests._digest_of(digests._ENCODE([(17, ",".join(facts))]))
    assert list(digests._pieces(connection, "record_fact", (" WHERE record_id = ?", [17]))) == [
        (17, expected)
    ]


def test_lines_of_series_are_values_between_separators(connection):
    rows = [(3, "read", 100, "[1,2]", "[4,8]", "[9,9]"), (3, "ä/all", 10, "[]", "[]", "[null]")]
    connection.executemany("INSERT INTO series VALUES (?, ?, ?, ?, ?, ?)", rows)
    text = "\n".join("\x1f".join(map(str, row[1:])) for row in rows)
    expected = digests._digest_of(text)
    assert list(digests._pieces(connection, "series", digests._ALL)) == [(3, expected)]


def test_a_value_that_is_missing_changes_the_digest(connection):
    connection.executemany("INSERT INTO record_fact VALUES (1, ?)", [("ab",)])
    before = list(digests._pieces(connection, "record_fact", digests._ALL))
    connection.execute("UPDATE record_fact SET digest = NULL")
    assert list(digests._pieces(connection, "record_fact", digests._ALL)) != before


def test_a_set_and_the_facts_beside_it_are_in_the_digest(connection):
    connection.execute("CREATE TABLE record_facts (record_id, fact_set, more_json)")
    connection.execute("INSERT INTO record_facts VALUES (1, 'ab', '[]')")
    found = [list(digests._pieces(connection, "record_facts", digests._ALL))]
    for change in ("more_json = '[\"cd\"]'", "fact_set = 'abc'", "more_json = NULL"):
        connection.execute(f"UPDATE record_facts SET {change}")
        found.append(list(digests._pieces(connection, "record_facts", digests._ALL)))
    assert len({piece for [(_, piece)] in found}) == len(found)
