"""Number of operations per second of CPU time on simulated file systems, beside the bars.

Every figure is the median over rounds of the processor's time that the program tells; the order of
file systems is that of the program in every round. ``make bench``, or ``python
benches/simulated_files.py [--rounds N] [--operations N] [WORD...]``; words are file systems and
kinds of operation.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

from simulator import ROOT, target_directory, write_rows

BARS = {
    "read": 2_000_000,
    "write": 1_000_000,
    "write_fsync": 200_000,
    "create_write_delete": 200_000,
}
"""Operations per second that we want."""


def main() -> int:
    """Print the table and write it beside the other benches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    build = ["cargo", "build", "--release", "--quiet", "-p", "iolab-sim", "--example"]
    subprocess.run([*build, "files_speed"], cwd=ROOT, check=True)
    program = target_directory() / "release" / "examples" / "files_speed"
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        command = [str(program), str(arguments.operations), *arguments.words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for row in map(json.loads, done.stdout.splitlines()):
            found.setdefault((row["fs"], row["kind"]), []).append(row["operations_per_s"])
    print(f"{'operations per CPU second':32}{'median':>12}{'most':>12}{'bar':>12}")
    rows = []
    for (system, kind), values in found.items():
        median, bar = statistics.median(values), BARS[kind]
        word = "ok" if median >= bar else "BELOW"
        print(f"{system:8}{kind:24}{median:12,.0f}{max(values):12,.0f}{bar:12,} {word}")
        rows.append({"fs": system, "kind": kind, "median": median, "bar": bar})
    write_rows("bench-simulated-files.json", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
