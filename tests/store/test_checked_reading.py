"""A large study is checked beside the reading; no damage passes that a check before it would find.

A bound of 0 bytes makes every study a large one.
"""

import io
import sqlite3
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import DamageError
from iolab.store import beside, checked_reading, schema, thorough
from iolab.store.db import Store


@pytest.fixture
def database(request, tmp_path):
    path = request.config.rootpath / "tests/golden/stores/schema-3/iozone-sizes.iolab"
    database = tmp_path / "o" / "study.db"
    database.parent.mkdir()
    with zipfile.ZipFile(path) as members:
        database.write_bytes(members.read("study.db"))
    return database


@pytest.fixture
def is_large(monkeypatch):
    monkeypatch.setattr(thorough, "LARGE_BYTES", 0)


@pytest.fixture
def started(monkeypatch):
    """Programs that were started."""
    found, start = [], subprocess.Popen
    monkeypatch.setattr(
        beside.subprocess,
        "Popen",
        lambda words, **how: found.append(words[0]) or start(words, **how),
    )
    return found


def change_a_value(database):
    with sqlite3.connect(database) as connection:
        connection.execute("DROP TRIGGER measurement_no_update")
        connection.execute("UPDATE measurement SET value = value * 2 WHERE record_id = 2")
    connection.close()


def change_a_type(database):
    """A column of whole numbers holds a text, which an index does not: both looks see it."""
    with sqlite3.connect(database) as connection:
        connection.execute("DROP TRIGGER trial_no_update")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = 'trial'"
        )
    connection.close()
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE trial SET seed = 'x' WHERE ordinal = 1")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = sql || ' STRICT' WHERE name = 'trial'")
    connection.close()


def overwrite_pages(database):
    body = bytearray(database.read_bytes())
    page = int.from_bytes(body[16:18], "big")
    for number in range(5, len(body) // page):
        body[number * page : number * page + 64] = b"\xff" * 64
    database.write_bytes(body)


DAMAGES = [change_a_value, change_a_type, overwrite_pages]


def export(database, out):
    err = io.StringIO()
    words = ["export", str(database.parent), "--out", str(out)]
    return main(words, console=Console(io.StringIO(), err)), err.getvalue()


def test_the_same_values_are_written_and_another_process_checks(
    database, tmp_path, started, monkeypatch
):
    assert export(database, tmp_path / "small.csv")[0] == 0
    assert started == []
    monkeypatch.setattr(thorough, "LARGE_BYTES", 0)
    assert export(database, tmp_path / "large.csv")[0] == 0
    assert started == [sys.executable], "the checking one has a helper of its own"
    assert (tmp_path / "large.csv").read_bytes() == (tmp_path / "small.csv").read_bytes() != b""


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("program", [None, "/bin/false", "/nonexistent/python"])
def test_damage_leaves_no_file_and_says_what_the_check_says(
    database, tmp_path, monkeypatch, damage, program
):
    damage(database)
    with pytest.raises(DamageError) as before:
        Store.open_reader(database)
    monkeypatch.setattr(thorough, "LARGE_BYTES", 0)
    if program is not None:  # Whatever becomes of the other process.
        monkeypatch.setattr(sys, "executable", program)
    code, err = export(database, tmp_path / "v.csv")
    assert code == 5
    assert before.value.message in err
    assert [path.name for path in tmp_path.iterdir()] == ["o"]


def test_damage_leaves_the_file_of_a_whole_study_as_it_was(database, tmp_path, is_large):
    out = tmp_path / "v.csv"
    assert export(database, out)[0] == 0
    content = out.read_bytes()
    change_a_value(database)
    assert export(database, out)[0] == 5
    assert out.read_bytes() == content


@pytest.mark.parametrize("damage", DAMAGES)
def test_pages_and_rows_looked_through_at_once_say_the_same(database, monkeypatch, damage):
    Store.open_reader(database).close()
    damage(database)
    told = []
    for size in (thorough.LARGE_BYTES, 0):
        monkeypatch.setattr(thorough, "LARGE_BYTES", size)
        with pytest.raises(DamageError) as raised:
            Store.open_reader(database)
        told.append((raised.value.message, raised.value.hint))
    assert told[0] == told[1]


def test_an_error_of_the_block_is_told_if_the_study_is_whole(database, is_large):
    with (
        pytest.raises(ZeroDivisionError),
        checked_reading.read_while_checked(database) as (store, _),
    ):
        store.contents.n_trials() / 0


def test_an_error_of_the_block_that_damage_may_have_caused_is_told_as_damage(database, is_large):
    change_a_value(database)
    with (
        pytest.raises(DamageError, match="record 2"),
        checked_reading.read_while_checked(database) as (store, _),
    ):
        store.contents.n_trials() / 0


def test_no_process_is_left_of_a_block_that_fails(database, is_large, monkeypatch):
    processes, start = [], subprocess.Popen
    monkeypatch.setattr(
        beside.subprocess,
        "Popen",
        lambda *words, **how: processes.append(start(*words, **how)) or processes[0],
    )
    with pytest.raises(OSError, match="full"), checked_reading.read_while_checked(database):
        raise OSError("full")
    assert processes[0].poll() is not None


@pytest.mark.parametrize("version", [3, schema.SCHEMA_VERSION])
def test_what_is_wrong_in_either_half_is_told_once_and_in_order(database, monkeypatch, version):
    """Rows, facts that are not there and digests without a record, each in both halves."""
    if version == schema.SCHEMA_VERSION:
        Store.open_writer(database).close()
    with sqlite3.connect(database) as connection:
        (last,) = connection.execute("SELECT max(record_id) FROM record").fetchone()
        for table in ("measurement", "record_fact", "record_facts"):
            for event in ("update", "delete", "replace"):
                connection.execute(f"DROP TRIGGER IF EXISTS {table}_no_{event}")
        for record in (1, last):
            connection.execute(
                "UPDATE measurement SET value = value * 2 WHERE record_id = ?", (record,)
            )
            fact = f"{record:032x}"
            if version == 3:
                connection.execute("INSERT INTO record_fact VALUES (?, ?)", (record, fact))
            else:
                connection.execute(
                    "UPDATE record_facts SET more_json = ? WHERE record_id = ?",
                    (f'["{fact}"]', record),
                )
            connection.execute(
                "INSERT INTO digest VALUES ('record', ?, 'with_rows', x'00')", (record * 1000,)
            )
    connection.close()
    told = []
    for size in (thorough.LARGE_BYTES, 0):
        monkeypatch.setattr(thorough, "LARGE_BYTES", size)
        with sqlite3.connect(database) as connection:
            parts = thorough.problems_of_all(database, connection, has_digests=True)
            told.append([list(part) for part in parts])
        connection.close()
    assert told[0] == told[1]
    _, rows = told[0]
    assert [row.split(":")[0] for row in rows] == [
        f"trial {first_trial(database, 1)} (record 1)",
        f"trial {first_trial(database, last)} (record {last})",
        "table fact",
        "table digest, record 1000",
        f"table digest, record {last * 1000}",
    ]
    assert "2 of the facts" in rows[2]


def first_trial(database, record):
    with sqlite3.connect(database) as connection:
        row = connection.execute("SELECT trial_id FROM record WHERE record_id = ?", (record,))
        return row.fetchone()[0]


def test_a_helper_ends_with_the_process_that_asked_it():
    """Killed, that one says nothing; the helper's pipe ends."""
    program = (
        "import signal; from iolab.store.beside import Beside\n"
        "one = Beside('signal:pause').__enter__(); print(one._process.pid, flush=True)\n"
        "signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as asking:
        helper = Path("/proc", asking.stdout.readline().decode().strip())
        assert helper.exists()
        asking.kill()
    for _ in range(200):
        if not helper.exists() or ") Z " in (helper / "stat").read_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"{helper} is still there")
