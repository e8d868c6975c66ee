"""`iolab fio` beside the installed fio: the same job words, one file on a loop device over RAM.

In each round every cell (engine, direction, transfer size, depth, jobs) is run once by each
program, cells and programs in random order. A cell's ratio is iolab's transfers per second over
fio's, paired by round, on ln, with an interval; user CPU per transfer is what each program tells of
itself (`usr_cpu` of its JSON), and its ratio is pooled likewise. A cell misses a bar where a
one-sided t test says so after Holm's correction over all cells. Besides, p50 and p99 of a job with
a rate are compared: they agree where the interval of their ratio has a value that no histogram
tells from 1. The last lines name each bar, and whether it is met.

``python benches/fio_beside.py [--rounds N] [--seconds S] [--only NAME] [--minutes M] [--quick]``;
needs root and fio. `--minutes` takes as many cells, drawn at random, as two rounds of that time
hold; `--quick` takes two cells and two rounds, to see that it works.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from paired import (
    BAR_POOLED,
    ROOT,
    above,
    bounds,
    device_over_ram,
    holm,
    random_file,
    report,
    write,
)

FILE_BYTES = 128 << 20
IMAGE_BYTES = 400 << 20
FILE = "data"
DIRECTIONS = ("read", "write", "randread", "randwrite", "randrw")
SIZES = ("4k", "64k")
DEPTHS = {"psync": (1,), "libaio": (1, 32), "io_uring": (1, 32), "mmap": (1,)}
JOBS = (1, 2)
START_SECONDS = 3.0
"""Time that a run takes beside its own, of either program, with a reserve."""
BAR_4K, BAR_CPU = 0.99, 1.0
RATE_IOPS = 1000
"""Of the job whose percentiles are compared: low enough for either program to keep."""
RESOLUTION = 1 / 64
"""Width of a bucket of either program's histograms, beside its value."""
QUANTILES = ("50.000000", "99.000000")
QUICK = ("psync randread 4k depth 1", "io_uring randwrite 4k depth 32")


@dataclass(frozen=True, slots=True)
class Cell:
    """One way of moving the file's data."""

    engine: str
    direction: str
    size: str
    depth: int
    jobs: int = 1
    rate_iops: int = 0

    @property
    def name(self) -> str:
        """For tables."""
        name = f"{self.engine} {self.direction} {self.size} depth {self.depth}"
        return name if self.jobs == 1 else f"{name}, {self.jobs} jobs"

    def words(self, milliseconds: int) -> list[str]:
        """The job, for either program."""
        direct = int(self.engine != "mmap")
        return [
            *("--output-format=json", "--name=cell", f"--filename={FILE}", f"--direct={direct}"),
            *(f"--ioengine={self.engine}", f"--rw={self.direction}", f"--bs={self.size}"),
            *("--rwmixread=70", f"--iodepth={self.depth}", f"--size={FILE_BYTES}", "--thread"),
            *("--invalidate=0", "--time_based", f"--runtime={milliseconds}ms"),
            *(f"--numjobs={self.jobs}", "--group_reporting"),
            *((f"--rate_iops={self.rate_iops}",) if self.rate_iops else ()),
        ]


@dataclass(frozen=True, slots=True)
class Result:
    """Figures of one run of either program."""

    ios_per_s: float
    user_ns: float
    """User CPU per transfer."""
    quantiles: tuple[float, ...]
    """Completion times of reads, in ns, as `QUANTILES` says."""


def told(text: str, jobs: int) -> Result:
    """Transfers per second and user CPU of a JSON of either program, of so many jobs together."""
    job = json.loads(text[text.index("{") :])["jobs"][0]
    ios = sum(job[side]["total_ios"] for side in ("read", "write"))
    runtime_ms = max(job[side]["runtime"] for side in ("read", "write"))
    if job["error"] or not ios or not runtime_ms:
        sys.exit(f"a run failed: error {job['error']}, {ios} transfers")
    user_ns = job["usr_cpu"] / 100 * runtime_ms * 1e6 * jobs / ios
    times = job["read"].get("clat_ns", {}).get("percentile", {})
    quantiles = tuple(float(times.get(name, 0)) for name in QUANTILES)
    return Result(ios * 1e3 / runtime_ms, user_ns, quantiles)


def run(who: str, cell: Cell, directory: Path, scratch: Path, milliseconds: int) -> Result:
    """One run of one program."""
    words, environment = cell.words(milliseconds), dict(os.environ)
    argv = ["fio", *words]
    if who == "iolab":
        stored = tempfile.mkdtemp(dir=scratch)
        argv = [sys.executable, "-m", "iolab", "--out", f"{stored}/run", "fio"]
        argv += ["--overwrite", FILE, *words]
        environment["XDG_STATE_HOME"] = str(scratch / "state")
    done = subprocess.run(
        argv, cwd=directory, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode != 0:
        sys.exit(f"{who}, {cell.name}: code {done.returncode}: {done.stderr[-500:]}")
    return told(done.stdout, cell.jobs)


Bar = dict[str, object]


def bars(
    ratios: dict[str, list[float]],
    user: dict[str, list[tuple[float, float]]],
    quantiles: dict[str, list[float]],
) -> list[Bar]:
    """Print what must hold beside the bars of `report`, and whether it does."""
    costs = {
        cell: [math.log(max(a, 1) / max(b, 1)) for a, b in rows] for cell, rows in user.items()
    }
    small = {cell: values for cell, values in ratios.items() if " 4k " in cell}
    found = [_pooled("IOPS", ratios, BAR_POOLED)]
    if small:
        found.append(_pooled("IOPS of 4k", small, BAR_4K))
    found.append(_pooled("user CPU per transfer", costs, BAR_CPU, is_most=True))
    adjusted = holm({cell: above(values, BAR_CPU) for cell, values in costs.items()})
    dear = sorted(cell for cell, p in adjusted.items() if p < 0.05)
    found.append(_bar("cells shown to cost more user CPU", ", ".join(dear) or "none", not dear))
    for name, values in quantiles.items():
        center, low, high = bounds(values)
        is_equal = low <= 1 + RESOLUTION and high >= 1 - RESOLUTION
        told = f"{center:.3f} [{low:.3f}, {high:.3f}]"
        found.append(_bar(f"p{float(name):g} at {RATE_IOPS} per second", told, is_equal))
    return found


def _pooled(what: str, cells: dict[str, list[float]], bar: float, *, is_most: bool = False) -> Bar:
    """The mean over cells, by round, beside its bar."""
    rounds = [sum(values) / len(values) for values in zip(*cells.values(), strict=True)]
    center, low, high = bounds(rounds)
    is_met = high < bar if is_most else low >= bar
    told = f"{center:.3f} [{low:.3f}, {high:.3f}], bar {bar}"
    return _bar(f"{what}, pooled over {len(cells)} cells", told, is_met)


def _bar(what: str, told: str, is_met: bool) -> Bar:
    print(f"{what}: {told}: {'met' if is_met else 'MISSED'}")
    return {"what": what, "told": told, "is_met": is_met}


def main() -> int:
    """Run everything and write the JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--minutes", type=float, help="cells that fit into so long, two rounds")
    parser.add_argument("--quick", action="store_true", help="two cells, two rounds")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "fio_beside.json")
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("fio") is None or options.rounds < 2:
        sys.exit("needs root (a loop device), fio (`apt install fio`), at least 2 rounds")
    every = itertools.product(DEPTHS, DIRECTIONS, SIZES)
    depths = ((*parts, depth) for parts in every for depth in DEPTHS[parts[0]])
    cells = [Cell(*parts, jobs) for parts, jobs in itertools.product(depths, JOBS)]
    cells = [cell for cell in cells if options.only in cell.name]
    rounds, milliseconds = options.rounds, round(options.seconds * 1e3)
    if options.quick:
        cells, rounds = [cell for cell in cells if cell.name in QUICK], 2
    if not cells:
        sys.exit(f"no cell's name contains {options.only!r}")
    order = random.Random(1)
    if options.minutes is not None:
        rounds = 2
        fitting = int(options.minutes * 60 / (2 * rounds * (options.seconds + START_SECONDS)))
        cells = order.sample(cells, min(len(cells), max(fitting, 2)))
    ratios: dict[str, list[float]] = {cell.name: [] for cell in cells}
    user: dict[str, list[tuple[float, float]]] = {cell.name: [] for cell in cells}
    limited = Cell("psync", "randread", "4k", 1, rate_iops=RATE_IOPS)
    quantiles: dict[str, list[float]] = {name: [] for name in QUANTILES}
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as scratch,
        device_over_ram(IMAGE_BYTES) as directory,
    ):
        random_file(directory / FILE, FILE_BYTES)
        for _ in range(rounds):
            for cell in order.sample([*cells, limited], len(cells) + 1):
                got = {
                    who: run(who, cell, directory, Path(scratch), milliseconds)
                    for who in order.sample(["iolab", "fio"], 2)
                }
                if cell is limited:
                    both = zip(got["iolab"].quantiles, got["fio"].quantiles, strict=True)
                    for name, (mine, theirs) in zip(QUANTILES, both, strict=True):
                        quantiles[name].append(math.log(mine / theirs))
                    continue
                ratios[cell.name].append(math.log(got["iolab"].ios_per_s / got["fio"].ios_per_s))
                user[cell.name].append((got["iolab"].user_ns, got["fio"].user_ns))
    found = report(ratios, user)
    write(options.out, {**found, "bars": bars(ratios, user, quantiles)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
