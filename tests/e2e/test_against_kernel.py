"""``iolab sim against-kernel``: the model does what the running kernel does, and says where not.

What is compared here does not depend on the machine's speed, and is the same on the kernel that the
model was checked with; on others the command itself is tried. The long list is run by hand, and its
outcome is in docs/explanation/beside-the-kernel.md.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iolab.kernel_checks.rows import MEASURES

from .conftest import Run

_COMMAND = ("sim", "against-kernel")


@pytest.mark.needs_loop
@pytest.mark.parametrize("system", ["ext4", "xfs"])
def test_simple_workloads_are_the_same_on_both_sides(
    iolab: Run, tmp_path: Path, untouched_machine: dict[str, str], system: str
) -> None:
    del untouched_machine
    out = tmp_path / "kept"
    # Workloads that change vm.* are left out: other tests look at the machine meanwhile.
    names = ("read-64k", "direct-write", "synchronous")
    done = iolab(*_COMMAND, *names, "--fs", system, "--runs", "2", "--out", out)
    assert done.returncode in (0, 5), done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(names)]
    told = {(row[0], row[1]): set[str]() for row in rows}
    for row in rows:
        told[row[0], row[1]].add(row[2])
    assert {measure for _, measure in told} == set(MEASURES) - {"expired"}, done.stdout
    # Extents and journals of the kernel differ a little from run to run.
    sure = {key: words for key, words in told.items() if key[1] in ("windows", "requests")}
    if os.uname().release.startswith("6.18."):
        assert done.returncode == 0, done.stdout
        assert all(words == {"same"} for words in sure.values()), done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"Linux {os.uname().release}: "), last
    # Both sides are studies that can be looked at.
    kept = sorted(path.name for path in out.iterdir() if path.is_dir())
    assert kept == [
        f"{system}-{part}-{side}"
        for part in ("reads", "writes")
        for side in ("kernel", "simulated")
    ]
    assert iolab("report", out / kept[0]).returncode == 0


@pytest.mark.needs_root
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("write-64",), "there is no workload 'write-64'; did you mean 'write-64k'?"),
        (("--fs", "btrfs"), "btrfs is not compared with the kernel: there are ext4, xfs"),
        (("--runs", "0"), "--runs 0: the kernel must run each at least once"),
        (("--out", "."), "is not empty"),
        (("--out", "mine"), "is no directory"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_made(
    iolab: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "mine").write_text("x")
    done = iolab(*_COMMAND, *words)
    assert done.returncode != 0
    assert told in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_workloads_are_listed_without_root(iolab: Run) -> None:
    done = iolab(*_COMMAND, "--list")
    assert done.returncode == 0
    assert "write-64k" in done.stdout
    assert "fio --rw=write --bs=64k" in done.stdout
