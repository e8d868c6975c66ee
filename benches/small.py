"""`iolab iozone` beside IOzone where phases take microseconds, and in throughput mode.

On a tmpfs of our own: files of 64 kB to 1 MB, all tests 0 to 7, both programs on one CPU; and two
children at once, all six lines of each of IOzone's blocks. A phase is too short to be measured
once: within each round a command is run several times in random order, and a round's ratio is that
of the medians. Numbers are used as printed. IOzone takes the resolution of its clock, 1 us, from
every interval before it divides; iolab does not, so a second pooled ratio is printed with that put
back, for information: the bar is about what is printed.

``python benches/small.py [--rounds N] [--agent PATH] [--only small|throughput]``; needs root (for
the tmpfs) and iozone. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paired import BAR_CELL, BAR_POOLED, below, bounds, command, holm, read_options, report, write

CPU = max(os.sched_getaffinity(0))
COLUMNS = (
    *("write", "rewrite", "read", "reread", "random-read", "random-write", "backward-read"),
    *("record-rewrite", "stride-read", "fwrite", "frewrite", "fread", "freread"),
)
TESTS = [word for test in range(8) for word in ("-i", str(test))]
SIZES_KB = ((64, 4), (128, 4), (512, 4), (1024, 64))
"""File and record."""
REPEATS = 7
LOADS_KB = ((512, 4), (16384, 64))
"""File and record of each of two children."""
LOAD_REPEATS = 1
LINES = ("Children see", "Parent sees", "Min throughput", "Max throughput", "Avg", "Min xfer")
PARENT_OFF = 0.10
"""By so much the parent's line may differ, to either side."""
RESOLUTION_S = 1e-6
Cells = dict[str, float]


@dataclass(frozen=True, slots=True)
class Load:
    """A command line, without its program and the place of its files."""

    name: str
    words: tuple[str, ...]
    file_kb: int
    repeats: int
    is_throughput: bool


def loads() -> list[Load]:
    """All that is compared."""
    found = list[Load]()
    for file_kb, record_kb in SIZES_KB:
        words = (*TESTS, "-s", str(file_kb), "-r", str(record_kb))
        found.append(Load(f"small {file_kb}k/{record_kb}k", words, file_kb, REPEATS, False))
    for file_kb, record_kb in LOADS_KB:
        tests = ("-t", "2", "-i", "0", "-i", "1", "-i", "2")
        words = (*tests, "-s", str(file_kb), "-r", str(record_kb))
        name = f"throughput {file_kb}k/{record_kb}k"
        found.append(Load(name, words, file_kb, LOAD_REPEATS, True))
    return found


@contextmanager
def in_ram() -> Iterator[Path]:
    """A directory on a tmpfs of our own, gone afterwards."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        command(["mount", "-t", "tmpfs", "-o", "size=256m", "iolab-bench", name])
        try:
            yield Path(name)
        finally:
            command(["umount", name])


def run(who: str, load: Load, place: Path) -> Cells:
    """Numbers that a program prints, one per column or line."""
    front = [sys.executable, "-m", "iolab.cli"] if who == "iolab" else []
    if load.is_throughput:
        argv = [*front, "iozone", *load.words, "-F", str(place / "a"), str(place / "b")]
    else:
        argv = ["taskset", "-c", str(CPU), *front, "iozone", *load.words, "-f", str(place / "a")]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(argv, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)} failed ({done.returncode}): {done.stderr[-500:]}")
    if load.is_throughput:
        return throughput_lines(done.stdout)
    rows = re.findall(r"^[ \d]+$", done.stdout, re.MULTILINE)
    cells = [float(word) for word in rows[-1].split()][2:]
    return dict(zip(COLUMNS, cells, strict=True))


def throughput_lines(text: str) -> Cells:
    """All lines of all blocks, by test and line."""
    found, test = Cells(), ""
    for line in text.splitlines():
        if block := re.search(r"Children see throughput for +\d+ (.*?)\s*=", line):
            test = block[1]
        if number := re.match(rf"\t({'|'.join(LINES)}).*= +([\d.]+) ", line):
            found[f"{test} {number[1]}"] = float(number[2])
    return found


@dataclass(slots=True)
class Found:
    """Logarithms of ratios of medians, by cell and round."""

    printed: dict[str, list[float]]
    as_timed: dict[str, list[float]]
    """Of single streams, with the resolution of IOzone's clock put back."""


def as_timed(kb_per_s: float, file_kb: int) -> float:
    """IOzone's rate over the interval that it saw."""
    return file_kb / (file_kb / kb_per_s + RESOLUTION_S)


def measure(chosen: Sequence[Load], place: Path, rounds: int) -> Found:
    """Run all commands of both programs."""
    order, found = random.Random(1), Found({}, {})
    for number in range(rounds):
        for load in order.sample(list(chosen), len(chosen)):
            seen: dict[str, list[Cells]] = {"iolab": [], "original": []}
            for _ in range(load.repeats):
                for who in order.sample(list(seen), 2):
                    seen[who].append(run(who, load, place))
            for cell in seen["iolab"][0]:
                mine, theirs = (
                    statistics.median(cells[cell] for cells in seen[who])
                    for who in ("iolab", "original")
                )
                if mine > 0 and theirs > 0:
                    name = f"{load.name} {cell}"
                    found.printed.setdefault(name, []).append(math.log(mine / theirs))
                    if not load.is_throughput:
                        theirs = as_timed(theirs, load.file_kb)
                        found.as_timed.setdefault(name, []).append(math.log(mine / theirs))
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return found


def pooled(ratios: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Ratio and interval of the rounds' means over all cells that have a number in each round."""
    rounds = max(map(len, ratios))
    whole = [values for values in ratios if len(values) == rounds]
    return bounds([statistics.fmean(values) for values in zip(*whole, strict=True)])


def show_lines(ratios: dict[str, list[float]]) -> dict[str, list[float]]:
    """Print the lines of throughput mode, each with a bar of its own."""
    found = dict[str, list[float]]()
    for line in LINES:
        cells = {cell: values for cell, values in ratios.items() if cell.endswith(f" {line}")}
        if not cells:
            continue
        center, low, high = pooled(list(cells.values()))
        if line == "Parent sees":
            low_bar, high_bar = math.log(1 - PARENT_OFF), math.log(1 + PARENT_OFF)
            is_met = low_bar <= math.log(center) <= high_bar
            bar = f"within {PARENT_OFF:.0%}"
        else:
            adjusted = holm({cell: below(values, BAR_CELL) for cell, values in cells.items()})
            is_met = low >= BAR_POOLED and min(adjusted.values()) >= 0.05
            bar = f"bar {BAR_POOLED}"
        for cell, values in cells.items():
            print(f"  {cell:58} {math.exp(statistics.fmean(values)):6.3f}")
        verdict = "met" if is_met else "MISSED"
        print(f"{line:40} {center:6.3f}  [{low:.3f}, {high:.3f}]  {bar}: {verdict}")
        found[line] = [center, low, high]
    return found


def compare(options: argparse.Namespace) -> dict[str, object]:
    """Measure, print, and answer what is written."""
    chosen = [load for load in loads() if options.only in load.name]
    if not chosen:
        return {}
    os.environ["IOLAB_AGENT"] = str(options.agent)
    with in_ram() as place:
        measured = measure(chosen, place, options.rounds)
    single = {name: measured.printed[name] for name in measured.as_timed}
    rest = {name: v for name, v in measured.printed.items() if name not in measured.as_timed}
    answer = dict[str, object]()
    if single:
        answer["small"] = report(single, {})
        center, low, high = pooled(list(measured.as_timed.values()))
        print(f"{'pooled, the resolution put back':40} {center:6.3f}  [{low:.3f}, {high:.3f}]")
        answer["as_timed"] = [center, low, high]
    if rest:
        answer["throughput"] = show_lines(rest)
    return answer


def main() -> int:
    """Run everything and write the JSON."""
    options = read_options(__doc__, "small", ["iozone"])
    found = compare(options)
    if not found:
        sys.exit(f"no load's name contains {options.only!r}")
    write(options.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
