"""Does `iolab aa` hold on a real device, and does it find a slow-down of known size?

Three steps, all through the command line a user has. First an A/A study of twenty rounds with a
pause injected under a third label: it gives the noise, how long an operation takes and what a pause
really costs here. From the noise follow the rounds that `iolab plan` would ask for, from the times
the pause that is worth 10 % of the throughput. Then ten fresh studies of that many rounds, each
with its own file system, order and seed: the pause must be found in at least eight. Labels that
change nothing run beside it in every study; how often those differ is counted, too.

``make bench-aa`` (as root), or ``python benches/aa_bar.py [--on TESTBED] [--studies N]
[--minutes N]``; exits 1 if the bar is missed, 4 if so noisy a machine cannot decide in time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.stats.methods.effect_size import clopper_pearson
from iolab.stats.methods.log_ratio import geometric_mean
from iolab.stats.planning import Noise, needed
from iolab.store.db import STORE_NAME, Store

ROOT = Path(__file__).resolve().parent.parent
MARGIN = 0.05
WORTH = 0.10
"""Of the throughput; by the verdict rule this is what the rounds are planned for, too."""
PILOT_ROUNDS = 20
PILOT_PAUSE_NS = 100_000
SLOW_REQUEST_NS = 30_000_000
LABELS = 3
ROUNDS_MIN = 4
"""`iolab aa` evaluates no fewer."""
SHARE_FOUND = 0.8
EXIT_MISSED, EXIT_UNDECIDED = 1, 4
PROBE = """
name = "probe"
rounds = 20
[factors]
label = ["A", "B"]
[[workloads]]
name = "probe"
kind = "mixed"
duration = "{duration}"
[[workloads.streams]]
name = "reader"
direction = "read"
pattern = "uniform"
record_size = "64k"
file_size = "{size}"
"""


@dataclass(frozen=True)
class Lab:
    """Directory in which the studies run."""

    folder: Path
    testbed: str
    flags: tuple[str, ...]
    started: float

    def study(self, name: str, rounds: int, pause_ns: int) -> dict[str, Any]:
        """Run one `iolab aa` and read what it kept."""
        arguments = ["aa", "--on", self.testbed, "--workload", "probe.toml", "--out", name]
        arguments += ["--rounds", str(rounds), "--for-rounds", str(max(2, min(rounds, 10)))]
        arguments += ["--inject", f"{pause_ns}ns", *self.flags]
        command = [sys.executable, "-m", "iolab.cli", *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 5):
            sys.exit(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()}")
        return json.loads((self.folder / name / "aa.json").read_text(encoding="utf-8"))

    def op_ns(self, name: str) -> float:
        """From one operation of label A to the next, geometric mean over trials."""
        with Store.open_reader(self.folder / name / STORE_NAME) as store:
            measurements = store.load_data().measurements
        rates = [
            m.value
            for m in measurements
            if m.metric == "throughput_ops_per_s" and m.levels["label"] == "A"
        ]
        return 1e9 / geometric_mean(rates)

    @property
    def spent_s(self) -> float:
        """Since the bench began."""
        return time.monotonic() - self.started


@dataclass(frozen=True)
class Prepared:
    """Summary that the first study gives of the others."""

    rounds: int
    pause_ns: int
    false_positives: int
    small_studies: int


def prepare(lab: Lab, tell: Callable[[str], None]) -> Prepared | None:
    """Run the first study; None if this machine is too noisy for a thousand rounds."""
    pilot = lab.study("pilot", PILOT_ROUNDS, PILOT_PAUSE_NS)
    op_ns = lab.op_ns("pilot")
    noise = Noise(pilot["sd_upper"], "A/A")
    rounds = needed(noise, MARGIN, LABELS - 1, None).for_difference
    tell(
        f"A/A of {pilot['n_rounds']} rounds on {lab.testbed}: B / A = {pilot['ratio']:.4f}"
        f" [{pilot['ratio_low']:.4f}, {pilot['ratio_high']:.4f}], sd of a round's ratio"
        f" {pilot['sd']:.2%} (at most {pilot['sd_upper']:.2%}), {pilot['false_positives']} of"
        f" {pilot['small_studies']} small studies differ; {lab.spent_s:.0f} s"
    )
    if rounds is None:
        return None
    # A pause is at least as long as asked: what it costs beyond is taken off what is asked for.
    beyond_ns = op_ns / pilot["control"]["ratio"] - op_ns - PILOT_PAUSE_NS
    wanted_ns = op_ns * WORTH / (1 - WORTH)
    pause_ns = max(1_000, round(wanted_ns - beyond_ns))
    tell(
        f"an operation takes {op_ns / 1000:.0f} us, a pause of {PILOT_PAUSE_NS / 1000:.0f} us costs"
        f" {beyond_ns / 1000:.0f} us more than asked; {pause_ns / 1000:.0f} us are asked for a"
        f" slow-down of {WORTH:.0%}; {rounds} rounds are planned for it"
    )
    return Prepared(
        max(ROUNDS_MIN, rounds), pause_ns, pilot["false_positives"], pilot["small_studies"]
    )


def run(lab: Lab, n_studies: int, limit_s: float, tell: Callable[[str], None]) -> int:
    """Run all three steps; returns the exit code."""
    plan = prepare(lab, tell)
    trial_s = lab.spent_s / (PILOT_ROUNDS * LABELS)
    needed_s = math.inf if plan is None else n_studies * plan.rounds * LABELS * trial_s
    if plan is None or lab.spent_s + needed_s > limit_s:
        tell(
            f"UNDECIDED: {n_studies} studies would take {needed_s / 60:.0f} min more, the limit is"
            f" {limit_s / 60:.0f} min: a quieter machine, or more --minutes"
        )
        return EXIT_UNDECIDED
    found = worse = 0
    wrong, small = plan.false_positives, plan.small_studies
    for number in range(1, n_studies + 1):
        result = lab.study(f"study-{number}", plan.rounds, plan.pause_ns)
        control = result["control"]
        is_worse = control["high"] < 1 / (1 + MARGIN)
        differs = not result["ratio_low"] <= 1 <= result["ratio_high"]
        found, worse = found + control["is_found"], worse + is_worse
        wrong, small = wrong + differs, small + 1
        word = "found" if control["is_found"] else "NOT found"
        tell(
            f"study {number}: {word}, ratio {control['ratio']:.3f} [{control['low']:.3f},"
            f" {control['high']:.3f}]{', worse by more than the margin' if is_worse else ''};"
            f" B / A {result['ratio']:.3f} [{result['ratio_low']:.3f}, {result['ratio_high']:.3f}]"
            f"{' DIFFERS' if differs else ''}; {lab.spent_s:.0f} s"
        )
    share = clopper_pearson(wrong, small)
    holds, is_met = share.low <= 0.05, found >= math.ceil(SHARE_FOUND * n_studies)
    tell(
        f"equal labels differ in {wrong} of {small} studies (95 % interval {share.low:.0%} to"
        f" {share.high:.0%}, 5 % expected): {'holds' if holds else 'DOES NOT HOLD'}"
    )
    tell(
        f"the pause is found in {found} of {n_studies} studies of {plan.rounds} rounds (at least"
        f" {math.ceil(SHARE_FOUND * n_studies)}), shown to cost more than {MARGIN:.0%} in {worse}:"
        f" {'ok' if is_met else 'MISSED'}"
    )
    return 0 if holds and is_met else EXIT_MISSED


def main(arguments: list[str] | None = None, tell: Callable[[str], None] = print) -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", dest="testbed", default="loop:256m", help="testbed (loop:256m)")
    parser.add_argument("--studies", type=int, default=10, help="with the planned rounds (10)")
    parser.add_argument("--minutes", type=float, default=15, help="give up if it takes longer (15)")
    parser.add_argument("--duration", default="1s", help="of a trial (1s)")
    parser.add_argument("--image-dir", help="where the image of a loop device lies (/var/tmp)")
    parser.add_argument(
        "--slow-disk",
        dest="is_slow_disk",
        action="store_true",
        help="on a loop device of 30 ms a request (tools/slow_disk.py): a busy CPU matters less",
    )
    asked = parser.parse_args(arguments)
    if asked.is_slow_disk and "SLOW_DISK" not in os.environ:
        again = [sys.executable, str(ROOT / "tools" / "slow_disk.py"), sys.executable, __file__]
        environment = os.environ | {"SLOW_DISK_REQUEST_NS": str(SLOW_REQUEST_NS)}
        command = [*again, *(arguments or sys.argv[1:])]
        return subprocess.run(command, env=environment, check=False).returncode
    with tempfile.TemporaryDirectory(prefix="iolab-aa-") as folder:
        size = "1m" if asked.is_slow_disk else "64m"
        probe = PROBE.format(duration=asked.duration, size=size)
        (Path(folder) / "probe.toml").write_text(probe, encoding="utf-8")
        testbed, more = asked.testbed, ("--image-dir", asked.image_dir) if asked.image_dir else ()
        if asked.is_slow_disk:
            testbed = f"device:{os.environ['SLOW_DISK']}"
            more = ("--erase-serial", os.environ["SLOW_DISK_SERIAL"])
        lab = Lab(Path(folder), testbed, more, time.monotonic())
        return run(lab, asked.studies, asked.minutes * 60, tell)


if __name__ == "__main__":
    sys.exit(main(tell=lambda text: print(text, flush=True)))
