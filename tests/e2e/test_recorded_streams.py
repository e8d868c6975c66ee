"""Recorded streams and verification in programs, as their users meet them."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from iolab.store.cells import unpack_record

from .conftest import Run

if TYPE_CHECKING:
    from iolab.protocol import Record

TITLE = "iolab recorded stream 1\n"
STREAM = (
    TITLE + "0 write 0 0 8192\n1000 read 0 4096 4096 after 1\n2000 fsync 0\n3000 read 1 0 512\n"
)
IOLOG = """fio version 2 iolog
/etc/passwd add
/etc/passwd open
/etc/passwd write 0 4096
/etc/passwd wait 100 0
/etc/passwd read 0 4096
/etc/passwd close
"""
FILE = """
[[file_sets]]
name = "data"
files = 2
file_size = "64k"

[[tenants]]
name = "again"

[tenants.program]
recorded = {{ file = "{name}", set = "data" {rest} }}
"""
VERIFIED = """
verify = "full"

[[file_sets]]
name = "data"
files = 4
file_size = "256k"

[[phases]]
name = "write"
keeps_files = true
[[phases.tenants]]
name = "writers"
workers = 2
[phases.tenants.program]
limit = { passes = 100 }
steps = [
  { does = "write", file = { by = "next", set = "data" }, at = { pick = "uniform" }, size = "8k" },
]

[[phases]]
name = "read"
[[phases.tenants]]
name = "readers"
workers = 2
[phases.tenants.program]
limit = { passes = 100 }
steps = [
  { does = "read", file = { by = "next", set = "data" }, at = { pick = "uniform" }, size = "4k" },
]
"""
ONCE = ("--cache", "as_is", "--rounds", "1")


def records(out: Path) -> list[Record]:
    """Records of a study."""
    with sqlite3.connect(out / "study.db") as connection:
        found = connection.execute("SELECT record_zlib FROM record").fetchall()
    return [unpack_record(cell, number) for number, (cell,) in enumerate(found)]


def counts(out: Path) -> dict[str, int]:
    """Operations of the only trial, by id."""
    (record,) = records(out)
    (phase,) = record["phases"]
    (tenant,) = phase["tenants"]
    return {own["id"]: own["ops"] for own in tenant.get("operations", [])}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workload file and its stream, beside the directory that is measured."""
    found = tmp_path / "mine"
    found.mkdir()
    (tmp_path / "place").mkdir()
    (found / "trace.log").write_text(STREAM)
    (found / "again.toml").write_text(FILE.format(name="trace.log", rest=""))
    return found


def test_a_stream_is_done_again_and_the_study_runs_again_from_elsewhere(
    iolab: Run, tmp_path: Path, folder: Path
) -> None:
    on = f"dir:{tmp_path}/place"
    done = iolab("compare", "--on", on, "--workload", folder / "again.toml", *ONCE, "--out", "o")
    assert done.returncode == 0, done.stderr
    assert counts(tmp_path / "o") == {"read": 2, "write": 1, "fsync": 1}
    done = iolab("run", "o", "--resume", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    assert len(records(tmp_path / "o")) == 2


@pytest.fixture
def begun(iolab: Run, tmp_path: Path, folder: Path) -> Path:
    """A study of one round that was measured in ``o``; its recording."""
    words = ("--on", f"dir:{tmp_path}/place", "--workload", folder / "again.toml")
    done = iolab("compare", *words, *ONCE, "--out", "o")
    assert done.returncode == 0, done.stderr
    return folder / "trace.log"


@pytest.mark.parametrize("text", [STREAM.replace("4096 4096", "0 4096"), STREAM + "# more\n"])
@pytest.mark.parametrize("words", [("--resume", "--rounds", "2"), ("--out", "p")])
def test_a_changed_recording_is_refused(
    iolab: Run, tmp_path: Path, begun: Path, text: str, words: tuple[str, ...]
) -> None:
    """A study read its recording anew: rounds of one study were those of two recordings."""
    begun.write_text(text)
    done = iolab("run", "o", *words)
    told = " ".join(done.stderr.split())
    assert done.returncode == 1, told
    assert f"the recording {begun} is another one than when the study began" in told
    assert f"it has {len(text)} bytes, digest " in told
    assert f"it had {len(STREAM)} bytes, digest " in told
    assert "put the old recording back" in told
    assert len(records(tmp_path / "o")) == 1
    assert not (tmp_path / "p").exists()
    begun.write_text(STREAM)
    done = iolab("run", "o", *words)
    assert done.returncode == 0, done.stderr


def test_the_same_command_is_refused_for_the_same_reason(
    iolab: Run, tmp_path: Path, begun: Path
) -> None:
    begun.write_text(STREAM.replace("8192", "4096"))
    words = ("--on", f"dir:{tmp_path}/place", "--workload", begun.parent / "again.toml")
    done = iolab("compare", *words, "--cache", "as_is", "--rounds", "2", "--out", "o", "--resume")
    assert done.returncode == 1, done.stderr
    assert "is another one than when the study began" in " ".join(done.stderr.split())


@pytest.mark.parametrize("words", [("--resume", "--rounds", "2"), ("--out", "p")])
def test_a_recording_that_is_gone_lies_with_the_results(
    iolab: Run, tmp_path: Path, begun: Path, words: tuple[str, ...]
) -> None:
    """Issue 15, of an engineer: with the log moved away, `iolab run DIR` could not be done."""
    begun.unlink()
    begun.with_name("again.toml").unlink()
    begun.parent.rmdir()
    done = iolab("run", "o", *words)
    assert done.returncode == 1, done.stderr
    command = (
        " ".join(done.stderr.split())
        .rpartition("a copy lies with the results: `")[2]
        .partition("`")[0]
    )
    assert command.startswith("mkdir -p "), done.stderr
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert begun.read_text() == STREAM
    done = iolab("run", "o", *words)
    assert done.returncode == 0, done.stderr


def test_an_archive_takes_the_recording_along(iolab: Run, tmp_path: Path, begun: Path) -> None:
    assert iolab("archive", "o", "--out", "o.iolab").returncode == 0
    again = iolab("archive", "o", "--out", "same.iolab")
    assert (tmp_path / "o.iolab").read_bytes() == (tmp_path / "same.iolab").read_bytes()
    assert again.returncode == 0, again.stderr
    assert iolab("archive", "--check", "o.iolab").returncode == 0
    begun.unlink()
    done = iolab("run", "o.iolab", "--out", "p")
    told = " ".join(done.stderr.split())
    assert done.returncode == 1, told
    assert "the archive holds it: `iolab archive --extract o.iolab --out DIR`" in told
    assert iolab("archive", "--extract", "o.iolab", "--out", "q").returncode == 0
    (copy,) = (tmp_path / "q" / "recordings").iterdir()
    assert copy.read_text() == STREAM
    assert f"cp q/recordings/{copy.name} {begun}" in " ".join(
        iolab("run", "q", "--out", "p").stderr.split()
    )
    shutil.copy(copy, begun)
    done = iolab("run", "o.iolab", "--out", "p")
    assert done.returncode == 0, done.stderr


def test_a_large_recording_is_named_and_left(iolab: Run, tmp_path: Path, folder: Path) -> None:
    lines = STREAM + "# padding\n" * 7_000_000
    (folder / "trace.log").write_text(lines)
    words = ("--on", f"dir:{tmp_path}/place", "--workload", folder / "again.toml")
    done = iolab("compare", *words, *ONCE, "--out", "o")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stderr.split())
    assert "was not copied to the results (it is larger than 64m): keep it" in told
    done = iolab("archive", "o", "--out", "o.iolab")
    assert "the archive has no copy of the recording" in " ".join(done.stderr.split())


def test_a_recording_that_was_moved_is_found_by_a_link(
    iolab: Run, tmp_path: Path, begun: Path
) -> None:
    moved = begun.rename(tmp_path / "elsewhere.log")
    done = iolab("run", "o", "--resume", "--rounds", "2")
    told = " ".join(done.stderr.split())
    assert done.returncode == 1, told
    assert str(begun) in told
    assert "No such file" in told
    assert f"ln -s WHERE {begun}" in told
    begun.symlink_to(moved)
    done = iolab("run", "o", "--resume", "--rounds", "2")
    assert done.returncode == 0, done.stderr


def test_the_report_names_the_recording(iolab: Run, tmp_path: Path, begun: Path) -> None:
    page = (tmp_path / "o" / "report.html").read_text()
    assert "recording of again" in page
    assert f"{begun}: {len(STREAM)} bytes, digest " in page


def test_names_in_an_iolog_lead_nowhere(iolab: Run, tmp_path: Path, folder: Path) -> None:
    before = Path("/etc/passwd").read_bytes()
    (folder / "job.log").write_text(IOLOG)
    (folder / "log.toml").write_text(FILE.format(name="job.log", rest=', format = "iolog"'))
    on = f"dir:{tmp_path}/place"
    done = iolab("compare", "--on", on, "--workload", folder / "log.toml", *ONCE, "--out", "o")
    assert done.returncode == 0, done.stderr
    assert counts(tmp_path / "o") == {"read": 1, "write": 1}
    assert Path("/etc/passwd").read_bytes() == before


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (TITLE + "0 read 0 0 512\n0 raed 0 0 512\n", "trace.log: line 3: 'raed' is none of"),
        (TITLE + "0 read ../../etc/passwd 0 512\n", "line 2: FILE is no whole number"),
        (TITLE + "0 read 2 0 512\n", "3 files in the stream"),
        (TITLE + "0 read 0 65536 512\n", "reaches 66048 into a file"),
        ("fio version 3 iolog\n", 'write format = "iolog"'),
        ("", "is not 'iolab recorded stream 1'"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_touched(
    iolab: Run, tmp_path: Path, folder: Path, stream: str, expected: str
) -> None:
    (folder / "trace.log").write_text(stream)
    on = f"dir:{tmp_path}/place"
    done = iolab("compare", "--on", on, "--workload", folder / "again.toml", *ONCE, "--out", "o")
    assert done.returncode == 1, done.stderr
    assert expected in " ".join(done.stderr.split()), done.stderr
    assert not list((tmp_path / "place").iterdir())


def test_programs_verify_what_they_read(iolab: Run, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "verified.toml").write_text(VERIFIED)
    on = f"dir:{tmp_path}/place"
    done = iolab("compare", "--on", on, "--workload", "verified.toml", *ONCE, "--out", "o")
    assert done.returncode == 0, done.stderr
    (record,) = records(tmp_path / "o")
    workers = [w for phase in record["phases"] for t in phase["tenants"] for w in t["workers"]]
    assert record["status"] == "ok"
    assert workers
    assert all(not worker["errors"] for worker in workers)


def test_a_simulated_disk_gives_back_what_was_written(iolab: Run, tmp_path: Path) -> None:
    text = VERIFIED.replace('does = "', 'path = "direct", does = "')
    (tmp_path / "verified.toml").write_text(text)
    words = ["--workload", "verified.toml", "--scheduler", "none", "--rounds", "1"]
    done = iolab("compare", "--on", "sim:fixed-100us", *words, "--out", "o")
    assert done.returncode == 0, done.stderr
