"""Cost of each engine, beside fio and beside the bare system-call loop, in one run.

Every figure is a median over rounds; inside a round the programs run in random order, pinned to
one CPU (to two where a kernel thread submits), and a cost is CPU time of the whole process tree
minus that of an empty run of the same program, per op, minus the bare loop's. The interval is a
95 % t interval over rounds.

``make bench``, or ``python benches/run.py [--rounds N] [--ops N] [--agent PATH] [--only NAME]
[--no-memory]``
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from iolab.testbed.command import find_agent

ROOT = Path(__file__).resolve().parent.parent
RECORD = 4096
FILE_BYTES = 64 << 20
CPUS = sorted(os.sched_getaffinity(0))
FIO_OPTIONS = {
    "io_uring_fixed": ("io_uring", "--fixedbufs", "--registerfiles"),
    "io_uring_sqpoll": ("io_uring", "--sqthread_poll"),
}
"""Names of engines in fio, and their options, where they are not our name alone."""
DEPTHS = {
    **dict.fromkeys(("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap"), 1),
    **dict.fromkeys(("libaio", "io_uring", "io_uring_fixed", "io_uring_sqpoll"), 32),
}
"""Engines that all three programs have, and operations in flight."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that performs a given number of ops and nothing else of interest."""

    name: str
    start: Callable[[int], tuple[list[str], str]]
    """Number of ops to (argument vector, standard input)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison: the same ops by several programs."""

    name: str
    ops: int
    programs: tuple[Program, ...]
    bar: str
    cpus: int = 1


def cpu_seconds(argv: list[str], stdin: str) -> tuple[float, str]:
    """CPU time (user + system) of a finished process tree, and its standard output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{argv[0]} failed ({done.returncode}): {done.stderr.strip()[-500:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, done.stdout


def ns_per_op(program: Program, ops: int) -> float:
    """CPU nanoseconds per op: a full run minus an empty one."""
    full, out = cpu_seconds(*program.start(ops))
    empty, _ = cpu_seconds(*program.start(1))
    if '"status":"failed"' in out:
        sys.exit(f"{program.name}: {out.splitlines()[-1][:300]}")
    return (full - empty) * 1e9 / ops


def measure_request(directory: Path, engine: str, pattern: str, depth: int, ops: int) -> str:
    """Request of ``iolab-agent measure`` that reads an existing file."""
    tenant = {
        "name": "main",
        "workers": 1,
        "is_file_shared": True,
        "file": "data.0",
        "file_bytes": FILE_BYTES,
        "io_size_bytes": RECORD,
        "pattern": {"kind": pattern},
        "direction": {"kind": "read"},
        "depth": depth,
        "opening": "laid_out" if engine == "memory" else "existing",
        "limit": {"kind": "ops", "ops": ops},
    }
    phase = {"name": "bench", "keeps_files": True, "tenants": [tenant]}
    workload = {"version": 1, "name": "bench", "engine": engine, "seed": 7, "phases": [phase]}
    return json.dumps({"trial": "b", "directory": str(directory), "workload": workload}) + "\n"


def ours(agent: Path, directory: Path, engine: str, pattern: str, depth: int) -> Program:
    """Our engine; every latency recorded."""

    def start(ops: int) -> tuple[list[str], str]:
        return [str(agent), "measure"], measure_request(directory, engine, pattern, depth, ops)

    return Program("iolab", start)


def fio(directory: Path, engine: str, pattern: str, depth: int) -> Program:
    """The peer with its defaults: latency of every op recorded, too."""

    def start(ops: int) -> tuple[list[str], str]:
        name, *more = FIO_OPTIONS.get(engine, (engine,))
        argv = ["fio", "--name=bench", f"--filename={directory}/data.0", f"--ioengine={name}"]
        argv += more
        argv += [f"--rw={'randread' if pattern == 'uniform' else 'read'}", f"--bs={RECORD}"]
        argv += [f"--size={FILE_BYTES}", f"--io_size={ops * RECORD}", f"--iodepth={depth}"]
        argv += ["--invalidate=0", "--output-format=json"]
        argv += ["--norandommap"] if pattern == "uniform" else []
        argv += ["--readonly"] if engine != "null" else []
        return argv, ""

    return Program("fio", start)


def bare(program: Path, directory: Path, engine: str, pattern: str, depth: int) -> Program:
    """The bare loop."""
    order = "random" if pattern == "uniform" else "sequential"

    def start(ops: int) -> tuple[list[str], str]:
        return [str(program), engine, f"{directory}/data.0", str(ops), order, str(depth)], ""

    return Program("bare", start)


def cases(agent: Path, bare_loop: Path, directory: Path, ops: int) -> list[Case]:
    """The comparisons that have a bar."""
    half = "iolab's cost over the bare loop <= 0.5 of fio's"
    made = []
    for engine, pattern in itertools.product(DEPTHS, ("sequential", "uniform")):
        depth = DEPTHS[engine]
        programs = (
            ours(agent, directory, engine, pattern, depth),
            fio(directory, engine, pattern, depth),
            bare(bare_loop, directory, engine, pattern, depth),
        )
        name = f"{engine} 4k cached, {'random' if pattern == 'uniform' else pattern}"
        bar = "iolab's cost over the bare loop <= 150 ns" if engine == "mmap" else half
        cpus = 1
        if engine == "io_uring_sqpoll":
            bar, cpus = "none: who spins takes the CPU time that there is", 2
        made.append(Case(name, ops, programs, bar, cpus))
    null = (
        ours(agent, directory, "null", "sequential", 1),
        fio(directory, "null", "sequential", 1),
    )
    made.append(Case("null engine", ops * 4, null, "iolab <= 100 ns per op"))
    return made


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median and 95 % t interval of the mean of `values`."""
    from scipy import stats

    center = statistics.median(values)
    if len(values) < 2:
        return center, float("nan"), float("nan")
    half = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    mean = statistics.fmean(values)
    return center, mean - half, mean + half


def run_case(case: Case, rounds: int, seed: int) -> dict[str, object]:
    """All rounds of one comparison."""
    os.sched_setaffinity(0, set(CPUS[-case.cpus :]))
    order = random.Random(seed)
    costs: dict[str, list[float]] = {program.name: [] for program in case.programs}
    for _ in range(rounds):
        for program in order.sample(case.programs, len(case.programs)):
            costs[program.name].append(ns_per_op(program, case.ops))
    base = costs.get("bare", [0.0] * rounds)
    over = {
        name: [value - floor for value, floor in zip(values, base, strict=True)]
        for name, values in costs.items()
        if name != "bare"
    }
    ratios = [a / b for a, b in zip(over["iolab"], over["fio"], strict=True) if b > 0]
    return {
        "case": case.name,
        "bar": case.bar,
        "rounds": rounds,
        "ops": case.ops,
        "cpu_ns_per_op_median": {name: statistics.median(v) for name, v in costs.items()},
        "over_bare_ns_median": {name: statistics.median(v) for name, v in over.items()},
        "ratio_iolab_to_fio": interval(ratios),
    }


def run_memory(agent: Path, directory: Path) -> list[dict[str, object]]:
    """Peak resident memory of runs of very different length on the memory target."""
    rows = []
    for ops in (1_000_000, 100_000_000):
        stdin = measure_request(directory, "memory", "uniform", 1, ops)
        probe = (
            "import resource,subprocess,sys;"
            "subprocess.run(sys.argv[1:],stdin=sys.stdin,stdout=subprocess.DEVNULL,check=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        argv = [sys.executable, "-c", probe, str(agent), "measure"]
        out = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True)
        rows.append({"ops": ops, "peak_kib": int(out.stdout)})
    return rows


def print_table(results: list[dict[str, object]]) -> None:
    """The comparison as a table of 80 columns."""
    print(f"{'CPU ns per op, over the bare loop':38} {'iolab':>7} {'fio':>7} {'ratio':>6}  95 %")
    for row in results:
        over = row["over_bare_ns_median"]
        center, low, high = row["ratio_iolab_to_fio"]
        print(
            f"{row['case']:38} {over['iolab']:7.0f} {over['fio']:7.0f} {center:6.2f}"
            f"  [{low:.2f}, {high:.2f}]"
        )


def bare_loop() -> Path:
    """Builds the bare loop and says where it is."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    build = ["cargo", "build", "--quiet", "--release", "-p", "iolab-real", "--example", "bare_loop"]
    subprocess.run(build, cwd=ROOT, check=True)
    return target / "release" / "examples" / "bare_loop"


def main() -> int:
    """Run everything and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", type=Path, help="default: the installed one")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench.json")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--ops", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--no-memory", action="store_true", help="leave out the 1e8-op run")
    options = parser.parse_args()
    if shutil.which("fio") is None:
        sys.exit("fio is not installed: install it (apt-get install fio) to compare with it")
    agent = options.agent or find_agent()
    bare_program = bare_loop()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = Path(name)
        (directory / "data.0").write_bytes(random.Random(1).randbytes(FILE_BYTES))
        results = [
            run_case(case, options.rounds, seed)
            for seed, case in enumerate(cases(agent, bare_program, directory, options.ops))
            if options.only in case.name
        ]
        memory = [] if options.no_memory else run_memory(agent, directory)
    print_table(results)
    for row in memory:
        print(f"peak memory, memory target, {row['ops']:>11,} ops: {row['peak_kib']} KiB")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"version": 1, "cost": results, "memory": memory}, indent=1))
    print(f"written: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
