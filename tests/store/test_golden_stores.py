"""Stores of earlier schemas open as they are, and through a migration, and give the same verdicts.

The archives under tests/golden/stores/schema-3 were made before records said what an operation is
(issue 15), each with its verdict.json. Where that verdict was false it is repaired: every repair
stands in `REPAIRS`, and nothing else may differ.
"""

import io
import json
import re
import sqlite3
import zipfile

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import StoreError
from iolab.store import digests, schema
from iolab.store.db import Store

FORMS = (
    # Doubts and estimates have a common form beside their older ones, which are compared.
    r"\.findings\..*",
)
POOLED = (
    # Only what is alike is pooled, in families of all pairs, and nothing is decided on two rounds
    # (issue 16): the comparisons are others, made of the same cells (`ratios`).
    r"\.(pooled|best_levels|closer|cells)\..*",
    r"\.treatments\.\d+\.kind",
    r"\.caveats\..*",
    r"\.(sentence|headline_word|methods)",
)
SINGLE = (
    # A single run is a study without a factor: its only level was called one.
    r"\.study\.factors\..*",
    r"\.study\.settings\.(direct|record_size)",
    r"\.(compared_factor|baseline)",
    r".*\.level",
    r".*\.levels\.(direct|record_size)",
    r"\.sentence",
    r"\.methods",
)
DIRECT = (
    # Direct I/O was told as buffered, because the dummy factor was called direct.
    r".*\.is_direct",
)
REPAIRS = {
    # The promise of a data sheet bounds what reads and what writes, whatever it is called: streams
    # and the readers and writers of a test had no bound.
    "streams": (r"\.upper_bounds.*",),
    "cached": (),
    "iozone-sizes": (),
    "single": SINGLE,
    "iozone-direct": (*SINGLE, *DIRECT),
    "bonnie-direct": (*SINGLE, *DIRECT),
    # Making, looking up and removing files is neither direct nor buffered.
    "bonnie-files": (*SINGLE, *DIRECT),
}
SENTENCES = {
    "streams": "tests, direct I/O, reads, 3 cells, 3 rounds",
    "cached": "64k is 9.3 times as fast as 4k, but in too few rounds to judge by: undecided",
    "iozone-sizes": "Compared with 4k (iozone, direct I/O, writes, 2 cells, 1 round): undecided",
    "iozone-direct": "nothing compared: direct: write 36.9 MiB/s, rewrite 36.9 MiB/s",
    "bonnie-direct": "nothing compared: direct: put_block 73.7 MiB/s, rewrite 36.9 MiB/s",
    "bonnie-files": "get_block 3 290 MiB/s and 1 more; seq_create 24 600 ops/s",
    "single": "nothing compared: direct: write 36.9 MiB/s, read 36.9 MiB/s; 2 rounds.",
}


def flat(value, path=""):
    """Every value of a document by its path."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from flat(part, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for index, part in enumerate(value):
            yield from flat(part, f"{path}.{index}")
    else:
        yield path, value


def ratios(verdict):
    """Values and ratios of single cells, whatever they are pooled with."""
    return {
        (c["workload"], c["operation"], str(c["cell_levels"]), c["metric"], c["level"]): (
            c["value"],
            c["baseline_value"],
            c["effect"]["ratio"],
        )
        for c in verdict["cells"]
    }


def verdict_of(directory):
    out, err = io.StringIO(), io.StringIO()
    assert main(["report", str(directory), "--json"], console=Console(out, err)) == 0, err
    return json.loads(out.getvalue())


@pytest.fixture(params=REPAIRS)
def golden(request, tmp_path):
    """Name of a golden store, its directory, and the verdict that was given of it."""
    path = request.config.rootpath / "tests/golden/stores/schema-3" / f"{request.param}.iolab"
    with zipfile.ZipFile(path) as members:
        (tmp_path / "study.db").write_bytes(members.read("study.db"))
        return request.param, tmp_path, json.loads(members.read("verdict.json"))


def check(name, told, before):
    now, then = dict(flat(told)), dict(flat(before))
    assert (then.pop(".schema_version"), now.pop(".schema_version")) == (2, 3)
    changed = {key for key in now.keys() | then if now.get(key, "") != then.get(key, "")}
    assert ratios(told) == ratios(before)
    gone = {c["code"] for c in before["caveats"]} - {c["code"] for c in told["caveats"]}
    assert not gone, "no caveat is lost"
    used = set()
    for key in changed:
        rules = [rule for rule in (*REPAIRS[name], *POOLED, *FORMS) if re.fullmatch(rule, key)]
        assert rules, f"{key}: {then.get(key)} -> {now.get(key)}"
        used.update(rules)
    assert SENTENCES.get(name, before["sentence"]) in told["sentence"]
    assert "buffered" not in told["sentence"] or name == "bonnie-files"
    return used


def test_a_store_of_schema_3_gives_the_same_verdict_before_and_after_its_migration(golden):
    name, directory, before = golden
    path = directory / "study.db"
    as_it_is = verdict_of(directory)
    used = check(name, as_it_is, before)
    assert used >= set(REPAIRS[name]) - {SINGLE[0], SINGLE[1], *DIRECT}
    with Store.open_writer(path) as store:
        made = set(store._connection.execute("SELECT DISTINCT made FROM digest"))
        assert made == {("with_rows",)}  # They were checked, and made again of the same rows.
        assert store._connection.execute("PRAGMA user_version").fetchone() == (
            schema.SCHEMA_VERSION,
        )
        assert not list(digests.problems(store._connection))
    assert verdict_of(directory) == as_it_is


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_older_schema_gives_the_same_verdict(golden, version, older_stores):
    name, directory, before = golden
    path = directory / "study.db"
    with Store.open_reader(path) as store:
        today = store.load_data()
    older_stores.as_version(path, version)
    told = verdict_of(directory)
    told["caveats"] = [c for c in told["caveats"] if c["code"] != "no_digests"]
    check(name, told, before)
    with Store.open_reader(path) as store:
        assert store.load_data().phase_details == today.phase_details
    Store.open_writer(path).close()
    with Store.open_reader(path) as store:
        assert store.load_data().phase_details == today.phase_details


def test_what_older_streams_did_is_read_from_the_text_of_their_study(request, tmp_path):
    path = request.config.rootpath / "tests/golden/stores/schema-3/streams.iolab"
    with zipfile.ZipFile(path) as members:
        (tmp_path / "study.db").write_bytes(members.read("study.db"))
    query = "SELECT DISTINCT operation, io_size_bytes FROM phase WHERE operation LIKE 'streams/%'"
    with sqlite3.connect(tmp_path / "study.db") as connection:
        assert {size for _, size in connection.execute(query)} == {512}
    connection.close()
    Store.open_writer(tmp_path / "study.db").close()
    query = query.replace("io_size_bytes", "kind, access, io_size_bytes")
    with sqlite3.connect(tmp_path / "study.db") as connection:
        assert set(connection.execute(query)) == {
            ("streams/fread", "read", "direct", 512),
            ("streams/write", "read", "direct", 1 << 20),
            ("streams/mine", "mixed", "direct", 4096),
            ("streams/all", "mixed", "direct", None),
        }
    connection.close()


def test_a_single_run_of_an_older_program_can_be_continued(request, tmp_path, monkeypatch):
    """Its stored text names a factor with one level; the question is the same."""
    monkeypatch.chdir(tmp_path)
    path = request.config.rootpath / "tests/golden/stores/schema-3/single.iolab"
    (tmp_path / "o").mkdir()
    with zipfile.ZipFile(path) as members:
        (tmp_path / "o" / "study.db").write_bytes(members.read("study.db"))
    words = "compare --on sim:fixed-100us --record-size 4k --file-size 64k --test write,read"
    out, err = io.StringIO(), io.StringIO()
    more = ["--rounds", "3", "--seed", "7", "--out", "o", "--resume"]
    assert main([*words.split(), *more], console=Console(out, err)) == 0, err.getvalue()
    assert "nothing compared: direct: write 36.9 MiB/s, read 36.9 MiB/s; 3 rounds." in (
        out.getvalue().replace("\n", " ")
    )


def test_the_next_schema_is_refused_by_name(request, tmp_path):
    path = request.config.rootpath / "tests/golden/stores/schema-3/single.iolab"
    with zipfile.ZipFile(path) as members:
        (tmp_path / "study.db").write_bytes(members.read("study.db"))
    Store.open_writer(tmp_path / "study.db").close()
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("ALTER TABLE session ADD COLUMN of_the_future TEXT")
        connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    connection.close()
    known = schema.SCHEMA_VERSION
    refusal = rf"newer iolab \(schema {known + 1}, this one knows {known}"
    with pytest.raises(StoreError, match=refusal):
        Store.open_reader(tmp_path / "study.db")
