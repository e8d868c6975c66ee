"""``iolab watch``: one look as text, and the view of a running study under a pseudo-terminal."""

import contextlib
import io
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.lock import WriterLock

WORDS = ("compare", "--on", "sim:fixed-100us", "--record-size", "4k,8k", "--file-size", "256k")
SECONDS_MAX = 60.0


def iolab(*words):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("studies") / "one"
    code, _, err = iolab(*WORDS, "--direct", "--rounds", "3", "--out", out, "--quiet")
    assert code == 0, err
    return out


def held(folder):
    """Let the study look as if it were written."""
    return WriterLock(folder / "study.db").acquire()


def test_without_a_terminal_one_look_is_printed(study):
    code, out, err = iolab("watch", study)
    assert (code, err) == (0, "")
    assert out.startswith("record-size: finished, on sim:fixed-100us (simulated)\n")
    assert "6 of 6 trials, 3 of 3 complete rounds" in out
    assert "\x1b" not in out


def test_an_archive_is_shown(study, tmp_path):
    assert iolab("archive", study, "--out", tmp_path / "a.iolab")[0] == 0
    code, out, _ = iolab("watch", tmp_path / "a.iolab")
    assert code == 0
    assert "finished" in out


@pytest.mark.parametrize("interval", ["0", "soon", "nan", "1e9"])
def test_an_interval_is_a_number_of_seconds(study, interval):
    code, _, err = iolab("watch", study, "--interval", interval)
    assert code == 1
    assert f"--interval {interval}: not a number of seconds from 0.1 to 3600" in err


def test_where_there_is_no_study_it_says_so(tmp_path):
    code, _, err = iolab("watch", tmp_path)
    assert code == 1
    assert str(tmp_path) in err


class Screen:
    """A program on a pseudo-terminal."""

    def __init__(self, *words):
        self.fd, end = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        command = [sys.executable, "-m", "iolab", *map(str, words)]
        self.process = subprocess.Popen(
            command, stdin=end, stdout=end, stderr=end, env=environment, start_new_session=True
        )
        os.close(end)
        self.seen = b""

    def wait(self, wanted):
        ends = time.monotonic() + SECONDS_MAX
        while wanted not in self.text():
            assert time.monotonic() < ends, self.text()[-2000:]
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    assert wanted in self.text(), self.text()[-2000:]
                    return

    def code(self):
        """Exit code, once all is read that it prints: a full terminal would keep it waiting."""
        ends = time.monotonic() + SECONDS_MAX
        while self.process.poll() is None:
            assert time.monotonic() < ends, self.text()[-2000:]
            if select.select([self.fd], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.fd, 65536)
        return self.process.returncode

    def text(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen.decode(errors="replace"))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


def test_a_running_study_is_followed_until_its_end(study, tmp_path):
    pytest.importorskip("rich", reason="the view needs rich")
    shutil.copytree(study, tmp_path / "run")
    lock = held(tmp_path / "run")
    screen = Screen("watch", tmp_path / "run", "--interval", "0.2")
    try:
        screen.wait("running")
        screen.wait("Do not stop by what you see")
        assert screen.process.poll() is None
        lock.release()
        screen.wait("finished")
        screen.wait("8k is 2.0 times as fast as 4k")
        assert screen.code() == 0
    finally:
        screen.close()


def test_the_view_ends_with_an_interrupt(study, tmp_path):
    pytest.importorskip("rich", reason="the view needs rich")
    shutil.copytree(study, tmp_path / "run")
    lock = held(tmp_path / "run")
    screen = Screen("watch", tmp_path / "run", "--interval", "0.2")
    try:
        screen.wait("running")
        os.write(screen.fd, b"\x03")
        os.killpg(screen.process.pid, 2)
        assert screen.code() == 0
    finally:
        screen.close()
        lock.release()


def test_once_is_text_in_a_terminal_too(study):
    screen = Screen("watch", study, "--once")
    try:
        screen.wait("[##############################] 100%")
    finally:
        screen.close()
