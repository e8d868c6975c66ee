"""Statements of a report on longest times, stalls, winners, bounds and labels are true (issue 14).

Each test was made from a falsehood that a reader of 7390be3 found; its docstring tells symptom,
cause and repair.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import openpyxl
import pytest

from iolab.report.chart import ChartSpec
from iolab.report.collect import draw_all
from iolab.report.conditions import conditions
from iolab.report.html import render_html
from iolab.report.labels import ELLIPSIS, fitted
from iolab.report.markdown import render_markdown
from iolab.report.svg import render_svg
from iolab.report.terminal import render
from iolab.report.verdict_json import render_json
from iolab.report.xlsx import render_xlsx
from iolab.stats.judge import judge
from iolab.stats.ledger import build_ledger
from iolab.stats.methods.stalls import find_stalls
from iolab.stats.upper_bound import GENERATOR, operation_bytes, upper_bounds
from iolab.stats.winners import leads, standing, winner_text
from iolab.store.rows import Nature, StudyData

LONGEST_NS = 1_751_000_000.0
SLICE_NS = 100_000_000


def _drawn(data: StudyData) -> dict[str, tuple[ChartSpec, ...]]:
    return {d.row.name: d.built for d in draw_all(data, judge(data))}


def _cells(data: StudyData) -> list[str]:
    book = openpyxl.load_workbook(
        io.BytesIO(render_xlsx(data, judge(data), draw_all(data, judge(data))))
    )
    return [
        str(cell.value)
        for sheet in book.worksheets
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None
    ]


# 11. A maximum is a maximum.


def _with_one_long(canned: ModuleType) -> tuple[StudyData, str]:
    """Five rounds of two streams; one operation of one trial took 1751 ms, all others far less."""
    data = canned.make_study(
        levels=("none", "bfq"),
        workloads=(canned.Workload("mixed", ("mixed/reader", "mixed/writer")),),
        slices=50,
    )
    slow = next(t for t in data.trials if t.round == 3 and t.levels["scheduler"] == "bfq").trial_id
    for m in data.measurements:
        if m.metric == "latency_ns_max":
            m.value = 20e6
            if (m.trial_id, m.operation) == (slow, "mixed/writer"):
                m.value = LONGEST_NS
    return data, slow


def test_the_longest_is_the_longest_of_all_trials_everywhere(canned: ModuleType) -> None:
    """Issue 14, point 11: "the longest operation of all took 340 ms" where the store had 1751 ms.

    Every "longest" was a geometric mean of the trials' maxima, or the maximum of the median trial.
    Now it is the maximum over all trials, and the trial is named.
    """
    data, slow = _with_one_long(canned)
    verdict = judge(data)
    for text in (render(data, verdict), render_html(data, verdict, draw_all(data, verdict))):
        plain = re.sub(r"\s+", " ", text).replace("\N{NARROW NO-BREAK SPACE}", " ")
        said = "The longest operation of all took 1.75 s: mixed/writer with bfq, round 3, trial"
        assert f"{said} {slow}" in plain
    assert re.search(r"1\.75 s \(round 3, trial t\d+\)", render_markdown(data, verdict))
    found = [
        t
        for t in json.loads(render_json(data, verdict))["treatments"]
        if (t["operation"], t["level"], t["metric"]) == ("mixed/writer", "bfq", "latency_ns_max")
    ]
    assert [(t["statistic"], t["value"], t["maximum_trial"]) for t in found] == [
        ("maximum", LONGEST_NS, slow)
    ]
    cells = _cells(data)
    assert any(cell.startswith("1751000") for cell in cells)
    ladder, *_ = _drawn(data)["latency_ladder"]
    tops = [p for panel in ladder.panels for s in panel.series for p in s.points if p.is_hollow]
    assert max(p.y for p in tops) == LONGEST_NS / 1000
    assert all(p.low is None for p in tops)
    mean = (20e6**4 * LONGEST_NS) ** 0.2 / 1000
    for specs in _drawn(data).values():
        for value in (v for spec in specs for row in spec.table.rows for v in row):
            assert not (isinstance(value, float) and abs(value - mean) < 1)


def test_a_study_judged_by_longest_times_shows_the_longest(canned: ModuleType) -> None:
    """Issue 14, point 11: with `--metric latency_ns_max` the verdict table averaged maxima, too."""
    data, _ = _with_one_long(canned)
    data = replace(data, study=replace(data.study, metric="latency_ns_max"))
    verdict = judge(data)
    rows = {row.level: row for row in conditions(data, verdict)}
    assert rows["bfq"].primary is not None
    assert (rows["bfq"].primary.value, rows["bfq"].primary.low) == (LONGEST_NS, None)
    cell = next(c for c in verdict.cells if c.operation == "mixed/writer" and c.level == "bfq")
    assert cell.value == LONGEST_NS
    assert "longest latency of a trial" in verdict.sentence


# 12. Stalls of any trial, and gaps that are gaps.


def _with_a_stall(canned: ModuleType, quiet: range, slices: int = 21) -> StudyData:
    """2.1 s of a writer; in one trial in five nothing is completed for 1.6 s."""
    data = canned.make_study(
        levels=("none", "bfq"),
        workloads=(canned.Workload("mixed", ("mixed/reader", "mixed/writer")),),
        slices=slices,
    )
    bfq = [t.trial_id for t in data.trials if t.levels["scheduler"] == "bfq"]
    by_speed = sorted(
        bfq,
        key=lambda i: next(
            m.value
            for m in data.measurements
            if (m.trial_id, m.operation, m.metric) == (i, "mixed/writer", "throughput_bytes_per_s")
        ),
    )
    stalled = by_speed[0]  # Not the median trial.

    def cut(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(0 if place in quiet else value for place, value in enumerate(values))

    series = [
        replace(s, ops=cut(s.ops), bytes=cut(s.bytes), latency_ns_max=cut(s.latency_ns_max))
        if (s.trial_id, s.operation) == (stalled, "mixed/writer")
        else s
        for s in data.series
    ]
    return replace(data, series=series)


def test_a_stall_of_any_trial_is_named(canned: ModuleType) -> None:
    """Issue 14, point 12: a writer did nothing for 1.6 of 2.1 s; the report said "too short".

    Below forty slices no stall was looked for, and only median trials were drawn. Standstills show
    in short series, too; every trial is looked at, and stream, level, when and trial are named.
    """
    data = _with_a_stall(canned, range(3, 19))
    verdict = judge(data)
    (stall,) = verdict.closer.stalled
    assert (stall.operation, stall.level) == ("mixed/writer", "bfq")
    assert (stall.began_ns, stall.longest_ns) == (3 * SLICE_NS, 16 * SLICE_NS)
    named = f"mixed/writer with bfq for 1.60 s from 0.3 s on (round {stall.round}, trial"
    for text in (
        render(data, verdict),
        render_html(data, verdict, draw_all(data, verdict)),
        render_markdown(data, verdict),
    ):
        plain = re.sub(r"\\", "", re.sub(r"\s+", " ", text))
        assert f"{named} {stall.trial_id}" in plain
    assert json.loads(render_json(data, verdict))["closer"]["stalled"][0]["round"] == stall.round
    row = next(r for r in conditions(data, verdict) if r.level == "bfq")
    assert row.stalled == (1, 10, 16 * SLICE_NS)
    (over_time,) = _drawn(data)["over_time"]
    assert "too short" not in over_time.caption
    assert f"1.60 s in trial {stall.trial_id}" in over_time.caption
    writer = next(p for p in over_time.panels if p.title == "mixed/writer")
    assert [s.name for s in writer.series] == ["none", "bfq", "bfq, longest stall"]
    assert [s.dash for s in writer.series] == [0, 0, 1]
    assert any(shape.kind == "stall" for shape in writer.shapes)
    assert stall.trial_id in {row[2] for row in over_time.table.rows}


def test_a_gap_in_a_series_is_a_gap_in_the_drawing(canned: ModuleType) -> None:
    """Issue 14, point 12: longest waits were joined across 1.6 s in which nothing was completed."""
    data = _with_a_stall(canned, range(3, 19))
    (spec,) = _drawn(data)["latency_over_time"]
    writer = next(p for p in spec.panels if p.title == "mixed/writer")
    stalled = writer.series[-1]
    assert [len(run) for run in stalled.runs()] == [3, 2]
    assert (
        render_svg(replace(spec, panels=(replace(writer, series=(stalled,)),))).count("<polyline")
        == 2
    )
    book = openpyxl.load_workbook(
        io.BytesIO(render_xlsx(data, judge(data), draw_all(data, judge(data))))
    )
    sheet = next(s for s in book.worksheets if s.title == "TimeSeries")
    found = False
    for line in sheet.iter_rows():
        for cell in line:
            if str(cell.value).startswith("bfq, longest stall (ms)"):
                row, column = int(cell.row or 0), int(cell.column or 0)
                values = [sheet.cell(row + i, column).value for i in range(1, 8)]
                found = True
                assert [v is None for v in values[:6]] == [False] * 3 + [True] + [False] * 2
    assert found


def test_silence_to_the_end_of_a_stream_is_a_stall(canned: ModuleType) -> None:
    """Issue 14, point 12: a series ends with its last operation, so that a last stall was unseen.

    It is filled up to the time that the stream's workers lasted.
    """
    data = canned.make_study(workloads=(canned.Workload("mixed", ("mixed/writer",)),))
    name = data.series[0].trial_id
    series = [
        replace(s, ops=s.ops[:3], bytes=s.bytes[:3], latency_ns_max=s.latency_ns_max[:3])
        if s.trial_id == name
        else s
        for s in data.series
    ]
    (stall,) = judge(replace(data, series=series)).closer.stalled
    assert (stall.trial_id, stall.began_ns) == (name, 3 * SLICE_NS)
    assert stall.longest_ns >= 6 * SLICE_NS


@pytest.mark.parametrize(
    ("ops", "longest"),
    [
        ([50] * 3 + [0] * 16 + [50] * 2, 16),
        ([50, 0] * 10, 0),  # A rhythm.
        ([40, 0, 0] * 7, 0),
        ([1, 0, 0, 0] * 5, 0),  # Too slow to tell.
        ([0] * 16 + [50] * 5, 16),
        ([50] * 20, 0),
        ([50] * 5 + [0] * 5 + [50] * 5 + [0] * 5, 5),
    ],
)
def test_standstills_of_short_series(ops: list[int], longest: int) -> None:
    """Issue 14, point 12: what shows in a series without a median worth comparing with."""
    assert find_stalls(ops, SLICE_NS).longest_ns == longest * SLICE_NS


def test_a_short_slow_series_tells_nothing() -> None:
    """Issue 14, point 12: "None stalls" is said only of series that would have shown it."""
    assert not find_stalls([1, 0, 0, 0] * 5, SLICE_NS).is_told
    assert not find_stalls([50] * 3, SLICE_NS).is_told
    assert find_stalls([50] * 20, SLICE_NS).is_told


# 13. One source of each fact.


def _agreeing(data: StudyData, group: tuple[str, bool | None, str]) -> None:
    """Page, terminal, Markdown and verdict.json name the same winners."""
    verdict = judge(data)
    found = standing(verdict, group)
    rows = [row for row in conditions(data, verdict) if row.group == group]
    assert {row.level for row in rows if row.is_winner} == set(found.winners)
    assert {row.level for row in rows if row.may_be_best} == set(found.candidates)
    document = json.loads(render_json(data, verdict))
    (best,) = [
        b for b in document["best_levels"] if (b["workload"], b["is_direct"], b["kind"]) == group
    ]
    assert (tuple(best["members"]), tuple(best["candidates"])) == (
        found.winners,
        found.candidates,
    )
    assert (best["best"] is None) == (not found.winners)
    said = winner_text(verdict, group)
    assert said
    page = render_html(data, verdict, draw_all(data, verdict))
    stars = re.findall(r'class="star">★ </span><b>([^<]*)</b>', page)
    assert (
        set(stars) >= set(found.winners)
        if len(verdict.best_levels) > 1
        else (set(stars) == set(found.winners))
    )
    marked = re.findall(r'<tr class="best"><td>([^<]*)', page)
    assert bool(marked) == bool(found.winners)
    for text in (render(data, verdict), render_markdown(data, verdict).replace("\\", "")):
        assert said in re.sub(r"\s+", " ", text)
    cells = _cells(data)
    assert any(said in cell for cell in cells)


@pytest.mark.parametrize(
    ("levels", "gains", "noise"),
    [
        (("none", "bfq"), {"bfq": 1.03}, 0.06),
        (("none", "bfq"), {"bfq": 1.3}, 0.01),
        (("none", "bfq", "kyber"), {"bfq": 1.03}, 0.08),
        (("none", "bfq", "kyber"), {"bfq": 1.3, "kyber": 1.29}, 0.005),
        (("none", "bfq", "kyber"), {}, 0.003),
        (("none", "bfq", "kyber", "x"), {"bfq": 1.04, "x": 0.7}, 0.05),
    ],
)
def test_all_renderers_name_the_same_winners(
    canned: ModuleType, levels: tuple[str, ...], gains: dict[str, float], noise: float
) -> None:
    """Issue 14, point 13: `best_levels` named a winner that the page did not.

    The page asked two tables, the others one of them. Now all ask `iolab.stats.winners`.
    """
    study = canned.make_study(levels=levels, throughput=gains, noise=noise)
    for kind in ("writes", "reads"):
        _agreeing(study, ("iozone", True, kind))


def test_an_undecided_level_is_not_shown_to_be_the_best(canned: ModuleType) -> None:
    """Issue 14, point 13: rows called `undecided` had the edge "within the margin of the best".

    The level with the best mean is always within the margin of itself. Nothing wins now while
    another level may be the best.
    """
    data = canned.make_study(
        levels=("none", "bfq"),
        throughput={"bfq": 1.03},
        noise=0.1,
        workloads=(canned.Workload("iozone", ("read",), ("4k",)),),
    )
    verdict = judge(data)
    assert [c.effect.word for c in verdict.pooled] == ["undecided"]
    (best,) = verdict.best_levels
    assert (best.best, best.members, best.candidates) == (None, (), ("none", "bfq"))
    assert 'class="best"' not in render_html(data, verdict, draw_all(data, verdict))


def test_equal_cells_have_no_single_leader(canned: ModuleType) -> None:
    """Issue 14, point 13: "noop best in 21 of 28 cells" and "28 of 28" about identical cells.

    Each chart picked the first of equal means in its own way. Both ask `leads` now, which shares.
    """
    data = canned.simulated()
    ledger = build_ledger(data)
    group = ledger.groups()[0]
    metric = ledger.primary_metric(group)
    assert metric is not None
    said = leads(ledger, group[:2], metric).text
    assert said == "deadline, noop are equal to the last digit, and best, in 4 of 4 cells"
    drawn = _drawn(data)
    assert drawn["by_level"][0].caption.startswith(said)
    for chart in drawn["interaction_map"]:
        assert chart.caption.startswith(said)
        points = [p for panel in chart.panels for p in panel.series[0].points]
        assert sum(p.symbol == "1" for p in points) == 4 * 2, "both levels of every cell"


def test_legends_have_one_order(canned: ModuleType) -> None:
    """Issue 14, point 13: the order of a legend was that of the first panel, which differed."""
    data = canned.factorial()
    levels = data.study.factors["scheduler"]
    verdict = judge(data)
    for drawn in draw_all(data, verdict):
        for spec in drawn.built:
            names = [s.name for s in spec.legend() if s.name in levels]
            assert names == [v for v in levels if v in names], spec.name
            for panel in spec.panels:
                slots = [s.slot for s in panel.series]
                assert slots == sorted(slots)


def test_lines_that_coincide_are_named_and_broken(canned: ModuleType) -> None:
    """Issue 14, point 13: of two equal lines one was hidden below the other without a word."""
    data = canned.simulated()
    (spec,) = _drawn(data)["by_record_size"]
    assert "noop and deadline coincide in every panel" in spec.caption
    for panel in spec.panels:
        assert [bool(s.dash) for s in panel.series] == [False, True, False]
    assert "dash2" in render_svg(spec)


def test_bounds_have_the_record_size_of_their_stream(canned: ModuleType) -> None:
    """Issue 14, point 13: a bulk writer of 512 KiB was bounded "with 4k".

    A record says the size of each stream; all of them together have none if they differ.
    """
    worker = {"worker": 0, "elapsed_ns": 10**9}
    bulk = {**worker, "ops": 100, "bytes": 100 * 524288}
    reader = {**worker, "ops": 100, "bytes": 100 * 4096}
    large = Nature(io_size_bytes=524288)
    assert operation_bytes({"nature": large, "workers": [bulk]}) == 524288
    assert operation_bytes({"nature": Nature(), "workers": [bulk, reader]}) is None
    data = canned.make_study(workloads=(canned.Workload("mix", ("mix/bulk", "mix/all")),))
    details: list[dict[str, Any]] = [
        {
            "trial_id": t.trial_id,
            "operation": operation,
            "nature": large if operation == "mix/bulk" else Nature(),
            "harness_ns_per_op": 1000.0,
            "workers": [bulk] if operation == "mix/bulk" else [bulk, reader],
        }
        for t in data.trials
        for operation in ("mix/bulk", "mix/all")
    ]
    (bound,) = list(upper_bounds(replace(data, phase_details=details)))
    assert (bound.name, bound.operation, bound.record) == (GENERATOR, "mix/bulk", "512k")
    assert bound.bytes_per_s == pytest.approx(524288e6)


# 14. Labels.


def test_the_level_is_what_is_left_of_a_long_label(canned: ModuleType) -> None:
    """Issue 14, point 14: `nodelalloc` printed as "...delalloc" beside the baseline delalloc.

    Labels were cut one by one, in the middle. They are shortened as a set, where they agree.
    """
    base = "defaults,data=ordered,commit=5,barrier=1,errors=continue"
    levels = (f"{base},delalloc", f"{base},nodelalloc")
    for word, text in zip(("delalloc", "nodelalloc"), fitted(levels, 24), strict=True):
        assert re.search(rf"\b{word}$", text)
        assert len(text) <= 24
    data = canned.make_study(levels=("none", *levels), compared="mount_options")
    text = render(data, judge(data))
    assert re.search(r"\bnodelalloc\b", text)
    assert re.search(r"\bdelalloc\b", text)


WORDS = (
    "read",
    "random-read",
    "4k",
    "16k",
    "delalloc",
    "nodelalloc",
    "data=ordered",
    "é·",
    "x" * 50,
)


def _labels(rng: random.Random) -> list[str]:
    parts = [" ".join(rng.choices(WORDS, k=rng.randrange(8))) for _ in range(2)]
    count = rng.randrange(2, 12)
    kinds = (
        lambda: f"{parts[0]} {rng.choice(WORDS)}{rng.randrange(99)} {parts[1]}",
        lambda: " · ".join(rng.choices(WORDS, k=rng.randrange(1, 9))),
        lambda: "".join(rng.choices("ab…, ", k=rng.randrange(1, 60))),
    )
    make = rng.choice(kinds)
    return list(dict.fromkeys(make() for _ in range(count)))


def test_shortened_labels_stay_distinct_and_keep_their_difference() -> None:
    """Issue 14, point 14: for any set of distinct labels."""
    rng = random.Random(14)
    fitting = 0
    for _ in range(600):
        labels, room = _labels(rng), rng.randrange(8, 40)
        shown = fitted(labels, room)
        assert len(set(shown)) == len(labels)
        words = [re.findall(r"\w+|\W", label) for label in labels]
        before = len(
            list(itertools.takewhile(lambda c: len(set(c)) == 1, zip(*words, strict=False)))
        )
        least = min(map(len, words)) - before
        back = [row[::-1] for row in words]
        after = len(list(itertools.takewhile(lambda c: len(set(c)) == 1, zip(*back, strict=False))))
        after = min(after, least)
        for label, text, row in zip(labels, shown, words, strict=True):
            fitting += len(text) <= room
            if len(label) <= room:
                assert text == label or text in labels
                continue
            core = "".join(row[before : len(row) - after])
            if len(core) + 2 <= room and ELLIPSIS not in label:
                assert core in text, (labels, room, shown)
                assert len(text) <= room
    assert fitting > 1500


def test_labels_of_a_thousand_words_are_shortened_in_a_moment() -> None:
    """All beginnings of all labels were kept: 2000 columns of a table took 1.2 GB."""
    words = " ".join(f"c{n} 0" for n in range(20_000))
    shown = fitted([f"{words} a", f"{words} b"], 20)
    assert [text[-1] for text in shown] == ["a", "b"]
    assert max(map(len, shown)) <= 20


def test_equal_labels_stay_equal_and_short_ones_are_not_touched() -> None:
    """Issue 14, point 14: the same name in two rows is the same name."""
    assert fitted(["a" * 30, "b", "a" * 30], 10)[0] == fitted(["a" * 30, "b", "a" * 30], 10)[2]
    assert fitted(["read", "write"], 10) == ["read", "write"]
    assert fitted(["a" * 30], 10) == ["aaaaaa…aaa"]
    assert fitted([], 10) == []


# 16. What surprises is explained on the spot.


def test_a_simulation_explains_what_is_equal_and_what_is_far_apart(canned: ModuleType) -> None:
    """Issue 14, point 16: "cfq is 65 times as fast" and bfq exactly 1.000, without a reason."""
    data = canned.make_study(
        levels=("noop", "bfq", "cfq"), throughput={"cfq": 64.0}, noise=0.0, kind="simulated"
    )
    found = {c.kind: c for c in judge(data).caveats}
    assert "bfq equals noop to the last digit in every round" in found["equal_in_model"].says
    assert "in this model cfq is 64 times as fast as noop" in found["far_apart"].says
    assert "half of the operations end within" in found["far_apart"].says
    assert "Only what is compared differs" in found["far_apart"].says
    seeks = {"noop": "1.0000", "bfq": "1.0000", "cfq": "0.0100"}
    facts = {
        trial.trial_id: f"idle_share=0.0100 seeks_per_request={seeks[trial.levels['scheduler']]}"
        for trial in data.trials
    }
    told = replace(data, varying_facts={"sim.mechanism": facts})
    (far,) = (c for c in judge(told).caveats if c.kind == "far_apart")
    cause = "The cause in the model: arm movements per request 0.01 with cfq, 1.0 with noop."
    assert cause in far.says
    real = replace(data, study=replace(data.study, kind="real"))
    assert not {"equal_in_model", "far_apart"} & {c.kind for c in judge(real).caveats}
