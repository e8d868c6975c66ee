"""Noise of an A/A study in slices: the error by length of slice, and what it lets one see."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series, Table
from iolab.stats.noise_by_length import (
    ErrorOfLength,
    chance_to_see,
    error_of_equal_labels,
    smallest_seen,
)
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData
from iolab.study.slice_lengths import length_text

DIFFERENCE_STEPS = 40
DIFFERENCE_MAX = 0.20
CHANCE = 0.8
_WANTED_NS = (12e6, 65e6, 500e6, 2.6e9)
"""Lengths that are told apart: short slices, their longest, long slices, a usual trial."""
_TICKS = tuple((value, f"{value:g}") for value in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0))


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw the noise of an A/A study in slices; nothing of others."""
    del verdict
    return noise_charts(error_of_equal_labels(data))


def noise_charts(rows: Sequence[ErrorOfLength]) -> list[ChartSpec]:
    """Draw three pictures of errors by length; nothing of fewer than two lengths."""
    if len(rows) < 2:
        return []
    return [_where(rows), _by_length(rows), _decidable(rows)]


def _beside_independent(points: tuple[Point, ...], expected: tuple[Point, ...]) -> Panel:
    """Measured points, and the line of noise that is independent from slice to slice."""
    return Panel(
        "",
        (
            Series("if noise were independent", expected, GREY, is_joined=True, dash=1),
            Series("measured", points, 0, is_joined=True),
        ),
    )


def _where(rows: Sequence[ErrorOfLength]) -> ChartSpec:
    points = tuple(
        Point(
            row.length_ns / 1e9,
            row.scatter * 100,
            row.low * math.sqrt(row.compared) * 100,
            row.high * math.sqrt(row.compared) * 100,
            title=f"{length_text(row.length_ns)}: {row.scatter * 100:.2g} %",
        )
        for row in rows
    )
    falling = tuple(
        Point(row.length_ns / 1e9, row.independent * math.sqrt(row.compared) * 100)
        for row in (rows[0], rows[-1])
    )
    last, first = rows[-1], rows[0]
    left = (last.scatter / first.scatter) ** 2
    measured = f"1/{1 / left:.2g}" if left < 1 else f"{left:.2g} times as much"
    wanted = last.length_ns / first.length_ns
    return ChartSpec(
        name="noise-where",
        kind="plane",
        title="Where the noise lives: scatter of neighbouring stretches",
        caption=(
            f"A stretch of {length_text(last.length_ns)} averages {wanted:.3g} slices of"
            f" {length_text(first.length_ns)}; independent noise would leave it 1/{wanted:.3g} of"
            f" their variance, measured is {measured}. Where the points leave the falling line,"
            " there the noise lives. Bars: 95 %."
        ),
        x=Axis("length of a stretch", "s", scale="log", ticks=_TICKS),
        y=Axis("difference to the next one", "%", scale="log"),
        panels=(_beside_independent(points, falling),),
        table=Table(
            ("length (s)", "scatter (%)", "pairs of stretches"),
            tuple((row.length_ns / 1e9, row.scatter * 100, row.pairs) for row in rows),
        ),
    )


def _by_length(rows: Sequence[ErrorOfLength]) -> ChartSpec:
    points = tuple(
        Point(
            row.length_ns / 1e9,
            row.error * 100,
            row.low * 100,
            row.high * 100,
            title=f"{length_text(row.length_ns)}: {row.error * 100:.2g} %",
        )
        for row in rows
    )
    flat = tuple(Point(row.length_ns / 1e9, row.independent * 100) for row in (rows[0], rows[-1]))
    return ChartSpec(
        name="noise-by_length",
        kind="plane",
        title="Standard error after three minutes, by length of slice",
        caption=_caption(rows),
        x=Axis("length of a slice", "s", scale="log", ticks=_TICKS),
        y=Axis("standard error of a ratio", "%", scale="log"),
        panels=(_beside_independent(points, flat),),
        table=Table(
            ("length (s)", "standard error (%)", "low (%)", "high (%)", "pairs of stretches"),
            tuple(
                (row.length_ns / 1e9, row.error * 100, row.low * 100, row.high * 100, row.pairs)
                for row in rows
            ),
        ),
    )


def _caption(rows: Sequence[ErrorOfLength]) -> str:
    """Say what lengths differ by, and only where their intervals part."""
    first, worst = rows[0], max(rows, key=lambda row: row.low)
    text = (
        f"Slices of {length_text(first.length_ns)} would compare two equal levels with a standard"
        f" error of {first.error * 100:.2g} % after three minutes"
    )
    if worst.low <= first.high:
        return (
            f"{text}; no longer slice is shown to do worse: here noise does not last. Bars: 95 %."
        )
    return (
        f"{text}, slices of {length_text(worst.length_ns)} with {worst.error * 100:.2g} %: the"
        " noise lasts longer than a short slice, and both levels share it. Bars: 95 %."
    )


def _decidable(rows: Sequence[ErrorOfLength]) -> ChartSpec:
    chosen = list(
        dict.fromkeys(
            min(rows, key=lambda row: abs(row.length_ns / wanted - 1)) for wanted in _WANTED_NS
        )
    )
    differences = [DIFFERENCE_MAX * step / DIFFERENCE_STEPS for step in range(DIFFERENCE_STEPS + 1)]
    series = tuple(
        Series(
            f"slices of {length_text(row.length_ns)}",
            tuple(Point(d * 100, chance_to_see(row.error, d) * 100) for d in differences),
            slot,
            is_joined=True,
            dash=slot,
        )
        for slot, row in enumerate(chosen)
    )
    best, last = chosen[0], chosen[-1]
    return ChartSpec(
        name="noise-decidable",
        kind="plane",
        title="What three minutes can decide here",
        caption=(
            f"With slices of {length_text(best.length_ns)} a difference of"
            f" {smallest_seen(best.error, CHANCE) * 100:.2g} % is seen in {CHANCE * 100:.0f} % of"
            f" studies of three minutes, with slices of {length_text(last.length_ns)} one of"
            f" {smallest_seen(last.error, CHANCE) * 100:.2g} %; seen: the 95 % interval leaves out"
            " 'equal'. For one comparison, on a machine as busy as it was."
        ),
        x=Axis("true difference", "%", is_from_zero=True),
        y=Axis("studies that see it", "%", is_from_zero=True),
        panels=(Panel("", series),),
        table=Table(
            ("difference (%)", *(f"{one.name} (%)" for one in series)),
            tuple(
                (d * 100, *(one.points[index].y for one in series))
                for index, d in enumerate(differences)
            ),
        ),
        guides=((CHANCE * 100, f"{CHANCE * 100:.0f} %"),),
    )
