"""Cost of being followed: a program that makes many small reads, alone and followed.

In random order in each round: the program alone; under strace as `iolab pattern` starts it; under
``iolab pattern --with strace`` and ``--with tracepoints``. The program times its own loop, so that
what stands around it does not count. Told are medians over rounds. Bars: live by strace a program
is not slower than under strace itself, and live by trace points it has at most a tenth of the time
that strace adds; and every way of ours sees each of the reads. ``make bench``, or ``python
benches/followed.py [--reads N] [--rounds N]``; needs root, strace, and an agent built with
``--release`` (IOLAB_AGENT).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from iolab.library.patterns import strace_words
from iolab.library.services import Services

_PROGRAM: Final = """
import os, sys, time
reads, name, told = int(sys.argv[1]), sys.argv[2], sys.argv[3]
file = os.open(name, os.O_RDONLY)
begin = time.perf_counter_ns()
for number in range(reads):
    os.pread(file, 512, number * 7919 % 2048 * 512)
end = time.perf_counter_ns()
with open(told, "w") as out:
    out.write(str(end - begin))
"""
FILE_BYTES: Final = 2048 * 512
NOISE: Final = 1.1
"""Ratio of two medians of the same work that is no difference."""
SHARE_MAX: Final = 0.1
"""Most of strace's extra time that trace points may take."""

Runner = Callable[[str], None]


def alone(command: str) -> None:
    """Run a shell command by itself."""
    subprocess.run(["/bin/sh", "-c", command], check=True)


def by_strace(command: str) -> None:
    """Run it under strace, with the options of `iolab pattern`."""
    words = strace_words(Path("calls"), Services(), command=command)
    subprocess.run(words, check=True)


def by_iolab(way: str, reads: int) -> Runner:
    """Run it under `iolab pattern`, which must see every read."""

    def run(command: str) -> None:
        words = [sys.executable, "-m", "iolab", "pattern", "--json", "--only", "/data"]
        done = subprocess.run(
            [*words, "--with", way, "--for", command], stdout=subprocess.PIPE, check=True
        )
        (row,) = json.loads(done.stdout)["files"]
        if row["reads"]["count"] != reads:
            raise SystemExit(f"--with {way}: {row['reads']['count']} of {reads} reads were seen")

    return run


def measure(reads: int, rounds: int) -> dict[str, list[int]]:
    """Times of the program's loop (ns) by the way in which it was followed."""
    ways: dict[str, Runner] = {
        "alone": alone,
        "strace": by_strace,
        "iolab, strace": by_iolab("strace", reads),
        "iolab, trace points": by_iolab("tracepoints", reads),
    }
    Path("data").write_bytes(os.urandom(FILE_BYTES))
    Path("program.py").write_text(_PROGRAM, encoding="utf-8")
    command = shlex.join([sys.executable, "-S", "program.py", str(reads), "data", "told"])
    times: dict[str, list[int]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name in random.sample(list(ways), len(ways)):
            ways[name](command)
            times[name].append(int(Path("told").read_text(encoding="utf-8")))
    return times


def report(times: dict[str, list[int]], reads: int) -> bool:
    """Print the table; tells whether the bars are met."""
    medians = {name: statistics.median(found) for name, found in times.items()}
    base = medians["alone"]
    for name, median in medians.items():
        low, high = (bound / reads / 1e3 for bound in (min(times[name]), max(times[name])))
        print(
            f"{name:20} {median / reads / 1e3:8.2f} µs per read ({low:.2f} to {high:.2f}), "
            f"{median / base:6.1f} times as long"
        )
    ratio = medians["iolab, strace"] / medians["strace"]
    share = (medians["iolab, trace points"] - base) / (medians["strace"] - base)
    print(f"by strace, live against strace itself: {ratio:.2f} (bar {NOISE})")
    print(f"by trace points: {share:.1%} of the time that strace adds (bar {SHARE_MAX:.0%})")
    return ratio <= NOISE and share <= SHARE_MAX


def main() -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reads", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("strace") is None:
        sys.exit("needs root, for trace points, and strace")
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        os.chdir(folder)
        times = measure(options.reads, options.rounds)
        os.chdir("/")
    return 0 if report(times, options.reads) else 1


if __name__ == "__main__":
    sys.exit(main())
