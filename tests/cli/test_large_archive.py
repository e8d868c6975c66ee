"""Small archives that would fill the memory of who reads them.

Issue 14, point 9. Seen: an archive of 1 MB made `iolab archive --check` take 1.87 GB, because all
members were unpacked at once and any record might unpack to 64 MiB of JSON. Now an archive unpacks
to a multiple of its own size at most, one member at a time, and cells and records are shorter.
"""

import json
import resource
import sqlite3
import subprocess
import sys
import zlib
from dataclasses import replace

import pytest

from iolab.archive import read, write
from iolab.archive.format import members_of, unpacked_bytes_max
from iolab.cli.main import main

MEMORY_MAX = 800 << 20
COMPARE = [
    *("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--test", "read"),
    *("--record-size", "4k", "--file-size", "1m", "--rounds", "2", "--seed", "7"),
]
CELL = "[" + ",".join(['{"worker":0,"ops":0}'] * 150_000) + "]"
RECORD = zlib.compress(json.dumps({"actions": [{"": 0}] * 1_500_000}).encode(), 9)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    assert main([*COMPARE, "--out", str(folder / "o")]) == 0
    assert main(["archive", str(folder / "o"), "--out", str(folder / "o.iolab")]) == 0
    return read.read_archive(folder / "o.iolab")


@pytest.fixture
def remade(whole, tmp_path, digests_anew):
    def make(*statements):
        database = tmp_path / "study.db"
        database.write_bytes(whole.contents["study.db"])
        with sqlite3.connect(database) as connection:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
            ).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            for statement, value in statements:
                connection.execute(statement, (value,))
            digests_anew(connection)
        connection.close()
        contents = {**whole.contents, "study.db": database.read_bytes()}
        manifest = replace(whole.manifest, members=members_of(contents))
        path = tmp_path / "h.iolab"
        path.write_bytes(write.pack(manifest, contents))
        return path

    return make


def measured(*words):
    """Exit code, output and greatest resident memory of the command line."""
    program = (
        "import resource, sys; from iolab.cli.main import main; code = main(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    *lines, peak = done.stdout.splitlines()
    return done.returncode, "\n".join(lines) + done.stderr, int(peak)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "statement",
    [
        ("UPDATE phase SET workers_json = ?", CELL),
        ("UPDATE record SET record_zlib = ?", RECORD),
    ],
)
def test_what_small_archives_hold_fits_into_memory(remade, statement):
    path = remade(statement)
    assert path.stat().st_size < 2 << 20
    code, said, peak = measured("archive", "--check", path)
    assert code in (0, 5), said
    assert peak < MEMORY_MAX, peak >> 20


def test_an_archive_that_unpacks_to_a_thousand_times_its_size_is_refused(whole, tmp_path):
    contents = {**whole.contents, "report.html": bytes(300 << 20)}
    manifest = replace(whole.manifest, members=members_of(contents))
    path = tmp_path / "h.iolab"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "unpacked_bytes_max", lambda _: 1 << 30)
        path.write_bytes(write.pack(manifest, contents))
    assert path.stat().st_size < 2 << 20
    code, said, peak = measured("archive", "--check", path)
    assert code == 1, said
    assert "it would unpack to" in said
    assert peak < MEMORY_MAX
    assert unpacked_bytes_max(1 << 20) == 32 << 20


def test_a_cell_longer_than_any_of_ours_is_named(remade):
    path = remade(("UPDATE phase SET workers_json = ?", CELL[:-1] + "," + CELL[1:]))
    code, said, peak = measured("archive", "--check", path)
    assert code == 5
    assert "column workers_json has" in said
    assert peak < MEMORY_MAX
