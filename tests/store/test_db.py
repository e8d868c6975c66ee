"""The store: append-only, one writer, readable meanwhile, safe when the disk is full."""

import os
import sqlite3
import subprocess
import sys

import pytest

from iolab.errors import StoreError
from iolab.store import owner, schema
from iolab.store.db import Origin, Store
from iolab.store.derived import DerivedRecord, PhaseRow, SeriesPart
from iolab.store.rows import Caveat, Nature
from iolab.study.load import parse_study
from iolab.study.plan import make_plan

STUDY = """
name = "s"
testbed = "loop:1g"
seed = 7
rounds = 2
[factors]
scheduler = ["none", "bfq"]
[settings]
direct = false
[[workloads]]
kind = "iozone"
tests = ["write"]
file_size = "1m"
"""
TABLES = ["study", "session", "trial", "record", "phase", "measurement", "series", "fact"]


@pytest.fixture
def plan():
    return make_plan(parse_study(STUDY))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "study.db"


@pytest.fixture
def store(path, plan):
    with Store.create(
        path, plan, Origin("0.1.0", "loop:1g", caveats=(Caveat("c", "m", "h"),))
    ) as store:
        store.begin_session("r-1", iolab_version="0.1.0", testbed={"class": "B"})
        store.add_trials(plan.trials(2))
        yield store


def derived(status="ok", value=1e6, size=1, **facts):
    phase = PhaseRow(
        operation="write",
        nature=Nature(io_size_bytes=4096),
        elapsed_ns=5,
        cache_share=0.25,
        harness_ns_per_op=50.0,
        cpu_user_ns=1,
        cpu_system_ns=2,
        device_read_bytes=0,
        device_write_bytes=9,
        device_flushed_write_bytes=3,
        depth_reached_mean=1.0,
        workers=[{"worker": 0, "ops": 1, "bytes": 2, "elapsed_ns": 3}],
        caveats=(Caveat("page_cache", "seen", "use direct"),),
        metrics={"throughput_bytes_per_s": value},
    )
    is_ok = status == "ok"
    return DerivedRecord(
        status=status,
        started_at_unix_ns=1,
        elapsed_ns=10,
        error=None if is_ok else "broken",
        caveats=(),
        facts={"kernel": "6.18", **facts},
        phases=(phase,) if is_ok else (),
        series=(SeriesPart("write", 100, (1, 2), (3, 4), (5, 6)),) if is_ok else (),
        record={"trial": "t", "padding": os.urandom(size).hex()},
    )


def test_what_was_stored_comes_back(store):
    store.commit_record("t0001", 1, derived(value=5.0, temperature="40"))
    store.commit_record("t0002", 1, derived(value=6.0, temperature="41"))
    store.commit_record("t0003", 1, derived("failed"))
    data = store.load_data()
    assert [trial.status for trial in data.trials] == ["ok", "ok", "failed", None]
    assert data.trials[2].error == "broken"
    assert [row.value for row in data.measurements] == [5.0, 6.0]
    row = data.measurements[0]
    assert (row.operation, row.is_direct, row.cache_share) == ("write", False, 0.25)
    assert row.caveats == (Caveat("page_cache", "seen", "use direct"),)
    assert row.levels == data.trials[0].levels
    assert list(data.series[0].latency_ns_max) == [5, 6]
    assert data.facts == {"kernel": "6.18"}
    assert data.varying_facts == {"temperature": {"t0001": "40", "t0002": "41"}}
    assert data.caveats[-1] == Caveat("c", "m", "h")
    assert data.phase_details[0]["workers"][0]["bytes"] == 2
    assert data.study.rounds_planned == 2
    assert data.study.settings["file_size"] == "1m"
    assert data.study.settings["cache"] == "cold"
    assert store.record("t0001")["trial"] == "t"


def test_a_failed_trial_may_be_tried_again_but_a_finished_one_never(store):
    store.commit_record("t0001", 1, derived("failed"))
    store.commit_record("t0001", 1, derived("ok"))
    assert store.finished_trials() == {"t0001": "ok"}
    with pytest.raises(StoreError, match="UNIQUE"):
        store.commit_record("t0001", 1, derived("ok"))
    assert len(store.load_data().measurements) == 1


@pytest.mark.parametrize("table", TABLES)
def test_records_cannot_be_changed_removed_or_replaced_even_by_others(store, path, table):
    store.commit_record("t0001", 1, derived())
    other = sqlite3.connect(path)
    column = other.execute(f"SELECT * FROM {table}").description[0][0]
    for statement in (
        f"UPDATE {table} SET {column} = {column}",
        f"DELETE FROM {table}",
        f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            other.execute(statement)
    other.close()


def test_facts_are_stored_once(store, path):
    store.commit_record("t0001", 1, derived())
    store.commit_record("t0002", 1, derived())
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT count(*) FROM fact").fetchone()[0] == 1
    other.close()


def test_nothing_is_written_during_a_trial(store, path):
    before = {item.name: item.stat().st_mtime_ns for item in path.parent.iterdir()}
    with store.quiet(), pytest.raises(AssertionError, match="during a trial"):
        store.commit_record("t0001", 1, derived())
    assert before == {item.name: item.stat().st_mtime_ns for item in path.parent.iterdir()}
    store.commit_record("t0001", 1, derived())


def test_a_second_writer_is_told_who_the_first_is(store, path):
    with pytest.raises(StoreError, match=f"process {os.getpid()}"):
        Store.open_writer(path)


def test_the_lock_dies_with_its_holder(path, plan):
    Store.create(path, plan, Origin("0", "loop:1g")).close()
    code = (
        "import os, sys; from pathlib import Path; from iolab.store.db import Store;"
        "Store.open_writer(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert killed.returncode == -9
    Store.open_writer(path).close()


def test_others_read_while_one_writes(store, path):
    with Store.open_reader(path) as reader:
        assert reader.finished_trials() == {}
        store.commit_record("t0001", 1, derived())
        assert reader.finished_trials() == {"t0001": "ok"}
        with pytest.raises(AssertionError, match="reading"):
            reader.begin_session("x", iolab_version="0", testbed={})


def test_a_full_disk_keeps_earlier_trials(store, path):
    store.commit_record("t0001", 1, derived())
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    with pytest.raises(StoreError, match="disk is full") as caught:
        store.commit_record("t0002", 1, derived(size=200_000))
    assert "earlier ones are safe" in str(caught.value)
    assert store.finished_trials() == {"t0001": "ok"}
    assert [row.trial_id for row in store.load_data().measurements] == ["t0001"]


def test_a_killed_creation_leaves_no_half_study(path, plan):
    path.parent.mkdir()
    path.with_name(".study.db.0123456789abcdef").write_bytes(b"half")
    with Store.create(path, plan, Origin("0", "loop:1g")) as store:
        assert store.study.name == "s"


@pytest.mark.parametrize(
    ("content", "part"), [(b"not a database at all" * 99, "not a study"), (b"", "it is empty")]
)
def test_foreign_files_are_not_studies(tmp_path, content, part):
    path = tmp_path / "study.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=part):
        Store.open_reader(path)


def test_missing_and_existing_files(tmp_path, store, path, plan):
    with pytest.raises(StoreError, match="no study in"):
        Store.open_reader(tmp_path / "study.db")
    with pytest.raises(StoreError, match=rf"another iolab \(process {os.getpid()}\)"):
        Store.create(path, plan, Origin("0", "loop:1g"))
    store.close()
    with pytest.raises(StoreError, match="exists already"):
        Store.create(path, plan, Origin("0", "loop:1g"))


def test_a_study_that_cannot_be_made_leaves_nothing(tmp_path, plan, monkeypatch):
    def full(connection):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(schema, "create_schema", full)
    with pytest.raises(StoreError, match="cannot be made: database or disk is full: make room"):
        Store.create(tmp_path / "a" / "b" / "study.db", plan, Origin("0", "loop:1g"))
    assert list(tmp_path.iterdir()) == []


def test_a_study_of_which_a_part_is_lost_is_not_continued(path, plan):
    Store.create(path, plan, Origin("0", "loop:1g")).close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(bytes(4096))
    with pytest.raises(StoreError, match="damaged"):
        Store.open_writer(path)
    # The lock was given up.
    with pytest.raises(StoreError, match="damaged"):
        Store.open_writer(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_study_that_may_only_be_read_is_not_continued(path, plan):
    Store.create(path, plan, Origin("0", "loop:1g")).close()
    path.chmod(0o400)
    with pytest.raises(StoreError, match="may only be read"):
        Store.open_writer(path)


def test_a_newer_schema_is_refused(path, plan):
    Store.create(path, plan, Origin("0", "loop:1g")).close()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE of_the_future (x)")
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(StoreError, match="newer iolab"):
        Store.open_writer(path)


def test_migrations_are_applied_in_order_and_tables_stay_append_only(tmp_path, store):
    (tmp_path / "0002.sql").write_text(
        "ALTER TABLE fact ADD COLUMN unit TEXT;\nUPDATE fact SET unit = 'x';\n"
    )
    store.commit_record("t0001", 1, derived())
    connection = store._connection
    connection.execute("BEGIN")
    schema.migrate(connection, 1, newest=2, folder=tmp_path)
    connection.execute("COMMIT")
    assert connection.execute("SELECT DISTINCT unit FROM fact").fetchall() == [("x",)]
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute("DELETE FROM fact")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_study_of_an_older_version_is_read_as_it_is_and_migrated_for_writing(
    path, plan, version, older_stores
):
    with Store.create(path, plan, Origin("0", "loop:1g")) as store:
        study = store.study
    older_stores.as_version(path, version)
    with Store.open_reader(path) as store:
        assert store.study == study
        assert store._connection.execute("PRAGMA user_version").fetchone() == (version,)
    with Store.open_writer(path) as store:
        assert store.study == study
        assert store._connection.execute("PRAGMA user_version").fetchone() == (
            schema.SCHEMA_VERSION,
        )
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            store._connection.execute("UPDATE study SET name = 'x'")
        text = store._connection.execute(
            "SELECT sql FROM sqlite_schema WHERE name = 'study'"
        ).fetchone()[0]
        assert "'imported'" in text


def test_files_made_under_sudo_belong_to_the_user():
    as_root = os.geteuid() == 0
    found = owner.invoking_user({"SUDO_UID": "1000", "SUDO_GID": "1001"})
    assert found == ((1000, 1001) if as_root else None)
    assert owner.invoking_user({"SUDO_UID": "x"}) is None
    assert owner.invoking_user({}) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")
def test_the_database_and_its_directories_belong_to_the_user(monkeypatch, path, plan):
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setenv("SUDO_GID", "1001")
    with Store.create(path, plan, Origin("0", "loop:1g")) as store:
        store.begin_session("r-1", iolab_version="0", testbed={})
        files = [path.parent, *path.parent.iterdir()]
        assert {(item.stat().st_uid, item.stat().st_gid) for item in files} == {(1000, 1001)}
        assert len(files) == 5, files
