"""Storage that gives back something else than was written is caught, and what it did is named.

The disk of :mod:`tests.e2e.faulty_disk` knows iolab's blocks by their headers and damages one of
them: between the write and the read nobody but the disk touches it, as in real life.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from .conftest import Run
from .faulty_disk import faulty_disk

pytestmark = [pytest.mark.needs_loop, pytest.mark.usefixtures("untouched_machine")]

AT = 40_960
LIES = [
    ("flip", "write,read", [f"byte {AT + 100} is", "flipped"]),
    ("torn", "write,rewrite,read", ["torn write", f"up to byte {AT + 1024}", "phase rewrite"]),
    ("misplaced", "write,read", ["misplaced", f"belongs to offset {AT + 8192} of this file"]),
    ("lost", "write,rewrite,read", ["stale data", "phase rewrite has overwritten it since"]),
]


@pytest.mark.parametrize(("lie", "tests", "words"), LIES, ids=[lie for lie, *_ in LIES])
def test_a_lying_disk_is_found_and_named(
    iolab: Run, tmp_path: Path, lie: str, tests: str, words: list[str]
) -> None:
    out = tmp_path / "out"
    with faulty_disk(tmp_path) as disk:
        folder = disk.make()
        disk.fault(lie=lie, at=AT)
        done = iolab(
            "compare", "--on", f"dir:{folder}", "--verify", "none,full", "--record-size", "4k",
            "--test", tests, "--file-size", "1m", "--direct", "--rounds", "1", "--out", out,
        )  # fmt: skip
        assert done.returncode == 5, done.stderr
        for word in (*words, f"offset {AT}", "wrong data"):
            assert word in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    with sqlite3.connect(out / "study.db") as store:
        statuses = store.execute("SELECT status, COUNT(*) FROM record GROUP BY 1").fetchall()
    assert dict(statuses) == {"ok": 1, "failed": 1}, "without verification nobody notices"


@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs"])
@pytest.mark.parametrize("access", ["--direct", "--buffered"])
def test_honest_storage_raises_no_alarm(iolab: Run, tmp_path: Path, fs: str, access: str) -> None:
    tests = (
        "write,rewrite,read,reread,random-read,random-write,backward-read,record-rewrite,"
        "stride-read,pwrite,repwrite,pread,repread"
    )
    done = iolab(
        "compare", "--on", "loop:600m", "--fs", fs, "--verify", "headers,full", "--record-size",
        "2k" if fs == "btrfs" and access == "--buffered" else "4k", "--test", tests,
        "--file-size", "2m", access, "--rounds", "1", "--full", "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "wrong data" not in done.stderr
    assert "verifying" in done.stdout


def test_streams_that_read_and_write_at_once_raise_no_alarm(iolab: Run, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        """
name = "mixed"
testbed = "loop:400m"
rounds = 1
[factors]
verify = ["headers", "full"]
[settings]
direct = true
engine = "io_uring"
[[workloads]]
name = "mixed"
kind = "mixed"
duration = "1s"
streams = [
  {name = "both", direction = "50%", record_size = "4k", depth = 16, file_size = "1m"},
  {name = "large", direction = "70%", record_size = "32k", depth = 4, file_size = "8m"},
]
"""
    )
    done = iolab("run", study, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "wrong data" not in done.stderr
