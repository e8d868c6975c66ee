"""Programs whose patterns are known, followed while they run, and workloads made from them.

Every program says by its own text what it does: its row in the table is the truth. A workload that
`iolab pattern --emit` makes from it is run under strace, too, and must have the same pattern.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")

HEAD = """
import os, random, sys, threading, time
random.seed(7)
size, name = 4096, sys.argv[1]
make = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(make, 64 << 20)
os.close(make)
f = os.open(name, os.O_RDWR)
block = bytes(size)
"""
PROGRAMS = {
    "sequential-read": "for i in range(200): os.read(f, size)",
    "sequential-write": "for i in range(200): os.write(f, block)",
    "log": "for i in range(160):\n    os.write(f, block)\n    if i % 8 == 7: os.fdatasync(f)",
    "backward": "for i in range(200, 0, -1): os.pread(f, size, i * size)",
    "strided": "for i in range(200): os.pread(f, size, i * 65536)",
    "strided-vectors": (
        "for i in range(200): os.preadv(f, [bytearray(1024), bytearray(3072)], i * 262144)"
    ),
    "random-read": "for i in range(300): os.pread(f, size, random.randrange(16384) * size)",
    "random-mix": (
        "for i in range(400):\n"
        "    at = random.randrange(16384) * size\n"
        "    os.pread(f, size, at) if random.random() < 0.7 else os.pwrite(f, block, at)"
    ),
    "four-cursors": (
        "for i in range(200): os.pread(f, size, (i % 4) * (16 << 20) + i // 4 * size)"
    ),
    "two-phases": (
        "for i in range(200): os.write(f, block)\n"
        "for i in range(200): os.pread(f, size, random.randrange(16384) * size)"
    ),
}
PATTERNS = {
    "sequential-read": "sequential",
    "sequential-write": "sequential",
    "log": "sequential",
    "backward": "backward",
    "strided": "strided",
    "strided-vectors": "strided",
    "random-read": "random",
    "random-mix": "random",
    "four-cursors": "interleaved",
    "two-phases": "mixed",
}
SYNCS_OF_A_RUN = 4
"""Times that a measured run waits for stable storage by itself, at its beginning and end."""
STRIDES = {"strided": 65536, "strided-vectors": 262144}


def pattern(*words, cwd):
    """Figures of the only file that is asked for."""
    command = [sys.executable, "-m", "iolab", "pattern", "--json", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout[done.stdout.index('{\n "calls"') :])["files"]
    assert len(files) == 1, [row["name"] for row in files]
    return files[0]


def is_alike(one, other):
    """Tell whether two files have the same pattern: order, directions, sizes, waits."""

    def share(row):
        return row["reads"]["count"] / (row["reads"]["count"] + row["writes"]["count"])

    def waits(row):
        return row["writes"]["count"] > 0 and row["syncs"] > SYNCS_OF_A_RUN

    def phases(row):
        return [phase["pattern"] for phase in row["phases"]]

    return (
        one["pattern"] == other["pattern"]
        and one["stride"] == other["stride"]
        and abs(share(one) - share(other)) < 0.1
        and one["sizes"][0]["bytes"] == other["sizes"][0]["bytes"]
        and waits(one) == waits(other)
        # Which of several processes comes first is nobody's choice.
        and (one["pattern"] == "interleaved" or phases(one) == phases(other))
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_recognised_and_so_is_the_workload_made_from_it(name, tmp_path):
    program, job = tmp_path / "program.py", tmp_path / "job.fio"
    program.write_text(HEAD + PROGRAMS[name] + "\n")
    row = pattern(
        *("--for", f"{sys.executable} program.py data.bin", "--only", "data.bin"),
        *("--emit", "fio", "--out", job),
        cwd=tmp_path,
    )
    assert row["pattern"] == PATTERNS[name], row["sentence"]
    assert row["stride"] == STRIDES.get(name)
    assert (row["syncs"] == 20) == (name == "log")
    if name == "random-mix":
        assert abs(row["reads"]["count"] / 400 - 0.7) < 0.06
    if name == "four-cursors":
        assert row["streams"] == 4
    if name == "two-phases":
        assert [phase["pattern"] for phase in row["phases"]] == ["sequential", "random"]

    # A file that is long enough already is not written before the job.
    made = tmp_path / "data.bin.pattern"
    with made.open("wb") as file:
        file.truncate(128 << 20)
    again = pattern(
        *("--for", f"{sys.executable} -m iolab fio --overwrite {made} {job}"),
        *("--only", "data.bin.pattern"),
        cwd=tmp_path,
    )
    assert is_alike(row, again), (row["sentence"], again["sentence"])


def test_a_process_that_runs_is_followed_and_left_alone(tmp_path):
    """The time of strace ends before the process; what it had opened is known by its path."""
    text = HEAD + (
        "print('ready', flush=True)\n"
        "while True:\n"
        "    os.pread(f, size, random.randrange(16384) * size)\n"
        "    time.sleep(0.002)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(text)
    with subprocess.Popen(
        [sys.executable, program, "data.bin"], cwd=tmp_path, stdout=subprocess.PIPE
    ) as running:
        try:
            running.stdout.readline()
            row = pattern(
                *("--pid", running.pid, "--seconds", 2, "--only", "data.bin"), cwd=tmp_path
            )
            assert row["pattern"] == "random"
            assert row["is_opened_before"]
            assert row["reads"]["count"] > 20
            assert running.poll() is None
        finally:
            running.kill()


def test_a_command_ends_when_its_time_is_over(tmp_path):
    (tmp_path / "program.py").write_text(
        HEAD + "while True:\n    os.read(f, size)\n    time.sleep(0.001)"
    )
    row = pattern(
        *("--for", f"{sys.executable} program.py data.bin", "--seconds", 2, "--only", "data.bin"),
        cwd=tmp_path,
    )
    assert row["pattern"] == "sequential"
    left = subprocess.run(["pgrep", "-f", "program.py data.bin"], capture_output=True, check=False)
    assert left.stdout == b"", "the program still runs"


def test_what_strace_printed_is_kept_where_it_is_asked_for(tmp_path):
    kept = tmp_path / "calls.txt"
    (tmp_path / "program.py").write_text(HEAD + PROGRAMS["backward"])
    words = ("--for", f"{sys.executable} program.py data.bin", "--only", "data.bin")
    live = pattern(*words, "--keep", kept, cwd=tmp_path)
    assert pattern(kept, "--only", "data.bin", cwd=tmp_path) == live
    done = subprocess.run(
        [sys.executable, "-m", "iolab", "pattern", *words, "--keep", kept],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert Path(kept).stat().st_size > 0


def test_a_command_that_fails_is_told(tmp_path):
    (tmp_path / "some").write_bytes(bytes(1000))
    done = subprocess.run(
        [sys.executable, "-m", "iolab", "pattern", "--for", "cat some; exit 3", "--only", "some"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the command ended with exit code 3" in done.stderr
    assert "1 read of 1000 B" in done.stdout
