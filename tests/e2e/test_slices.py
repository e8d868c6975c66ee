"""Levels that alternate in slices, on a real loop device and in a directory."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from iolab.errors import TestbedError
from iolab.run.slices import session_spec
from iolab.store.db import Store
from iolab.study.load import study_from_table
from iolab.study.plan import make_plan
from iolab.study.source import FlagSource
from iolab.testbed.agent import Agent
from iolab.testbed.command import find_agent
from iolab.testbed.model import DirectoryTestbed

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


@pytest.mark.parametrize(("slice_ms", "is_refused"), [(12, True), (999, True), (1000, False)])
def test_the_agent_does_not_switch_faster_than_once_a_second_what_others_use(
    tmp_path: Path, slice_ms: int, is_refused: bool
) -> None:
    study = study_from_table(
        {
            "testbed": "device:/dev/null",
            "seed": 1,
            "rounds": 2,
            "design": "pairs",
            "factors": {"scheduler": ["none", "mq-deadline"]},
            "workloads": [{"kind": "iozone", "tests": ["random-read"], "file_size": "1m"}],
        },
        FlagSource({}),
    )
    core: Any = importlib.import_module("iolab._core")
    spec = session_spec(make_plan(study), core, units=1, time_ns=0, round_number=1)
    pairs = spec.get("pairs")
    assert pairs is not None
    pairs["slice_min_ns"] = slice_ms * 1_000_000
    spec["stack"] = None
    devices = [path.name for path in Path("/sys/block").iterdir()]
    with Agent([str(find_agent())]) as agent:
        # A rehearsal refuses what a run would, and changes nothing.
        agent.hello("r-fast", is_dry_run=True)
        agent.open_testbed(DirectoryTestbed(tmp_path, tuple(devices)).agent_spec())
        try:
            said = str(agent.run_trial(spec).get("status"))
        except TestbedError as error:
            said = str(error)
        agent.close_testbed()
    assert ("more often than once a second" in said) == is_refused, said


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
