"""kill -9 at any moment: the watchdog, or `iolab restore`, puts everything back; nothing is lost.

A killed agent leaves changed knobs, a loop device, a mount and a directory behind, because it gets
no chance to clean up. Each test kills at seeded random moments of a real study on a loop device.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Run
from .machine_state import differences, is_of_another_session, machine_state

pytestmark = [pytest.mark.needs_loop, pytest.mark.timeout(900)]

STUDY = """
name = "kill"
testbed = "loop:300m"
seed = 11
rounds = 4
[factors]
scheduler = ["bfq", "mq-deadline"]
[settings]
direct = true
read_ahead_kb = "64"
[[workloads]]
name = "iozone"
kind = "iozone"
tests = ["write", "read"]
file_size = "16m"
"""
#: Number of kills per test here; `python -m tests.e2e.test_kill_loop 30` runs the full bar.
KILLS = 3
#: Seconds after which a study that was started hangs: minutes more than on a busy machine.
HANGS_S = 300
_STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _none_runs_on() -> Iterator[None]:
    """Ends what a failed test has started, so that the next one finds a machine at rest."""
    _STARTED.clear()
    yield
    for running in _STARTED:
        if running.poll() is None:
            running.terminate()
            running.wait(timeout=HANGS_S)


def agents_of(running: subprocess.Popen[str]) -> dict[int, str]:
    """Processes of the agent below a running command: pid to arguments."""
    parents: dict[int, int] = {}
    arguments: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
        arguments[int(entry.name)] = b" ".join(words).decode(errors="replace")

    def is_below(pid: int) -> bool:
        while pid > 1 and pid != running.pid:
            pid = parents.get(pid, 0)
        return pid == running.pid

    return {
        pid: text
        for pid, text in arguments.items()
        if pid != running.pid and _program(pid) == "iolab-agent" and is_below(pid)
    }


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


def start(out: Path, study: Path) -> subprocess.Popen[str]:
    """Starts (or resumes) the study in the background."""
    resume = ["--resume"] if (out / "study.db").exists() else []
    argv = [sys.executable, "-m", "iolab.cli", "run", str(study), "--out", str(out), *resume]
    with out.with_suffix(".log").open("w") as log:
        running = subprocess.Popen(
            argv, stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
    _STARTED.append(running)
    return running


def said(out: Path) -> str:
    """Output of the last start of the study."""
    return out.with_suffix(".log").read_text()


def finished(out: Path) -> list[str]:
    """Trials with a record, in the order of their records."""
    if not (out / "study.db").exists():
        return []
    with sqlite3.connect(f"file:{out / 'study.db'}?mode=ro", uri=True) as store:
        try:
            return [row[0] for row in store.execute("SELECT trial_id FROM record ORDER BY rowid")]
        except sqlite3.OperationalError:
            return []


def kill_all(pids: list[int]) -> None:
    """SIGKILL, as the out-of-memory killer sends it, and the wait until all have ended.

    A process in a call that cannot be interrupted ends only with that call.
    """
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + 60
    while any(_is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


def wait_restored(before: dict[str, str], seconds: float) -> list[str]:
    """Differences that are left after at most `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := differences(before, machine_state())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def kill_agent_once(
    out: Path, study: Path, moment: float, seconds: float = 5.0
) -> tuple[list[str], list[str]]:
    """Kills the agent alone `moment` s after the start; what is then not restored, what is lost."""
    before = machine_state()
    running = start(out, study)
    time.sleep(moment)
    agents = [pid for pid, text in agents_of(running).items() if "watchdog" not in text]
    known = finished(out)
    kill_all(agents)
    left = wait_restored(before, seconds)
    running.wait(timeout=HANGS_S)
    now = finished(out)
    return left, [trial for trial in known if trial not in now]


def test_the_watchdog_restores_when_the_agent_is_killed(tmp_path: Path) -> None:
    study, out = tmp_path / "kill.toml", tmp_path / "out"
    study.write_text(STUDY)
    moments = random.Random(5)
    for _ in range(KILLS):
        # The bar is 5 s (see below); a machine that does other things may take longer.
        left, lost = kill_agent_once(out, study, moments.uniform(0.3, 4.0), seconds=20.0)
        assert not left, left
        assert not lost, lost
    final = start(out, study)
    assert final.wait(timeout=HANGS_S) == 0, said(out)
    trials = finished(out)
    assert len(trials) == len(set(trials)) == 2 * 4, "every trial once"


def test_restore_undoes_what_a_killed_watchdog_could_not(tmp_path: Path, iolab: Run) -> None:
    study, out = tmp_path / "kill.toml", tmp_path / "out"
    study.write_text(STUDY)
    before = machine_state()
    moments = random.Random(6)
    for _ in range(KILLS):
        running = start(out, study)
        time.sleep(moments.uniform(0.5, 4.0))
        kill_all([*reversed(agents_of(running)), running.pid])
        running.wait(timeout=HANGS_S)
        restored = iolab("restore")
        assert restored.returncode == 0, restored.stdout + restored.stderr
        assert not wait_restored(before, 5.0)
    assert "nothing" in iolab("restore").stdout.lower()


SLICES = """
name = "slices"
testbed = "loop:300m"
design = "pairs"
seed = 11
rounds = 20
[factors]
scheduler = ["none", "bfq"]
[[workloads]]
name = "iozone"
kind = "iozone"
tests = ["random-read"]
file_size = "16m"
"""


def test_a_kill_in_the_middle_of_a_slice_leaves_no_twin(tmp_path: Path, iolab: Run) -> None:
    study, out = tmp_path / "slices.toml", tmp_path / "out"
    study.write_text(SLICES)
    before, points_before = machine_state(), _mount_points_of_twins()
    running = start(out, study)
    # Both twins have their schedulers only while slices are measured, and not while the twins
    # exchange them: one look decides.
    deadline, is_slicing = time.monotonic() + 90, False
    while not is_slicing and time.monotonic() < deadline:
        time.sleep(0.05)
        is_slicing = _schedulers_of_ours() == {"none", "bfq"}
    assert is_slicing, said(out)
    time.sleep(2)
    kill_all([*reversed(agents_of(running)), running.pid])
    running.wait(timeout=HANGS_S)
    restored = iolab("restore")
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert not wait_restored(before, 5.0)
    # A session of these tests that was killed as a whole leaves points that no journal knows.
    left = _mount_points_of_twins() - points_before
    assert {path for path in left if not is_of_another_session(path)} == set()


def _mount_points_of_twins() -> set[str]:
    return set(map(str, Path("/run/iolab").glob("*/twin-*")))


def _schedulers_of_ours() -> set[str]:
    """Active schedulers of the loop devices that iolab made and attached."""
    found = set[str]()
    for device in Path("/sys/block").glob("loop*"):
        try:
            image = (device / "loop/backing_file").read_text()
            if "/.iolab-" in image and not is_of_another_session(image):
                text = (device / "queue/scheduler").read_text()
                found.add(text.partition("[")[2].partition("]")[0])
        except OSError:
            continue
    return found


def test_ctrl_c_keeps_finished_trials_and_restores(tmp_path: Path) -> None:
    study, out = tmp_path / "kill.toml", tmp_path / "out"
    study.write_text(STUDY)
    before = machine_state()
    running = start(out, study)
    deadline = time.monotonic() + 60
    while len(finished(out)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(timeout=HANGS_S) == 130, said(out)
    assert "Traceback" not in said(out)
    assert not differences(before, machine_state())
    assert len(finished(out)) >= 2


if __name__ == "__main__":
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    import tempfile

    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        chosen = random.Random(99)
        worst = 0
        for number in range(kills):
            (folder / "kill.toml").write_text(STUDY)
            moment = chosen.uniform(0.05, 5.0)
            out = folder / f"out{number // 6}"
            unrestored, gone = kill_agent_once(out, folder / "kill.toml", moment)
            state = "ok" if not unrestored and not gone else f"FAIL {unrestored} {gone}"
            worst += state != "ok"
            print(f"kill {number + 1:2} after {moment:.2f} s: {state}", flush=True)
        print(f"{kills - worst} of {kills} restored within 5 s, no trial lost")
        sys.exit(1 if worst else 0)
