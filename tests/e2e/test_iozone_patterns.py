"""Our IOzone tests touch the same records in the same order as the real program, as traced."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from iolab import _core
from iolab.testbed.command import find_agent

from .strace import sessions

GOLDEN = Path(__file__).parent.parent / "golden" / "iozone" / "trace_all_direct.txt"
TESTS = [
    "write",
    "rewrite",
    "read",
    "reread",
    "random-read",
    "random-write",
    "backward-read",
    "record-rewrite",
    "stride-read",
]
#: Session of the golden trace for each of TESTS; the real program reads backwards twice (6 and 7).
GOLDEN_SESSION = [0, 1, 2, 3, 4, 5, 6, 8, 9]


def our_trace(directory: Path) -> str:
    """Strace of one single-stream run of all tests, 256 KiB file, 16 KiB records, direct I/O."""
    request = {
        "tests": TESTS,
        "file_bytes": 256 << 10,
        "io_size_bytes": 16 << 10,
        "engine": "sync",
        "access": "direct",
        "seed": 1,
    }
    workload = json.loads(_core.iozone_workload(json.dumps(request)))
    workload["is_calibrated"] = False
    trial = {"trial": "t1", "directory": str(directory), "workload": workload}
    log = directory / "strace.txt"
    calls = "trace=open,openat,creat,close,read,write,lseek"
    argv = ["strace", "-f", "-s", "0", "-e", calls, "-o", str(log), str(find_agent()), "measure"]
    done = subprocess.run(
        argv, input=json.dumps(trial) + "\n", capture_output=True, text=True, check=False
    )
    answer = json.loads(done.stdout.splitlines()[-1])["result"]
    assert answer["status"] == "ok", answer["error"]
    return log.read_text()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_every_test_moves_the_same_data_in_the_same_order(tmp_path: Path) -> None:
    golden = sessions(GOLDEN.read_text(), "t.tmp")
    ours = sessions(our_trace(tmp_path), "iozone.0")
    assert len(ours) == len(TESTS)
    for test, session, index in zip(TESTS, ours, GOLDEN_SESSION, strict=True):
        assert session.transfers == golden[index].transfers, test
        assert "O_DIRECT" in session.flags, test
