"""Cost of an operation with this build beside another one, such as that of the last release.

Both agents run the same operations in one run, in random order inside each round, pinned to one
CPU: reads of the null target, and cached 4 KiB reads of a file, in order, at random and many at
once. A cost is the CPU time of the whole process minus that of an empty run, per operation; the
interval is a 95 % t interval of the paired ln-ratio. A program of steps has a case of its own where
both builds know programs.

``python benches/builds.py --base OTHER_AGENT [--agent PATH] [--rounds N] [--ops N]``
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

from paired import bounds, write

from iolab.testbed.command import find_agent
from run import CPUS, FILE_BYTES, ROOT, Program, ns_per_op, ours

BAR = 1.03
CASES = {
    "null": ("null", "sequential", 1, 8),
    "null, depth 32": ("null", "uniform", 32, 8),
    "psync 4k cached, in order": ("psync", "sequential", 1, 1),
    "psync 4k cached, at random": ("psync", "uniform", 1, 1),
    "io_uring 4k cached, depth 32": ("io_uring", "uniform", 32, 1),
}
"""Engine, pattern, depth, and how many times as many operations as asked for."""


def ratio_of(case: str, programs: tuple[Program, Program], rounds: int, ops: int) -> list[float]:
    """Paired ln-ratios of this build's cost to that of the other one, by round."""
    order, found = random.Random(case), list[float]()
    for _ in range(rounds):
        costs = {one.name: ns_per_op(one, ops) for one in order.sample(programs, 2)}
        if min(costs.values()) > 0:
            found.append(math.log(costs["this"] / costs["base"]))
    return found


def main() -> int:
    """Run all cases; ends with 1 if an upper bound is above the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=Path, required=True, help="agent of the other build")
    parser.add_argument("--agent", type=Path, help="default: the installed one")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "builds.json")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ops", type=int, default=500_000)
    options = parser.parse_args()
    agents = {"this": options.agent or Path(find_agent()), "base": options.base}
    os.sched_setaffinity(0, set(CPUS[-1:]))
    rows, is_met = list[dict[str, object]](), True
    print(f"{'cost per operation, this build / base':40} {'ratio':>6}  95 %")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = Path(name)
        (directory / "data.0").write_bytes(random.Random(1).randbytes(FILE_BYTES))
        for case, (engine, pattern, depth, factor) in CASES.items():
            base, this = (
                Program(who, ours(agents[who], directory, engine, pattern, depth).start)
                for who in ("base", "this")
            )
            ratios = ratio_of(case, (base, this), options.rounds, options.ops * factor)
            center, low, high = bounds(ratios)
            is_met = is_met and high <= BAR
            mark = "" if high <= BAR else f"  above {BAR}"
            print(f"{case:40} {center:6.3f}  [{low:.3f}, {high:.3f}]{mark}", flush=True)
            rows.append(
                {"case": case, "ratio": [center, low, high], "median": statistics.median(ratios)}
            )
    print(f"bar: each upper bound <= {BAR}: {'met' if is_met else 'MISSED'}")
    write(options.out, {"cases": rows, "rounds": options.rounds, "argv": json.dumps(sys.argv[1:])})
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
