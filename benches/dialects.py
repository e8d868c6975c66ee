"""`iolab iozone` and `iolab bonnie++` beside the programs whose commands they take.

The same command line is given to both programs on one loop device over RAM, pinned to one CPU,
in random order within each round: IOzone's tests 0 to 7 with three record sizes, buffered and
direct, and all phases of bonnie++. Every column of the printed tables is a cell; its ratio is
iolab's number over the original's, paired by round, on ln. Phases that bonnie++ finds too quick to
print ("+++++") are named and not counted.

User CPU is that of what measures (of iolab the agent and its children, which a wrapper reads; of
the originals all), less that of a run over one record, by command. What the rest of iolab takes
does not depend on the size; it is printed below.

Small files and throughput mode follow, as `small.py` compares them (``--only small``, ``--only
throughput``).

``python benches/dialects.py [--rounds N] [--agent PATH] [--only NAME]``; needs root, iozone and
bonnie++.
"""

from __future__ import annotations

import argparse
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

import small
from paired import (
    counting_agent,
    device_over_ram,
    forget_agents,
    mean_interval,
    read_options,
    report,
    used_by_agents,
    write,
)

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
class UserTime:
    """User CPU in seconds."""

    whole: float
    """Of the command."""
    measuring: float
    """Of what measures."""


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
    """Words of the command."""
    front = [sys.executable, "-m", "iolab.cli"] if who == "iolab" else []
    where = ["-f", str(place / "file")]
    if chosen.program == "bonnie++":
        where = ["-q", "-u", "root", "-d", str(place)]
    return ["taskset", "-c", str(CPU), *front, chosen.program, *words, *where]


def run(argv: list[str], scratch: Path) -> tuple[str, UserTime]:
    """Standard output of a finished program, and its user CPU."""
    forget_agents(scratch)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, cwd=scratch, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv[3:])} failed ({done.returncode}): {done.stderr[-500:]}")
    whole = after.ru_utime - before.ru_utime
    of_agents = [user for user, _ in used_by_agents(scratch)]
    is_ours = "iolab.cli" in argv
    if is_ours != bool(of_agents):
        sys.exit(f"{' '.join(argv[3:])}: {len(of_agents)} agents left their user CPU")
    return done.stdout, UserTime(whole, sum(of_agents) if is_ours else whole)


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


@dataclass(slots=True)
class Found:
    """Figures of one run."""

    ratios: dict[str, list[float]]
    """Logarithms of ratios of throughput, by cell and round."""
    user: dict[str, list[tuple[float, float]]]
    """Seconds of user CPU of both, by command and round."""
    little: dict[str, list[float]]
    """Seconds of user CPU of a whole command over one record, by program."""


def measure(chosen: list[Command], place: Path, scratch: Path, rounds: int) -> Found:
    """Run all commands of both programs."""
    order = random.Random(1)
    ratios = dict[str, list[float]]()
    user: dict[str, list[tuple[float, float]]] = {one.name: [] for one in chosen}
    started: dict[str, list[float]] = {"iolab": [], "original": []}
    for _ in range(rounds):
        for one in order.sample(chosen, len(chosen)):
            found = dict[str, dict[str, float | None]]()
            seconds = dict[str, float]()
            for who in order.sample(["iolab", "original"], 2):
                text, whole = run(argv_of(who, one, one.words, place), scratch)
                _, little = run(argv_of(who, one, one.little, place), scratch)
                found[who], seconds[who] = numbers(one, text), whole.measuring - little.measuring
                started[who].append(little.whole)
            for column, mine in found["iolab"].items():
                theirs = found["original"][column]
                cell = ratios.setdefault(f"{one.name} {column}", [])
                if mine is not None and theirs is not None:
                    cell.append(math.log(mine / theirs))
            user[one.name].append((seconds["iolab"], seconds["original"]))
    return Found(ratios, user, started)


def show_user(measured: Found) -> dict[str, list[float]]:
    """Print user CPU by command: medians, and by how much it is more than the original's.

    It is called more only if the 95 % interval of the difference says so.
    """
    print(f"\n{'user CPU of what measures, less one record':50} {'iolab':>8} {'original':>8}")
    found = dict[str, list[float]]()
    for name, pairs in measured.user.items():
        mine, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
        _, low, high = mean_interval([ours - original for ours, original in pairs])
        interval = f"more by [{low:+.3f}, {high:+.3f}]"
        print(f"{name:50} {mine:7.3f}s {theirs:7.3f}s  {interval}{'  MORE' if low > 0 else ''}")
        found[name] = [mine, theirs, low, high]
    both = [list(column) for column in zip(*measured.user.values(), strict=True)]
    sums = [sum(ours - original for ours, original in pairs) for pairs in both]
    _, low, high = mean_interval(sums)
    print(f"{'all commands together':68} more by [{low:+.3f}, {high:+.3f}]")
    ours, original = (statistics.median(measured.little[who]) for who in ("iolab", "original"))
    print(f"{'a whole command over one record':50} {ours:7.3f}s {original:7.3f}s")
    return found | {"together": [low, high], "one record": [ours, original]}


def main() -> int:
    """Run everything and write the JSON."""
    options = read_options(__doc__, "dialects", ["iozone", "bonnie++"])
    chosen = [one for one in commands() if options.only in one.name]
    if not chosen:
        return main_of_small(options)
    with device_over_ram(DEVICE_BYTES) as place, tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        os.environ["IOLAB_AGENT"] = str(counting_agent(options.agent, scratch))
        measured = measure(chosen, place, scratch, options.rounds)
    ratios = measured.ratios
    quick = [cell for cell, values in ratios.items() if len(values) < options.rounds]
    counted = {cell: values for cell, values in ratios.items() if cell not in quick}
    found = report(counted, {})
    for cell in quick:
        print(f"{cell}: too quick for bonnie++ to print a number in some round; not counted")
    found["user_s"] = show_user(measured)
    write(options.out, found | small.compare(options))
    return 0


def main_of_small(options: argparse.Namespace) -> int:
    """Loads of `small.py`, for names that are not among the commands here."""
    found = small.compare(options)
    if not found:
        sys.exit(f"no command's name contains {options.only!r}")
    write(options.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
