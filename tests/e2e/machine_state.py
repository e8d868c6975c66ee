"""Everything of the machine that iolab may touch, read before and after.

Issue 14, point 9: the whole machine was compared, so that tests failed wherever something else
attached a loop device. Now of loop devices and mounts only those of the tests and of iolab count:
the settings of loop devices whose image lies in a test's folder, images that iolab made, mounts in
a test's folder or below iolab's mount points. All other block devices count as before.

What another session of these tests makes at the same time is not of this one: images and what is
mounted from them in its folder (``pytest-of-USER/pytest-N``), what a run made whose watchdog it
started, groups with its processes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

_KNOBS = (
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "max_sectors_kb",
    "nomerges",
    "rq_affinity",
    "wbt_lat_usec",
)


_OWN = ["/.iolab-", "/run/iolab/", "/iolab-test-"]
"""Parts of paths by which images and mounts of the tests and of iolab are known."""

_FIXED = len(_OWN)


def watch(folder: Path) -> None:
    """Count what lies in the folder of this session's tests as theirs."""
    _OWN.append(f"{folder}/")


def _is_own(text: str) -> bool:
    return any(part in text for part in _OWN) and not is_of_another_session(text)


def is_of_another_session(text: str) -> bool:
    """Tell whether a path, or a line with one, belongs to tests that run at the same time."""
    if "/pytest-of-" in text:
        return not any(folder in text for folder in _OWN[_FIXED:])
    parts = [
        part
        for run in _runs_of_others()
        for part in (f"/.iolab-{run}-", f"/run/iolab/{run}/", f"/run/iolab/{run} ")
    ]
    return any(part in f"{text} " for part in parts)


def _runs_of_others() -> Iterator[str]:
    """Names of the runs that a living agent of another session watches."""
    for process, command in _commands():
        words = command.rstrip("\0").split("\0")
        if len(words) == _WATCHDOG_WORDS and words[1] == "watchdog":
            agent = [*_parents(process), 0][1]
            is_watched = _program(agent) == _program(process)
            if is_watched and os.getpid() not in _parents(agent):
                yield words[3]


_WATCHDOG_WORDS = 4
"""Program, `watchdog`, directory of the journals, name of the run."""


def _program(process: int) -> str:
    try:
        return str(Path(f"/proc/{process}/exe").readlink())
    except OSError:
        return ""


def _commands() -> Iterator[tuple[int, str]]:
    """Process and command line of everything that runs, with zeros between the words."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name), _command(int(entry.name))


def _is_own_image(image: str) -> bool:
    """Tell whether an image is of these tests: those of others lie in places that are not seen
    here.
    """
    return _is_own(image) and (image.endswith(" (deleted)") or Path(image).exists())


def _is_own_mount(line: str) -> bool:
    source = line.partition(" - ")[2].split(" ")[1:2]
    name = Path(source[0]).name if source else ""
    image = _read(Path("/sys/block") / name / "loop/backing_file") if name[:4] == "loop" else ""
    return _is_own(line) and not is_of_another_session(image)


def own_groups() -> Iterator[str]:
    """Control groups of iolab without those that hold processes of another session."""
    root = Path("/sys/fs/cgroup")
    for group in (*root.glob("iolab*"), *root.glob("*/iolab*")):
        members = [int(word) for word in _read(group / "cgroup.procs").split() if word.isdigit()]
        if not any(_is_in_another_session(member) for member in members):
            yield str(group)


def _is_in_another_session(process: int) -> bool:
    parents = list(_parents(process))
    return os.getpid() not in parents and any("pytest" in _command(parent) for parent in parents)


def _command(process: int) -> str:
    return _read(Path(f"/proc/{process}/cmdline"))


def _parents(process: int) -> Iterator[int]:
    while process > 1:
        yield process
        status = _read(Path(f"/proc/{process}/stat")).rpartition(") ")[2].split()
        # A process that has just ended has a text of the error in place of its fields.
        process = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0


def _own_devices() -> list[Path]:
    """Block devices of the machine, of loop devices those with an image of ours."""
    devices = sorted(Path("/sys/block").iterdir())
    return [
        device
        for device in devices
        if not device.name.startswith("loop")
        or _is_own_image(_read(device / "loop" / "backing_file"))
    ]


def machine_state() -> dict[str, str]:
    """Queue settings and driver depths of block devices, loops, mounts, vm sysctls, cgroups."""
    state: dict[str, str] = {}
    for device in _own_devices():
        image = _read(device / "loop" / "backing_file")
        state[f"{device.name}.image"] = image if device.name.startswith("loop") else ""
        queue = device / "queue"
        for knob in _KNOBS:
            state[f"{device.name}.{knob}"] = _read(queue / knob)
        for tunable in sorted((queue / "iosched").glob("*")):
            state[f"{device.name}.iosched.{tunable.name}"] = _read(tunable)
        tags = _read(Path("/sys/kernel/debug/block") / device.name / "hctx0" / "tags")
        state[f"{device.name}.depth"] = tags.split("bitmap_tags")[-1].split("\n\n")[0][:60]
    for knob in sorted(Path("/proc/sys/vm").glob("dirty_*")):
        state[f"vm.{knob.name}"] = _read(knob)
    state["vm.vfs_cache_pressure"] = _read(Path("/proc/sys/vm/vfs_cache_pressure"))
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    state["mounts"] = "\n".join(filter(_is_own_mount, mounts))
    state["cgroups"] = " ".join(sorted(own_groups()))
    return state


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Differences, as `name: before -> after`."""
    names = sorted(before.keys() | after.keys())
    return [
        f"{name}: {before.get(name)!r} -> {after.get(name)!r}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def tree_hash(directory: Path, leaving_out: str = ".iolab-") -> str:
    """Hash over names, sizes and contents of everything foreign below `directory`."""
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if leaving_out in name:
            continue
        digest.update(name.encode())
        if path.is_file() and not path.is_symlink():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> str:
    try:
        # Command lines of others hold any byte.
        return path.read_text(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"
