"""Traces by way of sudo: block events of the run's own devices, and of other layers the user's own
processes alone; more needs root itself, or the policy.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .arena import ALICE, BOB, HOMES, MALLORY, PYTHON, Arena, iolab_script
from .guard import nothing_changes

pytestmark = pytest.mark.needs_sudo

STUDY = (
    *("compare", "--on", "loop:64m", "--record-size", "4k,64k", "--rounds", "1", "--fs", "ext4"),
    *("--file-size", "1m", "--test", "write", "--direct", "--engine", "psync"),
)
FOREIGN_BYTES = 4111
"""A prime number: calls of so many bytes are another user's."""
OWN_BYTES = 4099


@contextmanager
def busy(arena: Arena, user: str) -> Generator[None]:
    """A program of another user that goes on reading, in calls that are known by their size."""
    opened = "import os\nfile = os.open('/dev/zero', 0)\n"
    source = f"{opened}while True: os.pread(file, {FOREIGN_BYTES}, 0)"
    argv = arena.argv([PYTHON, "-S", "-c", source], user=user)
    process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def shown(trace: Path) -> list[list[str]]:
    """Letter, process and payload of all events of a trace; its messages have no such format.

    A message stands where a busy machine made events faster than they could be taken.
    """
    words = ["trace", "show", "-q", "-f", "%a|%p|%P\\n", str(trace)]
    done = subprocess.run(
        [sys.executable, "-m", "iolab.cli", *words], capture_output=True, text=True, check=True
    )
    rows = [line.split("|", 2) for line in done.stdout.splitlines()]
    return [row for row in rows if len(row) == 3]


@contextmanager
def policy(arena: Arena, text: str) -> Generator[None]:
    """A policy of root's."""
    arena.shell('mkdir -p /etc/iolab && printf %s "$1" > /etc/iolab/agent.toml', text)
    try:
        yield
    finally:
        arena.shell("rm -r /etc/iolab")


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """A loop device that is no run's."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(4 << 20)
    argv = ["losetup", "--find", "--show", str(image)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    yield Path(done.stdout.strip()).name
    subprocess.run(["losetup", "--detach", done.stdout.strip()], check=True)


def test_a_study_has_events_of_its_own_processes_alone(arena: Arena) -> None:
    words = ("--trace-events", "block,syscalls,ext4,page-cache", "--out", "layers")
    home = arena.inside(f"{HOMES}/{MALLORY}")
    with busy(arena, ALICE), nothing_changes(arena):
        done = arena.iolab(*STUDY, *words, user=MALLORY)
    try:
        assert done.returncode == 0, done.stderr.decode()
        traces = sorted((home / "layers/traces").iterdir())
        assert len(traces) == 2
        for trace in traces:
            assert trace.stat().st_uid == 61001
            events = shown(trace)
            assert sum(letter == "C" for letter, _, _ in events) > 10
            points = [(pid, text) for letter, pid, text in events if letter == "T"]
            calls = [text for _, text in points if text.startswith("syscalls:sys_enter_pwrite64")]
            assert len(calls) >= 16, "1 MiB in pieces of 64 KiB at most"
            assert any(text.startswith("ext4:") for _, text in points)
            assert not any(f"count={FOREIGN_BYTES}" in text for _, text in points)
            assert len({pid for pid, _ in points}) <= 3, "who measures, and its workers"
    finally:
        arena.shell(f"rm -rf {HOMES}/{MALLORY}/layers")


@pytest.mark.parametrize("how", [("record", "-o", "t.iotrace"), ("live", "--json")])
def test_devices_of_others_are_neither_recorded_nor_watched(
    arena: Arena, device: str, how: tuple[str, ...]
) -> None:
    with nothing_changes(arena):
        words = ("trace", how[0], device, "--seconds", "1", *how[1:])
        done = arena.iolab(*words, user=MALLORY)
    assert done.returncode == 2, done.stderr.decode()
    assert f'devices = ["{device}"]' in done.stderr.decode()
    assert not done.stdout


def test_processes_of_others_are_not_recorded(arena: Arena, device: str) -> None:
    """The device is allowed; what others do is not, unless root says so."""
    record = ("trace", "record", device, "--events", "block,syscalls", "-o")
    command = f"dd if=/dev/zero of=/dev/null bs={OWN_BYTES} count=23"
    home = arena.inside(f"{HOMES}/{MALLORY}")
    rule = f'devices = ["{device}"]\n'
    with busy(arena, ALICE):
        with policy(arena, rule):
            done = arena.iolab(*record, "a.iotrace", "--seconds", "1", user=MALLORY)
            assert done.returncode == 2, done.stderr.decode()
            assert "all_processes = true" in done.stderr.decode()
            assert not (home / "a.iotrace").exists()
            done = arena.iolab(*record, "b.iotrace", "--for", command, user=MALLORY)
            assert done.returncode == 0, done.stderr.decode()
        texts = [text for letter, _, text in shown(home / "b.iotrace") if letter == "T"]
        own = [text for text in texts if f"count={OWN_BYTES}" in text]
        assert len(own) == 2 * 23, "reads and writes of the command"
        assert not any(f"count={FOREIGN_BYTES}" in text for text in texts)
        with policy(arena, rule + "all_processes = true\n"):
            done = arena.iolab(*record, "c.iotrace", "--seconds", "1", user=MALLORY)
            assert done.returncode == 0, done.stderr.decode()
        texts = [text for letter, _, text in shown(home / "c.iotrace") if letter == "T"]
        assert any(f"count={FOREIGN_BYTES}" in text for text in texts)
    arena.shell(f"rm -f {HOMES}/{MALLORY}/b.iotrace {HOMES}/{MALLORY}/c.iotrace")


def test_a_process_of_another_user_is_refused(arena: Arena, device: str) -> None:
    argv = arena.argv(["sleep", "60"], user=ALICE)
    sleeper = subprocess.Popen(argv)
    try:
        words = ("--events", "block,syscalls", "--pid", str(sleeper.pid), "--seconds", "1")
        with policy(arena, f'devices = ["{device}"]\n'):
            done = arena.iolab("trace", "record", device, *words, "-o", "t", user=MALLORY)
    finally:
        sleeper.kill()
        sleeper.wait()
    assert done.returncode == 2, done.stderr.decode()
    assert "it belongs to another user" in done.stderr.decode()


def test_root_itself_records_the_machine(arena: Arena, device: str) -> None:
    words = ("trace", "record", device, "--events", "block,syscalls", "--seconds", "1", "-o", "t")
    with busy(arena, ALICE):
        script = iolab_script(*words, before="sudo -n")
        done = arena.run(["sh", "-c", script], user=BOB, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
    texts = [text for letter, _, text in shown(arena.inside(f"{HOMES}/{BOB}/t")) if letter == "T"]
    assert any(f"count={FOREIGN_BYTES}" in text for text in texts)
    arena.shell(f"rm -f {HOMES}/{BOB}/t")
