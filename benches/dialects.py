"""`iolab iozone` and `iolab bonnie++` beside the programs whose commands they take.

The same command line is given to both programs on one loop device over RAM, pinned to one CPU,
in random order within each round: IOzone's tests 0 to 7 with three record sizes, buffered and
direct, and all phases of bonnie++. Every column of the printed tables is a cell; its ratio is
iolab's number over the original's, paired by round, on ln. Phases that bonnie++ finds too quick to
print ("+++++") are named and not counted. User CPU is that of the whole program less that of a run
over one record, by command.

``python benches/dialects.py [--rounds N] [--agent PATH] [--only NAME]``; needs root, iozone and
bonnie++.
"""

from __future__ import annotations

import csv
import math
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from paired import device_over_ram, mean_interval, read_options, report, write

DEVICE_BYTES = 5 << 30
CPU = max(os.sched_getaffinity(0))
COLUMNS = (
    *("write", "rewrite", "read", "reread", "random-read", "random-write", "backward-read"),
    *("record-rewrite", "stride-read", "fwrite", "frewrite", "fread", "freread"),
)
TESTS = [word for test in range(8) for word in ("-i", str(test))]
RECORDS_KB = (4, 64, 1024)
PHASES = {
    "per-char-write": 9,
    "write": 11,
    "rewrite": 13,
    "per-char-read": 15,
    "read": 17,
    "seeks": 19,
    "create": 26,
    "stat": 28,
    "delete": 30,
    "random-create": 32,
    "random-stat": 34,
    "random-delete": 36,
}
"""Fields of a line of bonnie++ 1.97 and later (`bonnie.md`), counted from 0."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line of either program, without its name and the place of its files."""

    program: str
    words: tuple[str, ...]
    little: tuple[str, ...]
    """The same over as little data as possible."""

    @property
    def name(self) -> str:
        """For tables."""
        shown = [word for word in self.words if word in {"-I"} or word.endswith("k")]
        return " ".join([self.program, *shown]) if self.program == "iozone" else self.program


def commands() -> list[Command]:
    """All that is compared."""
    found = list[Command]()
    for record_kb in RECORDS_KB:
        for access in ([], ["-I"]):
            # 4 KiB past the page cache take ten times longer than all others.
            file_kb = (32 if access and record_kb == 4 else 128) * 1024
            rest = [*access, "-r", f"{record_kb}k", *TESTS]
            words = (*rest, "-s", str(file_kb))
            found.append(Command("iozone", words, (*rest, "-s", str(max(record_kb, 64)))))
    sizes = ("-r", "1536", "-s", "3072", "-n", "32")
    found.append(Command("bonnie++", sizes, ("-r", "8", "-s", "16", "-n", "0")))
    return found


def argv_of(who: str, chosen: Command, words: tuple[str, ...], place: Path) -> list[str]:
    """What is typed."""
    front = [sys.executable, "-m", "iolab.cli"] if who == "iolab" else []
    where = ["-f", str(place / "file")]
    if chosen.program == "bonnie++":
        where = ["-q", "-u", "root", "-d", str(place)]
    return ["taskset", "-c", str(CPU), *front, chosen.program, *words, *where]


def run(argv: list[str], scratch: Path) -> tuple[str, float]:
    """Standard output of a finished program, and its user CPU in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, cwd=scratch, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv[3:])} failed ({done.returncode}): {done.stderr[-500:]}")
    return done.stdout, after.ru_utime - before.ru_utime


def numbers(chosen: Command, text: str) -> dict[str, float | None]:
    """The columns of an output; `None`: too quick to be printed."""
    if chosen.program == "bonnie++":
        fields = next(
            row for row in csv.reader(text.splitlines()) if len(row) > max(PHASES.values())
        )
        return {phase: _number(fields[at]) for phase, at in PHASES.items()}
    rows = re.findall(r"^[ \d]+$", text, re.MULTILINE)
    cells = [float(word) for word in rows[-1].split()][2:]
    return dict(zip(COLUMNS, cells, strict=True))


def _number(field: str) -> float | None:
    return None if field.startswith("+") else float(field)


def measure(
    chosen: list[Command], place: Path, scratch: Path, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[tuple[float, float]]]]:
    """Logarithms of ratios by cell and round, and seconds of user CPU of both by command."""
    order = random.Random(1)
    ratios = dict[str, list[float]]()
    user: dict[str, list[tuple[float, float]]] = {one.name: [] for one in chosen}
    for _ in range(rounds):
        for one in order.sample(chosen, len(chosen)):
            found = dict[str, dict[str, float | None]]()
            seconds = dict[str, float]()
            for who in order.sample(["iolab", "original"], 2):
                text, whole = run(argv_of(who, one, one.words, place), scratch)
                _, little = run(argv_of(who, one, one.little, place), scratch)
                found[who], seconds[who] = numbers(one, text), whole - little
            for column, mine in found["iolab"].items():
                theirs = found["original"][column]
                cell = ratios.setdefault(f"{one.name} {column}", [])
                if mine is not None and theirs is not None:
                    cell.append(math.log(mine / theirs))
            user[one.name].append((seconds["iolab"], seconds["original"]))
    return ratios, user


def show_user(user: dict[str, list[tuple[float, float]]]) -> dict[str, list[float]]:
    """Print user CPU by command: medians, and by how much it is more than the original's.

    An empty command of ours takes half a second of it, so that the difference is uncertain; it is
    called more only if its 95 % interval says so.
    """
    print(f"\n{'user CPU of the whole command, less an empty one':50} {'iolab':>8} {'original':>8}")
    found = dict[str, list[float]]()
    for name, pairs in user.items():
        mine, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
        _, low, high = mean_interval([ours - original for ours, original in pairs])
        interval = f"more by [{low:+.3f}, {high:+.3f}]"
        print(f"{name:50} {mine:7.3f}s {theirs:7.3f}s  {interval}{'  MORE' if low > 0 else ''}")
        found[name] = [mine, theirs, low, high]
    return found


def main() -> int:
    """Run everything and write the JSON."""
    options = read_options(__doc__, "dialects", ["iozone", "bonnie++"])
    os.environ["IOLAB_AGENT"] = str(options.agent)
    chosen = [one for one in commands() if options.only in one.name]
    if not chosen:
        sys.exit(f"no command's name contains {options.only!r}")
    with device_over_ram(DEVICE_BYTES) as place, tempfile.TemporaryDirectory() as scratch:
        ratios, user = measure(chosen, place, Path(scratch), options.rounds)
    quick = [cell for cell, values in ratios.items() if len(values) < options.rounds]
    counted = {cell: values for cell, values in ratios.items() if cell not in quick}
    found = report(counted, {})
    for cell in quick:
        print(f"{cell}: too quick for bonnie++ to print a number in some round; not counted")
    found["user_s"] = show_user(user)
    write(options.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
