"""Everything of the machine that iolab may touch, read before and after."""

from __future__ import annotations

import hashlib
import subprocess
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


def machine_state() -> dict[str, str]:
    """Queue settings and driver depths of all block devices, loops, mounts, vm sysctls, cgroups."""
    state: dict[str, str] = {}
    for device in sorted(Path("/sys/block").iterdir()):
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
    state["losetup"] = subprocess.run(
        ["losetup", "-a"], capture_output=True, text=True, check=True
    ).stdout
    state["mounts"] = Path("/proc/self/mountinfo").read_text()
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
