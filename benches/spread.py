"""Speed-up of two processes, and cost per trial of each way to spread a simulated study.

Two studies: one of trials that simulate for some time, which tells how much faster two workers are,
and one of trials that simulate nothing to speak of, whose time per trial is the cost of everything
else. Every figure is the median over rounds, ways in turn. Needs two idle processors. ``make
bench``, or ``python benches/spread.py [--rounds N] [--trials N]``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

SPEED_UP_BAR: Final = 1.8
MS_PER_TRIAL_BAR: Final = 5.0
WAYS: Final = {
    "one process": (),
    "two processes": ("--jobs", "2"),
    "Dask, two workers": ("--executor", "dask:local:2"),
}
STUDY: Final = """
name = "spread"
testbed = "sim:sata7200-4tb"
seed = 7
rounds = {rounds}
[factors]
scheduler = ["noop", "deadline"]
[settings]
direct = true
workers = 4
[[workloads]]
kind = "iozone"
tests = ["random-read"]
file_size = "{size}"
record_size = "4k"
"""
LONG, SHORT = "16m", "64k"


def seconds(folder: Path, size: str, n_trials: int, words: tuple[str, ...]) -> float:
    """Time of a whole command; its start is measured apart and taken off."""
    study = folder / "study.toml"
    study.write_text(STUDY.format(rounds=n_trials // 2, size=size))
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command = [sys.executable, "-m", "iolab", "run", str(study), "--out", f"{out}/out", *words]
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        return time.monotonic() - began


def measure(folder: Path, n_trials: int, words: tuple[str, ...]) -> dict[str, float]:
    """Seconds per long trial and milliseconds per short one, the start of a run taken off."""
    start = seconds(folder, SHORT, 4, words)
    return {
        "long_s": (seconds(folder, LONG, n_trials, words) - start) / n_trials,
        "short_ms": (seconds(folder, SHORT, 4 * n_trials, words) - start) / (4 * n_trials) * 1e3,
        "start_s": start,
    }


def main() -> int:
    """Print the table; say where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=100)
    given = parser.parse_args()
    ways = dict(WAYS)
    if importlib.util.find_spec("distributed") is None:
        del ways["Dask, two workers"]
        print("benches/spread.py: left out: Dask is not installed (pip install 'iolab[dask]')")
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.rounds):
            for name, words in ways.items():
                rows[name].append(measure(Path(folder), given.trials, words))
    found = {
        name: {key: statistics.median(one[key] for one in each) for key in each[0]}
        for name, each in rows.items()
    }
    print(f"{'way':20}{'s per trial':>12}{'speed-up':>10}{'ms, empty trial':>17}{'start, s':>10}")
    missed = list[str]()
    for name, one in found.items():
        speed_up = found["one process"]["long_s"] / one["long_s"]
        print(
            f"{name:20}{one['long_s']:12.3f}{speed_up:10.2f}{one['short_ms']:17.2f}"
            f"{one['start_s']:10.2f}"
        )
        if name == "two processes" and speed_up < SPEED_UP_BAR:
            missed.append(f"two processes are {speed_up:.2f} times as fast, not {SPEED_UP_BAR}")
        if one["short_ms"] > MS_PER_TRIAL_BAR:
            missed.append(f"{name}: {one['short_ms']:.1f} ms per trial, not {MS_PER_TRIAL_BAR}")
    load = os.getloadavg()[0]
    for text in missed:
        print(f"benches/spread.py: missed: {text} (load {load:.1f} at the end)")
    print(json.dumps({"bench": "spread", "ways": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
