"""Two programs side by side: a device over RAM, and ratios with intervals.

Ratios are paired by round and analysed on ln; a cell is below the bar if a one-sided t test says so
after Holm's correction over all cells.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from iolab.testbed.command import find_agent

ROOT = Path(__file__).resolve().parent.parent
BAR_POOLED, BAR_CELL = 0.97, 0.95
MIB = 1 << 20
_USED = "used"


def read_options(document: str, name: str, needs: Sequence[str]) -> argparse.Namespace:
    """The command line of a bench called `name`, which needs root and some programs.

    The answer has `rounds`, `only`, `agent` (resolved) and `out`.
    """
    parser = argparse.ArgumentParser(description=document.splitlines()[0])
    parser.add_argument("--agent", type=Path, help="default: the installed one")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / f"{name}.json")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="", help="those whose name contains this")
    options = parser.parse_args()
    missing = [program for program in needs if shutil.which(program) is None]
    if missing:
        sys.exit(
            f"not installed: {', '.join(missing)} (Debian: fio, bonnie++, iozone3 of non-free)"
        )
    if os.geteuid() != 0 or options.rounds < 2:
        sys.exit("needs root, for a loop device, and at least 2 rounds")
    options.agent = (options.agent or Path(find_agent())).resolve()
    return options


def counting_agent(agent: Path, scratch: Path) -> Path:
    """A program in place of the agent that leaves what it uses in :func:`used_by_agents`."""
    path = scratch / "agent"
    path.write_text(
        f"#!{sys.executable} -IS\n"
        "import os, resource, sys\n"
        "pid = os.fork()\n"
        f"pid or os.execv({str(agent)!r}, [{str(agent)!r}, *sys.argv[1:]])\n"
        "_, status = os.waitpid(pid, 0)\n"
        "agents = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "own = resource.getrusage(resource.RUSAGE_SELF)\n"
        "whole = sum(it.ru_utime + it.ru_stime for it in (agents, own))\n"
        f"with open({str(scratch / _USED)!r}, 'a') as file:\n"
        "    print(agents.ru_utime, whole, file=file, flush=True)\n"
        "os._exit(os.waitstatus_to_exitcode(status))\n"
    )
    path.chmod(0o755)
    return path


def forget_agents(scratch: Path) -> None:
    """Begin to count anew."""
    (scratch / _USED).write_text("")


def used_by_agents(scratch: Path) -> list[tuple[float, float]]:
    """User CPU of each agent, and all CPU of it and of the program in its place, in seconds."""
    rows = (line.split() for line in (scratch / _USED).read_text().splitlines())
    return [(float(user), float(whole)) for user, whole in rows]


def write(path: Path, found: Mapping[str, object]) -> None:
    """Keep what was found as JSON, and say where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, **found}, indent=1))
    print(f"written: {path}")


def command(argv: Sequence[str]) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def random_file(path: Path, size_bytes: int) -> None:
    """A file whose content no device shrinks, on the device."""
    with path.open("wb") as file:
        for seed in range(size_bytes // MIB):
            file.write(random.Random(seed).randbytes(MIB))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def awake() -> Iterator[None]:
    """Idle processors poll and do not halt, as long as this lasts.

    Waking one that has halted takes tens of microseconds in a guest, several times as long as a
    transfer in memory, and the kernel's choice of a processor for the device's thread decides
    whether that happens: the same loop of system calls is then twice as fast in one run as in the
    next, whoever makes it. Source: Documentation/power/pm_qos_interface.rst.
    """
    try:
        held = os.open("/dev/cpu_dma_latency", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        print("idle processors may halt: /dev/cpu_dma_latency cannot be opened", file=sys.stderr)
        yield
        return
    try:
        os.write(held, (0).to_bytes(4, sys.byteorder))
        yield
    finally:
        os.close(held)


@contextmanager
def device_over_ram(size_bytes: int) -> Iterator[Path]:
    """A directory on ext4 on a loop device on a tmpfs, all of it ours and gone afterwards.

    Idle processors do not halt as long as it is there.
    """
    with awake(), tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        ram, mounted = Path(name) / "ram", Path(name) / "fs"
        undo: list[list[str]] = []
        try:
            for path in (ram, mounted):
                path.mkdir()
            room = f"size={size_bytes + 64 * MIB}"
            command(["mount", "-t", "tmpfs", "-o", room, "iolab-bench", str(ram)])
            undo.append(["umount", str(ram)])
            image = ram / "image"
            random_file(image, size_bytes)
            loop = command(["losetup", "--find", "--show", str(image)]).strip()
            undo.append(["losetup", "--detach", loop])
            command(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", loop])
            command(["mount", loop, str(mounted)])
            undo.append(["umount", str(mounted)])
            yield mounted
        finally:
            for argv in reversed(undo):
                _until_done(argv)


def _until_done(argv: Sequence[str]) -> None:
    """Run a command that may find its place busy: a loop device goes when its last reader does."""
    for _ in range(100):
        if subprocess.run(argv, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    command(argv)


def below(values: Sequence[float], bar: float) -> float:
    """One-sided p of the hypothesis that the ratio is at least `bar`."""
    from scipy import stats

    return float(stats.ttest_1samp(values, math.log(bar), alternative="less").pvalue)


def above(values: Sequence[float], bar: float) -> float:
    """One-sided p of the hypothesis that the ratio is at most `bar`."""
    from scipy import stats

    return float(stats.ttest_1samp(values, math.log(bar), alternative="greater").pvalue)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p values."""
    adjusted, largest = {}, 0.0
    for rank, (cell, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - rank)))
        adjusted[cell] = largest
    return adjusted


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % t interval."""
    from scipy import stats

    mean, n = statistics.fmean(values), len(values)
    half = float(stats.t.ppf(0.975, n - 1)) * statistics.stdev(values) / math.sqrt(n)
    return mean, mean - half, mean + half


def bounds(values: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean and 95 % t interval of ratios given as ln."""
    mean, low, high = mean_interval(values)
    return math.exp(mean), math.exp(low), math.exp(high)


def report(
    ratios: Mapping[str, Sequence[float]], user: Mapping[str, Sequence[tuple[float, float]]]
) -> dict[str, object]:
    """Print all cells and the pooled ratio; the answer is what is written.

    `ratios` are ln of throughput, by cell and round; `user` is nanoseconds of user CPU per op of
    both programs, by cell and round, empty for cells without.
    """
    adjusted = holm({cell: below(values, BAR_CELL) for cell, values in ratios.items()})
    print(f"{'throughput, iolab / peer':40} {'ratio':>6}  {'95 %':14} {'user ns/op':>13}")
    rows = list[dict[str, object]]()
    for cell, values in ratios.items():
        center, low, high = bounds(values)
        row: dict[str, object] = {"cell": cell, "ratio": [center, low, high]}
        costs = ""
        if cell in user:
            mine, theirs = (statistics.median(v) for v in zip(*user[cell], strict=True))
            row["user_ns"], costs = [mine, theirs], f" {mine:6.0f} {theirs:6.0f}"
        mark = f"  below {BAR_CELL} (p {adjusted[cell]:.3f})" if adjusted[cell] < 0.05 else ""
        interval = f"[{low:.3f}, {high:.3f}]"
        print(f"{cell:40} {center:6.3f}  {interval:14}{costs}{mark}")
        rows.append(row)
    rounds = list(zip(*ratios.values(), strict=True))
    center, low, high = bounds([statistics.fmean(values) for values in rounds])
    met = "met" if low >= BAR_POOLED and min(adjusted.values()) >= 0.05 else "MISSED"
    print(f"{'pooled':40} {center:6.3f}  [{low:.3f}, {high:.3f}]  bar {BAR_POOLED}: {met}")
    return {"cells": rows, "pooled": [center, low, high], "rounds": len(rounds)}
