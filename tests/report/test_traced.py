"""Charts and tables that stand on block traces: stages of a request, work of the device, pictures.

Their rows are made by hand here; that records give such rows is tested with real and simulated
studies (`tests/e2e/test_report_of_traces.py`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from types import ModuleType
from typing import Any

import openpyxl
import pytest

from iolab.report.chart import ChartSpec
from iolab.report.charts import request_stages
from iolab.report.collect import draw_all
from iolab.report.device_work import NOTE, TITLE, work_table
from iolab.report.markdown import render_markdown
from iolab.report.svg import render_svg
from iolab.report.terminal import render
from iolab.report.traced_trials import (
    PICTURES_MAX,
    kept_figures,
    traced_pairs,
    wanted_trials,
)
from iolab.report.why import why_text
from iolab.report.xlsx import SHEETS, render_xlsx
from iolab.stats.judge import judge
from iolab.store.rows import StudyData, TracedPhase, TrialRow

MIB = 1 << 20


def stage(count: int, mean_ns: int, p99_ns: int = 0) -> Any:
    return {"count": count, "sum_ns": count * mean_ns, "mean_ns": mean_ns, "p99_ns": p99_ns}


def phase(trial: TrialRow, operation: str, **changes: Any) -> TracedPhase:
    """An operation of 1000 requests of 4 KiB: 1 µs to a request, 2 in the scheduler, 7 below."""
    means = {"Q2G": 1000, "I2D": 2000, "D2C": 7000} | changes.pop("means", {})
    stages = {name: stage(1000, mean, 3 * mean) for name, mean in means.items()}
    stages["Q2C"] = stage(1000, sum(means.values()), 3 * sum(means.values()))
    row = TracedPhase(
        trial_id=trial.trial_id,
        operation=operation,
        file=f"traces/{trial.trial_id}.iotrace",
        sha256="0" * 64,
        span_ns=(5_000_000, 2_005_000_000),
        stages=stages,
        read_bytes=0,
        write_bytes=4 * MIB,
        requests=1000,
        transfers=1000,
        bios=2000,
        flushes=0,
        sequential_share=0.25,
        in_flight_mean=1.5,
        in_flight_max=4,
        busy_share=0.5,
        bytes_asked=2 * MIB,
    )
    return replace(row, **changes)


def traced(data: StudyData, **by_level: dict[str, Any]) -> StudyData:
    """The study with a trace of each trial, changed by level."""
    factor = data.study.compared_factor
    rows = [
        phase(trial, operation, **dict(by_level.get(trial.levels.get(factor, ""), {})))
        for trial in data.trials
        if trial.status == "ok"
        for operation in dict.fromkeys(
            m.operation for m in data.measurements if m.trial_id == trial.trial_id
        )
    ]
    return replace(data, traced=rows)


def stages_of(data: StudyData) -> list[ChartSpec]:
    return request_stages.build(data, judge(data))


def test_parts_of_a_bar_end_where_the_mean_request_ends(canned: ModuleType) -> None:
    mean, tails = stages_of(traced(canned.make_study(), bfq={"means": {"I2D": 12_000}}))
    ends: dict[float, float] = {}
    for series in mean.panels[0].series:
        for point in series.points:
            ends[point.y] = ends.get(point.y, 0.0) + point.x
    assert {round(end, 6) for end in ends.values()} == {10.0, 20.0}
    assert mean.x.unit == "µs"
    assert {series.name for series in tails.panels[0].series} >= {"in the scheduler (I2D)"}
    svg = render_svg(mean)
    bars = re.findall(r'<rect[^>]*class="stacked [^>]*>', svg)
    by_row: dict[str, list[tuple[float, float]]] = {}
    for bar in bars:
        found = dict(re.findall(r' (x|y|width)="([\d.]+)"', bar))
        by_row.setdefault(found["y"], []).append((float(found["x"]), float(found["width"])))
    for row in by_row.values():
        for (x, width), (following, _) in pairwise(sorted(row)):
            assert x + width == pytest.approx(following, abs=0.2)
    assert len(bars) == sum(len(s.points) for s in mean.panels[0].series if s.slot != -1)


def test_the_caption_names_the_part_that_differs_most(canned: ModuleType) -> None:
    data = canned.make_study()
    caption = stages_of(traced(data, bfq={"means": {"I2D": 12_000}}))[0].caption
    assert "a request takes 20.0 µs with bfq, 10.0 µs with none" in caption
    assert "in the scheduler (I2D): 12.0 µs against 2.00 µs." in caption
    caption = stages_of(traced(data, bfq={"means": {"D2C": 4_000}}))[0].caption
    assert "a request takes 7.00 µs with bfq, 10.0 µs with none" in caption
    assert "in driver and device (D2C): 4.00 µs against 7.00 µs." in caption
    same = stages_of(traced(data, bfq={"means": {"D2C": 7_050}}))[0].caption
    assert "with none" not in same, "half of a percent is not worth a sentence"


def test_what_requests_of_the_slower_device_have_in_common_is_told(canned: ModuleType) -> None:
    data, fast = canned.make_study(), {"D2C": 4_000}
    caption = stages_of(traced(data, bfq={"means": fast, "sequential_share": 0.9}))[0].caption
    assert caption.endswith(
        "; 90 % of the requests begin where the one before ended, with none 25 %."
    )
    caption = stages_of(traced(data, bfq={"means": fast, "transfers": 100}))[0].caption
    assert caption.endswith("; a request has 41 KiB on average, with none 4.1 KiB.")
    caption = stages_of(traced(data, bfq={"means": {"I2D": 9_000}, "transfers": 100}))[0].caption
    assert caption.endswith("(I2D): 9.00 µs against 2.00 µs."), "it waits before the device"


def test_a_tail_needs_enough_requests(canned: ModuleType) -> None:
    data = traced(canned.make_study())
    few = [
        replace(row, stages={name: {**s, "count": 999} for name, s in row.stages.items()})
        for row in data.traced
    ]
    assert len(stages_of(data)) == 2
    (only,) = stages_of(replace(data, traced=few))
    assert only.kind == "stack"
    assert only.table.columns[-1] == "Q2C p99 (µs)"
    assert {row[-1] for row in only.table.rows} == {None}


def test_the_work_of_the_device_is_counted_by_treatment(canned: ModuleType) -> None:
    data = traced(canned.make_study(), bfq={"write_bytes": 3 * MIB, "read_bytes": MIB // 2})
    table = work_table(data, judge(data))
    assert table is not None
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert len(rows) == 2 * len({m.operation for m in data.measurements}) * 2
    by_level = {row["scheduler"]: row for row in rows}
    assert (by_level["none"]["written (bytes)"], by_level["none"]["read (bytes)"]) == (4 * MIB, 0)
    assert by_level["none"]["per byte asked"] == 2.0
    assert by_level["bfq"]["per byte asked"] == 1.75
    assert by_level["bfq"]["mean request (bytes)"] == pytest.approx(3.5 * MIB / 1000)
    assert by_level["bfq"]["bios per request"] == 2.0
    assert (by_level["bfq"]["time (s)"], by_level["bfq"]["busy (%)"]) == (2.0, 50.0)


def test_a_terminal_has_the_work_of_the_device_in_its_width(canned: ModuleType) -> None:
    data = traced(canned.make_study(), bfq={"busy_share": 0.987})
    for width in (60, 80, 120):
        text = render(data, judge(data), width=width)
        block = text[text.index("Work of the device") :].split("\n\n")[0].splitlines()
        assert len(block) == 1 + len({row.operation for row in data.traced}) * 2 * 2
        assert len({len(line) for line in block}) == 1, "columns end together"
        assert max(map(len, block)) <= width
    assert "98.7 %" in text or "99 %" in text


def workbook_of(data: StudyData) -> Any:
    verdict = judge(data)
    return openpyxl.load_workbook(BytesIO(render_xlsx(data, verdict, draw_all(data, verdict))))


def test_the_workbook_has_the_tables_of_the_page(canned: ModuleType) -> None:
    slow = canned.make_study(throughput={"bfq": 0.5})
    data = traced(slow, bfq={"means": {"I2D": 12_000}, "write_bytes": 3 * MIB})
    verdict = judge(data)
    book = workbook_of(data)
    assert book.sheetnames[-3:] == ["BlockLayer", "Values", "Environment"]
    rows = [list(row) for row in book["BlockLayer"].iter_rows(values_only=True)]
    why = why_text(data, verdict)
    assert why
    assert rows[0][0].lower() == f"why: {why}.".lower()

    [drawn] = [d for d in draw_all(data, verdict) if d.row.name == "request_stages"]
    work, mean = work_table(data, verdict), drawn.built[0]
    assert work is not None
    for title, table in ((TITLE, work.for_reading()), (mean.title, mean.table)):
        place = [row[0] for row in rows].index(title) + 1
        width = len(table.columns)
        assert rows[place][:width] == list(table.columns)
        for found, expected in zip(rows[place + 1 :], table.rows, strict=False):
            assert found[:width] == pytest.approx(list(expected))
        below = rows[place + 1 + len(table.rows)]
        assert below[0] in (NOTE, mean.caption)
    names = [row[0] for row in rows]
    assert len([n for n in names if n and n.startswith("Where the time")]) == 1


def test_every_workload_has_its_stages_in_the_workbook(canned: ModuleType) -> None:
    workloads = tuple(canned.Workload(name, ("write",)) for name in ("a", "b"))
    sheet = workbook_of(traced(canned.make_study(workloads=workloads)))["BlockLayer"]
    titles = [row[0] for row in sheet.iter_rows(values_only=True) if row[0]]
    assert [t for t in titles if t.startswith("Where")] == [
        f"Where the time of a block request goes: {name}" for name in ("a", "b")
    ]


def test_a_study_without_traces_has_none_of_it(canned: ModuleType) -> None:
    data = canned.make_study()
    assert stages_of(data) == []
    assert work_table(data, judge(data)) is None
    assert tuple(workbook_of(data).sheetnames) == SHEETS
    assert traced_pairs(data) == []


def test_a_pair_is_the_round_with_the_median_difference(canned: ModuleType) -> None:
    data = traced(canned.make_study(noise=0.0))
    slow = {2: 0.5, 3: 0.8, 4: 0.9, 5: 0.2}  # Of bfq; of round 1 it is 1.
    trials = {trial.trial_id: trial for trial in data.trials}
    changed = [
        replace(m, value=m.value * slow.get(trials[m.trial_id].round, 1.0))
        if m.levels["scheduler"] == "bfq"
        else m
        for m in data.measurements
    ]
    (pair,) = traced_pairs(replace(data, measurements=changed))
    assert pair.names == ("none", "bfq")
    assert {trial.round for trial in pair.trials} == {3}
    assert [trial.levels["scheduler"] for trial in pair.trials] == ["none", "bfq"]
    assert len({trial.levels["record_size"] for trial in pair.trials}) == 1


def test_pictures_are_few_and_of_every_workload_first(canned: ModuleType) -> None:
    workloads = tuple(canned.Workload(name, ("write",)) for name in ("a", "b", "c"))
    data = traced(
        canned.make_study(levels=("none", "bfq", "kyber", "mq-deadline"), workloads=workloads)
    )
    pairs = traced_pairs(data)
    assert [pair.workload for pair in pairs] == ["a", "b", "c", "a"]
    assert len(pairs) == PICTURES_MAX
    assert len(wanted_trials(data)) == len(set(wanted_trials(data)))


def test_the_level_that_differs_most_is_drawn_first(canned: ModuleType) -> None:
    levels = ("none", "bfq", "kyber", "mq-deadline")
    speeds = {"bfq": 0.9, "kyber": 1.8, "mq-deadline": 0.7}
    pairs = traced_pairs(traced(canned.make_study(levels=levels, throughput=speeds)))
    assert [pair.names[1] for pair in pairs] == ["kyber", "mq-deadline", "bfq"]


def test_a_trial_without_its_partner_is_not_drawn(canned: ModuleType) -> None:
    data = traced(canned.make_study())
    alone = [row for row in data.traced if "bfq" in _level(data, row)]
    assert traced_pairs(replace(data, traced=alone)) == []


def _level(data: StudyData, row: TracedPhase) -> str:
    return next(t.levels["scheduler"] for t in data.trials if t.trial_id == row.trial_id)


def test_a_decided_verdict_has_its_reason_from_the_traces(canned: ModuleType) -> None:
    slow = canned.make_study(throughput={"bfq": 0.5})
    data = traced(slow, bfq={"means": {"I2D": 12_000}})
    said = why_text(data, judge(data))
    assert "a request takes 20.0 µs with bfq, 10.0 µs with none" in said
    assert "95 % interval of the ratio 2.00 to 2.00, 5 rounds" in said
    assert "\n\nWhy: " in render(data, judge(data))
    assert "Why: " in render_markdown(data, judge(data))


def test_where_requests_are_alike_the_idle_device_is_the_reason(canned: ModuleType) -> None:
    slow = canned.make_study(throughput={"bfq": 0.5})
    idle = traced(slow, none={"busy_share": 0.2}, bfq={"busy_share": 0.1})
    said = why_text(idle, judge(idle))
    assert said == (
        "the device was busy at most 20 % of the time, whatever the level: the difference lies "
        "above the block layer"
    )
    busy = traced(slow, none={"busy_share": 0.2}, bfq={"busy_share": 0.6})
    assert why_text(busy, judge(busy)) == ""
    flushed = traced(slow, none={"busy_share": 0.2, "flushes": 1}, bfq={"busy_share": 0.1})
    assert why_text(flushed, judge(flushed)) == "", "nobody knows how long the flush took"


def test_requests_that_rounds_do_not_tell_apart_are_no_reason(canned: ModuleType) -> None:
    data = traced(canned.make_study(throughput={"bfq": 0.5}), bfq={"means": {"I2D": 12_000}})
    rounds = {trial.trial_id: trial.round for trial in data.trials}
    wide = [
        phase(
            next(t for t in data.trials if t.trial_id == row.trial_id),
            row.operation,
            means={"I2D": 60_000 if rounds[row.trial_id] == 1 else 1_000},
            busy_share=0.9,
        )
        if _level(data, row) == "bfq"
        else row
        for row in data.traced
    ]
    assert why_text(replace(data, traced=wide), judge(data)) == ""


def test_a_study_that_was_not_traced_says_how_to(canned: ModuleType) -> None:
    data = canned.make_study(throughput={"bfq": 0.5})
    assert "--trace" in why_text(data, judge(data))
    none = {"device_read_bytes": None, "device_write_bytes": 0}
    cached = replace(data, phase_details=[{**detail, **none} for detail in data.phase_details])
    assert why_text(cached, judge(cached)) == "", "no device worked"
    equal = canned.make_study()
    assert why_text(equal, judge(equal)) == ""
    simulated = canned.make_study(throughput={"bfq": 0.5}, kind="simulated")
    assert why_text(simulated, judge(simulated)) == ""


def test_a_shortened_level_is_not_taken_for_the_baseline(canned: ModuleType) -> None:
    data = canned.make_study(
        levels=("delalloc", "nodelalloc"), compared="mount_options", throughput={"nodelalloc": 0.97}
    )
    text = render(data, judge(data), width=60)
    assert re.search(r"^  (\S+ )?nodelalloc 0\.9", text, re.MULTILINE), text


PICTURE = (
    '<figure id="trace-t0002"><figcaption>a</figcaption><svg viewBox="0 0 1 1">{}</svg></figure>'
)


@pytest.mark.parametrize(
    ("body", "is_kept"),
    [
        ('<path d="M0 0h1"/><text x="1" fill="red">b</text>', True),
        ("<script>alert(1)</script>", False),
        ("<path onload=alert(1)>", False),
        ('<path d="M0" onload="alert(1)"/>', False),
        ('<a href="javascript:alert(1)">b</a>', False),
        ('<rect fill="url(http://x)"/>', False),
        ('<image href="http://x"/>', False),
        ("<!-- <path d=", False),
        ('<path d="<script>"/>', False),
        ("<foreignObject></foreignObject>", False),
        ('<path style="x"/>', False),
    ],
)
def test_a_picture_of_an_archive_only_shows(body: str, is_kept: bool) -> None:
    """Anybody may have made the page that a picture is taken from."""
    page = f"<p>before</p>{PICTURE.format(body)}<p>behind</p>"
    expected = {"trace-t0002": PICTURE.format(body)} if is_kept else {}
    assert kept_figures(page) == expected


def test_time_that_no_stage_has_is_told(canned: ModuleType) -> None:
    """Requests behind a flush are never queued: the parts were a quarter of the whole."""
    held = {"stages": {"D2C": stage(1000, 10_000), "Q2C": stage(1000, 40_000)}}
    data = canned.make_study()
    levels = {trial.levels.get(data.study.compared_factor, "") for trial in data.trials}
    drawn = stages_of(traced(data, **dict.fromkeys(levels, held)))[0]
    assert "75 % of it before the device without being queued (G2D)" in drawn.caption
    assert drawn.table is not None
    row = dict(zip(drawn.table.columns, drawn.table.rows[0], strict=True))
    assert (row["G2D mean (µs)"], row["Q2C mean (µs)"]) == (30, 40)
    assert row["95 % low (µs)"] == pytest.approx(40)
