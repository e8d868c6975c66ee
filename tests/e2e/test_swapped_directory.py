"""Directories that are exchanged for a link to another user's while a study runs.

Symptom: as root, in a world-writable place, the measuring child followed the exchanged name and
removed a foreign file that happened to have a test file's name. Cause: it worked with a path. Fix:
it enters the directory once, proves by the token that it is ours, and uses relative names only.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from .conftest import Run


def test_a_foreign_directory_is_not_entered(tmp_path: Path, iolab: Run) -> None:
    place, victim = tmp_path / "scratch", tmp_path / "victim"
    place.mkdir()
    victim.mkdir()
    for name in ("iozone.0", "notes"):
        (victim / name).write_text("precious")
    argv = [sys.executable, "-m", "iolab.cli", "compare", "--on", f"dir:{place}"]
    argv += ["--record-size", "4k,8k", "--file-size", "8m", "--test", "write,read"]
    argv += ["--rounds", "3", "--buffered", "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        deadline = time.monotonic() + 30
        while not (found := list(place.glob(".iolab-*"))) and time.monotonic() < deadline:
            time.sleep(0.005)
        found[0].rename(place / "moved")
        found[0].symlink_to(victim)
        _, complaint = running.communicate(timeout=60)
    assert running.returncode != 0, "a directory that was exchanged is not restored"
    assert "Traceback" not in complaint
    assert {path.name for path in victim.iterdir()} == {"iozone.0", "notes"}
    assert {path.read_text() for path in victim.iterdir()} == {"precious"}
    # Back in its place it can be removed, and nothing blocks the next run.
    found[0].unlink()
    (place / "moved").rename(found[0])
    assert iolab("restore").returncode == 0
    assert not list(place.iterdir())
