"""Number of file operations per second of CPU time on simulated file systems, beside the bars.

The memory that 100 GiB of files need in a simulated memory of 32 GiB is printed, too, and how many
times as long four times as many operations take where a file or a directory grows by each. Every
number is the median over rounds of the processor's time that the program tells; the order of file
systems is that of the program in every round. ``make bench``, or ``python
benches/simulated_files.py [--rounds N] [--operations N] [WORD...]``; words are file systems and
kinds of operation (``memory`` is one).
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
GROWING = ("scattered_fsync", "create_then_delete")
"""Kinds of operation that make something larger each time, which must cost no more for that."""
GROWING_OPERATIONS = 32_768
"""Operations of the shorter run: long enough for ZFS to write its groups."""
SHARE = 10
"""Part of the operations that the program does of these kinds."""
TIMES_LONGER = 4
TIMES_LONGER_MAX = 6.0
"""Bar of the time of so many times as many operations; a square would be 16."""
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
    speed, named = programs / "files_speed", set(arguments.words) & {*BARS, *GROWING, "memory"}
    rows: list[dict[str, object]] = []
    if not named or named & set(BARS):
        rows += rates(speed, arguments)
    if not named or named & set(GROWING):
        rows += growths(speed, arguments)
    if not arguments.words or "memory" in arguments.words:
        rows += memories(programs / "files_memory")
    write_rows("bench-simulated-files.json", rows)
    return 0


def rates(program: Path, arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Print operations per second beside the bars; rows of them."""
    words = words_of(arguments, tuple(BARS))
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        for key, rate in asked(program, arguments.operations, words).items():
            found.setdefault(key, []).append(rate)
    print(f"{'operations per CPU second':32}{'median':>12}{'most':>12}{'bar':>12}")
    rows: list[dict[str, object]] = []
    for (system, kind), values in found.items():
        median, bar = statistics.median(values), BARS[kind]
        word = "ok" if median >= bar else "BELOW"
        print(f"{system:8}{kind:24}{median:12,.0f}{max(values):12,.0f}{bar:12,} {word}")
        rows.append({"fs": system, "kind": kind, "median": median, "bar": bar})
    return rows


def growths(program: Path, arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Print how many times as long `TIMES_LONGER` as many operations take; rows of that."""
    words = words_of(arguments, GROWING)
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        few = asked(program, GROWING_OPERATIONS * SHARE, words)
        many = asked(program, GROWING_OPERATIONS * SHARE * TIMES_LONGER, words)
        for key, rate in few.items():
            found.setdefault(key, []).append(TIMES_LONGER * rate / many[key])
    print(f"{f'time of {TIMES_LONGER} times as many':32}{'median':>12}{'most':>12}{'bar':>12}")
    rows: list[dict[str, object]] = []
    for (system, kind), values in found.items():
        median = statistics.median(values)
        word = "ok" if median <= TIMES_LONGER_MAX else "ABOVE"
        print(f"{system:8}{kind:24}{median:12.1f}{max(values):12.1f}{TIMES_LONGER_MAX:12} {word}")
        rows.append({"fs": system, "kind": kind, "times": median, "bar": TIMES_LONGER_MAX})
    return rows


def words_of(arguments: argparse.Namespace, kinds: tuple[str, ...]) -> list[str]:
    """File systems of the command line, and its kinds among these, or all of these."""
    systems = [word for word in arguments.words if word not in (*BARS, *GROWING, "memory")]
    return systems + ([kind for kind in kinds if kind in arguments.words] or list(kinds))


def asked(program: Path, operations: int, words: list[str]) -> dict[tuple[str, str], float]:
    """Operations per second of the processor's time, by file system and kind."""
    command = [str(program), str(operations), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = map(json.loads, done.stdout.splitlines())
    return {(row["fs"], row["kind"]): row["operations_per_s"] for row in rows}


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
