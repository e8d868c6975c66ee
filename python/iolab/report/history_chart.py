"""The history of a metric as a chart: studies in order of time, intervals, changes as lines.

Studies of a group have one colour and are joined, since they follow each other in time; what is
comparable with nothing else is left out, and the page says why.
"""

from __future__ import annotations

from datetime import UTC, datetime

from iolab.report.chart import Axis, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import LOG_SPAN, value_axis
from iolab.report.history_text import change_text, date_text, place_text, value_text
from iolab.report.html import whole_page
from iolab.report.markup import join, tag
from iolab.report.svg import render_svg
from iolab.report.tables import data_table
from iolab.stats.history import Entry, Group, MetricHistory
from iolab.stats.metrics import METRIC_BY_NAME, Metric
from iolab.wording import counted, sentence_case


def history_chart(history: MetricHistory) -> ChartSpec:
    """Draw the groups of a history over time, one place per study."""
    metric = METRIC_BY_NAME[history.metric]
    entries = sorted(
        (entry for group in history.groups for entry in group.entries),
        key=lambda entry: (entry.created_at_unix_ns, entry.name),
    )
    places = {id(entry): float(place) for place, entry in enumerate(entries, start=1)}
    values = value_axis(metric, (entry.value for entry in entries))
    direction = "higher" if metric.is_higher_better else "lower"
    n_changes = sum(len(group.changes) for group in history.groups)
    caption = (
        f"{counted(len(entries), 'study', 'studies')}, oldest first, evenly spaced; marks are"
        " geometric means over the cells that all studies of a colour have, with 95 % intervals"
        f" over rounds; {direction} is better. {counted(n_changes, 'change')} of level found."
    )
    if values.scale == "log":
        caption += " The axis is logarithmic: the largest value is more than"
        caption += f" {LOG_SPAN:.0f} times the smallest."
    if any(group.is_simulated for group in history.groups):
        caption += " Simulated studies are not measured."
    return ChartSpec(
        name=f"history-{metric.name}",
        kind="plane",
        title=f"{sentence_case(metric.label)} over time",
        caption=caption,
        x=Axis("study, by date", ticks=tuple((places[id(e)], _day(e)) for e in entries)),
        y=values,
        panels=(
            Panel(
                "",
                tuple(
                    Series(
                        _name(number, group),
                        tuple(_point(entry, places[id(entry)], metric) for entry in group.entries),
                        number,
                        is_joined=True,
                    )
                    for number, group in enumerate(history.groups)
                ),
            ),
        ),
        table=_table(history, metric),
        marks=tuple(
            (places[id(entry)] - 0.5, "change")
            for group in history.groups
            for entry in group.entries
            if entry.name in {change.at for change in group.changes}
        ),
    )


def history_page(history: MetricHistory, spec: ChartSpec, command: str) -> str:
    """Compose a page: the chart with its data, the changes, and what is not comparable.

    Parameters
    ----------
    spec : the chart (`history_chart`).
    command : command line that makes the page again.
    """
    metric = METRIC_BY_NAME[history.metric]
    figure = tag(
        "figure",
        tag("figcaption", spec.caption),
        tag("div", render_svg(spec), class_="drawing"),
        data_table(spec.table, spec.name, command),
        id=spec.name,
    )
    changes = [
        tag(
            "li",
            f"{change.at}, {date_text(change.created_at_unix_ns)}: ",
            change_text(change, metric),
        )
        for group in history.groups
        for change in group.changes
    ]
    apart = [tag("li", f"{one.name}: {'; '.join(one.reasons)}.") for one in history.apart]
    parts = [tag("header", tag("h1", spec.title)), figure]
    for title, items in ("Changes of level", changes), ("Not comparable with any other", apart):
        if items:
            parts.append(tag("section", tag("h2", title), tag("ul", *items)))
    return whole_page(f"iolab: {spec.title}", join(tag("main", *parts)))


def _day(entry: Entry) -> str:
    return f"{datetime.fromtimestamp(entry.created_at_unix_ns / 1e9, tz=UTC):%Y-%m-%d}"


def _name(number: int, group: Group) -> str:
    return f"group {number + 1}: {place_text(group)}"


def _point(entry: Entry, x: float, metric: Metric) -> Point:
    title = (
        f"{entry.name}, {date_text(entry.created_at_unix_ns)} UTC, iolab {entry.iolab_version}"
        + (f", Linux {entry.kernel}" if entry.kernel else "")
        + f": {value_text(entry, metric)}"
    )
    low = metric.display(entry.interval.low) if entry.interval else None
    high = metric.display(entry.interval.high) if entry.interval else None
    return Point(x, metric.display(entry.value), low, high, title)


def _table(history: MetricHistory, metric: Metric) -> Table:
    unit = metric.read_unit
    columns = (
        *("group", "study", "date (UTC)", "iolab", "kernel", f"geometric mean ({unit})"),
        *(f"95 % low ({unit})", f"95 % high ({unit})", "rounds", "against the one before"),
        *("verdict", "change"),
    )
    rows = [
        _row(number, group, entry, metric)
        for number, group in enumerate(history.groups, start=1)
        for entry in group.entries
    ]
    return Table(columns, tuple(rows))


def _row(number: int, group: Group, entry: Entry, metric: Metric) -> tuple[Value, ...]:
    bounds, step = entry.interval, entry.step
    change = next((c for c in group.changes if c.at == entry.name), None)
    return (
        number,
        entry.name,
        date_text(entry.created_at_unix_ns),
        entry.iolab_version,
        entry.kernel,
        metric.as_data(entry.value),
        metric.as_data(bounds.low) if bounds else None,
        metric.as_data(bounds.high) if bounds else None,
        entry.rounds,
        step.ratio if step else None,
        step.word if step else "",
        change.ratio if change else None,
    )
