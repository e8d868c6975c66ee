"""An exported job does the same work as our trial: run by the real fio, watched by strace."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from iolab.store.db import Store

from .conftest import Run

TESTS = (
    "write",
    "rewrite",
    "read",
    "random-read",
    "random-write",
    "backward-read",
    "record-rewrite",
    "stride-read",
)
FILE_BYTES = 512 << 10
_OPEN = re.compile(r'^openat\(AT_FDCWD, "iozone\.0", ([A-Z_|]+)[^)]*\) += (\d+)$')
_MOVE = re.compile(r"^p(read|write)64\((\d+), .*, (\d+), (\d+)\) += (\d+)$")


def study(iolab: Run, tmp_path: Path, *flags: str) -> Path:
    """Results of a small study on a directory; the last flag is --direct or --no-direct."""
    (tmp_path / "data").mkdir()
    done = iolab(
        *("compare", "--on", f"dir:{tmp_path / 'data'}", "--record-size", "4k,16k"),
        *("--file-size", "512k", "--test", ",".join(TESTS), "--rounds", "1", "--seed", "3"),
        *("--out", "o", *flags),
    )
    assert done.returncode == 0, done.stderr
    assert iolab("archive", "--export", "fio", "o", "--out", "jobs").returncode == 0
    return tmp_path / "o"


def traced(job: Path, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Output of fio for each section, and strace's events between open and open of the file."""
    folder.mkdir()
    command = [
        *("strace", "-ff", "-s", "0", "-o", "trace", "-e", "trace=openat,pread64,pwrite64"),
        *("fio", "--output-format=json", "--output=out.json", str(job)),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (folder / "out.json").read_text()
    answer = json.loads(text[text.index("{") :])  # Before it fio tells of exec_postrun.
    sections = {job["jobname"]: job for job in answer["jobs"]}
    threads = sorted(folder.glob("trace.*"), key=lambda path: int(path.suffix[1:]))
    sessions = [session_of(path.read_text()) for path in threads]  # A section is a thread.
    return sections, [session for session in sessions if session["moves"]]


def session_of(trace: str) -> dict[str, Any]:
    """Way in which one thread opened the file, and what it moved."""
    session: dict[str, Any] = {"flags": [], "moves": []}
    descriptor = ""
    for line in trace.splitlines():
        if match := _OPEN.match(line):
            session["flags"], descriptor = match[1].split("|"), match[2]
        elif (match := _MOVE.match(line)) and match[2] == descriptor:
            session["moves"].append((match[1], int(match[4]), int(match[5])))
    return session


@pytest.mark.needs_fio
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_direct", [True, False])
def test_fio_does_what_the_trial_did(iolab: Run, tmp_path: Path, is_direct: bool) -> None:
    out = study(iolab, tmp_path, "--direct" if is_direct else "--no-direct")
    with Store.open_reader(out / "study.db") as store:
        records = dict(store.contents.records())
    assert len(records) == 2
    for trial_id, record in records.items():
        job = tmp_path / "jobs" / f"trial-{trial_id}.fio"
        sections, sessions = traced(job, tmp_path / trial_id)
        phases = {phase["name"]: phase for phase in record["phases"]}
        assert list(sections) == list(phases) == list(TESTS)
        assert len(sessions) == len(TESTS)
        for name, session in zip(TESTS, sessions, strict=True):
            check(phases[name], sections[name], session, is_direct=is_direct)


def check(
    phase: dict[str, Any], section: dict[str, Any], session: dict[str, Any], *, is_direct: bool
) -> None:
    """One phase of ours beside fio's own numbers and the system calls it made."""
    (worker,) = phase["tenants"][0]["workers"]
    io_size = phase["io_size_bytes"]
    assert worker["bytes"] == FILE_BYTES
    assert section["error"] == 0
    for direction in ("read", "write"):
        moved = worker[f"{direction}_bytes"]
        assert section[direction]["io_bytes"] == moved, (phase["name"], direction)
        assert section[direction]["total_ios"] == moved // io_size, (phase["name"], direction)
    assert ("O_DIRECT" in session["flags"]) is is_direct
    moves = session["moves"]
    assert len(moves) == worker["ops"]
    assert {size for _, _, size in moves} == {io_size}
    assert {word for word, _, _ in moves} == {"read" if worker["read_bytes"] else "write"}
    check_order(phase["name"], [offset // io_size for _, offset, _ in moves])


def check_order(name: str, records: list[int]) -> None:
    """The order that the comments of the job promise."""
    count = len(records)
    if name in ("write", "rewrite", "read"):
        assert records == list(range(count))
    elif name in ("random-read", "random-write"):
        assert Counter(records) == Counter(range(count))
        assert records != sorted(records)
    elif name == "backward-read":
        assert records == [0, *range(count - 2, -1, -1)]
    elif name == "record-rewrite":
        assert records == [0] * count
    else:
        assert set(records) <= set(range(0, count, 17))
