"""The short answer of the terminal: at most 25 lines, the answer first."""

from __future__ import annotations

import re
from dataclasses import replace
from types import ModuleType

import pytest

from iolab.report.brief import LINES_MAX, LINES_OF_FILES, render_brief
from iolab.report.findings import listed
from iolab.report.markdown import render_markdown
from iolab.report.terminal import render
from iolab.stats.finding import HEAVY, WEIGHTS, Finding
from iolab.stats.findings import FINDINGS, kind_of
from iolab.stats.judge import judge
from iolab.store.rows import StudyData

SIZES = ("4k", "8k", "16k", "32k")
STUDIES = ("demo", "simulated", "record_sizes", "factorial", "alone", "published_d2", "surfaces")


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_short_answer_fits_and_begins_with_the_sentence(
    canned: ModuleType, name: str, width: int
) -> None:
    study = getattr(canned, name)()
    verdict = judge(study)
    text = render_brief(study, verdict, "results", "iolab report results --full", width=width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert verdict.sentence.replace("\N{NARROW NO-BREAK SPACE}", " ").startswith(
        " ".join(lines[0].split()[:5])
    )
    if width >= 80:
        assert len(lines) <= LINES_MAX - LINES_OF_FILES
    assert "iolab report results --full" in text


@pytest.mark.parametrize("name", [name for name in STUDIES if name != "alone"])
def test_every_comparison_that_carries_the_verdict_is_there_or_counted(
    canned: ModuleType, name: str
) -> None:
    study = getattr(canned, name)()
    verdict = judge(study)
    text = render_brief(study, verdict)
    for group in dict.fromkeys(c.group for c in verdict.pooled):
        rows = [c for c in verdict.pooled if c.group == group]
        header = f"{group[0]}, "
        is_drawn = any(
            line.startswith(header) and (not group[2] or group[2] in line)
            for line in text.splitlines()
        )
        is_counted = f"Not shown here: {'throughput'}" in text
        assert is_drawn or is_counted, rows[0]


@pytest.mark.parametrize("name", STUDIES)
def test_every_doubt_is_named_or_counted(canned: ModuleType, name: str) -> None:
    study = getattr(canned, name)()
    verdict = judge(study)
    text = " ".join(render_brief(study, verdict).split())
    doubts = [f for f in verdict.caveats if kind_of(f.kind).severity == "doubt"]
    named = [f for f in doubts if kind_of(f.kind).name_shown in text]
    assert len(named) == len(doubts) or f"and {len(doubts) - len(named)} more" in text


def test_a_short_answer_that_is_whole_is_the_whole_answer(canned: ModuleType) -> None:
    study = canned.make_study(
        rounds=5, workloads=(canned.Workload("iozone", ("read",), ("4k",)),), slices=4
    )
    study = replace(study, caveats=(), varying_facts={}, phase_details=[])
    verdict = judge(study)
    assert render_brief(study, verdict) == render(study, verdict)


def without_p99(data: StudyData, gone: list[tuple[str, str]]) -> StudyData:
    """Return the study without the p99 of some cells: operation and record size."""
    kept = [
        m
        for m in data.measurements
        if m.metric != "latency_ns_p99"
        or (m.operation, m.levels.get("record_size", "")) not in gone
    ]
    return replace(data, measurements=kept)


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ([("read", "4k")], "p99 latency (read · 32k only)"),
        ([("read", "4k"), ("read", "8k")], "p99 latency (2 of 4 cells)"),
        ([("read", "4k"), ("read", "8k"), ("read", "16k")], "p99 latency (read · 32k only)"),
        ([("read", "16k")], "p99 latency (3 of 4 cells)"),
    ],
)
def test_a_metric_that_fewer_cells_have_says_which(
    canned: ModuleType, gone: list[tuple[str, str]], said: str
) -> None:
    """Means over one cell and over two stood side by side without a word; then it was counted
    ("1 of 2 cells"), and the reader had to find out which one.
    """
    sizes = ("4k", "32k") if said.endswith("32k only)") and len(gone) == 1 else SIZES
    data = canned.make_study(workloads=(canned.Workload("iozone", ("write", "read"), sizes),))
    assert "cells)" not in render(data, judge(data))
    data = without_p99(data, gone)
    verdict = judge(data)
    assert said in render(data, verdict)
    assert said in render_markdown(data, verdict)


def test_two_cells_with_short_names_are_named(canned: ModuleType) -> None:
    work = canned.Workload("short", ("a", "b", "c"))
    data = without_p99(canned.make_study(workloads=(work,)), [("b", "")])
    assert "p99 latency (a and c only)" in render(data, judge(data))


def test_names_of_cells_are_whole_in_the_head_of_a_narrow_table(canned: ModuleType) -> None:
    work = canned.Workload("workload-of-a-long-name", ("write", "read", "random-read"))
    data = without_p99(canned.make_study(workloads=(work,)), [("read", "")])
    text = render(data, judge(data), width=80)
    assert "p99 latency (random-read only)" in text
    assert max(map(len, text.splitlines())) <= 80


LIGHT_FIRST = (
    *("no_block_device", "knob_changed", "governor", "deep_idle", "load", "stalls"),
    *("many_treatments", "unsafe_mount", "cpu_pressure", "environment_changed", "cpu_bound"),
)
"""Kinds in an order in which those that question the verdict come last."""


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_caveat_that_questions_the_verdict_is_never_only_counted(
    canned: ModuleType, width: int
) -> None:
    """Symptom: "- also: governor, deep idle and 1 more"; the one was that processors were the
    limit. Caveats had the order in which they were found.
    """
    study = canned.demo()
    caveats = [Finding(name, f"{name} was seen.") for name in LIGHT_FIRST]
    text = render_brief(study, replace(judge(study), caveats=caveats), width=width)
    said = " ".join(text.split())
    assert all(name in said for name in ("cpu bound", "cpu pressure", "environment changed"))
    assert re.search(r" and \d+ more Not shown", said)
    assert width < 80 or text.count("\n") <= LINES_MAX - LINES_OF_FILES
    assert "- cpu bound: " in text or "Caveats: cpu bound, " in text


@pytest.mark.parametrize("width", [80, 100])
def test_more_such_caveats_than_any_study_has_leave_room_for_the_rest(
    canned: ModuleType, width: int
) -> None:
    study = canned.demo()
    caveats = [Finding(kind.name, "Seen.") for kind in FINDINGS if kind.is_listed]
    text = render_brief(study, replace(judge(study), caveats=caveats), width=width)
    assert text.count("\n") <= LINES_MAX - LINES_OF_FILES
    assert re.search(r" and \d+ more\nNot shown", text)


def test_every_format_lists_the_heaviest_caveat_first(canned: ModuleType) -> None:
    study = canned.demo()
    verdict = replace(judge(study), caveats=[Finding(name, "Seen.") for name in LIGHT_FIRST])
    wanted = ["cpu_bound", "cpu_pressure", "environment_changed", "no_block_device"]
    for where in ("first screen", "terminal", "markdown", "page", "workbook"):
        assert [f.kind for f in listed(verdict, where)][:4] == wanted
    assert [f.kind for f in verdict.caveats] == list(LIGHT_FIRST)


def test_the_row_of_a_kind_alone_decides_its_weight() -> None:
    assert WEIGHTS[: len(HEAVY)] == HEAVY
    for kind in FINDINGS:
        assert kind.weight in WEIGHTS
        if kind.severity == "note":
            assert kind.rank == len(WEIGHTS) - 1
