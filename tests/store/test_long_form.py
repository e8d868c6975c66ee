"""The values in long form: the view of the database and what is read of it are the same rows."""

import sqlite3

import pytest

from iolab.errors import DamageError
from iolab.store import long_form
from iolab.store.db import Origin, Store
from iolab.store.derived import DerivedRecord, PhaseRow
from iolab.store.rows import Nature
from iolab.study.load import parse_study
from iolab.study.plan import make_plan

STUDY = """
name = "s"
testbed = "loop:1g"
seed = 7
rounds = 2
[factors]
scheduler = ["none", "bfq"]
record_size = ["4k", "8k"]
[[workloads]]
kind = "iozone"
tests = ["write"]
file_size = "1m"
"""


def phase(operation, **metrics):
    return PhaseRow(
        operation=operation,
        nature=Nature("write", "direct", 4096),
        elapsed_ns=5,
        cache_share=0.25,
        harness_ns_per_op=None,
        cpu_user_ns=None,
        cpu_system_ns=None,
        device_read_bytes=None,
        device_write_bytes=None,
        device_flushed_write_bytes=None,
        depth_reached_mean=None,
        workers=[],
        caveats=(),
        metrics=metrics,
    )


def fill(path, text=STUDY, status="ok", step=-1):
    """A stored study whose trials took place in another order than planned, unless `step` is 1."""
    plan = make_plan(parse_study(text))
    with Store.create(path, plan, Origin("0.1.0", "loop:1g")) as store:
        session = store.begin_session("r", iolab_version="0.1.0", testbed={"class": "B"})
        trials = list(plan.trials(2))
        store.add_trials(trials)
        for trial in trials[:-1][::step]:
            phases = (
                phase("write", throughput_bytes_per_s=1e6 + trial.ordinal, ops_per_s=9.5),
                phase("again", ops_per_s=1.0),
            )
            done = DerivedRecord(status, 1, 10, None, (), {}, phases, record={"trial": "t"})
            store.commit_record(trial.trial_id, session, done)
    return trials


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "study.db"


def read(path):
    with Store.open_reader(path) as store:
        columns, groups = store.contents.values()
        return columns, [(*shared, *pair) for shared, values in groups for pair in values]


def test_rows_stand_in_the_order_of_the_trials_and_of_their_operations(path):
    trials = fill(path)
    columns, rows = read(path)
    assert columns == (
        *("trial", "round", "position", "workload", "scheduler", "record_size"),
        *("operation", "kind", "access", "io_size_bytes", "cache_share", "metric", "value"),
    )
    assert [row[0] for row in rows[::3]] == [trial.trial_id for trial in trials[:-1]]
    assert [row[6] for row in rows[:3]] == ["write", "write", "again"]
    assert rows[1][6:] == (
        *("write", "write", "direct", 4096, 0.25),
        *("throughput_bytes_per_s", 1e6 + 1),
    )
    levels = dict(trials[0].levels)
    assert rows[0][4:6] == (levels["scheduler"], levels["record_size"])


def test_the_view_of_the_database_has_the_same_columns_and_rows(path):
    fill(path)
    columns, rows = read(path)
    with sqlite3.connect(path) as connection:
        cursor = connection.execute("SELECT * FROM long_form")
        assert tuple(column[0] for column in cursor.description) == columns
        assert sorted(cursor.fetchall()) == sorted(rows)
    connection.close()


def test_a_study_of_an_older_version_gives_the_same_rows_and_gets_the_view(path, older_stores):
    fill(path)
    before = read(path)
    older_stores.as_version(path, 4)
    assert read(path) == before
    Store.open_writer(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM long_form").fetchone() == (len(before[1]),)
    connection.close()


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("operation", ["again", "first", "since", "write", "zero"])
def test_values_without_a_phase_are_in_no_row(path, step, operation):
    """Read record by record, or all at once where they are in order."""
    fill(path, step=step)
    _, before = read(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER phase_no_delete")
        connection.execute("DELETE FROM phase WHERE operation = ?", (operation,))
        if operation in ("first", "since", "zero"):
            connection.executemany(
                "INSERT INTO measurement VALUES (?, ?, 'ops_per_s', 3.0)",
                [(record, operation) for record in (1, 2, 7)],
            )
    connection.close()
    with Store.open_reader(path, is_checked=False) as store:
        _, groups = store.contents.values()
        rows = [(*shared, *pair) for shared, values in groups for pair in values]
    assert rows == [row for row in before if row[6] != operation]


def test_a_study_that_compares_nothing_has_no_column_of_a_factor(path):
    without = "".join(
        line + "\n"
        for line in STUDY.splitlines()
        if not line.startswith(("[factors]", "scheduler", "record_size"))
    )
    fill(path, without)
    columns, rows = read(path)
    assert columns == (*long_form.BEFORE, *long_form.AFTER)
    assert len(rows) > 0


def test_no_trial_no_row(path):
    fill(path, status="failed")
    assert read(path)[1] == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 AS trial",
        "SELECT * FROM trial",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n",
    ],
)
def test_another_view_of_that_name_is_refused(path, statement):
    fill(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP VIEW long_form")
        connection.execute(f"CREATE VIEW long_form AS {statement}")
    connection.close()
    with pytest.raises(DamageError, match="view long_form is not the one that iolab makes"):
        Store.open_reader(path)


def test_names_of_factors_cannot_leave_their_quotes(tmp_path):
    names = ['a"b', "a'b", "x; DROP TABLE trial --", "Value", "round", "value_level", "täglich"]
    statement = long_form.view_statement("imported", {name: ["1"] for name in names})
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE trial (trial_id, round, position, workload, levels_json);"
        "CREATE TABLE record (record_id, trial_id, status);"
        "CREATE TABLE phase (record_id, operation, kind, access, io_size_bytes, cache_share);"
        "CREATE TABLE measurement (record_id, operation, metric, value);"
    )
    connection.execute(statement)
    found = [column[0] for column in connection.execute("SELECT * FROM long_form").description]
    assert found[4:-7] == [
        *('a"b', "a'b", "x; DROP TABLE trial --"),
        *("Value_level", "round_level", "value_level_level", "täglich"),
    ]
    connection.close()


def test_records_in_the_order_of_the_plan_are_read_in_one_go_with_the_same_rows(path):
    plan = make_plan(parse_study(STUDY))
    with Store.create(path, plan, Origin("0.1.0", "loop:1g")) as store:
        session = store.begin_session("r", iolab_version="0.1.0", testbed={"class": "B"})
        trials = list(plan.trials(2))
        store.add_trials(trials)
        for trial in trials:
            phases = (
                phase("write", throughput_bytes_per_s=1e6 + trial.ordinal, ops_per_s=9.5),
                phase("again", ops_per_s=float(trial.ordinal)),
                phase("nothing"),
            )
            is_failed = trial.ordinal in (1, 4, 8)
            status = "failed" if is_failed else "ok"
            done = DerivedRecord(status, 1, 10, None, (), {}, phases, record={"trial": "t"})
            store.commit_record(trial.trial_id, session, done)
    _, rows = read(path)
    assert len(rows) == 5 * 3
    assert [row[0] for row in rows] == [
        t.trial_id for t in trials[1:7] for _ in range(3) if t.ordinal != 4
    ]
    assert [row[-3] for row in rows[:3]] == [0.25] * 3
    with sqlite3.connect(path) as connection:
        viewed = connection.execute("SELECT * FROM long_form").fetchall()
    assert sorted(map(repr, rows)) == sorted(map(repr, viewed))


def test_a_value_without_its_phase_shifts_no_other(path):
    fill(path)
    _, before = read(path)
    with sqlite3.connect(path) as connection:  # As only stores without digests can have it.
        connection.execute("INSERT INTO measurement VALUES (2, 'nowhere', 'ops_per_s', 1.0)")
        groups = list(long_form.long_groups(connection))
    connection.close()
    assert [(*shared, *pair) for shared, values in groups for pair in values] == before


def test_phases_come_in_their_order_and_not_in_that_of_their_names(path):
    plan = make_plan(parse_study(STUDY))
    with Store.create(path, plan, Origin("0.1.0", "loop:1g")) as store:
        session = store.begin_session("r", iolab_version="0.1.0", testbed={"class": "B"})
        trials = list(plan.trials(2))
        store.add_trials(trials)
        names = ["write", "again", "b", "a"]
        for trial in trials:
            phases = tuple(phase(name, m=float(i)) for i, name in enumerate(names))
            done = DerivedRecord("ok", 1, 10, None, (), {}, phases, record={"trial": "t"})
            store.commit_record(trial.trial_id, session, done)
    _, rows = read(path)
    assert [(row[6], row[-1]) for row in rows[:4]] == list(zip(names, range(4), strict=True))
