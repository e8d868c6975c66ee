"""`iolab trace live` on real loop devices: its sums are the kernel's, and nothing is left of it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import Run
from .test_kill_loop import agents_of
from .test_trace_bad_input import _COVERED
from .test_trace_record import READS, WRITES, Loop, instances, is_alive

pytestmark = pytest.mark.needs_loop

_ENDS_S = 60.0


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    device = Loop(tmp_path, "one")
    yield device
    device.detach()


@pytest.fixture(autouse=True)
def no_instance_is_left() -> Iterator[None]:
    before = instances()
    yield
    assert instances() <= before


def started(*words: str) -> subprocess.Popen[str]:
    """`iolab trace live` in the background."""
    argv = [sys.executable, "-m", "iolab.cli", "trace", "live", *words]
    return subprocess.Popen(
        argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[str]]:
    """`iolab trace live` in the background, after its first second."""
    with started(*words) as running:
        try:
            first_line(running)
            yield running
        finally:
            running.kill()


def first_line(running: subprocess.Popen[str]) -> str:
    """The first second; what comes from now on is seen, too."""
    assert running.stdout is not None
    return running.stdout.readline()


def summed(seconds: list[dict[str, dict[str, int]]], what: str, key: str) -> int:
    """Sum of a figure."""
    return sum(second[what][key] for second in seconds)


@pytest.mark.parametrize("backend", ["tracefs", "perf"])
def test_sums_are_those_of_the_kernel(loop: Loop, backend: str) -> None:
    running = started(loop.path, "--json", "--backend", backend)
    seconds = [json.loads(first_line(running))]
    before = loop.counters()
    subprocess.run(["sh", "-c", loop.load()], check=True)
    grown = [now - then for now, then in zip(loop.counters(), before, strict=True)]
    time.sleep(2.5)
    running.send_signal(signal.SIGINT)
    out, told = running.communicate(timeout=_ENDS_S)
    assert running.returncode == 0, told
    seconds += [json.loads(line) for line in out.splitlines()]
    assert (grown[0], grown[4]) == (READS, WRITES), "nobody else uses the device"
    for what, count, sectors in (("reads", READS, grown[2]), ("writes", WRITES, grown[6])):
        assert summed(seconds, what, "count") == count
        assert summed(seconds, what, "bytes") == sectors * 512
    for stage in ("device", "whole"):
        assert summed(seconds, stage, "count") == READS + WRITES
        assert sum(sum(second[stage]["ranges"]) for second in seconds) == READS + WRITES
    assert [second["number"] for second in seconds] == list(range(1, len(seconds) + 1))
    assert sum(second["lost"] for second in seconds) == 0
    rows = [row for second in seconds for row in second["processes"]]
    assert {row["name"] for row in rows} == {"dd"}
    assert sum(row["read_bytes"] for row in rows) == grown[2] * 512
    assert sum(row["write_bytes"] for row in rows) == grown[6] * 512


def test_without_a_terminal_each_second_is_a_line(iolab: Run, loop: Loop) -> None:
    done = iolab("trace", "live", loop.name, "--seconds", "3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert 2 <= len(lines) <= 4, lines
    for number, line in enumerate(lines, start=1):
        assert re.match(rf" +{number} s  read 0/s 0 B/s  write 0/s 0 B/s  Q2C no request", line), (
            line
        )
    assert "\x1b" not in done.stdout


def test_the_view_shows_the_minute_and_ends_with_an_interrupt(loop: Loop) -> None:
    pytest.importorskip("rich", reason="the view needs rich")
    fd, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    argv = [sys.executable, "-m", "iolab.cli", "trace", "live", loop.path]
    running = subprocess.Popen(
        argv, stdin=end, stdout=end, stderr=end, env=environment, start_new_session=True
    )
    os.close(end)
    seen, is_loaded, is_stopped, deadline = "", False, False, time.monotonic() + _ENDS_S
    try:
        while running.poll() is None:
            assert time.monotonic() < deadline, seen[-3000:]
            if select.select([fd], [], [], 0.2)[0]:
                try:
                    piece = os.read(fd, 1 << 16).decode(errors="replace")
                except OSError:
                    break
                seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", piece)
            if "No request has ended yet" in seen and not is_loaded:
                is_loaded = True
                subprocess.run(["sh", "-c", loop.load()], check=True)
            if "D2C of the last minute" in seen and "dd (" in seen and not is_stopped:
                is_stopped = True
                running.send_signal(signal.SIGINT)
        assert running.wait(timeout=_ENDS_S) == 0, seen[-3000:]
    finally:
        running.kill()
        os.close(fd)
    for word in ("read", "write", "depth of the last minute", "process, by bytes", "p99"):
        assert word in seen, word
    assert "Traceback" not in seen


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nosuch",), "nosuch is no block device"),
        (("/etc/passwd",), "/etc/passwd is no block device"),
        (("loop0", "--seconds", "soon"), "--seconds soon"),
        (("loop0", "--buffer", "1 TiB"), "no size of a buffer"),
    ],
)
def test_what_cannot_be_watched_is_told(iolab: Run, words: tuple[str, ...], told: str) -> None:
    done = iolab("trace", "live", *words)
    assert done.returncode == 1, done.stderr
    assert told in done.stderr
    assert done.stderr.count("\n") <= 2
    assert done.stdout == ""


def test_a_tracefs_that_cannot_be_opened_is_told(loop: Loop) -> None:
    live = f"{sys.executable} -m iolab.cli trace live {loop.name} --seconds 2"
    script = f"{_COVERED} setpriv --bounding-set=-sys_admin {live}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode in (1, 2), done.stdout
    assert "the kernel does not let this process use tracefs" in done.stderr
    assert "iolab iostat" in done.stderr


def test_a_device_that_goes_away_ends_it(loop: Loop) -> None:
    running = started(loop.path, "--seconds", "50")
    first_line(running)
    loop.detach()
    _, told = running.communicate(timeout=_ENDS_S)
    assert running.returncode == 1
    assert f"{loop.name} went away while it was watched" in told


def test_a_reader_that_leaves_ends_it(loop: Loop) -> None:
    with watching(loop.path) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        told = running.stderr.read()
        assert running.wait(timeout=_ENDS_S) is not None
    assert "Traceback" not in told, told


def test_a_killed_view_leaves_nothing(loop: Loop) -> None:
    """Only the front end is killed: the agent notices, and removes its instance."""
    before = instances()
    with watching(loop.path) as running:
        agents = agents_of(running)
        assert agents, "the agent is there"
        running.kill()
        running.wait(timeout=_ENDS_S)
    assert not [pid for pid in agents if is_alive_for_long(pid)]
    assert instances() <= before


def is_alive_for_long(pid: int) -> bool:
    """Tell whether a process goes on for half a minute."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not is_alive(pid):
            return False
    return True


def test_an_agent_that_is_killed_leaves_no_instance(loop: Loop) -> None:
    """Kill -9 of the agent, its reader and its front end at once: the watchdog restores."""
    before = instances()
    with watching(loop.path) as running:
        found = agents_of(running)
        watched = [pid for pid, words in found.items() if "watchdog" not in words]
        for pid in [*watched, running.pid]:
            os.kill(pid, signal.SIGKILL)
        running.wait(timeout=_ENDS_S)
    # Where all CPUs are busy with other tests, 30 s were once too short.
    deadline = time.monotonic() + 90
    watchdogs = set(found) - set(watched)
    assert watchdogs, found
    while any(map(is_alive, watchdogs)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not any(map(is_alive, watchdogs)), "it restores for too long"
    assert instances() <= before
