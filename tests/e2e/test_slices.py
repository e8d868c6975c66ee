"""Levels that alternate in slices, on a real loop device and in a directory."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from iolab.store.db import Store

from .conftest import Run
from .machine_state import differences, machine_state

DELAYED = """
name = "delayed"
testbed = "dir:{place}"
design = "pairs"
seed = 3
rounds = 3
[factors]
label = ["A", "delay=2ms"]
[[workloads]]
name = "reader"
kind = "mixed"
duration = "1s"
[[workloads.streams]]
name = "reader"
direction = "read"
record_size = "4k"
file_size = "4m"
"""


def verdict_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "verdict.json").read_text())


@pytest.mark.needs_loop
def test_schedulers_alternate_and_the_device_is_put_back(iolab: Run, tmp_path: Path) -> None:
    out, before = tmp_path / "out", machine_state()
    done = iolab(
        "compare", "--on", "loop:300m", "--scheduler", "none,mq-deadline", "--design", "pairs",
        "--record-size", "4k", "--test", "random-read", "--file-size", "8m", "--rounds", "2",
        "--out", out, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "alternating slices of" in " ".join(done.stdout.split())
    slices = verdict_of(out)["slices"]
    assert slices["sessions"] == 1
    assert slices["switch_cost_ns"] > 0
    assert slices["slices"] >= 2 * 2 * 2
    assert not differences(before, machine_state())


@pytest.mark.needs_loop
def test_adaptive_schedulers_take_turns_on_twins_in_long_slices(iolab: Run, tmp_path: Path) -> None:
    out, before = tmp_path / "out", machine_state()
    done = iolab(
        "compare", "--on", "loop:300m", "--scheduler", "none,bfq", "--design", "pairs",
        "--record-size", "4k", "--test", "random-read", "--file-size", "8m", "--rounds", "2",
        "--out", out, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "on 2 twin devices, one session" in " ".join(done.stdout.split())
    assert 1.2e9 <= verdict_of(out)["slices"]["slice_ns"] <= 2e9
    places, low_latency = Counter[tuple[int, str, int]](), dict[str, str | None]()
    with Store.open_reader(out / "study.db") as store:
        data = store.load_data()
        trials = {trial.trial_id: trial for trial in data.trials}
        for row in data.slices:
            trial = trials[row.trial_id]
            level = trial.levels["scheduler"]
            places.update((trial.round, level, place) for place in row.place)
            if trial.round == 1:
                low_latency[level] = data.knobs[row.trial_id].get("bfq.low_latency")
    # In every balanced unit, each level had each device equally often.
    assert len(places) == 2 * 2 * 2
    assert len(set(places.values())) == 1
    assert low_latency == {"none": None, "bfq": "1"}
    assert not differences(before, machine_state())


def test_a_planted_delay_is_found_in_three_units(iolab: Run, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    study = tmp_path / "study.toml"
    study.write_text(DELAYED.format(place=tmp_path / "place"))
    done = iolab("run", study, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    verdict = verdict_of(tmp_path / "out")
    (headline,) = [c for c in verdict["pooled"] if c["is_headline"]]
    assert headline["rounds_used"] == 3
    assert headline["effect"]["ratio"] < 0.9
    (total,) = verdict["slices"]["totals"]
    assert total["ratio"] < 0.9


@pytest.mark.needs_root
def test_knobs_of_a_disk_that_others_use_do_not_alternate(iolab: Run, tmp_path: Path) -> None:
    done = iolab(
        "compare", "--on", f"dir:{tmp_path}", "--scheduler", "none,mq-deadline", "--design",
        "pairs", "--test", "random-read", "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode != 0
    assert "alternating slices cannot compare this" in done.stderr
    assert not (tmp_path / "out").exists()
