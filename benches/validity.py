"""Do alternating slices say the same as whole trials? The test that earns a row of the table.

One study is measured twice on the same kind of testbed, by slices and by at least 30 rounds of
trials, in the order slices, trials, slices, so that a drift of the machine favours neither. Each
gives ln-ratios of a level to the baseline, one a round. Slices are equivalent where the difference
of both means lies within the margin (two one-sided tests, Welch's variances, level 5 %); a row is
marked as shown in `iolab.study.validity` by hand, with what this prints.

The variances are printed beside it, for the same time: how many times less slices scatter.

It ends after ``--minutes`` (a quarter for each half of the slices, the rest for trials): what is
not measured by then is left out, and fewer than 30 rounds of trials earn nothing. Every part is
stored as soon as it ends, its study and a line of ``validity.json`` in ``--out``.

``make bench-aa VALIDITY=1`` (as root), or ``python benches/validity.py [--on TESTBED]
[--factor NAME=A,B] [--test TEST | --workload PRESET] [--rounds N] [--minutes N] [--out DIR]``;
exits 1 if the two differ by more than the margin, 4 if that cannot be told.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.run.outputs import fresh_directory
from iolab.stats.judge import judge
from iolab.stats.methods.student import estimate_mean
from iolab.stats.methods.welch import estimate_difference
from iolab.store.db import STORE_NAME, Store

MARGIN, ALPHA = 0.05, 0.05
ROUNDS_MIN = 30
GRACE_S = 90.0
"""Beside its budget a study makes a testbed and reports."""
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


def earned(found: Agreement, rounds: int) -> str:
    """The word of a row: an agreement counts from so many rounds of trials on."""
    if found.word == "shown" and rounds < ROUNDS_MIN:
        return "not shown"
    return found.word


def measure(words: Sequence[str], design: Sequence[str], folder: Path, seconds: float) -> Measured:
    """Run one study by the command line that a user has, for so many seconds at most.

    What is not done by then is interrupted, which keeps complete rounds.
    """
    began = time.monotonic()
    budget = ["--budget", f"{seconds:.0f}s"]
    command = [sys.executable, "-m", "iolab", "compare", *words, *design, *budget]
    with subprocess.Popen(
        [*command, "--out", str(folder)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as running:
        try:
            _, said = running.communicate(timeout=seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            _, said = running.communicate()
    if running.returncode != 0 and not (folder / STORE_NAME).is_file():
        sys.exit(f"{' '.join(command)}\n{said}")
    with Store.open_reader(folder / STORE_NAME) as store:
        headline = judge(store.load_data()).headline
    ratios = [ratio for c in headline[:1] for ratio in c.round_ratios.values()]
    return Measured([math.log(ratio) for ratio in ratios], time.monotonic() - began)


def words_of(asked: argparse.Namespace) -> list[str]:
    """The study that both designs measure, as options of `iolab compare`."""
    name, _, levels = asked.factor.partition("=")
    words = [
        "--on",
        asked.on,
        f"--{name.replace('_', '-')}",
        levels,
        "--file-size",
        asked.file_size,
    ]
    if asked.workload:
        return [*words, "--workload", asked.workload]
    sizes = [] if name == "record_size" else ["--record-size", "4k"]
    return [*words, *sizes, "--test", asked.test]


def parts_of(asked: argparse.Namespace, out: Path) -> tuple[Measured, Measured]:
    """Measure slices, trials, slices; each part is stored when it ends."""
    words, seconds = words_of(asked), asked.minutes * 60
    plan = (
        ("slices-1", ["--design", "pairs"], seconds / 4),
        ("trials", ["--design", "trials", "--rounds", str(asked.rounds)], seconds / 2),
        ("slices-2", ["--design", "pairs"], seconds / 4),
    )
    found: dict[str, Measured] = {}
    for name, design, share in plan:
        found[name] = measure(words, design, out / name, share)
        done = {one: {"ln_ratios": it.logs, "seconds": it.seconds} for one, it in found.items()}
        record = {"factor": asked.factor, "on": asked.on, "workload": asked.workload or asked.test}
        (out / "validity.json").write_text(json.dumps({**record, "parts": done}, indent=2) + "\n")
        print(
            f"  {name}: {len(found[name].logs)} rounds in {found[name].seconds:.0f} s", flush=True
        )
    halves = (found["slices-1"], found["slices-2"])
    logs = [value for half in halves for value in half.logs]
    return Measured(logs, sum(half.seconds for half in halves)), found["trials"]


def main() -> int:
    """Run the test of one row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--on", default="loop:512m")
    parser.add_argument("--factor", default="scheduler=none,mq-deadline")
    parser.add_argument("--test", default="random-read")
    parser.add_argument("--workload", help="a preset of streams instead of a test")
    parser.add_argument("--file-size", default="64m")
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--minutes", type=float, default=12.0, help="all of it, about")
    parser.add_argument("--out", type=Path, help="where parts are stored (iolab-out/validity-N)")
    asked = parser.parse_args()
    out = asked.out or fresh_directory("validity")
    out.mkdir(parents=True, exist_ok=True)
    print(f"{asked.factor} on {asked.on}, {asked.workload or asked.test}; results in {out}")
    slices, whole = parts_of(asked, out)
    if min(len(slices.logs), len(whole.logs)) < 2:
        print("too few rounds to compare anything", file=sys.stderr)
        return EXIT_UNDECIDED
    found = agreement(slices, whole)
    for label, one, ratio in (
        ("slices", slices, found.ratio_slices),
        ("trials", whole, found.ratio_trials),
    ):
        error = math.sqrt(one.variance_second / one.seconds)
        print(f"  {label}: ratio {ratio:.4f}, standard error of ln {error:.4f}")
    print(f"  differ by {MARGIN:.0%} or more: p = {found.p_equivalent or math.nan:.3g}")
    print(
        f"  variance in the same time: trials have {found.variance_ratio:.1f} times that of slices"
    )
    word = earned(found, len(whole.logs))
    print(
        f"row: {asked.factor} | {asked.workload or asked.test} | {asked.on} | {word}"
        f" ({len(whole.logs)} rounds of trials, {ROUNDS_MIN} are needed)"
    )
    return {"shown": 0, "different": EXIT_DIFFERENT}.get(word, EXIT_UNDECIDED)


if __name__ == "__main__":
    sys.exit(main())
