"""Jobs of `iolab fio` that name a device: reading one leaves it as it is, writing is refused."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_fio import fio

pytestmark = [pytest.mark.needs_loop, pytest.mark.needs_root]

BYTES = 8 << 20


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """A loop device with data on it."""
    image = tmp_path / "disk.img"
    image.write_bytes(os.urandom(BYTES))
    made = subprocess.run(
        ["losetup", "--find", "--show", image], capture_output=True, text=True, check=True
    )
    name = made.stdout.strip()
    before = hashlib.sha256(image.read_bytes()).digest()
    yield name
    subprocess.run(["losetup", "--detach", name], check=True)
    assert hashlib.sha256(image.read_bytes()).digest() == before, "the device was written"


@pytest.mark.parametrize("engine", ["psync", "libaio", "io_uring", "mmap"])
@pytest.mark.parametrize("words", ["--size=4m", "", "--nrfiles=1 --bsrange=4k-16k --offset=50%"])
def test_a_device_is_read(tmp_path: Path, device: str, engine: str, words: str) -> None:
    direct = () if engine == "mmap" else ("--direct=1",)
    job = ("--name=a", f"--filename={device}", "--rw=randread", f"--ioengine={engine}", *direct)
    out, err = fio(tmp_path, *job, *words.split(), "--readonly", "--output-format=json")
    result = json.loads(out)
    side = result["jobs"][0]["read"]
    expected = {"--size=4m": 4 << 20, "": BYTES}.get(words, BYTES // 2)
    assert side["io_bytes"] == expected, err
    assert [one["name"] for one in result["disk_util"]] == [device.removeprefix("/dev/")]
    assert "only read" in err


def reported(folder: Path, *words: str) -> str:
    """Output of `iolab` in a folder."""
    argv = [sys.executable, "-m", "iolab.cli", *words]
    told = subprocess.run(argv, check=False, cwd=folder, capture_output=True, text=True)
    return told.stdout + told.stderr


def test_its_report_names_the_device_and_it_can_be_run_again(tmp_path: Path, device: str) -> None:
    job = ("--name=a", f"--filename={device}", "--rw=read", "--size=1m", "--direct=1")
    fio(tmp_path, *job, "--out", "out")
    told = reported(tmp_path, "report", "out", "--full")
    assert f"on {device}" in told
    assert "tmpfs" not in told, "the device's node lies in memory, its data do not"
    again = reported(tmp_path, "run", "out", "--out", "again")
    assert "read: IOPS=" in again, again


def flushes(device: str) -> int:
    """Flushes that a device has seen (Documentation/admin-guide/iostats.rst, field 16)."""
    return int(Path(f"/sys/block/{device.removeprefix('/dev/')}/stat").read_text().split()[15])


@pytest.mark.parametrize("engine", ["psync", "libaio", "io_uring", "posixaio", "mmap"])
def test_reading_it_flushes_nothing(tmp_path: Path, device: str, engine: str) -> None:
    before = flushes(device)
    job = ("--name=a", f"--filename={device}", "--rw=read", "--size=1m", f"--ioengine={engine}")
    fio(tmp_path, *job, "--end_fsync=1")
    assert flushes(device) == before


@pytest.mark.parametrize(
    ("words", "mebibytes"),
    [
        ("--size=100m", 8),
        ("--offset=6m --size=10m", 2),
        ("--offset=7m --size=100%", 1),
        ("--offset=50% --size=100%", 4),
    ],
)
def test_regions_end_where_it_ends(tmp_path: Path, device: str, words: str, mebibytes: int) -> None:
    """Amounts are those of fio 3.33."""
    job = ("--name=a", f"--filename={device}", "--rw=read", "--bs=64k", "--output-format=json")
    out, _ = fio(tmp_path, *job, *words.split())
    assert json.loads(out)["jobs"][0]["read"]["io_bytes"] == mebibytes << 20


def test_a_link_to_it_is_read_and_counters_are_the_devices_beside_files(
    tmp_path: Path, device: str
) -> None:
    (tmp_path / "disk").symlink_to(device)
    jobs = ("--name=a", "--filename=disk", "--rw=read", "--name=b", "--filename=f", "--rw=write")
    common = ("--size=1m", "--direct=1", "--output-format=json")
    out, _ = fio(tmp_path, *common, *jobs)
    result = json.loads(out)
    assert [job["error"] for job in result["jobs"]] == [0, 0]
    used = {one["name"]: one["read_ios"] for one in result["disk_util"]}
    assert used.get(device.removeprefix("/dev/")) == 256, used


def test_a_testbed_of_its_own_does_not_use_it_and_says_so(tmp_path: Path, device: str) -> None:
    job = ("--name=a", f"--filename={device}", "--rw=read", "--size=1m")
    _, err = fio(tmp_path, "--on", "loop:64m", *job)
    assert f"{device} itself is not used" in err
    (tmp_path / "job.fio").write_text(f"[a]\nfilename={device}\nrw=read\nsize=1m\n")
    study = 'name = "s"\ntestbed = "loop:64m"\n[[workloads]]\ndialect = "fio"\nfile = "job.fio"\n'
    (tmp_path / "study.toml").write_text(study)
    assert f"{device} itself is not used" in reported(tmp_path, "run", "study.toml", "--dry-run")


def test_a_device_that_is_not_there_is_named(tmp_path: Path, device: str) -> None:
    job = ("--name=a", f"--filename={device}:/dev/loop-none", "--rw=read")
    _, err = fio(tmp_path, *job, code=1)
    assert "there is no device /dev/loop-none" in err


@pytest.mark.parametrize("rw", ["write", "randrw", "trim"])
def test_writing_to_it_is_refused(tmp_path: Path, device: str, rw: str) -> None:
    job = ("--name=a", f"--filename={device}", f"--rw={rw}", "--size=1m")
    _, err = fio(tmp_path, *job, code=2)
    assert "is a device: it was left as it is" in err
    assert "--erase-serial" in err


def test_another_device_under_its_name_does_not_continue_the_run(
    tmp_path: Path, device: str
) -> None:
    other = tmp_path / "other.img"
    with other.open("wb") as made:
        made.truncate(4 << 20)
    words = ["losetup", "--find", "--show", other]
    second = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    name = tmp_path / "disk"  # As those of /dev/disk are.
    job = ("--filename=disk", "--rw=read", "--size=1m", "--name=a", "--out", "out")
    try:
        name.symlink_to(device)
        assert "stored as run" in reported(tmp_path, "fio", *job)
        name.unlink()
        name.symlink_to(second)
        typed = reported(tmp_path, "fio", *job, "--resume", "--rounds", "2")
        assert "disk.img" in typed, typed
        assert "other.img" in typed, typed
        stored = reported(tmp_path, "run", "out", "--resume", "--rounds", "2")
        assert "and is 4 MiB" in stored, stored
    finally:
        subprocess.run(["losetup", "--detach", second], check=True)
