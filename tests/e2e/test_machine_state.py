"""Tests beside other sessions of tests: images and mounts of their runs are not those of this one.

Symptom: images of loop devices lie in /var/tmp, whoever tests, so that a session failed while
another one measured beside it. Fix: a run counts as another session's while its watchdog lives
below an agent that this session did not start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .machine_state import is_of_another_session

AGENT = """
import pathlib, subprocess, sys
watchdog = subprocess.Popen([sys.executable, "watchdog", "/state", "r-0123456789ab"])
pathlib.Path("pid").write_text(str(watchdog.pid))
watchdog.wait()
"""
IMAGE = "/var/tmp/.iolab-r-0123456789ab-5d1c-0.img (deleted)"


def wait_until(expected: bool) -> None:
    deadline = time.monotonic() + 20
    while is_of_another_session(IMAGE) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_of_another_session(IMAGE) == expected


def test_runs_of_agents_that_others_started_are_theirs(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text(AGENT)
    (tmp_path / "watchdog").write_text("import time; time.sleep(60)")
    assert not is_of_another_session(IMAGE)
    # Its parent ends, so that it is not below this process.
    start = f"{sys.executable} agent > /dev/null 2>&1 & echo $!"
    words = ["sh", "-c", start]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    agent = int(done.stdout)
    wait_until(expected=True)
    assert is_of_another_session("/run/iolab/r-0123456789ab")
    assert not is_of_another_session("/run/iolab/r-0123456789abc")
    assert not is_of_another_session(IMAGE.replace("89ab", "89ac"))
    # What a killed agent leaves may be ours: its watchdog does not speak for another session.
    watchdog = int((tmp_path / "pid").read_text())
    os.kill(agent, signal.SIGKILL)
    try:
        wait_until(expected=False)
        os.kill(watchdog, 0)
    finally:
        os.kill(watchdog, signal.SIGKILL)


def test_runs_of_this_session_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text(AGENT)
    (tmp_path / "watchdog").write_text("import time; time.sleep(60)")
    agent = subprocess.Popen([sys.executable, "agent"], cwd=tmp_path)
    deadline = time.monotonic() + 20
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    watchdog = int((tmp_path / "pid").read_text())
    try:
        assert not is_of_another_session(IMAGE)
    finally:
        for process in (agent.pid, watchdog):
            os.kill(process, signal.SIGKILL)
        agent.wait()
