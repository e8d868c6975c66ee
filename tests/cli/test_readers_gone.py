"""Readers of the output that leave, or cannot take it: the study is finished and stored all the
same.

A closed standard error ended a study after a few seconds with exit code 0 and no results, because
the broken pipe of a progress line was taken for that of `iolab report | head`.
"""

import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iolab.store.db import Store

TESTS = Path(__file__).parents[1]
DRIVER = Path(__file__).with_name("driver.py")
STUDY = """
seed = 7
rounds = 2
testbed = "dir:FOLDER"
[factors]
record_size = "4k,8k"
[[workloads]]
kind = "iozone"
tests = ["write", "read"]
file_size = "1m"
"""


@pytest.fixture
def command(tmp_path, monkeypatch):
    (tmp_path / "study.toml").write_text(STUDY.replace("FOLDER", str(tmp_path)))
    monkeypatch.setenv("IOLAB_AGENT", str(TESTS / "testbed" / "fake_agent.py"))
    monkeypatch.setenv("FAKE_AGENT_MODE", "")
    package = Path(sys.modules["iolab.store"].__path__[0]).parents[1]
    monkeypatch.setenv("PYTHONPATH", str(package))
    words = [sys.executable, DRIVER, "run", tmp_path / "study.toml", "--out", tmp_path / "out"]
    return list(map(str, words))


def n_finished(tmp_path):
    with Store.open_reader(tmp_path / "out" / "study.db") as store:
        return len(store.finished_trials())


@pytest.fixture
def unread_pipe():
    """The writing end of a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_study_outlives_its_readers(command, tmp_path, unread_pipe, stream):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: unread_pipe}
    run = subprocess.run(command, **streams, check=False)
    assert (run.returncode, n_finished(tmp_path)) == (0, 4)
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize("number", [1, 2])
def test_a_closed_stream_is_no_trouble_and_no_file_gets_its_number(command, tmp_path, number):
    shell = ["sh", "-c", f'exec "$@" {number}>&-', "sh"]
    run = subprocess.run([*shell, *command], capture_output=True, check=False)
    assert (run.returncode, n_finished(tmp_path)) == (0, 4), run.stderr
    assert b"Traceback" not in run.stdout + run.stderr


@pytest.mark.skipif(shutil.which("setsid") is None, reason="needs setsid(1)")
def test_a_closed_terminal_counts_as_ctrl_c(command, tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_AGENT_MODE", "delay=0.2")
    monkeypatch.setenv("FAKE_AGENT_LOG", str(log))
    master, slave = pty.openpty()
    # A session of its own, whose terminal this is.
    run = subprocess.Popen(["setsid", "--ctty", *command], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    while not (log.exists() and "done" in log.read_text()) and run.poll() is None:
        time.sleep(0.005)
    os.close(master)  # The kernel sends SIGHUP, and every write to the terminal fails.
    assert run.wait(timeout=20) == 130
    assert "shutdown" in log.read_text().splitlines()
    assert 1 <= n_finished(tmp_path) <= 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_cannot_be_printed_is_said_and_not_lost(command, tmp_path):
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, n_finished(tmp_path)) == (1, 4)
    assert "cannot be printed: No space left on device" in run.stderr
    assert "Traceback" not in run.stderr
    assert "Exception ignored" not in run.stderr
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(command[:2], stdout=subprocess.PIPE, stderr=full, check=False)
    assert run.returncode == 0
