"""A study with ``--trace``: a trace of each trial, and its stage times in the record.

Conservation: what was completed between begin and end of a phase is what the kernel's counters of
the device say of that phase.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

pytestmark = pytest.mark.needs_loop

_STUDY = (
    *("compare", "--on", "loop:300m", "--scheduler", "none,mq-deadline", "--fs", "ext4"),
    *("--file-size", "8m", "--direct", "--rounds", "1", "--trace"),
)


def test_every_trial_has_its_trace_and_stage_times(
    iolab: Run, tmp_path: Path, untouched_machine: dict[str, str]
) -> None:
    del untouched_machine
    out = tmp_path / "out"
    done = iolab(*_STUDY, "--out", out)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(f"file:{out / 'study.db'}?mode=ro", uri=True) as store:
        rows = store.execute("SELECT record_zlib FROM record").fetchall()
        names = {row[0] for row in store.execute("SELECT metric FROM measurement")}
    assert {"d2c_ns_p50", "q2c_ns_p50", "q2d_ns_p50"} <= names
    records: list[dict[str, Any]] = [json.loads(zlib.decompress(row[0])) for row in rows]
    assert len(records) == 2
    for record in records:
        told = record["trace"]
        content = (out / told["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == told["sha256"]
        assert (told["lost"], told["bytes"], told["problem"]) == ({}, len(content), None)
        for phase in record["phases"]:
            (device,) = phase["trace"]["devices"]
            (counted,) = phase["devices"]
            moved = counted["read_bytes"] + counted["write_bytes"]
            completed = device["counts"]["completed"]["bytes"]
            # The counters are read just before and after; the journal's writes may lie between.
            assert abs(moved - completed) <= 64 << 10, phase["name"]
            assert phase["trace"]["stages"]["D2C"]["count"] > 1000
    summary = iolab("trace", "summary", out / records[0]["trace"]["file"])
    assert summary.returncode == 0
    assert "D2C" in summary.stdout
    several = iolab("trace", "stages", out)
    assert several.returncode == 1
    assert "holds 2 traces" in several.stderr


def test_a_study_file_may_ask_for_it(iolab: Run, tmp_path: Path) -> None:
    study, out = tmp_path / "s.toml", tmp_path / "out"
    study.write_text(
        "name = 't'\ntestbed = 'loop:300m'\nrounds = 1\ntrace = true\n"
        "metric = 'd2c_ns_p50'\n[settings]\ndirect = true\nfs = 'ext4'\n"
        "[factors]\nscheduler = ['none', 'bfq']\n"
        "[[workloads]]\nname = 'w'\nkind = 'iozone'\ntests = ['write']\nfile_size = '8m'\n"
    )
    done = iolab("run", study, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "median time in the device" in done.stdout
    assert len(list((out / "traces").iterdir())) == 2
    study.write_text(study.read_text().replace("trace = true", "trace = 'yes'"))
    refused = iolab("run", study, "--out", tmp_path / "other")
    assert refused.returncode == 1
    assert "neither true nor false" in refused.stderr


def test_a_simulated_study_has_no_kernel_to_trace(iolab: Run, tmp_path: Path) -> None:
    words = ("compare", "--on", "sim:sata-2009", "--scheduler", "none,bfq", "--trace")
    done = iolab(*words, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "iolab sim trace" in done.stderr
    assert not (tmp_path / "out").exists()
