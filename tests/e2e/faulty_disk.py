"""A disk that lies, stalls or dies on request: a loop device over a file that Python serves.

The file is served by `tools/one_file.py`. What goes wrong is written into a JSON plan that is read
again whenever it changes, so that a test can let a fault happen in the middle of a run:

- ``read_errno``, ``write_errno``, ``fsync_errno``: the errno; ``fsync_times``: only so often;
- ``delay_s``: each read and write takes so long;
- ``short_writes``: a write of several pages moves the first half of them;
- ``lie`` with ``at``, an offset in a file of iolab's: ``flip`` (a bit of each read of that block),
  ``torn`` (a rewrite changes its first two sectors only), ``misplaced`` (reads of it give the block
  written 8 KiB behind), ``lost`` (rewrites change nothing).

Blocks of iolab's are known by their header (docs/how-to/verify-what-storage-returns.md). Only
what is written takes memory, so the disk may be as large as one likes.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

TOOLS: Final = Path(__file__).parents[2] / "tools"

PAGE: Final = 4096
SECTOR: Final = 512
MAGIC: Final = b"iolabVB1"
MISPLACED_BY: Final = 8192

_ZEROS: Final = bytes(PAGE)


class Disk:
    """Pages that were written, and what is to go wrong with them."""

    def __init__(self, size: int, plan_path: Path) -> None:
        """Nothing is written."""
        self.size = size
        self._pages: dict[int, bytes] = {}
        self._plan_path = plan_path
        self._plan_ns = 0
        self._plan: dict[str, Any] = {}
        self._fsyncs_failed = 0
        self._places: dict[int, int] = {}

    @property
    def plan(self) -> Mapping[str, Any]:
        """Present faults."""
        changed_ns = self._plan_path.stat().st_mtime_ns
        if changed_ns != self._plan_ns:
            self._plan_ns = changed_ns
            self._plan = json.loads(self._plan_path.read_text() or "{}")
        return self._plan

    def read(self, offset: int, length: int) -> bytes | int:
        """Bytes, or an errno."""
        plan = self.plan
        time.sleep(plan.get("delay_s", 0))
        if "read_errno" in plan:
            return int(plan["read_errno"])
        first, last = offset // PAGE, (offset + length + PAGE - 1) // PAGE
        data = b"".join(self._read_page(number, plan) for number in range(first, last))
        start = offset - first * PAGE
        return data[start : start + length]

    def _read_page(self, number: int, plan: Mapping[str, Any]) -> bytes:
        page = self._pages.get(number, _ZEROS)
        lie = plan.get("lie")
        if lie in ("flip", "misplaced") and _home(page) == plan["at"]:
            if lie == "flip":
                return page[:100] + bytes([page[100] ^ 1]) + page[101:]
            other = self._places.get(plan["at"] + MISPLACED_BY)
            return self._pages[other] if other is not None else page
        return page

    def write(self, offset: int, data: bytes) -> int:
        """Bytes moved, or a negative errno."""
        plan = self.plan
        time.sleep(plan.get("delay_s", 0))
        if "write_errno" in plan:
            return -int(plan["write_errno"])
        if plan.get("short_writes") and len(data) > PAGE:
            data = data[: max(PAGE, len(data) // 2 // PAGE * PAGE)]
        done = 0
        while done < len(data):
            number, start = divmod(offset + done, PAGE)
            part = data[done : done + PAGE - start]
            old = self._pages.get(number, _ZEROS)
            self._put(number, old[:start] + part + old[start + len(part) :], old, plan)
            done += len(part)
        return done

    def _put(self, number: int, page: bytes, old: bytes, plan: Mapping[str, Any]) -> None:
        home = _home(page)
        if home is not None:
            self._places[home] = number
            if plan.get("lie") in ("torn", "lost") and home == plan["at"] and _home(old) == home:
                kept = 2 * SECTOR if plan["lie"] == "torn" else 0
                page = page[:kept] + old[kept:]
        self._pages[number] = page

    def fsync(self) -> int:
        """0, or an errno."""
        plan = self.plan
        if "fsync_errno" in plan and self._fsyncs_failed < plan.get("fsync_times", 1 << 30):
            self._fsyncs_failed += 1
            return int(plan["fsync_errno"])
        return 0


def _home(page: bytes) -> int | None:
    """Offset in its file at which a block of iolab's belongs; none if it is not one."""
    return struct.unpack_from("<Q", page, 16)[0] if page.startswith(MAGIC) else None


class FaultyDisk:
    """The disk as a test sees it: a loop device, perhaps with a file system that is mounted."""

    def __init__(self, root: Path, size: int) -> None:
        """Start the server and attach a loop device to its file."""
        self.folder, self.plan_path = root / "fuse", root / "plan.json"
        self.mounted = root / "mnt"
        self.folder.mkdir()
        self.mounted.mkdir()
        self.plan_path.write_text("{}")
        command = [sys.executable, __file__, self.folder, str(size), self.plan_path]
        self.server = subprocess.Popen(
            list(map(str, command)), start_new_session=True, env={"PYTHONPATH": str(TOOLS)}
        )
        deadline = time.monotonic() + 20
        while not self.folder.is_mount():
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the server of the faulty disk does not start")
            time.sleep(0.02)
        self.loop = _output("losetup", "--find", "--show", self.folder / "data")

    def make(self, fs: str = "ext4", options: str = "") -> Path:
        """Make a file system on it and mount it; returns where."""
        quick = {"ext4": ["-q", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]}
        extra = quick.get(fs, ["-q", "-K"] if fs == "xfs" else ["-q", "-K", "-f"])
        _output(f"mkfs.{fs}", *extra, self.loop)
        _output("mount", *(["-o", options] if options else []), self.loop, self.mounted)
        return self.mounted

    def fault(self, **plan: Any) -> None:
        """From now on this goes wrong; nothing if empty."""
        partial = self.plan_path.with_suffix(".partial")
        partial.write_text(json.dumps(plan))
        partial.replace(self.plan_path)

    def repair(self) -> None:
        """Repair as an administrator does: unmount, check, mount again."""
        _output("umount", self.mounted)
        # 1: errors were corrected.
        done = subprocess.run(
            ["fsck.ext4", "-fy", self.loop], capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"fsck: {done.stdout} {done.stderr}")
        _output("mount", self.loop, self.mounted)

    def vanish(self) -> None:
        """The server is gone, as if somebody had pulled the cable."""
        self.server.kill()
        self.server.wait()

    def remove(self) -> list[str]:
        """Take everything away; what is left behind, by name."""
        if self.server.poll() is None:
            self.fault()
        left = []
        for command in (
            ["umount", self.mounted],
            ["losetup", "--detach", self.loop],
            ["umount", self.folder],
        ):
            if command[-1] == self.mounted and not self.mounted.is_mount():
                continue
            for _ in range(50):
                done = subprocess.run(
                    list(map(str, command)), capture_output=True, check=False, timeout=60
                )
                if done.returncode == 0:
                    break
                time.sleep(0.1)
            else:
                left.append(f"{command}: {done.stderr.decode()}")
        if left:
            # Whatever holds it: the next test shall find no dead mount.
            for folder in (self.mounted, self.folder):
                subprocess.run(["umount", "--lazy", folder], capture_output=True, check=False)
            self.server.kill()
        self.server.wait(timeout=30)
        return left


@contextmanager
def faulty_disk(root: Path, size: int = 1 << 30) -> Iterator[FaultyDisk]:
    """A disk for the time of a test; fails if anything of it cannot be taken away."""
    disk = FaultyDisk(root, size)
    try:
        yield disk
    finally:
        left = disk.remove()
    assert not left, f"something still holds the disk: {left}"


def _output(*command: str | Path) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    from one_file import serve

    serve(sys.argv[1], b"iolab-faulty", Disk(int(sys.argv[2]), Path(sys.argv[3])))
