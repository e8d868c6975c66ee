"""Class A+: knobs under a live file system with foreign files; nothing foreign is touched."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Run
from .machine_state import differences, machine_state, tree_hash

pytestmark = pytest.mark.needs_loop


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 on a loop device of the test's own, with foreign files in it."""
    image, mount = tmp_path / "image", tmp_path / "mnt"
    image.write_bytes(b"\0")
    os.truncate(image, 400 << 20)
    mount.mkdir()
    attach = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    device = subprocess.run(attach, capture_output=True, text=True, check=True).stdout.strip()
    try:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        subprocess.run(["mount", device, str(mount)], check=True)
        (mount / "scratch").mkdir()
        for number in range(20):
            (mount / f"foreign{number}").write_bytes(os.urandom(10_000 + number))
        (mount / "scratch" / "notes.txt").write_text("not iolab's")
        (mount / "scratch" / "link").symlink_to("../foreign0")
        yield mount
    finally:
        subprocess.run(["umount", str(mount)], check=False)
        subprocess.run(["losetup", "--detach", device], check=False)


def compare(mounted: Path, out: Path) -> list[str]:
    """Arguments of a small study under the mounted file system."""
    return [
        "compare", "--on", f"dir:{mounted / 'scratch'}", "--scheduler", "none,bfq",
        "--record-size", "4k,64k", "--test", "write,read,random-read", "--file-size", "8m",
        "--direct", "--rounds", "2", "--out", str(out),
    ]  # fmt: skip


def test_knobs_are_switched_and_restored_and_foreign_files_stay(
    mounted: Path, tmp_path: Path, iolab: Run
) -> None:
    before, foreign = machine_state(), tree_hash(mounted)
    out = tmp_path / "out"
    done = iolab(*compare(mounted, out))
    assert done.returncode == 0, done.stderr
    assert not differences(before, machine_state())
    assert tree_hash(mounted) == foreign
    assert not list((mounted / "scratch").glob(".iolab-*")), "our directory is gone"
    verdict = json.loads((out / "verdict.json").read_text())
    assert "bfq" in json.dumps(verdict)


_TRACED = (
    "open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,truncate,mkdir,mkdirat,rmdir,"
    "chdir,fchdir,clone,clone3,fork,vfork"
)
_LINE = re.compile(r"^(?P<pid>\d+) +(?P<call>\w+)\((?P<rest>.*) = (?P<result>\S+)")
_NAME = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<base>[^>]*)>, )?"(?P<path>[^"]*)"')
_FOR_WRITING = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC)")


def changed_paths(trace: str, start: Path) -> set[Path]:
    """Paths that were opened for writing, created, renamed or removed, made absolute."""
    where: dict[str, Path] = {}
    found: set[Path] = set()
    for line in trace.splitlines():
        match = _LINE.match(line)
        if match is None or match["result"].startswith("-1"):
            continue
        pid, call, rest = match["pid"], match["call"], match["rest"]
        here = where.get(pid, start)
        if call in ("clone", "clone3", "fork", "vfork"):
            where[match["result"]] = here
        elif call == "fchdir":
            where[pid] = Path(rest.partition("<")[2].partition(">")[0])
        elif name := _NAME.search(rest):
            path = Path(name["base"] or here) / name["path"]
            if call == "chdir":
                where[pid] = path
            elif call not in ("open", "openat") or _FOR_WRITING.search(rest):
                found.add(Path(os.path.normpath(path)))
    return found


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_agent_opens_nothing_foreign_for_writing(mounted: Path, tmp_path: Path) -> None:
    log = tmp_path / "strace.txt"
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(tmp_path))
        argv = ["strace", "-f", "-y", "-s", "300", "-o", str(log), "-e"]
        argv += [f"trace={_TRACED}"]
        argv += [sys.executable, "-m", "iolab.cli", *compare(mounted, tmp_path / "out")]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    touched = changed_paths(log.read_text(errors="replace"), tmp_path)
    inside = [path for path in touched if mounted in path.parents]
    owned = [path for path in inside if path.relative_to(mounted).parts[1].startswith(".iolab-")]
    assert set(inside) == set(owned)
    assert any(path.name == "iozone.0" for path in owned), "the trace saw the real work"
