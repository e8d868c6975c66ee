"""Streams in control groups and knobs that change while they run, on a real loop device.

What is made for a trial is gone after it, and after kill -9 at the moment when it is there.
"""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from .conftest import Run
from .machine_state import differences, machine_state, own_groups
from .test_kill_loop import agents_of, kill_all, said, start, wait_restored

pytestmark = pytest.mark.needs_loop

LIMIT_BYTES_PER_S = 8 << 20
STUDY = """
name = "midway"
testbed = "loop:64m"
seed = 3
rounds = {rounds}
metric = "p99"
metric_of = "reader"
[factors]
driver_queue_depth = [4, 8]
[settings]
workers_as = "processes"
scheduler = "none"
[[workloads]]
name = "mix"
kind = "mixed"
duration = "{duration}"
[[workloads.changes]]
at = "1s"
scheduler = "bfq"
[[workloads.streams]]
name = "reader"
direction = "read"
record_size = "4k"
file_size = "8m"
cgroup_weight = 500
[[workloads.streams]]
name = "bulk"
direction = "write"
pattern = "sequential"
record_size = "64k"
file_size = "8m"
max_write = "8m/s"
"""


def write_study(folder: Path, *, rounds: int = 1, duration: str = "2s") -> Path:
    path = folder / "study.toml"
    path.write_text(STUDY.format(rounds=rounds, duration=duration))
    return path


def groups() -> list[Path]:
    """Control groups of the streams of a trial of this session."""
    return [Path(group) for group in own_groups() if fnmatch(Path(group).name, "iolab-*-io*")]


def wait_for_groups(seconds: float = 60) -> list[Path]:
    """The control groups of a trial, with its workers inside."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = groups()
        if found and all((path / "cgroup.procs").read_text() for path in found):
            return found
        time.sleep(0.02)
    return []


def test_changes_are_made_marked_and_undone_and_limits_hold(tmp_path: Path, iolab: Run) -> None:
    before = machine_state()
    out = tmp_path / "out"
    result = iolab("run", write_study(tmp_path), "--full", "--out", out)
    assert result.returncode == 0, result.stdout + result.stderr
    assert not differences(before, machine_state())
    assert "scheduler none -> bfq" in result.stdout
    assert "one run is no experiment" in result.stdout
    with sqlite3.connect(out / "study.db") as store:
        records = [
            json.loads(zlib.decompress(row[0]))
            for row in store.execute("SELECT record_zlib FROM record")
        ]
    assert len(records) == 2
    for record in records:
        (phase,) = record["phases"]
        (mark,) = phase["marks"]
        assert (mark["knob"], mark["from"], mark["to"]) == ("scheduler", "none", "bfq")
        assert mark["asked_ns"] == 1_000_000_000
        # Beside other work the kernel may end a switch when the streams have ended.
        assert mark["asked_ns"] <= mark["began_ns"] <= mark["done_ns"]
        assert mark["began_ns"] < phase["elapsed_ns"]
        bulk = next(tenant for tenant in phase["tenants"] if tenant["name"] == "bulk")
        assert sum(segment["ops"] for segment in bulk["segments"]) == bulk["workers"][0]["ops"]
        rate = bulk["workers"][0]["bytes"] / (bulk["workers"][0]["elapsed_ns"] / 1e9)
        assert rate < 1.5 * LIMIT_BYTES_PER_S
        made = [action for action in record["actions"] if action["kind"] == "create_cgroup"]
        assert len(made) == 2


def test_a_rehearsal_names_groups_and_changes_and_makes_none(tmp_path: Path, iolab: Run) -> None:
    before = machine_state()
    result = iolab("run", write_study(tmp_path), "--dry-run", "--out", tmp_path / "out")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "weight = 500" in result.stdout
    assert "none -> bfq" in result.stdout
    assert not differences(before, machine_state())


@pytest.mark.parametrize("has_watchdog", [True, False])
def test_kill_9_leaves_no_group_behind(tmp_path: Path, iolab: Run, has_watchdog: bool) -> None:
    before = machine_state()
    out = tmp_path / "out"
    running = start(out, write_study(tmp_path, rounds=4, duration="4s"))
    assert wait_for_groups(), said(out)
    agents = agents_of(running)
    if has_watchdog:
        kill_all([pid for pid, text in agents.items() if "watchdog" not in text])
    else:
        kill_all([*reversed(agents), running.pid])
    running.wait(timeout=60)
    if not has_watchdog:
        restored = iolab("restore")
        assert restored.returncode == 0, restored.stdout + restored.stderr
    assert not wait_restored(before, 5.0)
    assert not groups()
