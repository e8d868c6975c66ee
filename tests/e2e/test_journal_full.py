"""The disk with the agent's journal is full: nothing is changed that could not be put back.

The whole program runs in a mount namespace of its own, in which the folder of the agent's state is
a small tmpfs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs_loop, pytest.mark.usefixtures("untouched_machine")]

SCRIPT = """
set -e
mkdir -p /var/lib/iolab
mount -t tmpfs -o size=40k none /var/lib/iolab
fill() { dd if=/dev/zero of=/var/lib/iolab/hog bs=1k count=100 2>/dev/null || true; }
if [ "$1" = before ]; then fill; fi
out=$2
shift 2
"$@" --out "$out" &
running=$!
if [ ! -s /var/lib/iolab/hog ]; then
    for attempt in $(seq 600); do
        finished=$(sqlite_count "$out" 2>/dev/null || echo 0)
        if [ "$finished" -ge 2 ]; then break; fi
        sleep 0.1
    done
    fill
fi
code=0
wait $running || code=$?
echo "exit code $code"
"$1" -m iolab.cli restore
echo "restored"
""".replace(
    "sqlite_count",
    "python3 -c 'import sqlite3, sys; "
    'print(sqlite3.connect(f"file:{sys.argv[1]}/study.db?mode=ro", uri=True)'
    '.execute("SELECT COUNT(*) FROM record").fetchone()[0])\'',
)


@pytest.mark.parametrize("when", ["before", "during"])
def test_nothing_is_changed_before_the_journal_says_so(tmp_path: Path, when: str) -> None:
    out = tmp_path / "out"
    study = [
        sys.executable, "-m", "iolab.cli", "compare", "--on", "loop:64m", "--scheduler",
        "none,bfq", "--record-size", "4k", "--test", "write", "--file-size", "4m", "--direct",
        "--rounds", "40",
    ]  # fmt: skip
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", when, str(out), *study],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert "exit code 1" in done.stdout, done.stderr
    for part in ("No space left on device", "nothing is changed before the journal", "make room"):
        assert part in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert "restored" in done.stdout, done.stdout
    assert out.exists() == (when == "during"), "finished trials are kept, and only they"
