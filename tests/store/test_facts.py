"""Facts of records come back as they were seen, however they are shared; the view has them, too."""

import random
import sqlite3

import pytest

from iolab.store import digests, facts, schema


@pytest.fixture
def connection():
    with sqlite3.connect(":memory:", isolation_level=None) as made:
        schema.create_schema(made)
        yield made
    made.close()


def seen_by(number, rng):
    """Facts of a machine: some never change, some do, some are there now and then."""
    usual = {f"machine.{i}": "same" for i in range(30)}
    level = {"scheduler": rng.choice(["none", "bfq"]), "load": str(number)}
    seldom = {"slice_idle": "8"} if level["scheduler"] == "bfq" else {}
    kernel = {"kernel": "6.1" if number < 30 else "6.18"}
    return usual | level | seldom | kernel


def as_rows(connection):
    rows = connection.execute(
        "SELECT record_id, name, value FROM record_fact JOIN fact USING (digest)"
    ).fetchall()
    found = {}
    for record, name, value in rows:
        assert name not in found.setdefault(record, {})
        found[record][name] = value
    return found


def as_read(connection):
    known = {
        digest: (name, value)
        for digest, name, value in connection.execute("SELECT digest, name, value FROM fact")
    }
    return {
        record: dict(known[digest] for digest in found) for record, found in facts.read(connection)
    }


@pytest.mark.parametrize("seed", range(5))
def test_each_record_has_the_facts_that_it_saw(connection, seed):
    rng = random.Random(seed)
    expected = {number: seen_by(number, rng) for number in range(1, 61)}
    for number, seen in expected.items():
        facts.insert(connection, number, seen)
    assert as_rows(connection) == as_read(connection) == expected
    # What never changes stands in a few sets, and not in each record.
    assert connection.execute("SELECT count(*) FROM fact_set").fetchone()[0] < 8
    longest = connection.execute("SELECT more_json FROM record_facts").fetchall()[10:]
    assert max(text.count(",") for (text,) in longest) < 5
    assert facts.values_of(connection, "kernel") == []  # No record is finished.
    assert digests.look_at_records(connection).missing == []


def test_another_machine_begins_another_set(connection):
    here = {f"fact.{i}": "here" for i in range(20)}
    there = {f"fact.{i}": "there" for i in range(20)} | {"same": "1"}
    for number, seen in enumerate((here, there, there, here), start=1):
        facts.insert(connection, number, seen)
    assert as_rows(connection) == {1: here, 2: there, 3: there, 4: here}
    assert {text for (text,) in connection.execute("SELECT more_json FROM record_facts")} == {"[]"}
    assert connection.execute("SELECT count(*) FROM fact_set").fetchone()[0] == 2


def test_a_record_without_facts_has_no_row_and_changes_no_set(connection):
    facts.insert(connection, 1, {"a": "1"})
    facts.insert(connection, 2, {})
    facts.insert(connection, 3, {"a": "1", "b": "2"})
    assert as_rows(connection) == {1: {"a": "1"}, 3: {"a": "1", "b": "2"}}
    assert connection.execute("SELECT count(*) FROM fact_set").fetchone()[0] == 1


def test_what_is_named_and_not_there_is_told(connection):
    facts.insert(connection, 1, {"a": "1", "b": "2"})
    facts.insert(connection, 2, {"a": "1", "b": "2", "c": "3"})
    for table in ("fact", "fact_set"):
        connection.execute(f"DROP TRIGGER {table}_no_delete")
    connection.execute("DELETE FROM fact WHERE name IN ('b', 'c')")
    missing = digests.look_at_records(connection).missing
    assert list(facts.problems_of_missing(missing)) == [
        "table fact: 2 of the facts that records name are not there"
    ]
    connection.execute("DELETE FROM fact_set")
    missing = digests.look_at_records(connection).missing
    assert list(facts.problems_of_missing(missing)) == [
        "table fact: 1 of the facts that records name are not there",
        "table fact_set: 1 of the sets that records name are not there",
    ]
