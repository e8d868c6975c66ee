"""Do alternating slices say the same as whole trials? The test that earns a row of the table.

One study is measured twice on the same kind of testbed, by slices and by at least 30 rounds of
trials, in the order slices, trials, slices, so that a drift of the machine favours neither. Each
gives ln-ratios of a level to the baseline, one a round. Slices are equivalent where the difference
of both means lies within the margin (two one-sided tests, Welch's variances, level 5 %); a row is
marked as shown in `iolab.study.validity` by hand, with what this prints.

The variances are printed beside it, for the same time: how many times less slices scatter.

``make bench-aa VALIDITY=1`` (as root), or ``python benches/validity.py [--on TESTBED]
[--factor NAME=A,B] [--test TEST] [--rounds N] [--minutes N]``; exits 1 if the two differ by more
than the margin, 4 if that cannot be told.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.stats.judge import judge
from iolab.stats.methods.student import estimate_mean
from iolab.stats.methods.welch import estimate_difference
from iolab.store.db import STORE_NAME, Store

MARGIN, ALPHA = 0.05, 0.05
ROUNDS_MIN = 30
EXIT_DIFFERENT, EXIT_UNDECIDED = 1, 4


@dataclass(frozen=True)
class Measured:
    """The ln-ratios of a level to the baseline, and what they took."""

    logs: list[float]
    seconds: float

    @property
    def variance_second(self) -> float:
        """Variance of the mean times the time that it took: less is better."""
        sd = estimate_mean(self.logs).sd or math.nan
        return sd**2 / len(self.logs) * self.seconds


@dataclass(frozen=True)
class Agreement:
    """Results of both designs for one comparison."""

    ratio_slices: float
    ratio_trials: float
    p_equivalent: float | None
    """Of "they differ by the margin or more"."""
    p_equal: float | None
    variance_ratio: float
    """Of trials to slices, in the same time."""

    @property
    def word(self) -> str:
        """``shown``, ``different`` or ``not shown``."""
        if self.p_equivalent is not None and self.p_equivalent < ALPHA:
            return "shown"
        is_beyond = abs(math.log(self.ratio_slices / self.ratio_trials)) > math.log1p(MARGIN)
        is_different = self.p_equal is not None and self.p_equal < ALPHA and is_beyond
        return "different" if is_different else "not shown"


def agreement(slices: Measured, trials: Measured) -> Agreement:
    """Compare both designs; each has at least two rounds."""
    difference = estimate_difference(slices.logs, trials.logs)
    return Agreement(
        math.exp(estimate_mean(slices.logs).mean),
        math.exp(estimate_mean(trials.logs).mean),
        difference.p_beyond(math.log1p(MARGIN)),
        difference.p_value(),
        trials.variance_second / slices.variance_second,
    )


def measure(words: Sequence[str], design: Sequence[str], folder: Path) -> Measured:
    """Run one study by the command line that a user has."""
    began = time.monotonic()
    command = [sys.executable, "-m", "iolab", "compare", *words, *design, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    with Store.open_reader(folder / STORE_NAME) as store:
        headline = judge(store.load_data()).headline
    ratios = [ratio for c in headline[:1] for ratio in c.round_ratios.values()]
    return Measured([math.log(ratio) for ratio in ratios], time.monotonic() - began)


def main() -> int:
    """Run the test of one row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--on", default="loop:512m")
    parser.add_argument("--factor", default="scheduler=none,mq-deadline")
    parser.add_argument("--test", default="random-read")
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--minutes", type=float, default=3.0)
    asked = parser.parse_args()
    name, _, levels = asked.factor.partition("=")
    sizes = [] if name == "record_size" else ["--record-size", "4k"]
    words = ["--on", asked.on, f"--{name.replace('_', '-')}", levels, *sizes]
    words += ["--test", asked.test, "--file-size", "64m"]
    half = ["--design", "pairs", "--budget", f"{asked.minutes * 30:.0f}s"]
    with tempfile.TemporaryDirectory() as folder:
        first = measure(words, half, Path(folder) / "slices-1")
        trials = ["--design", "trials", "--rounds", str(max(ROUNDS_MIN, asked.rounds))]
        whole = measure(words, trials, Path(folder) / "trials")
        second = measure(words, half, Path(folder) / "slices-2")
    slices = Measured(first.logs + second.logs, first.seconds + second.seconds)
    if min(len(slices.logs), len(whole.logs)) < 2:
        print("too few rounds to compare anything", file=sys.stderr)
        return EXIT_UNDECIDED
    found = agreement(slices, whole)
    print(f"{asked.factor} on {asked.on}, {asked.test}, 4k records unless varied")
    for label, one, ratio in (
        ("slices", slices, found.ratio_slices),
        ("trials", whole, found.ratio_trials),
    ):
        error = math.sqrt(one.variance_second / one.seconds)
        print(
            f"  {label}: ratio {ratio:.4f}, standard error of ln {error:.4f},"
            f" {len(one.logs)} rounds in {one.seconds:.0f} s"
        )
    print(f"  differ by {MARGIN:.0%} or more: p = {found.p_equivalent or math.nan:.3g}")
    print(
        f"  variance in the same time: trials have {found.variance_ratio:.1f} times that of slices"
    )
    print(f"  equivalence: {found.word}")
    return {"shown": 0, "different": EXIT_DIFFERENT}.get(found.word, EXIT_UNDECIDED)


if __name__ == "__main__":
    sys.exit(main())
