"""`iolab fio` beside the installed fio: the same job words, one file on a loop device over RAM.

In each round every cell (engine, direction, transfer size, depth, jobs) is run once by each
program, cells and programs in random order. A cell's ratio is iolab's transfers per second over
fio's, paired by round, on ln, with an interval; user CPU per transfer is what each program tells of
itself (`usr_cpu` of its JSON), and its ratio is pooled likewise.

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

from paired import ROOT, bounds, device_over_ram, random_file, report, write

FILE_BYTES = 128 << 20
IMAGE_BYTES = 400 << 20
FILE = "data"
DIRECTIONS = ("read", "write", "randread", "randwrite", "randrw")
SIZES = ("4k", "64k")
DEPTHS = {"psync": (1,), "libaio": (1, 32), "io_uring": (1, 32), "mmap": (1,)}
JOBS = (1, 2)
START_SECONDS = 3.0
"""Time that a run takes beside its own, of either program, with a reserve."""
QUICK = ("psync randread 4k depth 1", "io_uring randwrite 4k depth 32")


@dataclass(frozen=True, slots=True)
class Cell:
    """One way of moving the file's data."""

    engine: str
    direction: str
    size: str
    depth: int
    jobs: int = 1

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
        ]


@dataclass(frozen=True, slots=True)
class Result:
    """Figures of one run of either program."""

    ios_per_s: float
    user_ns: float
    """User CPU per transfer."""


def told(text: str, jobs: int) -> Result:
    """Transfers per second and user CPU of a JSON of either program, of so many jobs together."""
    job = json.loads(text[text.index("{") :])["jobs"][0]
    ios = sum(job[side]["total_ios"] for side in ("read", "write"))
    runtime_ms = max(job[side]["runtime"] for side in ("read", "write"))
    if job["error"] or not ios or not runtime_ms:
        sys.exit(f"a run failed: error {job['error']}, {ios} transfers")
    user_ns = job["usr_cpu"] / 100 * runtime_ms * 1e6 * jobs / ios
    return Result(ios * 1e3 / runtime_ms, user_ns)


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
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as scratch,
        device_over_ram(IMAGE_BYTES) as directory,
    ):
        random_file(directory / FILE, FILE_BYTES)
        for _ in range(rounds):
            for cell in order.sample(cells, len(cells)):
                got = {
                    who: run(who, cell, directory, Path(scratch), milliseconds)
                    for who in order.sample(["iolab", "fio"], 2)
                }
                ratios[cell.name].append(math.log(got["iolab"].ios_per_s / got["fio"].ios_per_s))
                user[cell.name].append((got["iolab"].user_ns, got["fio"].user_ns))
    found = report(ratios, user)
    costs = [[math.log(max(a, 1) / max(b, 1)) for a, b in rows] for rows in user.values()]
    pooled = bounds([sum(values) / len(values) for values in zip(*costs, strict=True)])
    print(f"user CPU per transfer, iolab / fio: {pooled[0]:.3f} [{pooled[1]:.3f}, {pooled[2]:.3f}]")
    write(options.out, {**found, "user_cpu": pooled})
    return 0


if __name__ == "__main__":
    sys.exit(main())
