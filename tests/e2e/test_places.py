"""Testbeds with several places: sets of files lie where they say, and all of it is put back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from iolab import _core
from iolab.errors import StudyError
from iolab.protocol import Record
from iolab.store.db import Store
from iolab.testbed.model import make_testbed

from .conftest import Run

COPY = """
[[file_sets]]
name = "home"
files = 8
file_size = "256k"

[[file_sets]]
name = "archive"
place = "backup"
files = 8
file_bytes = 0
existing_percent = 0

[[tenants]]
name = "backup"

[tenants.program]
limit = { passes = 8 }
steps = [
  { id = "open", does = "open", slot = "in", file = { by = "next", set = "home" }, PATH },
  { id = "create", does = "create", slot = "out", file = { by = "absent", set = "archive" }, PATH },
  { id = "read", does = "read", slot = "in", is_whole = true, size = "64k" },
  { id = "write", does = "write", slot = "out", size = "256k" },
  { id = "durable", does = "fsync", slot = "out" },
  { id = "close-in", does = "close", slot = "in" },
  { id = "close-out", does = "close", slot = "out" },
]
"""
MOVED = 8 * 256 * 1024


def workload(folder: Path, path: str = "cached") -> Path:
    """Workload file that copies from one set of files to another, which names a place."""
    file = folder / "copy.toml"
    file.write_text(COPY.replace("PATH", f'path = "{path}"'))
    return file


def records(out: Path) -> list[Record]:
    """Records of all trials of a study."""
    with Store.open_reader(out / "study.db") as store:
        return [store.record(trial.trial_id) for trial in store.load_data().trials]


def compared(iolab: Run, tmp_path: Path, on: str, *more: str) -> Any:
    """Runs the copy on a testbed, with two levels of something that costs nothing."""
    words = ["--workload", workload(tmp_path), "--cache", "cold,as_is", "--rounds", "1"]
    return iolab("compare", "--on", on, *words, "--out", tmp_path / "out", *more)


@pytest.mark.needs_loop
@pytest.mark.usefixtures("untouched_machine")
def test_two_loop_devices_get_what_is_theirs(iolab: Run, tmp_path: Path) -> None:
    done = compared(iolab, tmp_path, "loop:64m,backup=loop:64m:ext2")
    assert done.returncode == 0, done.stderr
    for record in records(tmp_path / "out"):
        assert record["status"] == "ok", record["error"]
        first, second = record["phases"][0]["devices"]
        # What is written goes to the second device; a journal and metadata come on top of neither.
        assert second["write_bytes"] >= MOVED
        assert first["write_bytes"] < MOVED
        assert record["facts"]["place.backup.fs.type"] == "ext2"
        assert record["facts"]["fs.type"] == "ext4"


@pytest.mark.usefixtures("untouched_machine")
def test_a_directory_and_a_second_one(iolab: Run, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    done = compared(iolab, tmp_path, f"dir:{one},backup=dir:{two}")
    assert done.returncode == 0, done.stderr
    assert [record["status"] for record in records(tmp_path / "out")] == ["ok", "ok"]
    assert list(one.iterdir()) == list(two.iterdir()) == []


@pytest.mark.usefixtures("untouched_machine")
def test_a_rehearsal_says_where_each_set_lies(iolab: Run, tmp_path: Path) -> None:
    done = compared(iolab, tmp_path, "loop:64m,backup=loop:64m", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "set home (8 files) lies on loop:64m" in done.stdout
    assert "set archive (8 files) lies in the place backup=loop:64m" in done.stdout
    assert done.stdout.count("attach_loop") == 2
    assert "mount --bind" in done.stdout


@pytest.mark.parametrize(
    ("on", "part"),
    [
        ("loop:64m,bakup=loop:64m", "did you mean"),
        ("loop:64m,backup=loop:64m,log=loop:64m", "no set of files lies in the place log"),
        ("loop:64m,backup=sim:fixed-100us", "cannot be beside"),
        ("loop:64m,backup=loop:64m,backup=loop:64m", "two places"),
        ("loop:64m,backup=dir:/nowhere/at/all", "place backup: /nowhere/at/all does not exist"),
        ("null:,backup=loop:64m", "cannot be beside null"),
        ("loop:64m,backup=loop:1k", "place backup"),
    ],
)
def test_places_that_cannot_be_are_refused_by_name(
    iolab: Run, tmp_path: Path, on: str, part: str
) -> None:
    done = compared(iolab, tmp_path, on)
    assert done.returncode != 0
    assert part in done.stderr + done.stdout


def simulated(on: Mapping[str, str], text: str) -> dict[str, Any]:
    """Record of a workload file on a simulated testbed with places."""
    stack = make_testbed("sim", "fixed-100us", on)
    description = json.loads(_core.workload_file("copy.toml", text))
    spec = {"trial": "t1", "stack": None, "knobs": {}, "workload": description}
    spec_of_testbed = stack.agent_spec()
    answer = _core.simulate_trial(str(spec_of_testbed["stack_json"]), json.dumps(spec), None)
    return json.loads(answer)


def test_two_simulated_devices_work_side_by_side(tmp_path: Path) -> None:
    text = workload(tmp_path, "direct").read_text()
    places = {"places": "backup=sim:sata7200-4tb"}
    first, again = (simulated(places, text) for _ in range(2))
    assert first["status"] == "ok", first["error"]
    assert first["simulation"]["event_hash"] == again["simulation"]["event_hash"]
    main, backup = first["phases"][0]["devices"]
    assert (main["read_bytes"], main["write_bytes"]) == (MOVED, 0)
    assert (backup["read_bytes"], backup["write_bytes"]) == (0, MOVED)
    assert first["facts"]["place.backup.sim.stack"] == "sata7200-4tb"
    alone = simulated({}, text)
    assert alone["phases"][0]["devices"][0]["write_bytes"] == MOVED


def test_what_a_place_of_a_simulation_cannot_be_is_said() -> None:
    with pytest.raises(StudyError, match="no-such-drive"):
        make_testbed("sim", "fixed-100us", {"places": "backup=sim:no-such-drive"})
