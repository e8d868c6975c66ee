"""Block traces beside blkparse and btt: CPU time, memory, and the size of our own file.

A synthetic pair of blktrace files (two CPUs, five events per transfer, random sectors) is shown,
measured and converted; every figure is CPU time (user and system), the median over rounds, programs
in random order in each. The texts of both sides are compared first. ``make bench``, or
``python benches/traces.py [--rounds N] [--events N]``; needs blkparse and btt (Debian: blktrace).
"""

from __future__ import annotations

import argparse
import array
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BARS = {"text": 6.0, "stages": 8.0}
"""Least ratio of blkparse's CPU time, and of blkparse's and btt's, over ours."""
EVENTS_PER_S = 5e6
"""Least events per second of CPU time that our own file is written with."""
BYTES_PER_EVENT = 8.0
MEMORY_MAX = 64 << 20
PLOT_CPU_S_PER_1E6 = 3.0
PLOT_PAGE_MAX = 3 << 20
_RECORD = struct.Struct("<IIQQIIIIIHH")
_MAGIC, _DEVICE, _PER_TRANSFER = 0x65617407, 8 << 20 | 16, 5
_STEPS = ((1, 0x10), (4, 0x10), (12, 0x10), (7, 0x40), (8, 0x80))
"""Code and category of Q, G, I, D and C."""


def write_traces(folder: Path, events: int) -> None:
    """Make the files ``t.blktrace.0`` and ``t.blktrace.1``."""
    rng = random.Random(20240611)
    rows: list[tuple[int, int, int, int, int, int]] = []
    now = 10**9
    for _ in range(events // _PER_TRANSFER):
        now += int(rng.expovariate(1e-4)) + 1
        sector, pid = rng.randrange(1 << 28) * 8, 1000 + rng.randrange(8)
        size, direction = rng.choice((4096, 4096, 4096, 65536)), rng.choice((2, 9, 9))
        times = [now, now + rng.randrange(300, 900), now + 1200, now + rng.randrange(2000, 6000)]
        times.append(times[3] + int(rng.gammavariate(2, 40_000)))
        for (code, category), at in zip(_STEPS, times, strict=True):
            action = code | (category | direction) << 16
            rows.append((at, sector, size, action, 0 if code == 8 else pid, rng.randrange(2)))
    rows.sort(key=lambda row: row[0])
    for cpu in (0, 1):
        content = bytearray(_names()) if cpu == 0 else bytearray()
        own = (row for row in rows if row[5] == cpu)
        for number, (at, sector, size, action, pid, _) in enumerate(own, start=1):
            fields = (number, at, sector, size, action, pid, _DEVICE, cpu, 0, 0)
            content += _RECORD.pack(_MAGIC, *fields)
        (folder / f"t.blktrace.{cpu}").write_bytes(content)


def _names() -> bytes:
    notes = array.array("B")
    for pid in (0, *range(1000, 1008)):
        name = f"job{pid}".encode().ljust(16, b"\0")
        notes.frombytes(_RECORD.pack(_MAGIC, 0, 10**9, 0, 0, 0x400 << 16, pid, 0, 0, 0, 16) + name)
    return notes.tobytes()


@dataclass(frozen=True, slots=True)
class Used:
    """Processor time and peak memory of one command."""

    cpu_s: float
    peak_bytes: int


def used(command: list[str], folder: Path, out: Path) -> Used:
    """Run a command, its output into a file; returns what it used."""
    with out.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed: {process.returncode}")
    return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)


def measure(folder: Path, rounds: int) -> dict[str, list[Used]]:
    """All commands, once in each round."""
    iolab = [sys.executable, "-m", "iolab", "trace"]
    blkparse = ["blkparse", "-i", "t"]
    cells = {
        "ours text": [*iolab, "show", "t"],
        "blkparse text": blkparse,
        "ours stages": [*iolab, "stages", "t"],
        "ours btt": [*iolab, "stages", "t", "--btt"],
        "blkparse -d": [*blkparse, "-O", "-d", "t.dump"],
        "btt": ["btt", "-i", "t.dump", "-A"],
        "ours written": [*iolab, "convert", "t", "t.iotrace", "--overwrite", "t.iotrace"],
        "ours read": [*iolab, "convert", "t.iotrace", "--to", "blktrace", "-"],
        "ours plot": [*iolab, "plot", "t.iotrace", "-o", "t.html", "--overwrite", "t.html"],
        "start": [*iolab, "stages", "none.csv"],
    }
    (folder / "none.csv").write_text(
        "ts_ns,event,sector,nr_sectors,rwbs,ioprio,pid,cpu\n1,P,0,0,N,,1,0\n"
    )
    used(cells["blkparse -d"], folder, folder / "out")
    used(cells["ours written"], folder, folder / "out")
    results: dict[str, list[Used]] = {name: [] for name in cells}
    for round_number in range(rounds):
        order = list(cells)
        random.Random(round_number).shuffle(order)
        for name in order:
            results[name].append(used(cells[name], folder, folder / name.replace(" ", "-")))
    return results


def check_texts(folder: Path) -> None:
    """Refuse to compare programs that do not say the same."""
    ours = (folder / "ours-text").read_bytes()
    theirs = (folder / "blkparse-text").read_bytes().partition(b"Input file ")[0]
    if ours != theirs:
        raise SystemExit("the texts differ")


def report(results: dict[str, list[Used]], folder: Path, events: int) -> dict[str, float]:
    """Print the table; returns the figures that have a bar."""
    cpu_s = {name: statistics.median(run.cpu_s for run in runs) for name, runs in results.items()}
    peak = {name: max(run.peak_bytes for run in runs) for name, runs in results.items()}
    print(f"{events} events; CPU time, median of {len(results['start'])} rounds")
    for name in results:
        speed = events / cpu_s[name] / 1e6
        print(f"  {name:14} {cpu_s[name]:7.2f} s {speed:7.2f} M events/s {peak[name] >> 20:5} MiB")
    size = (folder / "t.iotrace").stat().st_size
    figures = {
        "text": cpu_s["blkparse text"] / cpu_s["ours text"],
        "stages": (cpu_s["blkparse -d"] + cpu_s["btt"]) / cpu_s["ours stages"],
        "written_events_per_s": events / (cpu_s["ours written"] - cpu_s["start"]),
        "bytes_per_event": size / events,
        "plot_cpu_s_per_1e6": cpu_s["ours plot"] / events * 1e6,
        "plot_page_bytes": float((folder / "t.html").stat().st_size),
        "peak_bytes": max(peak[name] for name in results if name.startswith("ours")),
    }
    print(f"  text: {figures['text']:.1f} times blkparse (bar {BARS['text']:g})")
    print(f"  stages: {figures['stages']:.1f} times blkparse -d and btt (bar {BARS['stages']:g})")
    print(
        f"  our file: {figures['written_events_per_s'] / 1e6:.2f} M events/s written, without the "
        f"start of the interpreter (bar {EVENTS_PER_S / 1e6:g}), {figures['bytes_per_event']:.2f} "
        f"bytes per event (bar {BYTES_PER_EVENT:g})"
    )
    print(
        f"  plot: {figures['plot_cpu_s_per_1e6']:.2f} s of CPU time per million events (bar "
        f"{PLOT_CPU_S_PER_1E6:g}), a page of {figures['plot_page_bytes'] / 2**20:.2f} MiB (bar "
        f"{PLOT_PAGE_MAX / 2**20:g})"
    )
    print(f"  peak memory: {figures['peak_bytes'] >> 20} MiB (bar {MEMORY_MAX >> 20})")
    return figures


def main() -> int:
    """Print the table, and write it beside the other benches; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--make", type=Path, help="only make the traces, in this folder")
    arguments = parser.parse_args()
    if arguments.make is not None:
        write_traces(arguments.make, arguments.events)
        return 0
    if not all(map(shutil.which, ("blkparse", "btt"))):
        print("benches/traces.py: left out, it needs blkparse and btt (Debian: blktrace)")
        return 0
    with tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=Path.home()) as name:
        folder = Path(name)
        # In a process of its own: a child's peak memory begins with that of who started it.
        make = [sys.executable, __file__, "--make", name, "--events", str(arguments.events)]
        subprocess.run(make, check=True)
        results = measure(folder, arguments.rounds)
        check_texts(folder)
        figures = report(results, folder, arguments.events)
    out = ROOT / "target" / "bench-traces.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(figures, indent=1) + "\n")
    is_missed = (
        *(figures[name] < bar for name, bar in BARS.items()),
        figures["written_events_per_s"] < EVENTS_PER_S,
        figures["bytes_per_event"] > BYTES_PER_EVENT,
        figures["peak_bytes"] > MEMORY_MAX,
        figures["plot_cpu_s_per_1e6"] > PLOT_CPU_S_PER_1E6,
        figures["plot_page_bytes"] > PLOT_PAGE_MAX,
    )
    return 1 if any(is_missed) else 0


if __name__ == "__main__":
    sys.exit(main())
