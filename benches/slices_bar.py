"""Do alternating slices decide in three minutes, and do they err as rarely as they say?

Everything is measured on a plain loop device, through the command line that a user has:

1. *Records*: ten studies of two equal labels in slices, over the eight cells {read, random read,
   rewrite, random write} x {4k, 64k}. Each gives ln-ratios of balanced units. Relabelling units at
   random (both labels are equal) makes 200 windows, into which an effect of 0, 5 or 10 % is
   multiplied: how often does the 95 % interval leave out 1, on the right side?
2. *Variance*: each cell once more in whole trials; the variance of the mean in the same time.
3. *Planted*: five fresh studies of equal labels beside two with a pause after each operation, worth
   5 and 10 % of the throughput, which moves along with its label.

Each bar is printed with its number and interval. ``make bench-aa MINUTES=60`` (as root), or
``python benches/slices_bar.py [--on TESTBED] [--minutes N] [--out DIR]``. With less time all parts
are shorter: then they are not the three minutes that the bars are about, which is said. Stopped,
it goes on where it was. Exits 1 if a bar is missed, 4 if all are met by less than three minutes or
could not be judged.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from validity import Measured, measure, stored

from iolab.stats.judge import judge
from iolab.stats.methods.effect_size import clopper_pearson
from iolab.stats.methods.student import estimate_mean
from iolab.store.db import STORE_NAME, Store

ROOT = Path(__file__).resolve().parent.parent
CELLS: Final = tuple(
    (test, size)
    for test in ("read", "random-read", "rewrite", "random-write")
    for size in ("4k", "64k")
)
RECORDS, WINDOWS, STUDIES = 10, 200, 5
WINDOW_S = 180.0
UNITS_MIN = 5
LEFT_S = 6.0
"""So little is not worth another start."""
POWER_BARS = ((0.05, 0.80), (0.10, 0.95))
EQUAL_BAR = 0.05
VARIANCE_MEDIAN, VARIANCE_LEAST = 10.0, 3.0
PAUSE_TRIED_NS = 100_000
EXIT_MISSED, EXIT_UNDECIDED, EXIT_STOPPED = 1, 4, 130
PROBE = """
name = "probe"
rounds = 4
[factors]
label = ["A", "B"]
[[workloads]]
name = "probe"
kind = "mixed"
duration = "2s"
[[workloads.streams]]
name = "reader"
direction = "read"
pattern = "uniform"
record_size = "256k"
file_size = "64m"
"""


@dataclass(frozen=True)
class Bar:
    """One bar: what was found, within which interval, and whether that is enough."""

    name: str
    value: str
    interval: str
    wanted: str
    is_met: bool | None
    """None: it could not be judged."""

    @property
    def line(self) -> str:
        """As it is printed."""
        word = {True: "ok", False: "MISSED", None: "not judged"}[self.is_met]
        return f"{self.name}: {self.value} {self.interval}; wanted {self.wanted}: {word}"


@dataclass(frozen=True)
class Shares:
    """Seconds of each part."""

    record_s: float
    trials_s: float
    study_s: float

    @staticmethod
    def of(minutes: float) -> Shares:
        """Half of the time for records, a sixth for trials, a quarter for planted studies."""
        whole = minutes * 60
        return Shares(
            min(WINDOW_S, whole / 2 / RECORDS),
            whole / 6 / len(CELLS),
            min(WINDOW_S, whole / 4 / STUDIES),
        )

    @property
    def is_whole(self) -> bool:
        """Tell whether a window and a study are three minutes."""
        return min(self.record_s, self.study_s) >= WINDOW_S


def is_seen(logs: Sequence[float], effect: float) -> bool:
    """Tell whether the 95 % interval of the mean leaves out 0, on the side of the effect."""
    estimate = estimate_mean(logs)
    half = estimate.half_width(0.95)
    if effect == 0:
        return abs(estimate.mean) > half
    return estimate.mean < -half if effect < 0 else estimate.mean > half


def window_shares(
    records: Sequence[Sequence[float]], effect: float, windows: int, seed: int = 1
) -> list[float]:
    """Share of windows that see an effect, by record: units are relabelled at random.

    Parameters
    ----------
    records : ln-ratios of the units of equal labels, by record.
    effect : slow-down that is multiplied in, as a share; 0 leaves labels equal.
    windows : of all records together.
    """
    rng, each = random.Random(seed), -(-windows // len(records))
    planted = math.log1p(-effect)
    found = list[float]()
    for logs in records:
        seen = sum(
            is_seen([planted + rng.choice((-1, 1)) * log for log in logs], -effect)
            for _ in range(each)
        )
        found.append(seen / each)
    return found


def window_bars(records: Sequence[Sequence[float]]) -> list[Bar]:
    """Bars of the stored slices; windows of one record are not independent, records are."""
    usable = [logs for logs in records if len(logs) >= UNITS_MIN]
    bars = list[Bar]()
    for effect, wanted in ((0.0, EQUAL_BAR), *POWER_BARS):
        name = f"slow-down of {effect:.0%} seen" if effect else "equal labels differ"
        sign = "<=" if not effect else ">="
        if len(usable) < RECORDS:
            few = f"{len(usable)} of {RECORDS} records have {UNITS_MIN} units"
            bars.append(Bar(name, few, "", f"{sign} {wanted:.0%}", None))
            continue
        shares = window_shares(usable, effect, WINDOWS)
        estimate = estimate_mean(shares)
        half = estimate.half_width(0.95)
        low, high = max(0.0, estimate.mean - half), min(1.0, estimate.mean + half)
        is_met = estimate.mean >= wanted if effect else low <= wanted
        interval = f"[{low:.1%}, {high:.1%}] over {len(usable)} records"
        bars.append(
            Bar(name, f"{estimate.mean:.1%} of windows", interval, f"{sign} {wanted:.0%}", is_met)
        )
    return bars


def variance_bars(pairs: Sequence[Measured], trials: Sequence[Measured]) -> list[Bar]:
    """Bars of how many times less slices scatter than trials, in the same time."""
    ratios, unknown = list[float](), 0
    for (test, size), slices, whole in zip(CELLS, pairs, trials, strict=True):
        if min(len(slices.logs), len(whole.logs)) < 3 or not slices.variance_second:
            unknown += 1
            continue
        ratio = whole.variance_second / slices.variance_second
        low, high = (ratio / f for f in _f_ends(len(whole.logs) - 1, len(slices.logs) - 1))
        ratios.append(ratio)
        print(f"  {test} {size}: {ratio:.1f} times [{low:.1f}, {high:.1f}]", flush=True)
    if unknown:
        said = f"{unknown} of {len(CELLS)} cells have too few rounds"
        return [Bar("variance, trials to slices", said, "", f">= {VARIANCE_MEDIAN:.0f}", None)]
    median, least = statistics.median(ratios), min(ratios)
    span = f"[{least:.1f}, {max(ratios):.1f}] over {len(ratios)} cells"
    return [
        Bar(
            "variance, trials to slices, median cell",
            f"{median:.1f} times",
            span,
            f">= {VARIANCE_MEDIAN:.0f}",
            median >= VARIANCE_MEDIAN,
        ),
        Bar(
            "variance, trials to slices, worst cell",
            f"{least:.1f} times",
            "",
            f">= {VARIANCE_LEAST:.0f}",
            least >= VARIANCE_LEAST,
        ),
    ]


def _f_ends(above: int, below: int) -> tuple[float, float]:
    """Divisors of a ratio of variances that give its 95 % interval."""
    from scipy.stats import f

    return float(f.ppf(0.975, above, below)), float(f.ppf(0.025, above, below))


def planted_bars(seen: Sequence[tuple[bool, bool, bool]]) -> list[Bar]:
    """Bars of fresh studies: equal labels differ, 5 % seen, 10 % seen."""
    bars = list[Bar]()
    for at, (name, most, least) in enumerate(
        (
            ("fresh studies whose equal labels differ", 1, 0),
            ("fresh studies that see a planted 5 %", STUDIES, 3),
            ("fresh studies that see a planted 10 %", STUDIES, 4),
        )
    ):
        count = sum(one[at] for one in seen)
        wanted = f"<= {most}" if least == 0 else f">= {least}"
        if len(seen) < STUDIES:
            bars.append(Bar(name, f"{count} of {len(seen)} studies", "", wanted, None))
            continue
        share = clopper_pearson(count, len(seen))
        interval = f"(95 % interval {share.low:.0%} to {share.high:.0%})"
        is_met = least <= count <= most
        bars.append(Bar(name, f"{count} of {len(seen)}", interval, wanted, is_met))
    return bars


def cell_words(on: str, test: str, size: str) -> list[str]:
    """Options of a study of equal labels in one cell."""
    words = ["--on", on, "--label", "A,B", "--record-size", size, "--test", test]
    return [*words, "--file-size", "64m"]


def measured_records(
    on: str, out: Path, shares: Shares
) -> tuple[list[Measured], list[Measured], list[list[float]]]:
    """Slices and trials of each cell, and the ln-ratios of all records."""
    pairs, trials = list[Measured](), list[Measured]()
    for number in range(RECORDS):
        test, size = CELLS[number % len(CELLS)]
        folder = out / f"record-{number + 1}"
        words = cell_words(on, test, size)
        found = _once(words, ["--design", "pairs"], folder, shares.record_s)
        said = f"record {number + 1} of {RECORDS}: {test} {size}, {len(found.logs)} units"
        pairs.append(found)
        if number < len(CELLS):
            place = out / f"trials-{number + 1}"
            whole = _once(words, ["--design", "trials"], place, shares.trials_s)
            trials.append(whole)
            said += f", {len(whole.logs)} rounds of trials"
        print(said, flush=True)
    return pairs[: len(CELLS)], trials, [one.logs for one in pairs]


def _once(words: Sequence[str], design: Sequence[str], folder: Path, seconds: float) -> Measured:
    """Measure a study; one that was interrupted is continued for the rest of its time."""
    known = stored(folder)
    left_s = seconds - known.seconds
    return known if known.logs and left_s < LEFT_S else measure(words, design, folder, left_s)


def planted_pauses(on: str, out: Path, seconds: float) -> dict[float, int]:
    """Pauses in ns that are worth 5 and 10 % here, by what one of known length really costs."""
    name = f"delay={PAUSE_TRIED_NS // 1000}us"
    words = ["--on", on, "--workload", str(out / "probe.toml"), "--label", f"A,{name}"]
    found = _once(words, ["--design", "pairs"], out / "pilot", seconds)
    with Store.open_reader(out / "pilot" / STORE_NAME) as store:
        rows = store.load_data().measurements
    rates = [
        m.value for m in rows if m.metric == "throughput_ops_per_s" and m.levels.get("label") == "A"
    ]
    op_ns = 1e9 / statistics.geometric_mean(rates)
    cost_ns = op_ns / math.exp(estimate_mean(found.logs).mean) - op_ns
    beyond_ns = max(0.0, cost_ns - PAUSE_TRIED_NS)
    print(
        f"an operation takes {op_ns / 1000:.0f} us, a pause of {PAUSE_TRIED_NS / 1000:.0f} us costs"
        f" {beyond_ns / 1000:.0f} us more than asked",
        flush=True,
    )
    return {
        effect: max(1_000, round(op_ns * effect / (1 - effect) - beyond_ns))
        for effect, _ in POWER_BARS
    }


def planted_studies(on: str, out: Path, shares: Shares) -> list[tuple[bool, bool, bool]]:
    """For each fresh study: equal labels differ, 5 % is seen, 10 % is seen (by its interval)."""
    (out / "probe.toml").write_text(PROBE, encoding="utf-8")
    pauses = planted_pauses(on, out, max(10.0, shares.study_s / 3))
    labels = ["A", "B", *(f"delay={pause}ns" for pause in pauses.values())]
    seen = list[tuple[bool, bool, bool]]()
    for number in range(1, STUDIES + 1):
        folder = out / f"planted-{number}"
        words = ["--on", on, "--workload", str(out / "probe.toml"), "--label", ",".join(labels)]
        _once(words, ["--design", "pairs"], folder, shares.study_s)
        with Store.open_reader(folder / STORE_NAME) as store:
            headline = judge(store.load_data()).headline
        logs = [[math.log(ratio) for ratio in c.round_ratios.values()] for c in headline]
        if len(logs) < 3 or min(map(len, logs)) < 2:
            continue
        found = (is_seen(logs[0], 0), is_seen(logs[1], -0.05), is_seen(logs[2], -0.10))
        seen.append(found)
        print(f"planted {number} of {STUDIES}: equal differ, 5 %, 10 % seen: {found}", flush=True)
    return seen


def run(on: str, minutes: float, out: Path) -> int:
    """Measure everything, print the bars; the exit code."""
    shares, began = Shares.of(minutes), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    print(
        f"about {minutes:.0f} min on {on}: {RECORDS} records of {shares.record_s:.0f} s,"
        f" {len(CELLS)} cells of {shares.trials_s:.0f} s in trials, {STUDIES} planted studies of"
        f" {shares.study_s:.0f} s; results in {out}",
        flush=True,
    )
    pairs, trials, records = measured_records(on, out, shares)
    bars = [*window_bars(records), *variance_bars(pairs, trials)]
    bars += planted_bars(planted_studies(on, out, shares))
    for bar in bars:
        print(bar.line)
    print(f"{(time.monotonic() - began) / 60:.1f} min")
    return exit_code(bars, shares)


def exit_code(bars: Sequence[Bar], shares: Shares) -> int:
    """1 if a bar is missed, 4 if one was not judged or less than three minutes were measured."""
    if any(bar.is_met is False for bar in bars):
        return EXIT_MISSED
    if not shares.is_whole:
        print(f"these bars are for {WINDOW_S:.0f} s a window; give --minutes 60")
    return 0 if shares.is_whole and all(bar.is_met for bar in bars) else EXIT_UNDECIDED


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--on", default="loop:256m", help="testbed (loop:256m)")
    parser.add_argument("--minutes", type=float, default=60.0, help="for everything (60)")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "slices-bar")
    asked = parser.parse_args()
    try:
        return run(asked.on, asked.minutes, asked.out)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on", file=sys.stderr)
        return EXIT_STOPPED


if __name__ == "__main__":
    sys.exit(main())
