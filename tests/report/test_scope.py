"""Scope of a study in words: the questions that the first screen did not answer.

A reader of the first screen was not told what ran, on what, for how long, what was left out, and
how to get at the values (issue 24).
"""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import pytest

from iolab.report import write_all
from iolab.report.brief import render_brief
from iolab.report.scope import device_text, duration_text, not_tested, workload_text
from iolab.report.terminal import render
from iolab.stats.judge import judge
from iolab.store.rows import StudyData

SPEC = """
name = "x"
[[workloads]]
name = "mixed"
kind = "mixed"
duration = "1s500ms"
[[workloads.streams]]
name = "reader"
direction = "read"
pattern = "uniform"
record_size = "4k"
think = "5ms"
[[workloads.streams]]
name = "writer"
direction = "30%"
pattern = "sequential"
record_size = "64k"
workers = 4
depth = 16
[[workloads]]
name = "plain"
kind = "iozone"
tests = ["write", "read", "random-read"]
[[workloads]]
name = "bonnie++"
dialect = "bonnie++"
command = "-s 64 -r 32 -f"
[[workloads]]
name = "own"
file = "varmail.toml"
"""


def _changed(data: StudyData, *, row: dict[str, Any] | None = None, **changes: Any) -> StudyData:
    return dataclasses.replace(
        data, study=dataclasses.replace(data.study, **(row or {})), **changes
    )


@pytest.fixture
def study(canned: ModuleType) -> StudyData:
    data = canned.make_study()
    settings = {"record_size": "4k", "file_size": "8m", "workers": "2"}
    return _changed(data, row={"spec_toml": SPEC, "settings": settings})


def test_workloads_are_told_in_words(study: StudyData) -> None:
    said = workload_text(study).split("; ")
    assert said[0] == (
        "mixed: reader reads 4k at random with pauses of 5.00 ms and writer (4 workers) reads (30%)"
        " and writes 64k sequentially with 16 requests at once for 1.50 s"
    )
    assert said[1] == (
        "plain: iozone tests write, read and random-read with records of 4k on a file of 8m for "
        "each of 2 workers"
    )
    assert said[2:4] == ["bonnie++ -s 64 -r 32 -f", "own"]
    assert said[4] == "direct I/O"
    assert workload_text(study, 1).split("; ")[1:] == ["and 3 more", "direct I/O"]


@pytest.mark.parametrize("spec", ["", "x = [", "workloads = 3", "workloads = [3]"])
def test_a_study_file_that_says_nothing_leaves_the_names(study: StudyData, spec: str) -> None:
    plain = _changed(study, row={"spec_toml": spec})
    assert workload_text(plain).startswith(", ".join(plain.study.workloads))


def test_hostile_values_of_a_study_file_are_only_text(study: StudyData) -> None:
    spec = (
        "[[workloads]]\nname = 'x'\nduration = '<b>'\n[[workloads.streams]]\nname = '<script>'\n"
        "direction = 7\nworkers = 'many'\ndepth = []\nthink = {a = 1}\n"
    )
    assert "<script>" in workload_text(_changed(study, row={"spec_toml": spec}))


def test_a_device_is_named_as_far_as_facts_tell(study: StudyData) -> None:
    facts = {
        "fs.type": "ext4",
        "fs.source": "/dev/sda",
        "device.sda.model": "Disk X",
        "device.sda.size_sectors": "2097152",
    }
    on_disk = _changed(study, row={"testbed": "dir:/srv"}, facts=facts, varying_facts={})
    assert device_text(on_disk) == "dir:/srv: ext4 on /dev/sda, Disk X, 1 GiB"
    bare = _changed(study, row={"testbed": "device:/dev/sda"}, facts={}, varying_facts={})
    assert device_text(bare) == "device:/dev/sda"
    sources = {f"t{i}": f"/dev/loop{i}" for i in range(5)}
    many = _changed(study, facts={"fs.type": "xfs"}, varying_facts={"fs.source": sources})
    assert device_text(many) == "loop:1g: xfs"


def test_time_taken_leaves_pauses_out(study: StudyData) -> None:
    assert duration_text(study).endswith("s")
    first, *rest = study.trials
    later = (first.started_at_unix_ns or 0) + 7200 * 10**9
    paused = [first, *(dataclasses.replace(t, started_at_unix_ns=later) for t in rest)]
    assert " of trials within 2 h 0" in duration_text(dataclasses.replace(study, trials=paused))
    unfinished = [dataclasses.replace(t, elapsed_ns=None) for t in study.trials]
    assert duration_text(dataclasses.replace(study, trials=unfinished)) == ""


def test_what_was_not_tested_depends_on_what_was(canned: ModuleType, study: StudyData) -> None:
    assert not_tested(study).startswith("buffered I/O, ")
    assert not_tested(study).endswith(", real disks")
    assert not_tested(canned.simulated()).endswith("real devices")
    reads = canned.make_study(workloads=(canned.Workload("iozone", ("read",), ("4k",)),))
    assert "writes" in not_tested(reads).split(", ")
    both = canned.make_study(workloads=(canned.Workload("iozone", ("read", "write"), ("4k",)),))
    assert not {"reads", "writes"} & set(not_tested(both).split(", "))
    null = _changed(study, row={"testbed": "null:"})
    assert not_tested(null).endswith("every device")


def test_an_imported_table_tells_no_device(canned: ModuleType) -> None:
    trials = [dataclasses.replace(t, elapsed_ns=None) for t in canned.make_study().trials]
    row = {"kind": "imported", "testbed": "imported:t.csv"}
    data = _changed(canned.make_study(), row=row, trials=trials)
    assert device_text(data) == "not known: the table does not say"
    assert duration_text(data) == ""
    assert "Tested: " not in render_brief(data, judge(data))


def test_the_first_screen_answers_the_questions(canned: ModuleType, tmp_path: Any) -> None:
    data = canned.factorial()
    verdict = judge(data)
    page = write_all(data, verdict, tmp_path).html.read_text()
    first = page.partition('class="contents"')[0]
    for label in ("Workload", "Device", "Time taken", "Not tested", "All values"):
        assert f"<dt>{label}</dt>" in first
    assert "iolab export DIR --csv" in first
    said = render_brief(data, verdict, "here")
    for begin in ("Next: ", "Tested: ", "Trials: ", "Not tested: ", "All of it: "):
        assert f"\n{begin}" in said
    assert "values: iolab export here --csv" in said.replace("Values", "values")


def test_words_of_no_difference_are_explained_in_the_terminal(canned: ModuleType) -> None:
    data = canned.make_study(noise=0.001, rounds=8)
    verdict = judge(data)
    word = verdict.headline[0].effect.word
    assert word in ("same", "trivial")
    said = " ".join(render_brief(data, verdict).split())
    assert f"({word}: within)" in said or f"({word}, " in said or f", {word}: within)" in said
    assert f"{word.capitalize()}: " in render(data, verdict)
    plain = canned.make_study(throughput={"bfq": 0.5}, rounds=6)
    assert ": within)" not in render_brief(plain, judge(plain))
