"""Content of single charts, beyond what all of them have in common (`test_report`)."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from iolab.report.balanced import balanced
from iolab.report.chart import Axis, ChartSpec, Panel, Point, Series, Shape, Table
from iolab.report.charts import CHARTS
from iolab.report.collect import draw_all
from iolab.report.curves import distributions
from iolab.report.html import style_sheet
from iolab.report.ledgers import ledger_of
from iolab.report.svg import render_svg
from iolab.report.svg_grid import DARK_FROM
from iolab.report.svg_surface import facets
from iolab.stats.judge import judge
from iolab.store.rows import StudyData

CUT = ("run_order", "residuals")


def _specs(name: str, data: StudyData) -> list[ChartSpec]:
    row = next(row for row in CHARTS if row.name == name)
    return row.build(data, judge(data))


def test_the_forest_has_a_panel_per_metric_with_the_noise_floor(canned: ModuleType) -> None:
    forest, whole, cells = _specs("forest", canned.factorial())
    assert [panel.title.split(",")[0] for panel in forest.panels] == ["Throughput", "Throughput"]
    assert [panel.title.rpartition(", ")[2] for panel in whole.panels] == [
        "writes",
        "writes",
        "reads",
        "reads",
    ]
    assert forest.has_own_scales
    floors = [[value for value, _ in panel.guides] for panel in forest.panels]
    assert all(low == pytest.approx(1 / high) for low, high in floors)
    assert floors[0] != floors[1]
    assert forest.band is not None
    assert forest.band.high == pytest.approx(1.05)
    assert "2 clearly worse than none" in forest.caption
    assert cells.name == "forest_cells"


@pytest.mark.timeout(120)
def test_fifty_levels_are_cut_on_the_first_page_and_whole_below(canned: ModuleType) -> None:
    data = canned.fifty()
    verdict = judge(data)
    drawn = {d.row.name: d for d in draw_all(data, verdict)}
    first, whole, _ = drawn["forest"].built
    assert len(first.y.categories) == 10
    assert len(whole.y.categories) == 49
    assert whole.is_folded
    assert not any(spec.is_folded for d in drawn.values() for spec in d.specs)
    (map_spec,) = drawn["interaction_map"].built
    assert len(map_spec.y.categories) == 50
    assert len(map_spec.panels) == 7


def test_the_map_marks_the_best_and_hatches_the_undecided(canned: ModuleType) -> None:
    (spec,) = _specs("interaction_map", canned.factorial())
    assert spec.x.categories == ("4k", "16k", "64k", "256k")
    assert spec.y.categories == ("none", "mq-deadline", "kyber", "bfq")
    for panel in spec.panels:
        points = panel.series[0].points
        for column in range(4):
            mine = [p for p in points if p.x == column]
            assert sum(p.is_emphasised for p in mine) == 1
            best = next(p for p in mine if p.is_emphasised)
            assert (best.symbol, best.shade) == ("1", 1.0)
            slow = next(p for p in mine if p.y == 3)
            assert slow.shade is not None
            assert slow.shade < 0.5
            assert not slow.is_hollow
    noisy = _specs("interaction_map", canned.make_study(noise=0.5, rounds=5))[0]
    rest = [p for panel in noisy.panels for p in panel.series[0].points if not p.is_emphasised]
    assert all(point.is_hollow for point in rest)


def test_the_ladder_reaches_five_nines_with_intervals(canned: ModuleType) -> None:
    data = canned.factorial()
    ladder, cumulative, *rest = _specs("latency_ladder", data)
    texts = [text for _, text in ladder.x.ticks]
    assert texts == ["p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "longest"]
    assert (ladder.x.scale, ladder.y.scale) == ("log", "log")
    assert ladder.tab
    assert cumulative.tab
    assert ladder.tab[0] == cumulative.tab[0]
    assert all(spec.is_folded for spec in rest)
    for panel in ladder.panels:
        for series in panel.series:
            *steps, longest = series.points
            assert all(p.low is not None and p.low < p.y < (p.high or 0) for p in steps)
            assert (longest.low, longest.high) == (None, None)
            values = [p.y for p in series.points[:-1]]
            assert values == sorted(values)
    operations = [panel.title.split(" · ")[0] for panel in ladder.panels[:7]]
    assert len(set(operations)) == 7


def test_without_histograms_the_metrics_make_a_ladder(canned: ModuleType) -> None:
    (spec,) = _specs("latency_ladder", canned.make_study())
    assert [text for _, text in spec.x.ticks] == ["p50", "p99", "p99.9", "longest"]
    assert spec.tab is None


def test_a_quantile_of_few_trials_is_left_out(canned: ModuleType) -> None:
    """One trial of eight with a p99.999 does not speak for the others."""
    data = canned.factorial()
    curves = [
        c
        if c.trial_id == "t0"
        else replace(c, quantiles_ns={q: v for q, v in c.quantiles_ns.items() if q < 0.9999})
        for c in data.curves
    ]
    found = distributions(replace(data, curves=curves), judge(data))
    assert all(step.quantile != 0.99999 for steps in found.values() for step in steps)


def test_warm_up_window_levels_and_stalls_are_marked(canned: ModuleType) -> None:
    views = _specs("steady_state", canned.factorial())
    assert [view.tab[1] for view in views if view.tab] == [
        "by time",
        "by GiB moved",
        "longest wait",
    ]
    shapes: dict[str, tuple[Shape, ...]] = {
        panel.title.split(":")[0]: panel.shapes for panel in views[0].panels
    }
    kinds = {shape.kind for shape in shapes["bfq"]}
    assert kinds == {"warm_up", "window", "slope", "level", "stall"}
    stalls = [shape for shape in shapes["bfq"] if shape.kind == "stall"]
    assert [round(s.x[0], 6) for s in stalls] == [3.0, 3.1]
    assert "stall" not in {shape.kind for shape in shapes["none"]}
    window = next(shape for shape in shapes["none"] if shape.kind == "window")
    assert window.y is not None
    assert window.y[1] / window.y[0] == pytest.approx(1.1 / 0.9)
    assert "200 ms" in views[0].caption


def test_short_series_are_not_judged(canned: ModuleType) -> None:
    first = _specs("steady_state", canned.make_study())[0]
    assert all(panel.shapes == () for panel in first.panels)
    drawn = min(len(panel.series[0].points) for panel in first.panels)
    assert f"needs 40 whole slices to be judged; the shortest has {drawn}." in first.caption


def test_a_fitted_line_has_marks_only_where_something_was_measured(canned: ModuleType) -> None:
    """Symptom: dots at thirteen record sizes, of which two were measured."""
    data = canned.make_study(
        compared="record_size",
        levels=("4k", "64k"),
        workloads=(canned.Workload("iozone", ("read",)),),
    )
    (spec,) = _specs("request_time", data)
    measured, fitted = spec.panels[0].series
    assert len(fitted.points) > len(measured.points) == 2
    drawn = str(render_svg(replace(spec, panels=(Panel("", (fitted,)),))))
    assert "polyline" in drawn
    assert 'class="mark"' not in drawn
    # A straight line over sizes is bent on this axis, which says why.
    assert "record size (bytes, log scale)" in drawn


def test_lines_of_one_figure_are_drawn_alike_in_the_colours_of_their_levels(
    canned: ModuleType,
) -> None:
    """Symptom: of two panels in one colour one had dots, because its series was shorter."""
    spec = _specs("steady_state", canned.factorial())[0]
    slots = [panel.series[0].slot for panel in spec.panels]
    assert len(set(slots)) == len(slots) > 1
    assert {s.name for s in spec.legend()} == {p.title.partition(":")[0] for p in spec.panels}
    first, second = (panel.series[0] for panel in spec.panels[:2])
    short = replace(second, points=second.points[:5])
    panels = (Panel("a", (first,)), Panel("b", (short,)))
    plain = replace(spec, panels=panels, notes=())
    assert len(first.points) > 24
    assert (
        'class="mark"'
        not in str(render_svg(plain)).partition('class="legend"')[2].partition("polyline")[2]
    )


def test_physics_names_the_bounds_it_knows(canned: ModuleType) -> None:
    (spec,) = _specs("physics", canned.make_study(cache_share=0.0))
    names = [series.name for series in spec.panels[0].series]
    assert names == ["measured, fastest level", "generator (null target)"]
    assert "How fast memory and the device can be at most is not known." in spec.caption
    assert "No cell came from the page cache." in spec.caption
    row = dict(zip(spec.table.columns, spec.table.rows[0], strict=True))
    # 4096 bytes every 85 ns.
    assert row["generator's ceiling (bytes/s)"] == pytest.approx(4096 / 85 * 1e9)
    workload = canned.Workload("iozone", ("write",), ("4k",), buffered_operations=("read",))
    (cached,) = _specs("physics", canned.make_study(workloads=(workload,)))
    assert any(series.name.startswith("memory") for series in cached.panels[0].series)


def test_main_effects_have_the_known_size(canned: ModuleType) -> None:
    specs = _specs("main_effects", canned.factorial())
    main = specs[0]
    at = {title: index for index, title in enumerate(main.y.categories)}
    points = {p.y: p for series in main.panels[0].series for p in series.points}
    size = points[at["record_size = 256k"]].x / points[at["record_size = 4k"]].x
    assert size == pytest.approx(64**0.6, rel=0.03)
    slow = points[at["scheduler = bfq"]].x / points[at["scheduler = none"]].x
    assert slow == pytest.approx(0.88, rel=0.02)
    views = [spec for spec in specs if not spec.name.endswith("reads") or spec is main]
    assert len(views) >= 2
    assert "record_size" in main.caption


def test_residuals_leave_nothing_of_place_or_round(canned: ModuleType) -> None:
    data = canned.factorial()
    ledger = ledger_of(data)
    table = balanced(ledger, ledger.groups()[0])
    assert table is not None
    left = table.residuals()
    by_place: dict[object, float] = {}
    for _, place, value in left:
        by_place[place] = by_place.get(place, 0.0) + value
    assert all(abs(total) < 1e-9 for total in by_place.values())
    spread = math.sqrt(sum(v * v for *_, v in left) / len(left))
    assert 0.02 < spread < 0.04
    order, normal = _specs("residuals", data)
    assert "no drift is left" in order.caption
    assert normal.tab
    assert normal.tab[1] == "against a normal distribution"


def test_only_panels_with_numbers_between_points_are_joined(canned: ModuleType) -> None:
    """Lines join percentiles, times and sizes; never names, trials or ranks."""
    for drawn in draw_all(canned.factorial(), judge(canned.factorial())):
        for spec in drawn.built:
            joined = any(s.is_joined for p in spec.panels for s in p.series if s.slot >= 0)
            if spec.name.startswith(("residuals", "forest", "physics", "main", "interaction")):
                assert not joined, spec.name


def _grid(canned: ModuleType, **changes: Any) -> StudyData:
    """Build 2 schedulers x 4 record sizes x 3 file sizes."""
    workload = canned.Workload("iozone", ("write", "read"), ("4k", "64k", "256k", "1m"))
    files = {"file_size": ("256m", "64m", "1g")}
    return canned.make_study(workloads=(workload,), extra_factors=files, rounds=3, **changes)


def test_a_surface_stands_over_two_numeric_factors(canned: ModuleType) -> None:
    (spec,) = _specs("surface", _grid(canned))
    assert (spec.kind, spec.is_folded) == ("surface", True)
    assert (spec.x.label, spec.x.categories) == ("record_size", ("4k", "64k", "256k", "1m"))
    assert (spec.y.label, spec.y.categories) == ("file_size", ("64m", "256m", "1g"))
    assert [panel.title for panel in spec.panels] == [
        "write · none",
        "read · none",
        "write · bfq",
        "read · bfq",
    ]
    assert all(len(panel.series[0].points) == 12 for panel in spec.panels)
    assert "highest with record_size = 1m" in spec.caption
    assert "the figure to read is “Who is best where”" in spec.caption
    heights = {(p.x, p.y): p.z for p in spec.panels[0].series[0].points}
    for y in range(3):
        column = [heights[x, y] for x in range(4)]
        assert column == sorted(column), "throughput grows with the record size"
    rows = [row for row in spec.table.rows if row[0] == "write · none"]
    assert {(row[1], row[2]) for row in rows} == {
        (record, file) for record in spec.x.categories for file in spec.y.categories
    }
    first = next(row for row in rows if row[1:3] == ("4k", "64m"))
    assert heights[0, 0] == pytest.approx(cast("float", first[3]) / 2**20)


def test_no_surface_without_two_numeric_factors(canned: ModuleType) -> None:
    assert _specs("surface", canned.factorial()) == []
    workload = canned.Workload("iozone", ("read",), ("4k", "8k"))
    few = canned.make_study(workloads=(workload,), extra_factors={"file_size": ("1m", "2m")})
    assert _specs("surface", few) == [], "four points are no surface"
    names = canned.make_study(workloads=(workload,), extra_factors={"fs": ("a", "b", "c")})
    assert _specs("surface", names) == []


def test_facets_are_drawn_from_the_back_and_every_value_is_a_corner(canned: ModuleType) -> None:
    (spec,) = _specs("surface", _grid(canned))
    points = spec.panels[0].series[0].points
    found = list(facets(points, (3, 2)))
    assert len(found) == 6
    depths = [sum(p.x / 3 + p.y / 2 for p in facet.corners) for facet in found]
    assert depths == sorted(depths, reverse=True)
    holed = [p for p in points if (p.x, p.y) != (1, 1)]
    assert sorted(len(f.corners) for f in facets(holed, (3, 2))) == [3, 3, 3, 3, 4, 4]
    edge = [p for p in points if p.x <= p.y]
    assert {p for facet in facets(edge, (3, 2)) for p in facet.corners} == set(edge)
    svg = render_svg(spec)
    assert svg.count('class="facet"') == svg.count('class="under"') == 4 * 6
    # Pixels follow from levels and heights: solve one facet for the projection, check all others.
    drawn = re.findall(r'points="([^"]*)" class="facet" fill-opacity="([^"]*)"', svg)
    outlines = [
        [[float(number) for number in pair.split(",")] for pair in text.split()]
        for text, _ in drawn[:6]
    ]
    rows = [
        (p.x / 3, p.y / 2, p.z, x, y)
        for facet, outline in zip(found, outlines, strict=True)
        for p, (x, y) in zip(facet.corners, outline, strict=True)
    ]
    places = np.array([(u - v, 1.0) for u, v, *_ in rows])
    depths_and_heights = np.array([(u + v, z, 1.0) for u, v, z, *_ in rows])
    for design, column in ((places, 3), (depths_and_heights, 4)):
        pixels = np.array([row[column] for row in rows])
        solved = np.linalg.lstsq(design, pixels, rcond=None)[0]
        assert np.abs(design @ solved - pixels).max() < 0.2
    assert solved[0] < 0, "what is farther stands higher"
    assert solved[1] < 0, "what is more stands higher"
    shades = [float(shade) for _, shade in drawn[:6]]
    by_height = sorted(range(6), key=lambda i: found[i].height)
    assert [shades[i] for i in by_height] == sorted(shades)


@pytest.mark.timeout(120)
def test_a_study_of_many_trials_is_cut_to_what_can_be_looked_at(canned: ModuleType) -> None:
    """The order of some thousand trials was a picture of megabytes, and its table too."""
    levels = tuple(f"level-{i}" for i in range(20))
    workload = canned.Workload("iozone", ("read",), ("4k",))
    data = canned.make_study(levels=levels, rounds=210, workloads=(workload,))
    verdict = judge(data)
    built = {row.name: row.build(data, verdict) for row in CHARTS if row.name in CUT}
    (order,) = built["run_order"]
    assert len(order.y.categories) == 60
    assert len(order.table.rows) == 60 * 20
    assert "60 of 210 rounds" in order.caption
    assert order.caption.startswith("210 rounds")
    residuals, _ = built["residuals"]
    drawn = sum(len(s.points) for s in residuals.panels[0].series)
    assert drawn <= 900
    assert len(residuals.table.rows) == 4200


def test_a_depth_that_was_reached_is_not_said_to_be_short(canned: ModuleType) -> None:
    """Symptom: "depth reached 0.978 to 15.9, short of what was asked in 0 of 2 cells"."""
    data = canned.make_study(workloads=(canned.Workload("iozone", ("write", "read"), ("4k",)),))
    data = replace(data, study=replace(data.study, settings={"depth": "16"}))
    for reached, said in (
        (15.9, "The depth asked for was reached in both cells."),
        (3.0, "3 of 16"),
    ):
        details = [{**d, "depth_reached_mean": reached} for d in data.phase_details]
        (spec,) = _specs("physics", replace(data, phase_details=details))
        assert said in spec.caption, spec.caption
        assert "short of" not in spec.caption


def test_times_per_request_are_measured_marks_beside_the_fitted_line(canned: ModuleType) -> None:
    """Symptom: the chart had no interval at all, while the terminal printed them."""
    (spec,) = _specs("request_time", canned.make_study())[:1]
    measured = [s for panel in spec.panels for s in panel.series if not s.is_joined]
    fitted = [s for panel in spec.panels for s in panel.series if s.is_joined]
    assert len(measured) == len(fitted) > 0
    assert all(s.dash for s in fitted)
    for point in (p for s in measured for p in s.points):
        assert point.low is not None
        assert point.low < point.y < (point.high or 0)
    assert spec.caption.count(". ") >= 1


def test_a_broken_line_is_broken_in_the_legend(canned: ModuleType) -> None:
    """Symptom: two equal marks in the legend, the second of which stood for a broken line."""
    lines = (
        Series("cfq", (Point(0, 1), Point(1, 2)), 0, is_joined=True),
        Series("cfq, longest stall", (Point(0, 2), Point(1, 1)), 0, is_joined=True, dash=1),
    )
    spec = replace(
        _specs("over_time", canned.make_study())[0], panels=(Panel("", lines),), notes=()
    )
    legend = render_svg(spec)
    assert len(re.findall(r'<line [^>]*class="joined"', legend)) == 1
    assert len(re.findall(r'<line [^>]*class="joined dash1"', legend)) == 1


def test_long_times_are_drawn_in_milliseconds(canned: ModuleType) -> None:
    """Symptom: axes of 300 000 and 100 000 µs."""
    spec = ChartSpec(
        name="x", kind="plane", title="T", caption="C.", x=Axis("size"), y=Axis("p99", "µs"),
        panels=(Panel("", (Series("a", (Point(1, 300_000.0, 200_000.0, 400_000.0),), 0),)),),
        table=Table(("a",), ()),
    )  # fmt: skip
    drawn = render_svg(spec)
    assert "p99 (ms)" in drawn
    assert "µs" not in drawn
    assert "300 000" not in drawn.replace("\N{NARROW NO-BREAK SPACE}", " ")
    short = replace(spec, panels=(Panel("", (Series("a", (Point(1, 300.0),), 0),)),))
    assert "p99 (µs)" in render_svg(short)


def test_an_interval_that_an_axis_cuts_has_an_arrow_and_a_remark() -> None:
    """Symptom: a line that left the plot, no cap, no arrow, no word."""
    points = (Point(1.0, 0, 0.9, 400.0), Point(1.2, 1, 1.1, 1.3))
    spec = ChartSpec(
        name="x", kind="rows", title="T", caption="C.", x=Axis("p99", "ms", is_from_zero=True),
        y=Axis("level", categories=("a", "b")),
        panels=(Panel("", (Series("s", points, 0),)),), table=Table(("a",), ()),
    )  # fmt: skip
    drawn = render_svg(spec)
    assert "interval cut at the edge; its end: 400 ms" in drawn
    paths = re.findall(r'<path d="([^"]*)" class="interval"', drawn)
    assert sum("l4 3.5l-4 3.5" in path for path in paths) == 1
    whole = replace(spec, panels=(Panel("", (Series("s", points[1:], 0),)),))
    assert "cut at the edge" not in render_svg(whole)


def test_a_long_title_of_a_panel_is_folded_not_cut(canned: ModuleType) -> None:
    """Symptom: "Median latency, quick, direct I/O,…tream application"."""
    title = "Median latency, quick, direct I/O, stream application of a long name"
    spec = _specs("forest", canned.make_study())[0]
    panel = replace(spec.panels[0], title=title)
    drawn = render_svg(replace(spec, panels=(panel, panel)))
    shown = re.findall(r'class="panel-title"[^>]*>([^<]*)<', drawn)
    assert " ".join(shown[: len(shown) // 2]) == title
    assert "…" not in "".join(shown)


def test_figures_on_shades_can_be_read() -> None:
    """Symptom: white figures on pale blue."""
    css = style_sheet()
    light = {"paper": "#ffffff", "ink": "#1c2024", "cell": "#00497a"}
    dark = {"paper": "#14171a", "ink": "#e6e9ec", "cell": "#4da6e0"}
    assert f"svg .cell {{ fill: {light['cell']}" in css
    assert f"svg .cell {{ fill: {dark['cell']}" in css
    for scheme in (light, dark):
        for step in range(21):
            opacity = 0.05 + 0.85 * step / 20
            text = scheme["paper" if opacity > DARK_FROM else "ink"]
            assert _contrast(text, _mixed(scheme["cell"], scheme["paper"], opacity)) >= 3.5


def _channels(color: str) -> list[float]:
    return [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def _mixed(color: str, paper: str, opacity: float) -> list[float]:
    return [
        c * opacity + p * (1 - opacity)
        for c, p in zip(_channels(color), _channels(paper), strict=True)
    ]


def _contrast(text: str, ground: list[float]) -> float:
    """Contrast as WCAG 2 defines it."""

    def luminance(channels: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(_channels(text)), luminance(ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
