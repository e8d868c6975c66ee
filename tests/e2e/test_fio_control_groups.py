"""Jobs of `iolab fio` in control groups: members, weights, and that nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

import pytest

from .machine_state import differences, machine_state, own_groups

pytestmark = [pytest.mark.needs_loop, pytest.mark.needs_root]

WORDS = (
    "--on=loop:64m --size=4m --rw=randread --direct=1 --time_based --runtime=3 --ioscheduler=bfq"
    " --name=a --cgroup=heavy --cgroup_weight=900 --name=b --cgroup=light --cgroup_weight=100"
    " --name=c --cgroup=heavy"
)


def members(seconds: float = 60) -> dict[int, int]:
    """Weight of each group of a run to the number of its processes, while they measure."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        groups = [Path(group) for group in own_groups() if fnmatch(group, "*/iolab-*-io*")]
        inside = {group: (group / "cgroup.procs").read_text().split() for group in groups}
        if len(inside) == 2 and sum(map(len, inside.values())) == 3:
            return {weight(group): len(found) for group, found in inside.items()}
        time.sleep(0.02)
    return {}


def weight(group: Path) -> int:
    """Weight of a group, in either version of the kernel's interface."""
    file = next(group.glob("*io*.bfq.weight"), None) or next(group.glob("*io*.weight"))
    return int(file.read_text().split()[-1])


def test_jobs_of_one_group_share_its_weight_and_the_groups_are_removed(tmp_path: Path) -> None:
    before = machine_state()
    argv = [sys.executable, "-m", "iolab.cli", "fio", *WORDS.split(), f"--out={tmp_path / 'out'}"]
    with subprocess.Popen(
        argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        found = members()
        said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert found == {900: 2, 100: 1}, said
    assert not differences(before, machine_state())
