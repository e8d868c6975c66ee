"""The main job on a private loop device: it answers, and the machine is as before."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from .conftest import Run

pytestmark = [pytest.mark.needs_loop, pytest.mark.usefixtures("untouched_machine")]

SMALL = ("--file-size", "8m", "--direct", "--rounds", "2", "--seed", "7")


def test_schedulers_over_record_sizes(iolab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = iolab(
        "compare", "--on", "loop:400m", "--scheduler", "none,mq-deadline,bfq", "--record-size",
        "4k,64k", "--test", "write,read,random-read", *SMALL, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in ("report.html", "report.xlsx", "study.db", "verdict.json"):
        assert (out / name).stat().st_size > 0, name
        assert name in done.stdout, "the path is printed"
    verdict = json.loads((out / "verdict.json").read_text())
    # The terminal has the first sentence, the files have all of it.
    assert verdict["sentence"].partition(" In reads")[0] in " ".join(done.stdout.split())
    with sqlite3.connect(out / "study.db") as store:
        rows = store.execute("SELECT COUNT(*) FROM record").fetchone()[0]
    assert rows == 3 * 2 * 2, "schedulers x record sizes x rounds"


def test_the_asked_scheduler_was_really_active(iolab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = iolab(
        "compare", "--on", "loop:400m", "--scheduler", "kyber,bfq", "--record-size", "64k",
        "--test", "write", *SMALL, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    from iolab.store.db import Store

    with Store.open_reader(out / "study.db") as store:
        seen = {
            (trial.levels["scheduler"], store.record(trial.trial_id)["knobs"]["scheduler"])
            for trial in store.load_data().trials
        }
    assert seen == {("kyber", "kyber"), ("bfq", "bfq")}


@pytest.mark.parametrize("fs", ["ext2", "ext3", "xfs", "btrfs"])
def test_file_systems(iolab: Run, tmp_path: Path, fs: str) -> None:
    done = iolab(
        "compare", "--on", "loop:600m", "--fs", f"ext4,{fs}", "--record-size", "64k", "--test",
        "write,read", *SMALL, "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_delayed_allocation_is_a_factor(iolab: Run, tmp_path: Path) -> None:
    done = iolab(
        "compare", "--on", "loop:400m", "--mount-options", "delalloc",
        "--mount-options", "nodelalloc", "--record-size", "64k", "--test", "write",
        "--buffered", "--file-size", "8m", "--rounds", "2", "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "nodelalloc" in done.stdout


def test_a_dry_run_says_everything_and_changes_nothing(iolab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = iolab(
        "compare", "--on", "loop:400m", "--scheduler", "none,bfq", "--record-size", "4k",
        "--test", "write", *SMALL, "--out", out, "--dry-run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for word in ("mkfs", "mount", "scheduler", "bfq", "B "):
        assert word in done.stdout, word
    _, _, restoring = done.stdout.partition("\nrestore\n")
    for word in ("umount", "queue/scheduler: ", "detach_loop", "remove_loop", "remove_directory"):
        assert word in restoring, word
    assert not (out / "study.db").exists()


@pytest.mark.parametrize(("legacy", "now"), [("noop", "none"), ("cfq", "bfq")])
def test_old_names_say_what_there_is_instead(
    iolab: Run, tmp_path: Path, legacy: str, now: str
) -> None:
    done = iolab(
        "compare", "--on", "loop:400m", "--scheduler", f"{legacy},none", "--record-size", "4k",
        "--test", "write", *SMALL, "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 1
    assert legacy in done.stderr
    assert now in done.stderr
    assert "Traceback" not in done.stderr
