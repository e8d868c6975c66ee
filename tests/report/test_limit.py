"""The limit of the results in a line below the verdict.

Symptom: that processors were the limit of every cell stood among the caveats, sometimes only in
"and 1 more"; that cells were page cache stood at the end of a sentence that the short answer cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from iolab.report.brief import LINES_MAX, LINES_OF_FILES, render_brief
from iolab.report.limit import limit_text
from iolab.report.terminal import render
from iolab.stats.judge import judge
from iolab.store.rows import Caveat, Measurement, StudyData

CPU = Caveat("cpu_bound", "the processors were busy 97 % of the time", "no device helps")
FLUSHES = Caveat("flush_bound", "98 % of the time went into flushes", "flush otherwise")
GENERATOR = Caveat("generator_bound", "half of the time was the generator's", "more workers")


def with_caveat(data: StudyData, caveat: Caveat, of: Callable[[Measurement], bool]) -> StudyData:
    """Return the study with a caveat on some measurements, as phases have them."""
    rows = [replace(m, caveats=(*m.caveats, caveat)) if of(m) else m for m in data.measurements]
    return replace(data, measurements=rows)


def line_of(text: str) -> str:
    """Return the line of the limit."""
    (line,) = [line for line in text.splitlines() if line.startswith("Limit: ")]
    return line


def test_processors_as_the_limit_of_all_cells_stand_below_the_sentence(canned: ModuleType) -> None:
    data = with_caveat(canned.record_sizes(), CPU, lambda _: True)
    text = render_brief(data, judge(data))
    lines = text.splitlines()
    wanted = "Limit: processors in both cells; a faster device would change nothing."
    assert line_of(text) == wanted
    assert lines.index(wanted) == lines.index("") - 1
    assert len(lines) <= LINES_MAX - LINES_OF_FILES
    assert line_of(render(data, judge(data))) == wanted


def test_of_several_limits_each_has_its_cells(canned: ModuleType) -> None:
    data = canned.make_study(rounds=6)
    data = with_caveat(data, CPU, lambda m: m.operation == "write")
    data = with_caveat(
        data, GENERATOR, lambda m: (m.operation, m.levels["record_size"]) == ("write", "4k")
    )
    verdict = judge(data)
    said = limit_text(data, verdict, "", 80)
    assert said == "Limit: processors in 2 of 4 cells, load generator in 1."
    assert limit_text(data, verdict, "", 40) == "Limit: processors in 2 of 4 cells."
    told = limit_text(data, verdict, "the time was the load generator's own", 80)
    assert told == "Limit: processors in 2 of 4 cells."


def test_the_page_cache_is_named_where_the_sentence_is_cut_before_it(canned: ModuleType) -> None:
    data = canned.make_study(rounds=6, cache_share=0.9, throughput={"bfq": 0.5})
    verdict = judge(data)
    assert "page cache: most bytes never reached" in verdict.sentence
    assert limit_text(data, verdict, verdict.sentence, 80) == ""
    begin = verdict.sentence.partition("All cells are page cache")[0]
    wanted = "Limit: page cache in all 4 cells; memory was measured, not storage."
    assert limit_text(data, verdict, begin, 80) == wanted
    compared = replace(data, study=replace(data.study, compared_factor="cache"))
    assert limit_text(compared, replace(verdict, compared_factor="cache"), "", 80) == ""


def test_limits_of_other_classes_are_said_where_the_first_has_none(canned: ModuleType) -> None:
    data = with_caveat(canned.make_study(rounds=6), CPU, lambda m: m.operation == "read")
    verdict = judge(data)
    first = [c for c in verdict.pooled if c.kind == "writes"]
    pooled = [replace(c, is_headline=c in first) for c in verdict.pooled]
    said = limit_text(data, replace(verdict, pooled=pooled), "", 80)
    assert said == "Limit: processors in 2 of 4 cells."


def test_a_trial_in_three_is_no_limit(canned: ModuleType) -> None:
    data = with_caveat(canned.make_study(rounds=6), CPU, lambda m: m.round <= 2)
    assert limit_text(data, judge(data), "", 80) == ""


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        (("0.0200", "0.0400"), "Limit: the device, busy 96 % of the time or more."),
        (("0.0200", "0.0200"), "Limit: the device, busy 98 % of the time."),
        (("0.0200", "0.3000"), ""),
    ],
)
def test_a_device_that_is_busy_all_the_time_is_the_limit(
    canned: ModuleType, shares: tuple[str, str], said: str
) -> None:
    data = canned.simulated()
    facts = {
        trial.trial_id: f"idle_share={shares[trial.ordinal % 2]} merges_per_request=0.000"
        for trial in data.trials
    }
    data = replace(data, varying_facts=data.varying_facts | {"sim.mechanism": facts})
    assert limit_text(data, judge(data), "", 80) == said


def test_cells_that_wait_for_flushes_are_no_cells_of_memory(canned: ModuleType) -> None:
    """All of varmail was "memory, not storage" on a disk that was busy all the time."""
    data = canned.record_sizes()
    cached = replace(data, measurements=[replace(m, cache_share=0.6) for m in data.measurements])
    assert "memory, not storage" in judge(cached).sentence
    verdict = judge(with_caveat(cached, FLUSHES, lambda _: True))
    assert "memory" not in verdict.sentence
    said = limit_text(with_caveat(cached, FLUSHES, lambda _: True), verdict, "", 80)
    assert said == "Limit: flushes in both cells; how long the device takes for them decides."


@pytest.mark.parametrize("name", ["demo", "simulated", "factorial", "alone", "published_d2"])
def test_what_is_not_known_is_not_said(canned: ModuleType, name: str) -> None:
    data = getattr(canned, name)()
    assert "Limit:" not in render(data, judge(data))
