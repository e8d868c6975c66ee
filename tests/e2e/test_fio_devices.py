"""Jobs of `iolab fio` that name a device: reading one leaves it as it is, writing is refused."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
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


def test_its_report_names_the_device(tmp_path: Path, device: str) -> None:
    job = ("--name=a", f"--filename={device}", "--rw=read", "--size=1m", "--out", "out")
    fio(tmp_path, *job)
    words = ["report", "out", "--full"]
    told = subprocess.run(
        ["python", "-m", "iolab.cli", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert f"{device} (only read)" in told.stdout, told.stdout + told.stderr


@pytest.mark.parametrize("rw", ["write", "randrw", "trim"])
def test_writing_to_it_is_refused(tmp_path: Path, device: str, rw: str) -> None:
    job = ("--name=a", f"--filename={device}", f"--rw={rw}", "--size=1m")
    _, err = fio(tmp_path, *job, code=2)
    assert "is a device: it was left as it is" in err
    assert "--erase-serial" in err


def test_more_than_it_holds_is_refused(tmp_path: Path, device: str) -> None:
    _, err = fio(tmp_path, "--name=a", f"--filename={device}", "--rw=read", "--size=1g", code=1)
    assert f"{device} has {BYTES} bytes" in err
