"""Do the studies of example 08 give the same answers on a loop device and in simulation?

Each study runs on the kernel at hand (`--on loop:2g`) and on the example's own simulated stack. A
line for each workload and level has the throughput over that of the baseline on both sides. The
bar: where the kernel's difference is decided (better or worse), the simulated one has the same
sign; and two workloads whose intervals do not overlap in the kernel have the same order in
simulation.

``python benches/beside_loop.py [--rounds N] [--study NAME.toml]``; needs root, 5 minutes with the
24 rounds that are usual.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab.cli.main import main as iolab

EXAMPLE: Final = Path(__file__).resolve().parents[1] / "examples" / "08-delayed-allocation"
STUDIES: Final = ("study.toml", "systems.toml")
METRIC: Final = "throughput_bytes_per_s"
ROUNDS: Final = 24


@dataclass(frozen=True)
class Row:
    """Throughput of a level over that of the baseline."""

    workload: str
    level: str
    word: str
    ratio: float
    low: float
    high: float

    @property
    def key(self) -> tuple[str, str]:
        """Workload and level."""
        return self.workload, self.level


def rows(verdict: Path) -> dict[tuple[str, str], Row]:
    """Read the pooled throughput of each workload and level."""
    found: dict[tuple[str, str], Row] = {}
    for row in json.loads(verdict.read_text(encoding="utf-8"))["pooled"]:
        if row["metric"] != METRIC or row["parts"]:
            continue
        effect = row["effect"]
        interval = effect["interval_95"] or {"low": math.nan, "high": math.nan}
        key = (row["workload"], row["level"])
        found[key] = Row(*key, effect["word"], effect["ratio"], interval["low"], interval["high"])
    return found


def misses(real: dict[tuple[str, str], Row], mine: dict[tuple[str, str], Row]) -> list[str]:
    """Name what the simulation says otherwise than the kernel."""
    found = list[str]()
    for key, row in real.items():
        same_sign = (row.ratio > 1) == (mine[key].ratio > 1)
        if row.word in ("better", "worse") and not same_sign:
            found.append(f"{' '.join(key)}: {row.ratio:.3f}, simulated {mine[key].ratio:.3f}")
    for one, other in itertools.permutations(real.values(), 2):
        # Without an interval nothing is decided.
        if one.level != other.level or not one.high < other.low:
            continue
        ratios = [mine[row.workload, row.level].ratio for row in (one, other)]
        if ratios[0] >= ratios[1]:
            found.append(
                f"{one.level}: {one.workload} {one.ratio:.3f} below {other.workload} "
                f"{other.ratio:.3f}, simulated {ratios[0]:.3f} and {ratios[1]:.3f}"
            )
    return found


def told(real: dict[tuple[str, str], Row], mine: dict[tuple[str, str], Row]) -> list[str]:
    """Lines of both sides, in the kernel's order."""
    lines = [f"{'workload':12} {'level':12} {'kernel':>8}  {'95 %':17} {'word':9} simulated"]
    for key, row in sorted(real.items(), key=lambda item: (item[0][1], item[1].ratio)):
        interval = f"[{row.low:.3f}, {row.high:.3f}]"
        lines.append(
            f"{row.workload:12} {row.level:12} {row.ratio:8.3f}  {interval:17} {row.word:9} "
            f"{mine[key].ratio:9.3f}"
        )
    return lines


def outcome(study: Path, place: str, out: Path, *more: str) -> dict[tuple[str, str], Row]:
    """Run a study on a testbed and read what came of it."""
    if iolab(["run", str(study), "--on", place, "--out", str(out), *more]) != 0:
        raise SystemExit(f"{study.name} did not run on {place}")
    return rows(out / "verdict.json")


def simulated(study: Path, out: Path) -> dict[tuple[str, str], Row]:
    """Run a study on the simulated loop device of the example."""
    return outcome(study, f"sim:{EXAMPLE / 'loop-device.toml'}", out)


def both_sides(study: Path, rounds: int, folder: Path) -> int:
    """Run a study on both sides and print them; the number of misses."""
    real = outcome(study, "loop:2g", folder / "real", "--rounds", str(rounds))
    mine = simulated(study, folder / "simulated")
    print(f"\n{study.name}, Linux {os.uname().release}, {rounds} rounds")
    print("\n".join(told(real, mine)))
    found = misses(real, mine)
    print("\n".join(f"MISSED {miss}" for miss in found) or "same signs, same order")
    return len(found)


def main() -> int:
    """Run the studies; 1 if the simulation says otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--study", choices=STUDIES, action="append")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("benches/beside_loop.py: left out, it needs root")
        return 0
    missed = 0
    for name in arguments.study or STUDIES:
        with tempfile.TemporaryDirectory() as folder:
            missed += both_sides(EXAMPLE / name, arguments.rounds, Path(folder))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
