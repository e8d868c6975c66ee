"""Named upper bounds beside throughputs: the load generator alone, and what a data sheet says."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest

from iolab import units
from iolab.errors import StudyError
from iolab.stats.judge import judge
from iolab.stats.rules import check_rules
from iolab.stats.upper_bound import (
    GENERATOR,
    MEMORY,
    MEMORY_FACT,
    SPECIFICATION,
    upper_bound_sentence,
    upper_bounds,
)
from iolab.store.rows import Nature, StudyData
from iolab.study.load import parse_study
from iolab.study.plan import make_plan
from iolab.study.render import spec_toml

STUDY = """
name = "s"
testbed = "loop:1g"
rounds = 5
seed = 1
specification = { read = "3100MB/s", write = "1300 MB/s" }
[factors]
scheduler = ["none", "bfq"]
[[workloads]]
kind = "iozone"
tests = ["read"]
"""


def _data(canned: ModuleType, spec: str = "") -> StudyData:
    workload = canned.Workload("iozone", ("write", "read"), ("4k",))
    data = canned.make_study(workloads=(workload,))
    details = [
        {
            "trial_id": trial.trial_id,
            "operation": operation,
            "nature": Nature(operation, None, 4096),
            "harness_ns_per_op": 1000.0,
            "workers": [{}, {}],
        }
        for trial in data.trials
        for operation in ("write", "read")
    ]
    row = dataclasses.replace(data.study, spec_toml=spec)
    return dataclasses.replace(data, study=row, phase_details=details)


def test_the_generator_alone_is_a_bound_of_each_operation(canned: ModuleType) -> None:
    """Two workers, 4 KiB every microsecond each: 8.192 GB/s."""
    data = _data(canned)
    found = upper_bounds(data)
    assert {(b.name, b.operation, b.record) for b in found} == {
        (GENERATOR, "write", "4k"),
        (GENERATOR, "read", "4k"),
    }
    for bound in found:
        assert bound.bytes_per_s == pytest.approx(8.192e9)
        best = max(
            m.value
            for m in data.measurements
            if (m.operation, m.metric) == (bound.operation, "throughput_bytes_per_s")
        )
        assert bound.best_bytes_per_s == best
    assert "load generator alone (null target): at most" in upper_bound_sentence(found)
    assert upper_bound_sentence(upper_bounds(dataclasses.replace(data, phase_details=[]))) == ""


def test_a_promise_that_was_surpassed_is_named(canned: ModuleType) -> None:
    best = {b.operation: b.best_bytes_per_s for b in upper_bounds(_data(canned))}
    spec = f'specification = {{ read = "{best["read"] / 2:.0f}B/s", write = "9GB/s" }}\n'
    data = _data(canned, spec)
    found = {b.operation: b for b in upper_bounds(data) if b.name == SPECIFICATION}
    assert found["write"].bytes_per_s == 9e9
    sentence = upper_bound_sentence(upper_bounds(data))
    assert "device specification: read was 2.0 times as fast as the" in sentence
    cached = dataclasses.replace(
        data, measurements=[dataclasses.replace(m, cache_share=0.9) for m in data.measurements]
    )
    assert "it came from the page cache" in upper_bound_sentence(upper_bounds(cached))
    rules = {f.number: f for f in check_rules(data, judge(data))}
    assert "the device's specification is stored" in rules[11].evidence


def test_a_specification_is_read_and_changes_no_plan() -> None:
    study = parse_study(STUDY)
    assert dict(study.specification) == {"read": 3_100_000_000, "write": 1_300_000_000}
    assert parse_study(spec_toml(study)) == study
    bare = dataclasses.replace(study, specification=())
    assert make_plan(study).digest == make_plan(bare).digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3100MB/s", "fast", "'fast' is not a rate"),
        ("3100MB/s", "3100MB", "is not a rate"),
        ("read =", "raed =", "there is no 'raed' here; did you mean 'read'"),
    ],
)
def test_a_specification_that_means_nothing_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        parse_study(STUDY.replace(old, new))


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1B/s", 1), ("2 kB/s", 2000), ("1.5GB/s", 1_500_000_000), ("2MiB/s", 2 << 20)],
)
def test_rates_are_decimal_unless_they_say_otherwise(text: str, rate: int) -> None:
    assert units.parse_rate(text) == rate


def test_the_picture_of_bounds_shows_what_the_study_says_of_its_device(canned: ModuleType) -> None:
    from iolab.report.charts import physics

    data = _data(canned, 'specification = { read = "3GB/s", write = "1GB/s" }\n')
    (spec,) = physics.build(data, judge(data))
    (series,) = [s for s in spec.panels[0].series if s.name == "device specification"]
    assert series.points[0].x == pytest.approx(3e9 / (1 << 20))
    assert "How fast memory" in spec.caption


@pytest.mark.parametrize("times_best", [4.0, 0.5])
def test_memory_is_a_bound_and_what_is_above_it_came_from_caches(
    canned: ModuleType, times_best: float
) -> None:
    data = _data(canned)
    best = max(b.best_bytes_per_s for b in upper_bounds(data))
    measured = str(round(best * times_best))
    # Every start of the agent measures again: the most is the bound.
    data = dataclasses.replace(data, varying_facts={MEMORY_FACT: {"t1": measured, "t2": "17"}})
    found = [b for b in upper_bounds(data) if b.name == MEMORY]
    assert {b.operation for b in found} == {"write", "read"}
    assert all(b.bytes_per_s == float(measured) for b in found)
    sentence = upper_bound_sentence(upper_bounds(data))
    if times_best > 1:
        assert "memory (copied by all processors): at most" in sentence
        assert "with 25 % of it" in sentence
    else:
        assert "was 2.0 times as fast as these" in sentence
        assert "it came from the processors' caches" in sentence


def test_the_picture_names_memory_and_how_much_of_it_was_reached(canned: ModuleType) -> None:
    from iolab.report.charts import physics

    data = _data(canned)
    data = dataclasses.replace(data, facts=data.facts | {MEMORY_FACT: "10000000000"})
    (spec,) = physics.build(data, judge(data))
    names = [series.name for series in spec.panels[0].series]
    assert "memory (copied by all processors)" in names
    assert "reached 0.8 % of the" in spec.caption
    assert "memory (not measured" not in spec.caption
