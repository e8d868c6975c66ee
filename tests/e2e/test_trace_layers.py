"""`iolab trace record --events block,syscalls,...` on a real file system: what is in the file.

The counts are those of the command that is recorded: prime numbers, so that sums of anything else
are not mistaken for them.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Run
from .test_trace_record import Loop, instances

pytestmark = pytest.mark.needs_loop

WRITES, WRITE_BYTES = 23, 65536
SYNCS = 7
NOISE_BYTES = 4111


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Loop, Path]]:
    """A loop device with ext4 on it, and where it is mounted."""
    folder = tmp_path_factory.mktemp("ext4")
    device, mount = Loop(folder, "one"), folder / "mount"
    with device.image.open("wb") as file:
        file.truncate(128 << 20)
    subprocess.run(["losetup", "--set-capacity", device.path], check=True)
    mount.mkdir()
    subprocess.run(["mkfs.ext4", "-q", device.path], check=True)
    subprocess.run(["mount", device.path, str(mount)], check=True)
    yield device, mount
    subprocess.run(["umount", str(mount)], check=True)
    device.detach()


@pytest.fixture(autouse=True)
def no_instance_is_left() -> Iterator[None]:
    before = instances()
    yield
    assert instances() <= before


def load(mount: Path) -> str:
    """A command with known numbers of writes and flushes."""
    source = f"""
import os
file = os.open({str(mount / "data")!r}, os.O_CREAT | os.O_TRUNC | os.O_RDWR)
for number in range({WRITES}):
    os.pwrite(file, bytes({WRITE_BYTES}), number * {WRITE_BYTES})
    if number < {SYNCS}:
        os.fdatasync(file)
"""
    return f"{sys.executable} -S -c '{source.replace(chr(39), chr(34))}'"


def shown(iolab: Run, trace: Path) -> list[tuple[int, str, str]]:
    """Process, name and fields of the events of other layers."""
    done = iolab("trace", "show", "-q", "-f", "%a|%p|%P\\n", trace)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines()]
    points = [(int(pid), text) for kind, pid, text in rows if kind == "T"]
    parts = [(pid, text.partition(" ")) for pid, text in points]
    return [(pid, name, fields) for pid, (name, _, fields) in parts]


@pytest.mark.parametrize("backend", ["tracefs", "perf"])
def test_calls_of_the_command_are_recorded_and_those_of_others_are_not(
    iolab: Run, place: tuple[Loop, Path], tmp_path: Path, backend: str
) -> None:
    """Its children's, too: the shell starts the program."""
    device, mount = place
    noise = subprocess.Popen(
        [
            "sh",
            "-c",
            f"while :; do dd if=/dev/zero of={mount}/noise bs={NOISE_BYTES} count=1; done",
        ],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    trace = tmp_path / "t.iotrace"
    try:
        command = f"sh -c true; {load(mount)}; true"
        words = ("--events", "block,syscalls", "--for", command, "-o", trace)
        done = iolab("trace", "record", device.path, "--backend", backend, *words)
    finally:
        noise.kill()
        noise.wait()
    assert done.returncode == 0, done.stderr
    assert "none lost" in done.stdout
    points = shown(iolab, trace)
    names = Counter(name for _, name, _ in points)
    for call, count in (("pwrite64", WRITES), ("fdatasync", SYNCS)):
        assert names[f"syscalls:sys_enter_{call}"] == names[f"syscalls:sys_exit_{call}"] == count
    assert not any(f"count={NOISE_BYTES}" in fields for _, _, fields in points)
    writes = [fields for _, name, fields in points if name == "syscalls:sys_enter_pwrite64"]
    assert {field.partition("=")[0] for field in writes[0].split()} == {"fd", "count", "pos"}
    assert {name.partition(":")[0] for _, name, _ in points} == {"syscalls"}


def test_the_summary_times_calls_and_counts_events(
    iolab: Run, place: tuple[Loop, Path], tmp_path: Path
) -> None:
    device, mount = place
    trace = tmp_path / "t.iotrace"
    events = "block,syscalls,writeback,ext4,jbd2,page-cache,read-ahead"
    done = iolab(
        "trace", "record", device.name, "--events", events, "--for", load(mount), "-o", trace
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(iolab("trace", "summary", "--json", trace).stdout)
    calls = {row["name"]: row for row in report["calls"]}
    assert (calls["pwrite64"]["count"], calls["pwrite64"]["bytes"]) == (
        WRITES,
        WRITES * WRITE_BYTES,
    )
    sync = calls["fdatasync"]
    assert (sync["count"], sync["errors"], sync["bytes"]) == (SYNCS, 0, 0)
    assert 0 < sync["p50_ns"] <= sync["max_ns"] <= sync["sum_ns"] <= report["span_ns"]
    points = {row["name"]: row["count"] for row in report["points"]}
    assert points["ext4:ext4_sync_file_enter"] == points["ext4:ext4_sync_file_exit"] == SYNCS
    assert {name.partition(":")[0] for name in points} >= {"ext4", "jbd2", "filemap", "writeback"}
    stages = report["devices"]
    assert [row["device"] for row in stages] == [_number(device)], "stages are of devices alone"
    text = iolab("trace", "summary", trace).stdout
    assert "system calls\n" in text
    assert "events of other layers\n" in text


def test_events_of_file_systems_on_other_devices_are_left_out(
    iolab: Run, place: tuple[Loop, Path], tmp_path: Path
) -> None:
    _, mount = place
    other, trace = Loop(tmp_path, "other"), tmp_path / "t.iotrace"
    try:
        words = ("--events", "block,ext4,jbd2,writeback,page-cache", "--for", load(mount))
        done = iolab("trace", "record", other.path, *words, "-o", trace)
        assert done.returncode == 0, done.stderr
        assert shown(iolab, trace) == []
    finally:
        other.detach()


def test_other_formats_have_what_they_can_hold(
    iolab: Run, place: tuple[Loop, Path], tmp_path: Path
) -> None:
    device, mount = place
    trace, table, text = (tmp_path / f"t.{ending}" for ending in ("iotrace", "csv", "txt"))
    words = ("--events", "block,syscalls", "--for", load(mount), "-o", trace)
    assert iolab("trace", "record", device.path, *words).returncode == 0
    for out in (table, text):
        assert iolab("trace", "convert", trace, out).returncode == 0
    with table.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["event"] == "T"]
    told = [(int(row["pid"]), row["name"], row["fields"]) for row in rows]
    assert told == shown(iolab, trace) == shown(iolab, table) == shown(iolab, text)
    done = iolab("trace", "convert", trace, tmp_path / "t.blktrace")
    assert f"blktrace has no place for them: {len(rows)} events" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--events", "block,systemcalls"), "'systemcalls' is unknown"),
        (("--events", "full,issue-complete"), "either all or only some"),
        (("--events", "syscalls", "--pid", "x"), "--pid x: that is no process"),
        (("--events", "syscalls", "--pid", "999999999"), "no process 999999999"),
        (("--pid", "1"), "--events block,syscalls"),
    ],
)
def test_what_cannot_be_recorded_is_told(
    iolab: Run, place: tuple[Loop, Path], tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = iolab("trace", "record", place[0].path, *words, "--seconds", "1", "-o", tmp_path / "t")
    assert done.returncode == 1, done.stderr
    assert told in done.stderr
    assert not (tmp_path / "t").exists()


def test_a_command_that_never_began_is_not_left(iolab: Run, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    words = ("--events", "syscalls", "--for", f"touch {mark}", "-o", tmp_path / "t")
    done = iolab("trace", "record", "nosuch", *words)
    assert done.returncode == 1
    assert "no block device" in done.stderr
    assert not mark.exists()


def _number(device: Loop) -> str:
    return Path(f"/sys/block/{device.name}/dev").read_text().strip().replace(":", ",")
