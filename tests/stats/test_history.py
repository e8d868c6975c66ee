"""One metric over studies: groups of comparable ones, reasons, and changes where they are."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace
from types import ModuleType

import pytest

from iolab.errors import AnalysisError
from iolab.report.history_chart import history_chart, history_page
from iolab.report.history_text import history_text
from iolab.stats.history import NamedStudy, history_of
from iolab.store.rows import StudyData

DAY_NS = 86_400 * 1_000_000_000


def study(base: StudyData, day: int, *, factor: float = 1.0, **facts: str) -> NamedStudy:
    """The same study on another day, with other values and facts."""
    name = f"day-{day:02d}"
    row = replace(
        base.study,
        study_id=name,
        created_at_unix_ns=base.study.created_at_unix_ns + day * DAY_NS,
        seed=day,
    )
    facts = {**base.facts, **{key.replace("__", "."): value for key, value in facts.items()}}
    measurements = [replace(m, value=m.value * factor) for m in base.measurements]
    return NamedStudy(name, replace(base, study=row, measurements=measurements, facts=facts))


def days(base: StudyData, levels: list[float], noise: float = 0.01) -> list[NamedStudy]:
    rng = random.Random(4)
    return [
        study(base, day, factor=level * (1 + rng.gauss(0, noise)))
        for day, level in enumerate(levels)
    ]


def test_a_change_is_found_where_it_is_with_its_size(canned: ModuleType) -> None:
    found = days(canned.demo(), [1.0] * 7 + [0.8] * 6)
    history = history_of(random.Random(1).sample(found, len(found)))
    (group,) = history.groups
    assert [entry.name for entry in group.entries] == [one.name for one in found]
    (change,) = group.changes
    assert (change.at, change.before, change.after) == ("day-07", 7, 6)
    logs = [math.log(entry.value) for entry in group.entries]
    size = math.exp(math.fsum(logs[7:]) / 6 - math.fsum(logs[:7]) / 7)
    assert change.ratio == pytest.approx(size) == pytest.approx(0.8, rel=0.02)
    assert change.interval is not None
    assert change.interval.low < change.ratio < change.interval.high
    steps = {entry.name: entry.step for entry in group.entries}
    assert steps["day-00"] is None
    assert steps["day-07"] is not None
    assert steps["day-07"].ratio == pytest.approx(0.8, rel=0.05)


def test_what_changed_around_a_change_is_named(canned: ModuleType) -> None:
    base = canned.demo()
    found = [
        study(
            base, day, factor=1.0 if day < 5 else 1.3, kernel__release="6.1" if day < 5 else "6.8"
        )
        for day in range(10)
    ]
    history = history_of(found)
    (change,) = history.groups[0].changes
    assert [(d.name, d.before, d.after) for d in change.differences] == [
        ("kernel.release", "6.1", "6.8")
    ]
    text = history_text(history)
    assert "kernel.release 6.1 -> 6.8" in text
    assert "better by a factor of 1.3" in text
    assert max(map(len, text.splitlines())) <= 80


def test_noise_between_sessions_is_no_change(canned: ModuleType) -> None:
    """Of 4 histories without a change, whose sessions differ by 3 %, none has one."""
    base = canned.demo()
    for seed in range(4):
        rng = random.Random(seed)
        found = [study(base, day, factor=1 + rng.gauss(0, 0.03)) for day in range(12)]
        history = history_of(found, margin=0.01)
        assert history.groups[0].changes == ()


def test_few_studies_have_steps_and_no_changes(canned: ModuleType) -> None:
    history = history_of(days(canned.demo(), [1.0, 1.0, 0.5]))
    assert history.groups[0].changes == ()
    text = history_text(history)
    assert "3 studies are too few to find changes of level: 8 comparable ones are needed" in text
    assert ": worse" in text


def test_other_machines_kinds_and_cells_are_apart_with_their_reason(canned: ModuleType) -> None:
    base = canned.demo()
    usual = days(base, [1.0] * 3)
    laptop = study(base, 5, cpu__model="Laptop")
    modelled = NamedStudy(
        "model", replace(base, study=replace(base.study, study_id="m", kind="simulated"))
    )
    renamed = [replace(m, operation=f"other-{m.operation}") for m in base.measurements]
    other = NamedStudy(
        "other",
        replace(base, study=replace(base.study, study_id="o"), measurements=renamed),
    )
    twice = NamedStudy("twice", usual[0].data)
    failed = NamedStudy(
        "none", replace(base, study=replace(base.study, study_id="n"), measurements=[])
    )
    history = history_of([*usual, laptop, modelled, other, twice, failed])
    assert [len(group.entries) for group in history.groups] == [3]
    reasons = {one.name: " ".join(one.reasons) for one in history.apart}
    assert "it ran on another machine than day-02 (cpu.model: Example" in reasons["day-05"]
    assert "it is simulated, and day-02 is real" in reasons["model"]
    stacks = [study(base, day, sim__stack=name) for day, name in enumerate(("old", "new"))]
    assert "(sim.stack: new there, old here)" in " ".join(history_of(stacks).apart[0].reasons)
    assert "it has no cell in common with day-02: operations or levels differ" in reasons["other"]
    assert "no finished trial of it has throughput" in reasons["none"]
    same = reasons.get("twice") or reasons["day-00"]
    assert "it is the same study as" in same


def test_two_machines_are_two_groups(canned: ModuleType) -> None:
    base = canned.demo()
    ours = [study(base, day) for day in range(0, 6, 2)]
    theirs = [study(base, day, cpu__model="Other", factor=2.0) for day in range(1, 6, 2)]
    history = history_of([*ours, *theirs])
    assert [len(group.entries) for group in history.groups] == [3, 3]
    assert "They form 2 groups of comparable studies (3, 3 studies)." in " ".join(
        history_text(history).split()
    )
    spec = history_chart(history)
    assert [len(series.points) for series in spec.panels[0].series] == [3, 3]
    assert all(point.low is not None for series in spec.panels[0].series for point in series.points)


def test_another_metric_and_only_some_cells(canned: ModuleType) -> None:
    base = canned.factorial()
    found = [study(base, day) for day in range(3)]
    whole, part = history_of(found), history_of(found, "latency_ns_p99", only="random-read")
    assert part.metric == "latency_ns_p99"
    assert len(part.groups[0].cells) < len(whole.groups[0].cells)
    assert all("random-read" in label for label in part.groups[0].cells)


def test_the_page_tells_changes_and_reasons(canned: ModuleType) -> None:
    found = days(canned.demo(), [1.0] * 5 + [0.7] * 5)
    history = history_of([*found, study(canned.demo(), 20, cpu__model="<Laptop>")])
    spec = history_chart(history)
    page = history_page(history, spec, "iolab history a b")
    assert "Changes of level" in page
    assert "&lt;Laptop&gt;" in page
    assert [mark for mark, _ in spec.marks] == [5.5]
    assert len(spec.table.rows) == 10


def test_without_a_finished_trial_there_is_no_history(canned: ModuleType) -> None:
    base = canned.demo()
    empty = NamedStudy("a", replace(base, measurements=[]))
    with pytest.raises(AnalysisError, match="none of these studies has a finished trial"):
        history_of([empty, NamedStudy("b", empty.data)])


def test_a_hundred_studies_take_seconds(canned: ModuleType) -> None:
    base = canned.demo()
    found = [study(base, day) for day in range(100)]
    began = time.process_time()
    history_of(found)
    assert time.process_time() - began < 20
