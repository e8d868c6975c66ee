"""Everything of the machine that iolab may touch, read before and after.

Issue 14, point 9: the whole machine was compared, so that tests failed wherever something else
attached a loop device. Now of loop devices and mounts only those of the tests and of iolab count:
the settings of loop devices whose image lies in a test's folder, images that iolab made, mounts in
a test's folder or below iolab's mount points. All other block devices count as before.
"""

from __future__ import annotations

import hashlib
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


def watch(folder: Path) -> None:
    """Count what lies in the folder of this session's tests as theirs."""
    _OWN.append(f"{folder}/")


def _is_own(text: str) -> bool:
    return any(part in text for part in _OWN)


def _is_own_image(image: str) -> bool:
    """Whether an image is of these tests: those of others lie in places that are not seen here."""
    return _is_own(image) and (image.endswith(" (deleted)") or Path(image).exists())


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
    state["mounts"] = "\n".join(filter(_is_own, mounts))
    groups = [*Path("/sys/fs/cgroup").glob("iolab*"), *Path("/sys/fs/cgroup").glob("*/iolab*")]
    state["cgroups"] = " ".join(sorted(map(str, groups)))
    return state


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What changed, as `name: before -> after`."""
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
        return path.read_text().strip()
    except OSError as error:
        return f"({error.strerror})"
