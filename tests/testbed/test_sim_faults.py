"""Injected errors of simulated stacks: a failed trial says the same as one on the kernel."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.testbed.command import find_agent
from iolab.testbed.model import make_testbed
from iolab.testbed.sim import SimRunner

DEVICE = """
name = "tested"
[device]
profile = "fixed-100us"
"""
MIRROR = """
name = "mirror"
[volume]
members = 2
parameters = { layout = "raid1" }
member.device.profile = "fixed-100us"
"""
FULL = '[[faults]]\nof = "write"\nafter_ops = {after}\nerror = "ENOSPC"\n'
IMAGE_BYTES = 16 << 20
FILE_BYTES = 64 << 20


def stack_file(folder: Path, stack: str, faults: str) -> Path:
    """A stack file with these faults."""
    path = folder / "stack.toml"
    path.write_text(f"{stack}{faults}", encoding="utf-8")
    return path


def workload(direction: str, opening: str) -> dict[str, Any]:
    """One direct worker, 64 KiB at a time through a file of 64 MiB."""
    tenant = {
        "name": "main",
        "workers": 1,
        "file": "data",
        "file_bytes": FILE_BYTES,
        "io_size_bytes": 1 << 16,
        "pattern": {"kind": "sequential"},
        "direction": {"kind": direction},
        "access": "direct",
        "opening": opening,
    }
    phase = {"name": f"{direction}-phase", "tenants": [tenant]}
    return {"version": 1, "name": "w", "engine": "psync", "seed": 7, "phases": [phase]}


def simulated(path: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Record of one simulated trial."""
    runner = SimRunner()
    runner.hello("r-1")
    runner.open_testbed(make_testbed("sim", str(path), {}).agent_spec())
    return runner.run_trial({"trial": "t1", "stack": None, "knobs": {}, "workload": wanted})


def on_the_kernel(directory: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Answer of the agent's measuring child for the same workload."""
    order = {"trial": "t1", "directory": str(directory), "workload": wanted}
    done = subprocess.run(
        [str(find_agent()), "measure"],
        input=json.dumps(order) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])["result"]


def without_numbers(text: str) -> str:
    """A message whose offsets do not matter."""
    return re.sub(r"\d+", "#", text)


@pytest.fixture
def full_directory(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 on a loop device that is smaller than the file of the workload."""
    image, mounted = tmp_path / "image", tmp_path / "mounted"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    yield mounted
    subprocess.run(["umount", mounted], check=True)


@pytest.mark.needs_loop
@pytest.mark.parametrize(("direction", "opening"), [("write", "create"), ("read", "laid_out")])
def test_a_full_disk_is_told_as_on_the_kernel(
    tmp_path: Path, full_directory: Path, direction: str, opening: str
) -> None:
    wanted = workload(direction, opening)
    real = on_the_kernel(full_directory, wanted)
    record = simulated(stack_file(tmp_path, DEVICE, FULL.format(after=2)), wanted)
    assert (real["status"], record["status"]) == ("failed", "failed")
    assert "No space left on device" in record["error"]
    ours = record["error"].replace("/simulated", str(full_directory))
    assert without_numbers(ours) == without_numbers(real["error"])


def test_what_is_dropped_and_repaired_is_a_caveat(tmp_path: Path) -> None:
    faults = (
        '[[faults]]\ndevice = "1"\nof = "write"\nafter_ops = 5\nerror = "EIO"\n'
        '[[faults]]\ndevice = "0"\nof = "read"\ntimes = 3\nerror = "EIO"\n'
    )
    record = simulated(stack_file(tmp_path, MIRROR, faults), workload("write", "create"))
    assert (record["status"], record["error"]) == ("ok", None)
    codes = [warning["code"] for warning in record["warnings"]]
    assert codes == ["member_lost", "faults_injected"], "no read was asked for"
    assert "member 1 of the raid1 volume" in record["warnings"][0]["message"]
    assert record["facts"]["sim.fault.0"].startswith(
        "device 1: writes, after the first 5: Input/output"
    )


def test_a_stack_without_faults_warns_of_nothing(tmp_path: Path) -> None:
    record = simulated(stack_file(tmp_path, MIRROR, ""), workload("write", "create"))
    assert (record["status"], record["warnings"]) == ("ok", [])


def test_a_study_on_a_failing_stack_ends_with_the_reason_and_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fault = '[[faults]]\nof = "read"\nsectors = "2048..2055"\nerror = "EIO"\n'
    path = stack_file(tmp_path, DEVICE, fault)
    out, err = io.StringIO(), io.StringIO()
    words = ["compare", "--on", f"sim:{path}", "--scheduler", "none,mq-deadline", "--test"]
    words += ["write,read", "--file-size", "2m", "--out", "o"]
    assert main(words, console=Console(out, err)) == 1
    assert "reading 4096 bytes at offset 1048576 of file iozone.0: Input/output error" in (
        err.getvalue()
    )
    assert "3 trials in a row failed in the same way" in err.getvalue()
    assert "every trial failed" in " ".join(out.getvalue().split())
    with sqlite3.connect("o/study.db") as store:
        counted = dict(store.execute("SELECT status, COUNT(*) FROM record GROUP BY 1").fetchall())
    assert counted == {"failed": 3}


def test_a_fault_that_cannot_be_meant_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stack_file(tmp_path, MIRROR, '[[faults]]\nerror = "EIO"\n')
    out = tmp_path / "o"
    code = main(["compare", "--on", f"sim:{path}", "--scheduler", "none", "--out", str(out)])
    said = capsys.readouterr().err
    assert code == 1, said
    assert "[[faults]] number 1: the stack has several devices, and `device` names none" in said
    assert "name one of 0, 1" in said
    assert not out.exists()
