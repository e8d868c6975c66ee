"""Interval bars of the terminal. A point beyond the scale hid its interval, and the arrow."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from iolab.report.brief import render_brief
from iolab.report.terminal import BAR_SPAN_LIMIT, UNICODE, bar, bar_span, render
from iolab.stats.judge import judge
from iolab.stats.verdict import Effect, Interval

ROOM = 25


def effect(canned: ModuleType, ratio: float, low: float, high: float) -> Effect:
    """An effect of which only ratio and interval are drawn."""
    some = judge(canned.make_study()).headline[0].effect
    return replace(some, ratio=ratio, interval_95=Interval(low, high, 0.95))


@pytest.mark.parametrize(
    ("ratio", "low", "high"),
    [(6.046, 3.912, 9.345), (79.4, 66.8, 94.4), (4.939, 1.785, 13.7), (1.02, 0.9, 1.1)],
)
def test_a_far_point_is_drawn_with_its_interval(
    canned: ModuleType, ratio: float, low: float, high: float
) -> None:
    for one in (
        effect(canned, ratio, low, high),
        effect(canned, 1 / ratio, 1 / high, 1 / low),
    ):
        drawn = bar(one, 0.05, ROOM, UNICODE, bar_span([one]))
        assert len(drawn) == ROOM
        assert drawn.count("●") == 1
        assert "─" in drawn, drawn


def test_unlike_ratios_stand_at_unlike_places(canned: ModuleType) -> None:
    """7.4 and 4.9 stood at the same column."""
    both = [effect(canned, 7.401, 5.499, 9.962), effect(canned, 4.939, 1.785, 13.7)]
    places = [bar(one, 0.05, ROOM, UNICODE, bar_span(both)).index("●") for one in both]
    assert places[0] > places[1]


def test_a_point_beyond_the_scale_has_an_arrow(canned: ModuleType) -> None:
    far = effect(canned, 1e6, 5e5, 2e6)
    assert bar_span([far]) == pytest.approx(BAR_SPAN_LIMIT)
    assert bar(far, 0.05, ROOM, UNICODE, bar_span([far])).endswith("●▸")
    near = effect(canned, 1e-6, 5e-7, 2e-6)
    assert bar(near, 0.05, ROOM, UNICODE, bar_span([near])).startswith("◂●")
    assert bar(effect(canned, 6.0, 3.0, 9.0), 0.05, ROOM, UNICODE, 4.0).endswith("─●▸")


def test_a_wide_interval_alone_does_not_flatten_the_others(canned: ModuleType) -> None:
    rows = [effect(canned, 1.2, 0.002, 800.0), effect(canned, 1.1, 1.05, 1.15)]
    assert bar_span(rows) == 4.0


def test_the_explanation_of_a_table_is_whole(canned: ModuleType) -> None:
    """Cut out of "(1 = noop, above 1 = better)" was the name of the baseline."""
    workload = canned.Workload("a-workload-whose-name-is-far-too-long-for-a-line", ("read",))
    data = canned.make_study(workloads=(workload,), kind="simulated")
    data = replace(data, study=replace(data.study, metric="latency_ns_p99"))
    text = render(data, judge(data))
    assert "p99 latency (1 = none, above 1 = better) [95 %]\n" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "░ within the margin of 5 %" in " ".join(text.split())


def test_too_few_rounds_are_said_on_the_line_and_come_first(canned: ModuleType) -> None:
    """The step "Get less noise first" stood beside the advice for too few rounds."""
    data = canned.make_study(rounds=2, noise=0.8)
    text = render_brief(data, judge(data))
    assert "undecided: too few rounds" in text
    assert "Get less noise" not in text
    assert "Next: Measure on" in text


def test_a_sentence_that_is_cut_says_where_the_rest_is(canned: ModuleType) -> None:
    workloads = tuple(
        canned.Workload(f"workload-{name}-with-a-long-name", ("write", "read")) for name in "abcdef"
    )
    levels = ("none", "bfq", "kyber", "mq-deadline")
    data = canned.make_study(
        workloads=workloads, levels=levels, rounds=3, throughput={"bfq": 2.0, "kyber": 0.5}
    )
    verdict = judge(data)
    text = " ".join(render_brief(data, verdict).split())
    assert verdict.sentence not in text
    assert "[the rest of this answer: --full]" in text
