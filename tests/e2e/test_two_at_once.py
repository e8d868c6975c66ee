"""Two studies at the same time: on devices of their own, and in one directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .machine_state import differences, machine_state

pytestmark = pytest.mark.needs_loop

STUDY = """
testbed = "TESTBED"
seed = 3
rounds = 1
[factors]
FACTOR
[[workloads]]
kind = "iozone"
tests = ["write"]
file_size = "4m"
"""
CASES = [("loop:64m", 'scheduler = ["bfq", "none"]'), ("dir:data", 'record_size = ["4k", "64k"]')]


@pytest.mark.parametrize(("testbed", "factor"), CASES, ids=["loop", "directory"])
def test_both_finish_and_the_machine_is_as_before(
    tmp_path: Path, testbed: str, factor: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "study.toml").write_text(
        STUDY.replace("TESTBED", testbed).replace("FACTOR", factor)
    )
    before = machine_state()
    command = [sys.executable, "-m", "iolab.cli", "run", "study.toml", "--out"]
    running = [
        subprocess.Popen(
            [*command, out], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for out in ("first", "second")
    ]
    ends = [(run.communicate(timeout=100), run.returncode) for run in running]
    assert [code for _, code in ends] == [0, 0], ends
    assert not differences(before, machine_state())
    assert list((tmp_path / "data").iterdir()) == []
