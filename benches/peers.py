"""Throughput and user CPU beside the peers, on one loop device over RAM, in one run.

A file of 256 MiB on ext4 on a loop device on a tmpfs of its own is read and overwritten with direct
I/O. In each round every cell (engine, direction, order, record size) is run once by iolab and once
by the peer, cells and programs in random order, pinned to one CPU. A cell's ratio is iolab's
throughput over the peer's, paired by round, on ln; user CPU is per operation, an empty run's
subtracted. Both programs of a cell use the same file: one that lies elsewhere on the device is
faster or slower. Peers: fio, and IOzone where it is installed (its own tests, engine ``sync``).

``python benches/peers.py [--rounds N] [--agent PATH] [--only NAME]``; needs root.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paired import command, device_over_ram, random_file, read_options, report, write

FILE_BYTES = 256 << 20
IMAGE_BYTES = 1800 << 20
OPS_MAX = 16_384
DEPTHS = {"psync": 1, "libaio": 32, "io_uring": 32}
RECORDS = (4 << 10, 64 << 10, 1 << 20)
CPU = max(os.sched_getaffinity(0))
IOZONE = {("read", "sequential"): "1", ("write", "sequential"): "0"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One way of moving the file's data."""

    peer: str
    engine: str
    direction: str
    order: str
    record: int

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.peer} {self.engine} {self.order} {self.direction} {self.record >> 10}k"

    @property
    def ops(self) -> int:
        """Enough for some tenths of a second."""
        return min(OPS_MAX, FILE_BYTES // self.record)

    @property
    def file(self) -> str:
        """The file that both programs use: where it lies on the device changes its speed."""
        if self.peer == "iozone":
            return f"iozone.{self.direction}.{self.record >> 10}k"
        return "data.0"

    @property
    def file_bytes(self) -> int:
        """IOzone's passes are over a file of their own, from its start to its end."""
        return self.ops * self.record if self.peer == "iozone" else FILE_BYTES


@dataclass(frozen=True, slots=True)
class Result:
    """Figures of one run."""

    bytes_per_s: float
    user_s: float


def run(argv: list[str], stdin: str, throughput: Callable[[str], float]) -> Result:
    """One finished program, pinned."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = ["taskset", "-c", str(CPU), *argv]
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{argv[3]} failed ({done.returncode}): {(done.stderr or done.stdout)[-500:]}")
    return Result(throughput(done.stdout), after.ru_utime - before.ru_utime)


def ours(agent: Path, directory: Path, cell: Cell, ops: int) -> Result:
    """`iolab-agent measure` on the existing file."""
    tenant = {
        "name": "main",
        "workers": 1,
        "is_file_shared": True,
        "file": cell.file,
        "file_bytes": cell.file_bytes,
        "io_size_bytes": cell.record,
        "pattern": {"kind": "sequential" if cell.order == "sequential" else "permutation"},
        "direction": {"kind": cell.direction},
        "depth": DEPTHS.get(cell.engine, 1),
        "access": "direct",
        "opening": "existing",
        "limit": {"kind": "ops", "ops": ops},
    }
    phase = {"name": "bench", "keeps_files": True, "tenants": [tenant]}
    workload = {"version": 1, "name": "x", "engine": cell.engine, "seed": 7, "phases": [phase]}
    request = {"trial": "b", "directory": str(directory), "workload": workload}

    def throughput(text: str) -> float:
        result = json.loads(text.splitlines()[-1])["result"]
        if result["status"] != "ok":
            sys.exit(f"iolab: {result['error']}")
        worker = result["phases"][0]["tenants"][0]["workers"][0]
        return worker["bytes"] / max(worker["elapsed_ns"], 1) * 1e9

    return run([str(agent), "measure"], json.dumps(request) + "\n", throughput)


def fio(directory: Path, cell: Cell, ops: int) -> Result:
    """The same by fio."""
    order = "rand" if cell.order == "random" else ""
    argv = [
        "fio",
        "--name=bench",
        f"--filename={directory}/{cell.file}",
        f"--ioengine={cell.engine}",
    ]
    argv += [f"--rw={order}{cell.direction}", f"--bs={cell.record}", f"--size={FILE_BYTES}"]
    argv += [f"--io_size={ops * cell.record}", f"--iodepth={DEPTHS[cell.engine]}", "--direct=1"]
    argv += ["--output-format=json", "--thread", "--overwrite=1"]

    def throughput(text: str) -> float:
        return float(json.loads(text)["jobs"][0][cell.direction]["bw_bytes"])

    return run(argv, "", throughput)


def iozone(directory: Path, cell: Cell, ops: int) -> Result:
    """The same by IOzone: the second pass. A write begins with a new file of the size asked for."""
    file = directory / (cell.file if ops == cell.ops else "iozone.empty")
    size, record = f"{ops * cell.record >> 10}k", f"{cell.record >> 10}k"
    argv = ["iozone", "-I", "-w", "-i", IOZONE[cell.direction, cell.order]]
    argv += ["-s", size, "-r", record, "-f", str(file)]
    if cell.direction == "read" and ops != cell.ops:
        iozone_file(file, size)

    def throughput(text: str) -> float:
        cells = re.findall(r"^\s+\d+\s+\d+\s+(\d+)\s+(\d+)", text, re.MULTILINE)
        return float(cells[-1][1]) * 1024

    return run(argv, "", throughput)


def iozone_file(file: Path, size: str) -> None:
    """A file as IOzone's own tests make it."""
    command(["iozone", "-i", "0", "-w", "-s", size, "-r", "4k", "-f", str(file)])


def cells(only: str) -> list[Cell]:
    """All cells that the installed peers can run."""
    found = [
        Cell("fio", engine, direction, order, record)
        for engine, direction, order, record in itertools.product(
            DEPTHS, ("read", "write"), ("sequential", "random"), RECORDS
        )
    ]
    if shutil.which("iozone"):
        found += [
            Cell("iozone", "sync", direction, order, record)
            for (direction, order), record in itertools.product(IOZONE, RECORDS)
        ]
    else:
        print("iozone is not installed: its cells are left out")
    return [cell for cell in found if only in cell.name]


def measure(
    agent: Path, directory: Path, chosen: list[Cell], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[tuple[float, float]]]]:
    """Logarithms of throughput ratios, and user CPU per op of both, by cell and round."""
    order = random.Random(1)
    for cell in chosen:
        if cell.peer == "iozone":
            iozone_file(directory / cell.file, f"{cell.file_bytes >> 10}k")
    ratios: dict[str, list[float]] = {cell.name: [] for cell in chosen}
    user: dict[str, list[tuple[float, float]]] = {cell.name: [] for cell in chosen}

    def once(who: str, cell: Cell, ops: int) -> Result:
        if who == "iolab":
            return ours(agent, directory, cell, ops)
        return {"fio": fio, "iozone": iozone}[who](directory, cell, ops)

    for _ in range(rounds):
        for cell in order.sample(chosen, len(chosen)):
            got: dict[str, tuple[float, float]] = {}
            for who in order.sample(["iolab", cell.peer], 2):
                full, empty = once(who, cell, cell.ops), once(who, cell, 1)
                got[who] = full.bytes_per_s, (full.user_s - empty.user_s) * 1e9 / cell.ops
            ratios[cell.name].append(math.log(got["iolab"][0] / got[cell.peer][0]))
            user[cell.name].append((got["iolab"][1], got[cell.peer][1]))
    return ratios, user


def main() -> int:
    """Run everything and write the JSON."""
    options = read_options(__doc__, "peers", ["fio"])
    chosen = cells(options.only)
    if not chosen:
        sys.exit(f"no cell's name contains {options.only!r}")
    with device_over_ram(IMAGE_BYTES) as directory:
        random_file(directory / "data.0", FILE_BYTES)
        ratios, user = measure(options.agent, directory, chosen, options.rounds)
    write(options.out, report(ratios, user))
    return 0


if __name__ == "__main__":
    sys.exit(main())
