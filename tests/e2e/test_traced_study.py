"""``--trace`` in studies and dialects: a trace of each trial, and its measures in the record.

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


def test_every_trial_has_the_intervals_of_its_device(iolab: Run, tmp_path: Path) -> None:
    """Without a trace: the intervals add up to what the device did, and can be printed."""
    out = tmp_path / "out"
    words = ("compare", "--on", "loop:300m", "--record-size", "4k,64k", "--fs", "ext4", "--direct")
    done = iolab(*words, "--file-size", "8m", "--test", "write", "--rounds", "1", "--out", out)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(f"file:{out / 'study.db'}?mode=ro", uri=True) as store:
        rows = store.execute("SELECT record_zlib FROM record").fetchall()
    records: list[dict[str, Any]] = [json.loads(zlib.decompress(row[0])) for row in rows]
    for record in records:
        (phase,) = record["phases"]
        (device,) = phase["devices"]
        series = device["series"]
        assert 2 <= len(series["at_ns"]) == len(series["counters"]) <= 128
        assert series["at_ns"] == sorted(series["at_ns"])
        first, last = series["counters"][0], series["counters"][-1]
        assert sum(first[:8]) == 0
        # Each side reads the counters at almost the same moment.
        assert last[4] == pytest.approx(device["writes"], abs=4)
        assert last[6] * 512 == pytest.approx(device["write_bytes"], abs=64 << 10)
    shown = iolab("iostat", out, "-x")
    assert shown.returncode == 0, shown.stderr
    assert "t0001 (" in shown.stdout
    assert shown.stdout.splitlines()[1].split()[:3] == ["Until", "r/s", "rkB/s"]
    one = json.loads(iolab("iostat", out, "--trial", "t0002", "-o", "JSON").stdout)
    assert {row["trial"] for row in one["intervals"]} == {"t0002"}
    solaris = iolab("iostat", out, "--solaris")
    assert "extended device statistics" in solaris.stdout
    for wrong in (("5",), ("-t",), ("--trial", "t0009"), ("sda",)):
        refused = iolab("iostat", out, *wrong)
        assert refused.returncode == 1, wrong


def test_a_null_testbed_has_no_device_to_trace(iolab: Run, tmp_path: Path) -> None:
    words = ("compare", "--on", "null:", "--record-size", "4k,64k", "--trace")
    done = iolab(*words, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "--trace records block events, and no operation on null reaches a device" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("iozone", "-I", "-i", "0", "-i", "2", "-s", "1m", "-r", "64k"),
        ("fio", "--name=a", "--rw=randread", "--size=1m", "--bs=64k", "--direct=1"),
        ("bonnie++", "-D", "-f", "-n", "0", "-s", "8", "-r", "0", "-q"),
        ("mkfile", "1m", "a"),
    ],
    ids=lambda words: words[0],
)
def test_every_dialect_takes_it(iolab: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    out = tmp_path / "out"
    done = iolab(*words, "--on", "sim:sata-2009", "--trace", "--out", out)
    assert done.returncode == 0, done.stderr
    untraced = iolab(*words, "--on", "sim:sata-2009")
    if words[0] == "mkfile":
        assert done.stdout == untraced.stdout
    (path,) = (out / "traces").iterdir()
    stages = iolab("trace", "stages", path)
    assert stages.returncode == 0, stages.stderr
    assert "D2C" in stages.stdout
    again = iolab("run", out, "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert len(list((tmp_path / "again/traces").iterdir())) == 1
    before_name = iolab("--trace", *words, "--on", "sim:sata-2009", "--out", tmp_path / "third")
    assert before_name.returncode == 0, before_name.stderr
    assert (tmp_path / "third/traces").is_dir()


def test_a_simulated_trial_has_the_trace_of_a_recorded_one(iolab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("compare", "--on", "sim:sata-2009", "--scheduler", "none,mq-deadline", "--rounds", "2")
    more = ("--test", "write,random-read", "--file-size", "4m", "--record-size", "64k")
    done = iolab(*words, *more, "--trace", "--out", out)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(f"file:{out / 'study.db'}?mode=ro", uri=True) as store:
        rows = store.execute("SELECT record_zlib FROM record").fetchall()
        names = {row[0] for row in store.execute("SELECT metric FROM measurement")}
    assert {"d2c_ns_p50", "block_read_bytes", "block_write_bytes", "in_flight_mean"} <= names
    records: list[dict[str, Any]] = [json.loads(zlib.decompress(row[0])) for row in rows]
    assert len(records) == 4
    for record in records:
        told = record["trace"]
        content = (out / told["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == told["sha256"]
        assert (told["bytes"], told["lost"], told["problem"]) == (len(content), {}, None)
        for phase in record["phases"]:
            (device,) = phase["trace"]["devices"]
            counts, (counted,) = device["counts"], phase["devices"]
            moved = [counts["completed_of"][way]["bytes"] for way in (0, 1)]
            assert moved == [counted["read_bytes"], counted["write_bytes"]], phase["name"]
            assert sum(moved) == 4 << 20
            little = device["outstanding_by_little"]
            assert little == pytest.approx(device["outstanding"]["mean"], rel=1e-6)
    judged = iolab("report", out)
    assert judged.returncode == 0, judged.stderr
    path = out / records[0]["trace"]["file"]
    shown = iolab("trace", "show", path, "-q")
    assert "240,0" in shown.stdout
    diff = iolab("trace", "diff", path, out / records[1]["trace"]["file"])
    assert diff.returncode == 0, diff.stderr


def test_what_devices_did_may_carry_the_verdict(iolab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("compare", "--on", "sim:sata-2009", "--record-size", "4k,64k", "--rounds", "2")
    more = ("--test", "write", "--file-size", "1m", "--metric", "block_requests", "--trace")
    done = iolab(*words, *more, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "requests to the device" in done.stdout


def test_a_trial_is_simulated_again_into_a_file(iolab: Run, tmp_path: Path) -> None:
    study = tmp_path / "s.toml"
    study.write_text(
        "name = 't'\ntestbed = 'sim:sata-2009'\nrounds = 1\nseed = 3\n"
        "[factors]\nscheduler = ['none', 'bfq']\n"
        "[[workloads]]\nname = 'w'\nkind = 'iozone'\ntests = ['write']\nfile_size = '1m'\n"
    )
    compact = iolab("sim", "trace", study, "--out", tmp_path / "t.iotrace")
    assert compact.returncode == 0, compact.stderr
    plain = iolab("sim", "trace", study, "--out", tmp_path / "t.csv.gz")
    assert plain.returncode == 0, plain.stderr
    both = [iolab("trace", "stages", tmp_path / name) for name in ("t.iotrace", "t.csv.gz")]
    tables = [text.stdout.partition("stage")[2] for text in both]
    assert tables[0] == tables[1] != ""
    again = iolab("sim", "trace", study, "--out", tmp_path / "t.iotrace")
    assert again.returncode == 2, again.stderr


def _points(iolab: Run, trace: Path) -> list[tuple[str, str]]:
    """Process and text of the events of other layers."""
    done = iolab("trace", "show", "-q", "-f", "%a|%p|%P\\n", trace)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines()]
    return [(pid, text) for letter, pid, text in rows if letter == "T"]


def test_a_study_has_the_layers_that_it_asks_for(iolab: Run, tmp_path: Path) -> None:
    study, out = tmp_path / "s.toml", tmp_path / "out"
    study.write_text(
        "name = 't'\ntestbed = 'loop:64m'\nrounds = 1\ntrace = ['syscalls', 'ext4']\n"
        "[settings]\ndirect = true\nfs = 'ext4'\nengine = 'psync'\n"
        "[factors]\nrecord_size = ['4k', '64k']\n"
        "[[workloads]]\nname = 'w'\nkind = 'iozone'\ntests = ['write']\nfile_size = '1m'\n"
    )
    done = iolab("run", study, "--out", out)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(f"file:{out / 'study.db'}?mode=ro", uri=True) as store:
        rows = store.execute("SELECT record_zlib FROM record").fetchall()
    records: list[dict[str, Any]] = [json.loads(zlib.decompress(row[0])) for row in rows]
    sizes = set[int]()
    for record in records:
        told, path = record["trace"], out / record["trace"]["file"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == told["sha256"]
        assert told["lost"] == {}
        points = _points(iolab, path)
        writes = [it for it in points if it[1].startswith("syscalls:sys_enter_pwrite64 ")]
        sizes.add(len([it for it in writes if "count=65536" in it[1]]))
        sizes.add(len([it for it in writes if "count=4096" in it[1]]))
        assert len({pid for pid, _ in writes}) == 1, "who measures, alone"
        assert {text.partition(":")[0] for _, text in points} == {"syscalls", "ext4"}
        stages = record["phases"][0]["trace"]["stages"]
        assert stages["D2C"]["count"] > 10, "layers change nothing about the device"
    assert sizes == {0, 16, 256}
    text = iolab("trace", "summary", out / records[0]["trace"]["file"]).stdout
    assert "system calls\n" in text


def test_a_study_may_do_with_issues_and_completions(iolab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("compare", "--on", "loop:64m", "--record-size", "4k,64k", "--rounds", "1")
    more = ("--file-size", "1m", "--test", "write", "--fs", "ext4", "--direct")
    done = iolab(*words, *more, "--trace-events", "issue-complete", "--out", out)
    assert done.returncode == 0, done.stderr
    for path in (out / "traces").iterdir():
        shown = iolab("trace", "show", "-q", "-f", "%a\\n", path).stdout.split()
        assert set(shown) == {"D", "C"}


def test_a_dialect_takes_layers(iolab: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    job = ("--name=a", "--rw=write", "--size=1m", "--bs=64k", "--ioengine=psync")
    done = iolab("fio", *job, "--on", "loop:64m", "--trace-events", "syscalls", "--out", out)
    assert done.returncode == 0, done.stderr
    (path,) = (out / "traces").iterdir()
    points = [text for _, text in _points(iolab, path) if "sys_enter_pwrite64" in text]
    writes = [text for text in points if "count=65536" in text]
    assert len(writes) == 16
    before = iolab("--trace-events", "ext5", "fio", *job, "--on", "loop:64m")
    assert before.returncode == 1
    assert "--trace-events ext5: 'ext5' is unknown" in before.stderr


@pytest.mark.parametrize("words", ["ext4", "issue-complete", "block,syscalls"])
def test_a_simulation_has_block_events_alone(iolab: Run, tmp_path: Path, words: str) -> None:
    asked = ("compare", "--on", "sim:sata-2009", "--record-size", "4k,64k")
    done = iolab(*asked, "--trace-events", words, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert f"cannot have {words.removeprefix('block,')}: the simulator" in done.stderr
    assert not (tmp_path / "out").exists()
