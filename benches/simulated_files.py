"""Number of file operations per second of CPU time on simulated file systems, beside the bars.

The memory that 100 GiB of files need in a simulated memory of 32 GiB is printed, too. Every rate is
the median over rounds of the processor's time that the program tells; the order of file systems is
that of the program in every round. ``make bench``, or ``python benches/simulated_files.py [--rounds
N] [--operations N] [WORD...]``; words are file systems and kinds of operation (``memory`` is one).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from simulator import ROOT, target_directory, write_rows

BARS = {
    "read": 2_000_000,
    "write": 1_000_000,
    "write_fsync": 200_000,
    "create_write_delete": 200_000,
}
"""Operations per second that we want."""
MEMORY_MIB_MAX = 500
MEMORY_OF = ("ext4", "xfs")


def main() -> int:
    """Print the table and write it beside the other benches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    build = ["cargo", "build", "--release", "--quiet", "-p", "iolab-sim"]
    examples = ["--example", "files_speed", "--example", "files_memory"]
    subprocess.run([*build, *examples], cwd=ROOT, check=True)
    programs = target_directory() / "release" / "examples"
    rows = [] if arguments.words == ["memory"] else rates(programs / "files_speed", arguments)
    if not arguments.words or "memory" in arguments.words:
        rows += memories(programs / "files_memory")
    write_rows("bench-simulated-files.json", rows)
    return 0


def rates(program: Path, arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Print operations per second beside the bars; rows of them."""
    words = [word for word in arguments.words if word != "memory"]
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        command = [str(program), str(arguments.operations), *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for row in map(json.loads, done.stdout.splitlines()):
            found.setdefault((row["fs"], row["kind"]), []).append(row["operations_per_s"])
    print(f"{'operations per CPU second':32}{'median':>12}{'most':>12}{'bar':>12}")
    rows: list[dict[str, object]] = []
    for (system, kind), values in found.items():
        median, bar = statistics.median(values), BARS[kind]
        word = "ok" if median >= bar else "BELOW"
        print(f"{system:8}{kind:24}{median:12,.0f}{max(values):12,.0f}{bar:12,} {word}")
        rows.append({"fs": system, "kind": kind, "median": median, "bar": bar})
    return rows


def memories(program: Path) -> list[dict[str, object]]:
    """Print the most memory that the program has had beside the bar; rows of it."""
    print(f"{'most resident memory':32}{'MiB':>12}{'':12}{'bar':>12}")
    rows: list[dict[str, object]] = []
    for system in MEMORY_OF:
        done = subprocess.run([str(program), system], check=True, capture_output=True, text=True)
        row = json.loads(done.stdout)
        most, what = row["most_resident_mib"], f"{row['files_gib']} GiB in {row['memory_gib']} GiB"
        word = "ok" if most <= MEMORY_MIB_MAX else "ABOVE"
        print(f"{system:8}{what:24}{most:12,}{'':12}{MEMORY_MIB_MAX:12,} {word}")
        rows.append({"fs": system, "kind": "memory", "most": most, "bar": MEMORY_MIB_MAX})
    return rows


if __name__ == "__main__":
    sys.exit(main())
