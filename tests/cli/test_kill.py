"""The real command line, killed and interrupted at random moments.

A finished trial is one whose record is committed. After kill -9 it must still be there, and
`--resume` must run every other trial once and no finished one again.

Issue 14, point 8: killed before the first record, the printed advice `--resume` could never work,
since there was nothing to resume (6 of 30). Now who lost his agent is told what works, and
`--resume` without a study says so. The long run is `tools/soak.py kills`.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import soak
from iolab.errors import StoreError, StudyError
from iolab.run import outputs
from iolab.run.conduct import _with_next_step
from iolab.store.db import Store
from iolab.store.lock import Stored, WriterLock, noted, wait_for_survivor
from iolab.testbed.agent import LostAgentError

TESTS = Path(__file__).parents[1]
DRIVER = Path(__file__).with_name("driver.py")
STUDY = """
name = "killed"
seed = 7
rounds = 12
testbed = "TESTBED"
[factors]
record_size = "4k..32k"
[[workloads]]
kind = "iozone"
tests = ["write", "read"]
file_size = "1m"
"""
N_TRIALS = 48


class Cli:
    """Starts the command line in a process group of its own."""

    def __init__(self, folder, mode):
        self.out = folder / "out"
        self.log = folder / "log"
        # An ordinary user must not need sudo for the stand-in agent.
        testbed = "loop:1g" if os.geteuid() == 0 else f"dir:{folder}"
        (folder / "study.toml").write_text(STUDY.replace("TESTBED", testbed))
        self.command = [sys.executable, DRIVER, "run", folder / "study.toml", "--out", self.out]
        package = Path(sys.modules["iolab.store"].__path__[0]).parents[1]
        self.environment = {
            **os.environ,
            "IOLAB_AGENT": str(TESTS / "testbed" / "fake_agent.py"),
            "FAKE_AGENT_MODE": mode,
            "FAKE_AGENT_LOG": str(self.log),
            "PYTHONPATH": str(package),
        }

    def start(self):
        resume = ["--resume"] if (self.out / "study.db").exists() else []
        return subprocess.Popen(
            [*self.command, *resume],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finished(self):
        if not (self.out / "study.db").exists():
            return set()
        with Store.open_reader(self.out / "study.db") as store:
            return {key for key, status in store.finished_trials().items() if status == "ok"}

    def executed(self):
        """Trials that the agent brought to an end so far, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.split()[1] for line in lines if line.startswith("done")]

    def wait_for(self, process, n_executed):
        """Wait for so many trials in all, or for the end of the process."""
        while len(self.executed()) < n_executed and process.poll() is None:
            time.sleep(0.005)


@pytest.mark.parametrize("seed", [1, 2])
def test_kill_at_random_moments_loses_and_repeats_nothing(tmp_path, seed):
    cli, rng = Cli(tmp_path, "delay=0.02"), random.Random(seed)
    known = set()
    for _ in range(12):
        n_before = len(cli.executed())
        process = cli.start()
        cli.wait_for(process, n_before + rng.randint(0, 3))
        time.sleep(rng.random() * 0.03)
        process.kill()
        process.communicate()
        time.sleep(0.05)  # The agent ends by itself when its input does.
        finished = cli.finished()
        assert known <= finished, f"lost {known - finished}"
        again = set(cli.executed()[n_before:]) & known
        assert not again, f"ran finished trials again: {again}"
        known = finished
    process = cli.start()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert cli.finished() == {f"t{number:04d}" for number in range(1, N_TRIALS + 1)}
    assert f"{N_TRIALS} trials were judged" in out


def test_who_continues_after_a_kill_waits_for_what_still_measures(tmp_path):
    """Found by 14's churn: the agent of the killed start made the test file a tenth of a second
    after the resumed one had looked for it, and the advice to resume did not work.
    """
    cli = Cli(tmp_path, "delay=0.02,slow_close=0.7")
    process = cli.start()
    cli.wait_for(process, 3)
    process.kill()
    process.communicate()
    resumed = cli.start()
    _, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, err
    lines = cli.log.read_text().splitlines()
    second_hello = [number for number, line in enumerate(lines) if line == "hello"][1]
    assert lines.index("exit") < second_hello
    assert len(cli.finished()) == N_TRIALS


def test_what_never_ends_is_told_by_its_process(tmp_path):
    lock = WriterLock(tmp_path / "study.db").acquire()
    lock.note(Stored("00", 1, 2, 3))
    lock.note_measuring(os.getpid())
    lock.release()
    with pytest.raises(StoreError, match=rf"process {os.getpid()}, .* still at work"):
        wait_for_survivor(tmp_path / "study.db", 0.05)
    assert noted(tmp_path / "study.db") == Stored("00", 1, 2, 3)
    gone = subprocess.Popen(["/bin/true"])
    lock = WriterLock(tmp_path / "study.db").acquire()
    lock.note_measuring(gone.pid)
    gone.wait()
    lock.note(Stored("00", 1, 2, 4))
    lock.release()
    wait_for_survivor(tmp_path / "study.db", 0)
    assert noted(tmp_path / "study.db") == Stored("00", 1, 2, 4)


def test_first_ctrl_c_keeps_what_is_finished_and_exits_130(tmp_path):
    cli = Cli(tmp_path, "delay=0.05")
    process = cli.start()
    cli.wait_for(process, 5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert f"continue with `iolab run {cli.out} --resume`" in err
    assert "Traceback" not in err
    assert "trials were judged" in out
    assert {"t0001", "t0002", "t0003", "t0004"} <= cli.finished()
    methods = cli.log.read_text().split("\n")
    assert "close_testbed" in methods
    assert "shutdown" in methods


def test_second_ctrl_c_ends_at_once_and_lets_the_agent_restore(tmp_path):
    cli = Cli(tmp_path, "delay=0.3")
    process = cli.start()
    cli.wait_for(process, 2)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert {"t0001"} <= cli.finished()


def test_two_writers_at_once_are_refused(tmp_path):
    cli = Cli(tmp_path, "delay=0.2")
    first = cli.start()
    cli.wait_for(first, 1)
    second = cli.start()
    _, err = second.communicate(timeout=30)
    assert second.returncode == 1
    assert f"being written by another iolab (process {first.pid})" in err
    # Nobody who begins anew is told to resume what is running.
    third = subprocess.run(
        cli.command, env=cli.environment, capture_output=True, text=True, check=False, timeout=30
    )
    assert third.returncode == 1
    assert f"being written by another iolab (process {first.pid})" in third.stderr
    first.kill()
    first.communicate()


@pytest.mark.timeout(200)
def test_what_is_advised_after_a_kill_works():
    tally = soak.try_kills(3, 20261122, testbeds=("sim:fixed-100us",))
    assert not tally.failures, tally.failures


def test_who_lost_the_agent_is_told_what_works():
    lost = LostAgentError("the agent was killed", "check with `iolab restore`")
    told = str(_with_next_step(lost, "`on`", is_begun_anew=True))
    assert told.endswith("check with `iolab restore`, then type the same command again")
    told = str(_with_next_step(lost, "`on`", is_begun_anew=False))
    assert told.endswith("check with `iolab restore`, then continue with `on`")
    other = StudyError("x", "y")
    assert _with_next_step(other, "`on`", is_begun_anew=True) is other


def test_an_agent_that_dies_before_the_first_record_leaves_the_same_command_to_type(tmp_path):
    cli = Cli(tmp_path, "die=t0001")
    process = cli.start()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "then type the same command again" in err
    assert not (cli.out / "study.db").exists()
    resumed = subprocess.run(
        [*cli.command, "--resume"],
        env={**cli.environment, "FAKE_AGENT_MODE": "delay=0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert resumed.returncode == 1
    assert "there is nothing to resume: there is no study in" in resumed.stderr
    assert "without --resume" in resumed.stderr
    cli.environment["FAKE_AGENT_MODE"] = "delay=0"
    again = cli.start()
    _, err = again.communicate(timeout=100)
    assert again.returncode == 0, err
    assert len(cli.finished()) == N_TRIALS


DRAFT = ".study.db.0123456789abcdef"


@pytest.mark.parametrize("left", [[], ["study.db.lock"], [DRAFT, f"{DRAFT}-wal", f"{DRAFT}-shm"]])
def test_whatever_a_kill_left_the_same_command_begins_the_study(tmp_path, left):
    cli = Cli(tmp_path, "delay=0")
    cli.out.mkdir()
    for name in left:
        (cli.out / name).write_bytes(b"half")
    process = cli.start()
    _, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert len(cli.finished()) == N_TRIALS


@pytest.mark.parametrize("name", ["study.db-wal", "study.db-shm", "study.db-journal"])
def test_empty_side_files_of_a_study_that_is_gone_are_in_nobodys_way(tmp_path, name):
    (tmp_path / name).touch()
    outputs.check_free(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *("study.db-wal", "study.db-journal", "study.db.backup", "study.db-old", ".study.db.swp"),
        *("study.db.lock.txt", ".study.db.0123456789abcde", ".iolab-made.orig", "study.db.new"),
    ],
)
def test_what_is_not_iolabs_is_refused_and_kept_although_its_name_is_like_it(tmp_path, name):
    """Issue 14, point 2, of an attacker: a new study took everything that was named study.db.* or
    study.db-* for its own, and removed the log of a study whose database had been moved away, with
    its newest records. Now names are compared whole, and such a log is refused.
    """
    cli = Cli(tmp_path, "delay=0")
    cli.out.mkdir()
    (cli.out / name).write_bytes(b"half")
    process = cli.start()
    _, err = process.communicate(timeout=100)
    assert process.returncode == 2, err
    assert f"holds {name} already, and no study" in err
    assert {path.name for path in cli.out.iterdir()} == {name}
    assert (cli.out / name).read_bytes() == b"half"
