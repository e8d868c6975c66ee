"""Do alternating slices say the same as whole trials? The test that earns rows of the table.

One study is measured twice on the same kind of testbed, by slices and by at least 30 rounds of
trials, in the order slices, trials, slices, so that a drift of the machine favours neither. Each
gives ln-ratios of a level to the baseline, one a round. Slices are equivalent where the difference
of both means lies within the margin (two one-sided tests, Welch's variances, level 5 %), that is
where its 90 % interval does. What a row earns holds for its factor, program, testbed and metric.

The variances are printed beside it, for the same time: how many times less slices scatter.

``make bench-aa VALIDITY=1 MINUTES=25`` (as root) tests the four most important rows one after the
other, or ``python benches/validity.py [--rows NAMES | --factor NAME=A,B ...] [--minutes N]
[--rounds N] [--out DIR] [--keep]``. Before each row it says how long that takes. It may be stopped
at any time (Ctrl-C): what is measured is stored, and the same command goes on with it, also when
the minutes were over before 30 rounds of trials were there. With ``--keep`` the results of rows
with enough rounds are written to `python/iolab/study/validity_results.json`, from which `make docs`
writes the table of the page and studies take their usual design.

Exits 1 if a row's designs differ by more than the margin, 4 if that cannot be told yet.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iolab.stats.judge import judge
from iolab.stats.methods.student import estimate_mean
from iolab.stats.methods.welch import estimate_difference
from iolab.store.db import STORE_NAME, Store

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "python" / "iolab" / "study" / "validity_results.json"
MARGIN, ALPHA = 0.05, 0.05
ROUNDS_MIN = 30
GRACE_S = 90.0
"""Beside its budget a study makes a testbed and reports."""
EXIT_DIFFERENT, EXIT_UNDECIDED, EXIT_STOPPED = 1, 4, 130
METRIC = "throughput_bytes_per_s"
OWN_DEVICE = "device"
"""Stands for a loop device that this bench makes: its knobs are written before each slice."""
OWN_DEVICE_BYTES = 512 << 20


@dataclass(frozen=True)
class Row:
    """A comparison that earns a row, and the words of the command line that measure it."""

    factor: str
    levels: str
    testbed: str
    words: tuple[str, ...]
    program: str = "tests"
    is_buffered: bool = False

    @property
    def kind(self) -> str:
        """Kind of its testbed."""
        return self.testbed.partition(":")[0]

    @property
    def text(self) -> str:
        """The row in a line."""
        return f"{self.factor}={self.levels} on {self.testbed} ({' '.join(self.words)})"


_FILE = ("--file-size", "64m")
_READS = ("--test", "random-read", *_FILE)
ROWS = {
    "record-size": Row("record_size", "4k,16k", "loop:512m", _READS),
    "read-ahead": Row(
        "read_ahead_kb",
        "0,128",
        "loop:512m",
        ("--test", "read", *_FILE, "--record-size", "4k", "--buffered"),
        is_buffered=True,
    ),
    "switched": Row("scheduler", "none,mq-deadline", OWN_DEVICE, (*_READS, "--record-size", "4k")),
    "depth": Row(
        "depth", "1,8", "loop:512m", (*_READS, "--record-size", "4k", "--engine", "io_uring")
    ),
}
"""The most important rows, in the order in which they are tested."""


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
    low: float
    """90 % interval of the ratio of both ratios, whose place in the margin is the test."""
    high: float
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
    half = difference.half_width(1 - 2 * ALPHA)
    low, high = difference.mean - half, difference.mean + half
    return Agreement(
        math.exp(estimate_mean(slices.logs).mean),
        math.exp(estimate_mean(trials.logs).mean),
        math.exp(low),
        math.exp(high),
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
    """Run or continue one study by the command line that a user has, for so many seconds more.

    What is not done by then is interrupted, which keeps complete rounds.
    """
    database = folder / STORE_NAME
    if database.is_file():
        with Store.open_reader(database) as store:
            spent = store.elapsed_ns() / 1e9
        rounds = design[design.index("--rounds") :] if "--rounds" in design else []
        serial = words[words.index("--erase-serial") :][:2] if "--erase-serial" in words else []
        asked = ["run", str(folder), "--resume", *rounds, *serial]
        budget = ["--budget", f"{spent + seconds:.0f}s"]
    else:
        asked = ["compare", *words, *design, "--out", str(folder)]
        budget = ["--budget", f"{seconds:.0f}s"]
    command = [sys.executable, "-m", "iolab", *asked, *budget]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as running:
        try:
            _, said = running.communicate(timeout=seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            _, said = running.communicate()
        except KeyboardInterrupt:
            # The terminal has told it, too: it ends in order, and keeps what is complete.
            running.communicate()
            raise
    if not database.is_file():
        sys.exit(f"{' '.join(command)}\n{said}")
    return stored(folder)


def stored(folder: Path) -> Measured:
    """Measurements of a study so far; none before it began."""
    if not (folder / STORE_NAME).is_file():
        return Measured([], 0.0)
    with Store.open_reader(folder / STORE_NAME) as store:
        seconds = store.elapsed_ns() / 1e9
        headline = judge(store.load_data()).headline
    ratios = [ratio for c in headline[:1] for ratio in c.round_ratios.values()]
    return Measured([math.log(ratio) for ratio in ratios], seconds)


@contextmanager
def testbed_words(row: Row) -> Iterator[list[str]]:
    """Options that name the testbed of a row; a device of its own is made and removed again."""
    if row.testbed != OWN_DEVICE:
        yield ["--on", row.testbed]
        return
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="iolab-validity-") as file:
        file.truncate(OWN_DEVICE_BYTES)
        attach = ["losetup", "--direct-io=on", "--find", "--show", file.name]
        made = subprocess.run(attach, check=True, capture_output=True, text=True)
        device = made.stdout.strip()
        try:
            serial = f"{Path(file.name).name}-{Path(file.name).stat().st_ino}"
            yield ["--on", f"device:{device}", "--erase-serial", serial]
        finally:
            subprocess.run(["losetup", "--detach", device], check=False)


def words_of(row: Row, testbed: Sequence[str]) -> list[str]:
    """The study that both designs measure, as options of `iolab compare`."""
    return [*testbed, f"--{row.factor.replace('_', '-')}", row.levels, *row.words]


def parts_of(row: Row, out: Path, rounds: int, seconds: float) -> tuple[Measured, Measured]:
    """Measure slices, trials, slices, or what is missing of them; each part is stored."""
    out.mkdir(parents=True, exist_ok=True)
    names = ("slices-1", "trials", "slices-2")
    found = {name: stored(out / name) for name in names}
    missing = [
        name
        for name in names
        if len(found[name].logs) < (rounds if name == "trials" else ROUNDS_MIN // 2)
    ]
    shares = {name: 2.0 if name == "trials" else 1.0 for name in missing}
    with testbed_words(row) as testbed:
        words = words_of(row, testbed)
        for name in missing:
            is_trials = name == "trials"
            design = ["trials", "--rounds", str(rounds)] if is_trials else ["pairs"]
            share = seconds * shares[name] / sum(shares.values())
            found[name] = measure(words, ["--design", *design], out / name, share)
            part = found[name]
            print(f"  {name}: {len(part.logs)} rounds in {part.seconds:.0f} s", flush=True)
    halves = (found["slices-1"], found["slices-2"])
    logs = [value for half in halves for value in half.logs]
    return Measured(logs, sum(half.seconds for half in halves)), found["trials"]


def result_of(row: Row, slices: Measured, trials: Measured) -> dict[str, Any] | None:
    """Result of a row as it is stored, told as it is; None with too few rounds for a test."""
    n = len(trials.logs)
    if min(len(slices.logs), n) < 2:
        print(f"  {len(slices.logs)} units and {n} rounds are too few to compare anything")
        return None
    found = agreement(slices, trials)
    word = earned(found, n)
    for label, one, ratio in (
        ("slices", slices, found.ratio_slices),
        ("trials", trials, found.ratio_trials),
    ):
        error = math.sqrt(one.variance_second / one.seconds)
        print(f"  {label}: ratio {ratio:.4f}, standard error of ln {error:.4f}")
    print(
        f"  slices against trials: {found.ratio_slices / found.ratio_trials:.4f}, 90 % interval"
        f" [{found.low:.4f}, {found.high:.4f}]; margin {MARGIN:.0%}: {1 / (1 + MARGIN):.4f} to"
        f" {1 + MARGIN:.4f}; differ by the margin or more: p = {found.p_equivalent or math.nan:.3g}"
    )
    print(
        f"  variance in the same time: trials have {found.variance_ratio:.1f} times that of slices"
    )
    enough = "" if n >= ROUNDS_MIN else f"; {ROUNDS_MIN} are needed: the same command goes on"
    print(f"  row: {row.text}: {word} ({n} rounds of trials{enough})", flush=True)
    return {
        "factor": row.factor,
        "levels": row.levels,
        "program": row.program,
        "testbed": row.kind,
        "metric": METRIC,
        "is_buffered": row.is_buffered,
        "margin": MARGIN,
        "word": word,
        "rounds": n,
        "units": len(slices.logs),
        "kernel": platform.release(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        **{name: _rounded(value) for name, value in asdict(found).items()},
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def keep(result: dict[str, Any], kept: Path) -> None:
    """Put the result of a row in the place of an older one of the same row."""
    names = ("factor", "program", "testbed", "metric", "is_buffered")
    found = json.loads(kept.read_text(encoding="utf-8"))
    others = [one for one in found if any(one[name] != result[name] for name in names)]
    kept.write_text(json.dumps([*others, result], indent=2) + "\n", encoding="utf-8")
    print(f"  kept in {kept.name}; `make docs` writes it into docs/reference/validity.md")


def rows_of(asked: argparse.Namespace) -> dict[str, Row]:
    """Rows that were asked for, by name."""
    if asked.factor:
        name, _, levels = asked.factor.partition("=")
        what = ("--workload", asked.workload) if asked.workload else ("--test", asked.test)
        sizes = () if name == "record_size" else ("--record-size", "4k")
        words = (*what, "--file-size", asked.file_size, *sizes)
        program = "streams" if asked.workload else "tests"
        return {name: Row(name, levels, asked.on, words, program)}
    names = list(ROWS) if asked.rows == "all" else asked.rows.split(",")
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        sys.exit(f"--rows {','.join(unknown)}: no such row; there are {', '.join(ROWS)}")
    return {name: ROWS[name] for name in names}


def run(asked: argparse.Namespace) -> int:
    """Test the rows; the worst of their exit codes."""
    rows, out = rows_of(asked), asked.out
    ends = time.monotonic() + asked.minutes * 60
    codes = [0]
    for index, (name, row) in enumerate(rows.items()):
        left_s = max(30.0, (ends - time.monotonic()) / (len(rows) - index))
        print(
            f"row {index + 1} of {len(rows)}: {row.text}; about {left_s / 60:.1f} min (half of it"
            f" {asked.rounds} rounds of trials); results in {out / name}",
            flush=True,
        )
        result = result_of(row, *parts_of(row, out / name, asked.rounds, left_s))
        word = result["word"] if result else ""
        codes.append({"shown": 0, "different": EXIT_DIFFERENT}.get(word, EXIT_UNDECIDED))
        if result is not None:
            (out / name / "validity.json").write_text(json.dumps(result, indent=2) + "\n")
            if asked.keeps and result["rounds"] >= ROUNDS_MIN:
                keep(result, KEPT)
    return EXIT_DIFFERENT if EXIT_DIFFERENT in codes else max(codes)


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", default="all", help=f"all, or some of {','.join(ROWS)}")
    parser.add_argument("--factor", help="a row of your own, as in scheduler=none,bfq")
    parser.add_argument("--on", default="loop:512m", help="testbed of that row")
    parser.add_argument("--test", default="random-read", help="its test")
    parser.add_argument("--workload", help="a preset of one stream instead of a test")
    parser.add_argument("--file-size", default="64m")
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN, help="of trials")
    parser.add_argument("--minutes", type=float, default=25.0, help="for all rows together (25)")
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "target" / "validity",
        help="where parts are stored and found again (target/validity)",
    )
    parser.add_argument("--keep", dest="keeps", action="store_true", help="write the table's data")
    try:
        return run(parser.parse_args())
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on", file=sys.stderr)
        return EXIT_STOPPED


if __name__ == "__main__":
    sys.exit(main())
