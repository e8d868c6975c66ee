"""Charts that are asked for: any metric by any factor, intervals, honest axes, clear refusals."""

from __future__ import annotations

import re
from dataclasses import replace
from types import ModuleType
from xml.etree import ElementTree

import pytest

from iolab.errors import StudyError
from iolab.report.asked_chart import AskedChart, draw_asked, factor_names, parse_chart
from iolab.report.chart_files import chart_page, chart_svg
from iolab.stats.methods.log_ratio import geometric_mean_and_interval
from iolab.store.rows import StudyData


def draw(data: StudyData, text: str):
    return draw_asked(data, parse_chart(text, data))


def points(spec):
    return [p for panel in spec.panels for series in panel.series for p in series.points]


def test_each_mark_is_the_mean_of_its_trials_with_its_interval(canned: ModuleType) -> None:
    data = canned.factorial()
    spec = draw(data, "throughput:scheduler")
    assert spec.kind == "rows"
    assert spec.y.categories == tuple(data.study.factors["scheduler"])
    row = dict(zip(spec.table.columns, spec.table.rows[0], strict=True))
    mine = [
        m.value
        for m in data.measurements
        if m.metric == "throughput_bytes_per_s"
        and (m.workload, m.operation) == (row["workload"], row["operation"])
        and ("direct" if m.is_direct else "buffered") == row["mode"]
        and all(m.levels[name] == row[name] for name in data.study.factors if name in row)
    ]
    mean, bounds = geometric_mean_and_interval(mine)
    assert bounds is not None
    assert row["geometric mean (bytes/s)"] == pytest.approx(mean)
    assert row["95 % low (bytes/s)"] == pytest.approx(bounds[0])
    assert row["n"] == len(mine)
    assert all(p.low is not None and p.low <= p.x <= (p.high or 0) for p in points(spec))


def test_sizes_lie_on_an_axis_of_numbers_and_names_in_rows(canned: ModuleType) -> None:
    data = canned.factorial()
    spec = draw(data, "throughput:record-size:scheduler")
    assert spec.kind == "plane"
    assert [tick[1] for tick in spec.x.ticks] == data.study.factors["record_size"]
    assert all(series.is_joined for panel in spec.panels for series in panel.series)
    assert [s.name for s in spec.panels[0].series] == data.study.factors["scheduler"]
    assert draw(data, "throughput:operation").kind == "rows"
    assert parse_chart("throughput:test", data) == parse_chart("throughput:operation", data)


def test_nothing_is_averaged_over_what_is_on_no_axis(canned: ModuleType) -> None:
    data = canned.factorial()
    spec = draw(data, "throughput:scheduler")
    assert "Drawn: 12 of 28 panels" in spec.caption
    for panel in spec.panels:
        assert re.search(r"\b\d+[km]\b", panel.title)
        (series,) = panel.series
        assert [p.y for p in series.points] == list(range(len(spec.y.categories)))
    keys = [row[:5] for row in spec.table.rows]
    assert len(set(keys)) == len(keys) == 28 * len(spec.y.categories)


def test_an_axis_is_from_zero_or_logarithmic_beyond_a_factor_of_ten(canned: ModuleType) -> None:
    data = canned.factorial()
    narrow = draw(data, "throughput:scheduler")
    values = [p.x for p in points(narrow)]
    is_wide = max(values) / min(values) > 10
    assert narrow.x.scale == ("log" if is_wide else "linear")
    scaled = [
        replace(m, value=m.value * (1000 if m.levels.get("scheduler") == "none" else 1))
        for m in data.measurements
    ]
    wide = draw(replace(data, measurements=scaled), "throughput:scheduler")
    assert wide.x.scale == "log"
    assert "logarithmic" in wide.caption
    alike = [replace(m, value=1e6 * (1 + (m.round % 3) / 10)) for m in data.measurements]
    flat = draw(replace(data, measurements=alike), "throughput:scheduler")
    assert flat.x.is_from_zero
    assert flat.x.scale == "linear"


def test_one_trial_has_no_interval_and_the_caption_tells_it(canned: ModuleType) -> None:
    data = canned.factorial()
    first = [m for m in data.measurements if m.round == 1]
    spec = draw(replace(data, measurements=first), "throughput:scheduler")
    assert all(p.low is None for p in points(spec))
    assert "no mark has an interval: one trial each" in spec.caption


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("p99", "this is not of the form METRIC:FACTOR[:BY]", "as in p99:scheduler"),
        (":scheduler", "this is not of the form", "as in"),
        ("thruput:scheduler", "there is no metric 'thruput'", "it has, by short names: throughput"),
        ("flush:scheduler", "this study has not measured flush_ns_p99", "short names: "),
        ("throughput:shed", "no factor 'shed'", "name one of scheduler, "),
        ("throughput:scheduler:shed", "no factor 'shed'", "name one of scheduler, "),
        ("throughput:scheduler:scheduler", "scheduler is named twice", "write throughput"),
    ],
)
def test_what_is_not_there_is_named(canned: ModuleType, text: str, message: str, hint: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_chart(text, canned.factorial())
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_factor_that_was_held_is_refused_with_its_level(canned: ModuleType) -> None:
    data = canned.factorial()
    data = replace(data, study=replace(data.study, settings={"file_size": "64m"}))
    with pytest.raises(StudyError, match="file_size was 64m in all trials"):
        parse_chart("throughput:file-size", data)


def test_names_with_a_colon_are_understood(canned: ModuleType) -> None:
    data = canned.factorial()
    factors = {"a:b": ["1", "2"], **data.study.factors}
    data = replace(data, study=replace(data.study, factors=factors))
    assert "a:b" in factor_names(data)
    found = parse_chart("throughput:a:b:scheduler", data)
    assert found == AskedChart("throughput_bytes_per_s", "a:b", "scheduler")
    assert parse_chart("throughput:scheduler:a:b", data).by == "a:b"


def test_a_drawing_stands_alone(canned: ModuleType) -> None:
    data = canned.simulated()
    spec = draw(data, f"throughput:{data.study.compared_factor}")
    text = chart_svg(data, spec)
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert "var(" not in text
    assert "Simulated, not measured." in "".join(root.itertext())
    for used in set(re.findall(r'class="(c\d|grey)"', text)):
        assert f".{used} {{" in text
    page = chart_page(data, [(spec, "iolab report DIR --chart x")])
    assert "Simulated." in page
    assert "<script" not in page
    assert f'download="{spec.name}.csv"' in page


def test_lines_that_lie_on_each_other_are_named_and_both_seen(canned: ModuleType) -> None:
    """Symptom: of three schedulers that were equal only the last line was to be seen."""
    study = canned.make_study(
        throughput={"bfq": 1.0},
        workloads=(canned.Workload("iozone", ("read",), ("4k", "64k")),),
        noise=0.0,
    )
    spec = draw(study, "throughput:record_size:scheduler")
    assert "Lines on each other: " in spec.caption
    assert len({series.dash for series in spec.panels[0].series}) > 1
