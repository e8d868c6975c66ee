"""Recording and reading where something is missing, damaged or another's: what is told, what is
left, and that the machine is as before.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from .conftest import Run
from .test_trace_record import READS, WRITES, Loop, begun, instances, start

pytestmark = pytest.mark.needs_loop

_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_COVERED = (
    "mount -t tmpfs t /sys/kernel/tracing && "
    "{ mountpoint -q /sys/kernel/debug && mount -t tmpfs t /sys/kernel/debug || true; } && "
)
"""Covers tracefs, wherever it is mounted."""


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


@pytest.fixture
def trace(iolab: Run, loop: Loop, tmp_path: Path) -> Path:
    """A whole recording."""
    path = tmp_path / "whole.iotrace"
    done = iolab("trace", "record", loop.path, "--for", loop.load(), "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def covered(loop: Loop, trace: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """A recording in a mount namespace in which tracefs is covered."""
    record = f"{before}{sys.executable} -m iolab.cli trace record {loop.name} -o {trace}"
    script = f"{_COVERED} {record} --for '{loop.load()}'"
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_a_covered_tracefs_is_opened_for_the_recorder_alone(loop: Loop, tmp_path: Path) -> None:
    done = covered(loop, tmp_path / "t.iotrace")
    assert done.returncode == 0, done.stderr
    assert "none lost" in done.stdout


def test_a_tracefs_that_cannot_be_opened_is_told(loop: Loop, tmp_path: Path) -> None:
    """Root without CAP_SYS_ADMIN, as in a container, where no tracefs is mounted."""
    done = covered(loop, tmp_path / "t.iotrace", "setpriv --bounding-set=-sys_admin ")
    assert done.returncode in (1, 2), done.stdout
    assert "the kernel does not let this process use tracefs" in done.stderr, done.stderr
    assert "iolab iostat" in done.stderr
    assert not (tmp_path / "t.iotrace").exists()


def test_lockdown_does_not_keep_from_recording(trace: Path) -> None:
    """Relay files of debugfs, which blktrace needs, cannot be opened then; tracefs can."""
    lockdown = Path("/sys/kernel/security/lockdown")
    if not lockdown.exists() or "[none]" in lockdown.read_text():
        pytest.skip("the kernel is not locked down")
    assert trace.stat().st_size > 0


def test_two_recordings_of_one_device_see_the_same(iolab: Run, loop: Loop, tmp_path: Path) -> None:
    other = tmp_path / "other.iotrace"
    running = start(loop, other)
    try:
        begun(other)
        mine = tmp_path / "mine.iotrace"
        done = iolab("trace", "record", loop.path, "--for", loop.load(), "-o", mine)
        assert done.returncode == 0, done.stderr
    finally:
        running.send_signal(2)
        assert running.wait(timeout=40) == 0
    for path in (mine, other):
        lines = iolab("trace", "show", "-q", "-f", "%a\\n", path).stdout.splitlines()
        assert (lines.count("D"), lines.count("C")) == (READS + WRITES, READS + WRITES), path


def test_a_trace_that_is_cut_is_used_up_to_its_last_block(
    iolab: Run, trace: Path, tmp_path: Path
) -> None:
    content = trace.read_bytes()
    cut = tmp_path / "cut.iotrace"
    cut.write_bytes(content[: len(content) - 10])
    done = iolab("trace", "summary", cut)
    assert done.returncode == 0, done.stderr
    assert "note" in done.stderr
    assert "D2C" in done.stdout


def test_a_damaged_trace_is_told_with_its_place(iolab: Run, trace: Path, tmp_path: Path) -> None:
    lines = iolab("trace", "show", "-q", trace).stdout.count("\n")
    content = bytearray(trace.read_bytes())
    # The largest frame of zstd has the events.
    begins = [found.start() for found in re.finditer(re.escape(_ZSTD_MAGIC), content)]
    sizes = [end - begin for begin, end in pairwise([*begins, len(content)])]
    begin = begins[sizes.index(max(sizes))]
    content[begin + max(sizes) // 2] ^= 0xFF
    damaged = tmp_path / "damaged.iotrace"
    damaged.write_bytes(content)
    done = iolab("trace", "show", "-q", damaged)
    assert done.returncode == 5, done.stderr
    assert "offset" in done.stderr
    assert done.stdout.count("\n") < lines
    assert "Traceback" not in done.stderr


def test_a_foreign_byte_order_says_the_same(iolab: Run, trace: Path, tmp_path: Path) -> None:
    native, foreign = tmp_path / "n.blktrace", tmp_path / "f.blktrace"
    assert iolab("trace", "convert", trace, native).returncode == 0
    content, out, at = native.read_bytes(), bytearray(), 0
    parts = (4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2)
    while at < len(content):
        head = content[at : at + 48]
        action = int.from_bytes(head[28:32], "little")
        place = 0
        for size in parts:
            out += head[place : place + size][::-1]
            place += size
        length = int.from_bytes(head[46:48], "little")
        payload = content[at + 48 : at + 48 + length]
        # The wall time is two words of the machine; all other payloads are texts or big endian.
        is_time = action == 0x0400_0001
        out += payload[3::-1] + payload[7:3:-1] if is_time else payload
        at += 48 + length
    foreign.write_bytes(out)
    both = [iolab("trace", "stages", path) for path in (native, foreign)]
    assert [done.returncode for done in both] == [0, 0], both[1].stderr
    assert both[0].stdout.replace("n.blk", "") == both[1].stdout.replace("f.blk", "")


def test_traces_of_different_devices_are_compared_with_a_word_about_it(
    iolab: Run, trace: Path, tmp_path: Path
) -> None:
    other, path = Loop(tmp_path, "other"), tmp_path / "other.iotrace"
    try:
        done = iolab("trace", "record", other.path, "--for", other.load(), "-o", path)
        assert done.returncode == 0, done.stderr
    finally:
        other.detach()
    done = iolab("trace", "diff", trace, path)
    assert done.returncode == 0, done.stderr
