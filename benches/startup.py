"""Cost of commands before and after the work itself: processor time and modules imported.

Each command runs in turn with the others, so that what else the machine does meets all of them;
medians are printed, user and system time together. It is the time of the command's own process, not
of the agent that it starts: Python's start, the imports, the store and the printing. The kernel
knows it of a process that has ended and was not waited for yet: to the nanosecond of its first
thread (``/proc/PID/schedstat``, the bar's), in ticks of all of its threads (``/proc/PID/stat``,
printed as a mean beside it). The first line is Python itself doing nothing. Compiled modules are
kept, as in an installation, and nothing is written beside the source.

Two commands have a bar (issue 14, point 18); what is over it is marked, and the exit code is 1.

``python benches/startup.py [--rounds N]``
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ONE = ("iozone", "-s", "1m", "-r", "64k", "-i", "0", "-i", "1")
LITTLE = ("iozone", "-a", "-n", "64", "-g", "64", "-i", "0")
COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("-c", "pass"),
    "iolab --version": ("-m", "iolab.cli", "--version"),
    "iolab --help": ("-m", "iolab.cli", "--help"),
    "iolab compare --help": ("-m", "iolab.cli", "compare", "--help"),
    f"iolab {' '.join(ONE)}": ("-m", "iolab.cli", *ONE),
    f"iolab {' '.join(LITTLE)}": ("-m", "iolab.cli", *LITTLE),
}
BARS = {"iolab --version": 0.1, f"iolab {' '.join(ONE)}": 0.15}
"""Seconds of processor time."""


def seconds(words: tuple[str, ...], scratch: Path) -> tuple[float, float, float]:
    """Processor time of the first thread and of all, and time on the wall, of one command."""
    environment = {
        **{name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPYCACHEPREFIX": str(scratch / "compiled"),
    }
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=scratch,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - began
        ended = Path("/proc", str(process.pid))
        first = int((ended / "schedstat").read_text().split()[0]) / 1e9
        fields = (ended / "stat").read_text().rpartition(")")[2].split()
        user, system = int(fields[11]), int(fields[12])  # proc(5), counted behind the name.
    if process.returncode != 0:
        raise SystemExit(f"iolab {' '.join(words)}: exit code {process.returncode}")
    return first, (user + system) / os.sysconf("SC_CLK_TCK"), wall


def imports(words: tuple[str, ...], scratch: Path) -> int:
    """Number of modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words],
        cwd=scratch,
        capture_output=True,
        text=True,
        check=True,
    )
    return sum(line.startswith("import time:") for line in done.stderr.splitlines()) - 1


def main() -> None:
    """Print a line per command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        counts = {name: imports(words, scratch) for name, words in COMMANDS.items()}
        for words in COMMANDS.values():
            seconds(words, scratch)  # What it imports is compiled.
        for _ in range(rounds):
            for name, words in COMMANDS.items():
                taken[name].append(seconds(words, scratch))
    is_kept = True
    print(f"{'':44}{'own CPU':>10}{'in ticks':>10}{'wall':>9}{'modules':>9}{'bar':>9}")
    for name, runs in taken.items():
        first, ticks, walls = zip(*runs, strict=True)
        cpu, every, wall = (
            statistics.median(first),
            statistics.mean(ticks),
            statistics.median(walls),
        )
        bar = BARS.get(name)
        is_kept &= bar is None or cpu < bar
        told = "" if bar is None else f"{bar:8.2f}s {'kept' if cpu < bar else 'MISSED'}"
        print(f"{name:44}{cpu:9.3f}s{every:9.3f}s{wall:8.3f}s{counts[name]:9}{told}")
    sys.exit(0 if is_kept else 1)


if __name__ == "__main__":
    main()
