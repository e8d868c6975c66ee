"""Before and after a change while a workload ran, and verdicts by a chosen metric of one stream."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest

from iolab.report import terminal
from iolab.report.charts import CHARTS
from iolab.report.collect import draw_all
from iolab.report.findings import blocks
from iolab.report.html import render_html
from iolab.report.streams import stream_table
from iolab.report.verdict_json import verdict_document
from iolab.stats.judge import judge
from iolab.store.rows import ChangeMark, Measurement, StudyData

MIX = "mix"


def _mixed(canned: ModuleType) -> object:
    return canned.Workload(MIX, (f"{MIX}/reader", f"{MIX}/bulk", f"{MIX}/all"))


def with_segments(canned: ModuleType, rounds: int = 4) -> StudyData:
    """A canned mixed study in which a change after 5 s doubles the reader's rate."""
    study: StudyData = canned.make_study(workloads=(_mixed(canned),), rounds=rounds)
    parts: list[Measurement] = []
    for m in study.measurements:
        if m.metric == "throughput_bytes_per_s" and m.operation.endswith("/reader"):
            for span, factor in (("0-5s", 1.0), ("5-s", 2.0)):
                name = f"{m.operation}@{span}"
                parts.append(dataclasses.replace(m, operation=name, value=m.value * factor))
    marks = [
        ChangeMark(
            trial.trial_id, 5_000_000_000, 5_000_100_000, 5_020_000_000, "nomerges", "0", "2"
        )
        for trial in study.trials
    ]
    return dataclasses.replace(study, measurements=[*study.measurements, *parts], marks=marks)


def test_each_trial_is_its_own_before_and_after(canned: ModuleType) -> None:
    verdict = judge(with_segments(canned))
    assert {c.operation for c in verdict.changes} == {f"{MIX}/reader"}
    for c in verdict.changes:
        assert (c.change, c.at_ns, c.n) == ("nomerges 0 -> 2", 5_000_000_000, 4)
        assert c.ratio == pytest.approx(2.0)
        assert c.after == pytest.approx(2 * c.before)
        assert c.interval is not None
        assert c.interval.low <= 2.0000001
        assert c.interval.high >= 1.9999999


def test_one_trial_has_no_interval_and_says_so(canned: ModuleType) -> None:
    data = with_segments(canned, rounds=1)
    verdict = judge(data)
    assert all(c.interval is None for c in verdict.changes)
    assert "one run is no experiment" in terminal.render(data, verdict)


def test_segments_are_not_pooled_with_the_whole(canned: ModuleType) -> None:
    data = with_segments(canned)
    whole = dataclasses.replace(
        data, measurements=[m for m in data.measurements if "@" not in m.operation]
    )
    assert judge(data).pooled == judge(whole).pooled
    assert judge(data).cells == judge(whole).cells


def test_changes_are_shown_everywhere(canned: ModuleType) -> None:
    data = with_segments(canned)
    verdict = judge(data)
    (block,) = [b for b in blocks(data, verdict, "page") if b.kind.name == "change_midway"]
    assert len(block.table().rows) == len(verdict.changes)
    page = render_html(data, verdict, draw_all(data, verdict))
    assert "Changed while it ran" in page
    assert "nomerges = 2" in page, "the mark in the picture of the time series"
    assert 'class="marks"' in page
    document = verdict_document(data, verdict)
    assert len(document["changes"]) == len(verdict.changes)


def test_a_stream_can_carry_the_verdict(canned: ModuleType) -> None:
    data = canned.make_study(workloads=(_mixed(canned),), latency={"bfq": 0.25}, rounds=6)
    study = dataclasses.replace(data.study, metric="latency_ns_p99", metric_of="reader")
    verdict = judge(dataclasses.replace(data, study=study))
    assert {c.metric for c in verdict.headline} == {"latency_ns_p99"}
    assert {c.n_cells for c in verdict.headline} == {1}
    assert verdict.headline_word == "better", "lower is better"
    assert any(c.metric == "throughput_bytes_per_s" for c in verdict.secondary)


def test_the_headline_is_of_the_workload_that_has_the_stream(canned: ModuleType) -> None:
    """First in the list, wherever the plan has it, and no other workload is called by its name."""
    other = canned.Workload("writers", ("writers/bulk", "writers/all"))
    data = canned.make_study(workloads=(other, _mixed(canned)), rounds=6)
    study = dataclasses.replace(data.study, metric="latency_ns_p99", metric_of="reader")
    verdict = judge(dataclasses.replace(data, study=study))
    assert {c.workload for c in verdict.headline} == {MIX}
    assert {c.workload for c in verdict.pooled} == {MIX, "writers"}
    assert "writers/reader" not in verdict.sentence


def test_a_quantile_that_is_missing_gives_way_to_a_lower_one_of_the_same_stream(
    canned: ModuleType,
) -> None:
    data = canned.make_study(workloads=(_mixed(canned),), latency={"bfq": 0.25}, rounds=6)
    few = [
        m
        for m in data.measurements
        if not (m.operation == f"{MIX}/reader" and m.metric in ("latency_ns_p99", "latency_ns_p90"))
    ]
    study = dataclasses.replace(data.study, metric="latency_ns_p99", metric_of="reader")
    verdict = judge(dataclasses.replace(data, study=study, measurements=few))
    assert {c.metric for c in verdict.headline} == {"latency_ns_p50"}, "not the other stream's p99"
    assert {c.n_cells for c in verdict.headline} == {1}
    assert f"{MIX}/reader" in verdict.sentence


def test_a_metric_that_nobody_measured_is_said_to_be_missing(canned: ModuleType) -> None:
    data = canned.make_study(workloads=(_mixed(canned),))
    study = dataclasses.replace(data.study, metric="flush_ns_p99", metric_of="reader")
    verdict = judge(dataclasses.replace(data, study=study))
    assert "metric_missing" in {caveat.kind for caveat in verdict.caveats}
    assert "metric_missing" not in {caveat.kind for caveat in judge(data).caveats}


def test_more_of_an_index_is_higher_not_faster(canned: ModuleType) -> None:
    data = canned.make_study(workloads=(_mixed(canned),), throughput={"bfq": 1.5}, rounds=6)
    fair = [
        dataclasses.replace(m, metric="fairness_jain")
        for m in data.measurements
        if m.metric == "throughput_bytes_per_s"
    ]
    study = dataclasses.replace(data.study, metric="fairness_jain")
    verdict = judge(
        dataclasses.replace(data, study=study, measurements=[*data.measurements, *fair])
    )
    assert verdict.headline_word == "better"
    assert "higher" in verdict.sentence
    assert "faster" not in verdict.sentence.partition("Trade")[0]


def test_every_stream_has_its_ladder(canned: ModuleType) -> None:
    data = canned.make_study(workloads=(_mixed(canned),))
    verdict = judge(data)
    table = stream_table(verdict)
    assert table is not None
    assert {str(row[0]).split(" ")[0] for row in table.rows} >= {f"{MIX}/reader", f"{MIX}/all"}
    text = terminal.render(data, verdict)
    assert "Streams" in text
    assert max(map(len, text.splitlines())) <= 80
    (chart,) = [row for row in CHARTS if row.name == "latency_over_time"]
    assert chart.build(data, verdict)[0].panels
    assert stream_table(judge(canned.make_study())) is None, "IOzone's tests have no streams"
