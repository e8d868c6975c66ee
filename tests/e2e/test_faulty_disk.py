"""Failures of storage as the user reads them: event, place and advice; nothing stays behind.

Each test lets one thing go wrong in the middle of a study on a disk of
:mod:`tests.e2e.faulty_disk`, and then asks for the same four things: the words, the exit code, the
trials that were finished (`iolab report` still works), and a machine as before.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import main
from iolab.run import trial

from .conftest import Run
from .faulty_disk import FaultyDisk, faulty_disk

pytestmark = [
    pytest.mark.needs_loop,
    pytest.mark.usefixtures("untouched_machine"),
    pytest.mark.timeout(240),
]


@pytest.fixture(autouse=True)
def nothing_for_the_next_one(iolab: Run) -> Iterator[None]:
    """Once the disk is gone there is nothing left to restore, whatever has happened to it."""
    yield
    restored = iolab("restore")
    assert restored.returncode == 0, restored.stderr


SIZES = ("--record-size", "4k,8k", "--file-size", "2m", "--rounds", "40")


def statuses(out: Path) -> dict[str, int]:
    """Finished trials by how they ended."""
    with sqlite3.connect(f"file:{out / 'study.db'}?mode=ro", uri=True) as store:
        return dict(store.execute("SELECT status, COUNT(*) FROM record GROUP BY 1").fetchall())


def failures(out: Path) -> list[str]:
    """Texts of the failed trials in their order, without numbers."""
    with sqlite3.connect(f"file:{out / 'study.db'}?mode=ro", uri=True) as store:
        asked = "SELECT error FROM record WHERE status = 'failed' ORDER BY record_id"
        return [re.sub(r"\d+", "#", error) for (error,) in store.execute(asked)]


def nothing_is_left(iolab: Run) -> None:
    """Neither restore nor doctor find anything of ours."""
    restored = iolab("restore")
    assert restored.returncode == 0, restored.stderr
    examined = iolab("doctor")
    assert "not undone" not in examined.stdout + examined.stderr, examined.stdout


def in_mid_run(
    out: Path, arguments: list[str | Path], act: Callable[[], None]
) -> subprocess.CompletedProcess[str]:
    """Run `iolab compare`, and `act` once two trials are stored."""
    command = [sys.executable, "-m", "iolab.cli", "compare", *map(str, arguments)]
    running = subprocess.Popen(
        [*command, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path.cwd(),
        env={**os.environ, "COLUMNS": "80"},
    )

    def wait_and_act() -> None:
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and running.poll() is None:
            time.sleep(0.1)
            try:
                if statuses(out).get("ok", 0) >= 2:
                    act()
                    return
            except sqlite3.Error:
                continue

    watcher = threading.Thread(target=wait_and_act)
    watcher.start()
    try:
        stdout, stderr = running.communicate(timeout=180)
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    finally:
        watcher.join()
    return subprocess.CompletedProcess(command, running.returncode, stdout, stderr)


def faulted(
    disk: FaultyDisk, tmp_path: Path, tests: str = "write,read", *more: str, **plan: Any
) -> subprocess.CompletedProcess[str]:
    """A study whose disk goes wrong after two trials."""
    arguments = [
        "--on", f"dir:{disk.mounted}", "--test", tests, "--direct", *SIZES, *more
    ]  # fmt: skip
    return in_mid_run(tmp_path / "out", arguments, lambda: disk.fault(**plan))


def check_told(
    done: subprocess.CompletedProcess[str], iolab: Run, out: Path, words: tuple[str, ...]
) -> None:
    """The four things, where the study stops after three equal failures."""
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr, f"{word!r} is not in: {done.stderr}"
    found = statuses(out)
    assert found["ok"] >= 2, "finished trials stay"
    failed = failures(out)
    assert len(set(failed[-3:])) == 1, failed
    assert len(failed) >= 3, failed
    # A trial that ran when the disk went wrong may have failed at another call.
    assert failed[:-3] in ([], failed[:1]), failed
    assert failed.count(failed[-1]) == 3, "three of one kind are enough"
    reported = iolab("report", out)
    assert "Traceback" not in reported.stderr, reported.stderr
    nothing_is_left(iolab)


def test_reads_that_fail(iolab: Run, tmp_path: Path) -> None:
    with faulty_disk(tmp_path) as disk:
        disk.make()
        done = faulted(disk, tmp_path, read_errno=errno.EIO)
        disk.fault()
        words = ("of file iozone.0", "Input/output error", "dmesg", "--resume")
        check_told(done, iolab, tmp_path / "out", words)


@pytest.mark.parametrize("on_errors", ["continue", "remount-ro"])
def test_writes_that_fail_turn_the_file_system_read_only(
    iolab: Run, tmp_path: Path, on_errors: str
) -> None:
    """ext4 gives its journal up: our folder cannot be removed before somebody repairs it."""
    out = tmp_path / "out"
    with faulty_disk(tmp_path) as disk:
        disk.make("ext4", f"errors={on_errors}")
        done = faulted(disk, tmp_path, write_errno=errno.EIO)
        disk.fault()
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        for word in ("Input/output error", "Read-only file system", "fsck", "iolab restore"):
            assert word in done.stderr, f"{word!r} is not in: {done.stderr}"
        assert statuses(out)["ok"] >= 2, "finished trials stay"
        disk.repair()
        nothing_is_left(iolab)
        assert not list(disk.mounted.glob(".iolab-*")), "restore removed it after the repair"
        reported = iolab("report", out)
        assert "Traceback" not in reported.stderr, reported.stderr


def test_short_writes_below_a_loop_device_are_seen_by_verification_alone(
    iolab: Run, tmp_path: Path
) -> None:
    """The loop driver takes a short write of its file for a whole one: the rest is lost."""
    with faulty_disk(tmp_path) as disk:
        folder = disk.make()
        arguments = [
            "--on", f"dir:{folder}", "--verify", "none,full", "--record-size", "64k", "--test",
            "write,read", "--file-size", "2m", "--direct", "--rounds", "10",
        ]  # fmt: skip
        done = in_mid_run(tmp_path / "out", arguments, lambda: disk.fault(short_writes=True))
        disk.fault()
        assert done.returncode == 5, done.stderr
        assert "wrong data" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        found = statuses(tmp_path / "out")
        assert found["failed"] > 0
        assert found["ok"] >= 2, "without verification nobody notices"


def test_a_flush_that_fails(iolab: Run, tmp_path: Path) -> None:
    """Written through the page cache; the error is seen by the flush alone.

    More than one fails: the file system asks for flushes of its own, too, whose errors nobody
    sees (ext4's journal when it makes room).
    """
    with faulty_disk(tmp_path) as disk:
        disk.make("ext4", "errors=continue")
        arguments = [
            "--on", f"dir:{disk.mounted}", "--test", "write", "--buffered", "--fsync", "timed",
            "--record-size", "4k,8k", "--file-size", "8m", "--rounds", "20",
        ]  # fmt: skip
        done = in_mid_run(
            tmp_path / "out",
            arguments,
            lambda: disk.fault(fsync_errno=errno.EIO, fsync_times=3),
        )
        disk.fault()
        assert "Traceback" not in done.stderr
        assert "Input/output error" in done.stderr, done.stderr
        assert "flush" in done.stderr, done.stderr
        disk.repair()
        found = [str(path) for path in disk.mounted.rglob("*")]
        restored = iolab("restore")
        assert restored.returncode == 0, (restored.stderr, found)


def test_a_disk_that_vanishes(iolab: Run, tmp_path: Path) -> None:
    with faulty_disk(tmp_path) as disk:
        disk.make("ext4", "errors=continue")
        arguments = ["--on", f"dir:{disk.mounted}", "--test", "write,read", "--direct", *SIZES]
        done = in_mid_run(tmp_path / "out", arguments, disk.vanish)
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        for word in ("error", "iolab restore"):
            assert word in done.stderr, f"{word!r} is not in: {done.stderr}"
        assert statuses(tmp_path / "out")["ok"] >= 2
        reported = iolab("report", tmp_path / "out")
        assert "Traceback" not in reported.stderr, reported.stderr


def test_a_disk_that_hardly_moves(
    iolab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trial ends at its time limit; the limit is at least ten minutes, here it is two seconds."""
    limit_s = 2
    monkeypatch.setattr(trial, "time_limit_ns", lambda _treatment: limit_s * 1_000_000_000)
    monkeypatch.chdir(tmp_path)
    with faulty_disk(tmp_path) as disk:
        disk.make()
        disk.fault(delay_s=0.1)
        arguments = ["--on", f"dir:{disk.mounted}", "--test", "read", "--direct", *SIZES]
        begun = time.monotonic()
        code = main(["compare", *arguments, "--out", str(tmp_path / "out")])
        elapsed_s = time.monotonic() - begun
        disk.fault()
        stderr = capsys.readouterr().err
        assert code == 1, stderr
        for word in ("time limit of 2 s is over", "smaller files", "--resume"):
            assert word in stderr, f"{word!r} is not in: {stderr}"
        assert statuses(tmp_path / "out") == {"failed": 3}
        assert elapsed_s > 3 * limit_s
        nothing_is_left(iolab)


def test_a_full_file_system(iolab: Run, tmp_path: Path) -> None:
    """A file system that another program fills up in the middle of the study."""
    with faulty_disk(tmp_path, 256 << 20) as disk:
        folder = disk.make()

        def fill() -> None:
            # More than there is: what could be had stays allocated.
            with (folder / "somebody-elses").open("wb") as hog, suppress(OSError):
                os.posix_fallocate(hog.fileno(), 0, 1 << 30)

        arguments = ["--on", f"dir:{folder}", "--test", "write,read", "--direct", *SIZES]
        done = in_mid_run(tmp_path / "out", arguments, fill)
        (folder / "somebody-elses").unlink()
        assert done.returncode in (1, 2), done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        assert "free" in done.stderr or "No space left" in done.stderr, done.stderr
        assert statuses(tmp_path / "out")["ok"] >= 2
        nothing_is_left(iolab)


def test_the_results_disk_is_full(iolab: Run, tmp_path: Path) -> None:
    """The study's own database cannot grow: what was stored stays, and it can be resumed."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", small], check=True)
    try:
        out = small / "out"

        def fill() -> None:
            hog = small / "hog"
            with hog.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(65536))
                except OSError:
                    pass

        arguments = [
            "--on", f"dir:{tmp_path}", "--test", "write,read", "--buffered", *SIZES
        ]  # fmt: skip
        done = in_mid_run(out, arguments, fill)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        assert "full" in done.stderr, done.stderr
        (small / "hog").unlink()
        assert statuses(out)["ok"] >= 2
        nothing_is_left(iolab)
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)
