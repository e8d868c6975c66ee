"""Number of requests per second of CPU time that go through simulated stacks, without probes.

Every figure is the median over rounds of a closed loop of 32 random 4 KiB requests (one in four a
write) from four processes; the order of stacks is that of the program in every round. ``make
bench``, or ``python benches/simulator.py [--rounds N] [--requests N]``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
USUAL = (32, 4)
"""Requests in flight and processes, where nothing else is said."""
Row = tuple[str, str, int, int]
"""Scheduler, profile, requests in flight, processes."""
BARS: dict[Row, int] = {
    ("noop", "fixed-100us", *USUAL): 2_000_000,
    ("none", "fixed-100us", *USUAL): 2_000_000,
    ("mq-deadline", "fixed-100us", *USUAL): 1_000_000,
    ("cfq", "sata7200-4tb", *USUAL): 500_000,
    ("bfq", "sata7200-4tb", *USUAL): 500_000,
    ("none", "sata-860pro-256", *USUAL): 300_000,
    ("none", "nvme-pc601-256", *USUAL): 300_000,
    ("bfq", "fixed-100us", 1_024, 4): 250_000,
    ("bfq", "fixed-100us", 1_000, 1_000): 250_000,
}
"""Least requests per second that we want."""


def target_directory() -> Path:
    """Directory into which cargo puts its output."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return Path(json.loads(done.stdout)["target_directory"])


def measure(requests: int) -> dict[Row, float]:
    """One round: requests per second by row."""
    program = target_directory() / "release" / "examples" / "speed"
    cpu = max(os.sched_getaffinity(0))
    done = subprocess.run(
        ["taskset", "-c", str(cpu), str(program), str(requests)],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = map(json.loads, done.stdout.splitlines())
    names = ("scheduler", "profile", "in_flight", "processes")
    return {tuple(row[name] for name in names): row["requests_per_s"] for row in rows}


def write_rows(name: str, rows: list[dict[str, object]]) -> None:
    """Keep the rows of a table in the target directory."""
    (target_directory() / name).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"written to {name} in the target directory")


def main() -> int:
    """Print the table and write it beside the other benches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400_000)
    arguments = parser.parse_args()
    build = ["cargo", "build", "--release", "--quiet", "-p", "iolab-sim", "--example", "speed"]
    subprocess.run(build, cwd=ROOT, check=True)
    rounds = [measure(arguments.requests) for _ in range(arguments.rounds)]
    heads = f"{'requests per CPU second':29}{'depth':>6}{'procs':>7}"
    print(f"{heads}{'median':>12}{'least':>12}{'bar':>12}")
    rows = []
    for key in rounds[0]:
        values = [found[key] for found in rounds]
        bar = BARS.get(key)
        median = statistics.median(values)
        verdict = "" if bar is None else (" ok" if median >= bar else " BELOW")
        print(
            f"{key[0]:12}{key[1]:17}{key[2]:>6}{key[3]:>7}{median:12,.0f}{min(values):12,.0f}"
            f"{'' if bar is None else format(bar, ','):>12}{verdict}"
        )
        names = ("scheduler", "profile", "in_flight", "processes")
        rows.append(dict(zip(names, key, strict=True)) | {"median": median, "bar": bar})
    write_rows("bench-simulator.json", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
