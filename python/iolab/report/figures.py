"""A figure of the page: caption, one or several views, data to save, command to reproduce.

Several views are radio buttons and the style sheet: the page has no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from iolab.report.chart import ChartSpec
from iolab.report.markup import Markup, join, tag
from iolab.report.svg import columns_of, render_figure
from iolab.report.tables import data_table
from iolab.store.continuing import PLACE

DIR_NOTE: Final = f"{PLACE}: this page's directory"
"""A page goes where its directory does, and to others: it names none."""


def figure(views: Sequence[ChartSpec]) -> Markup:
    """Draw a chart, or several views of the same data."""
    first = views[0]
    content = _drawing(first) if len(views) == 1 else _tabs(views)
    return tag(
        "figure",
        tag("figcaption", first.caption),
        content,
        data_table(first.table, first.name, command(first.name)),
        id=first.name,
    )


def _drawing(spec: ChartSpec) -> Markup:
    """Draw a chart in a frame that scrolls where the screen is narrower than readable text.

    There the meanings of its marks stand above it, on lines as narrow as the screen, if they are
    drawn with it.
    """
    is_single = columns_of(spec) == 1
    meanings = ", ".join(f"{sign} {meaning}" for sign, meaning in spec.notes) if is_single else ""
    return join(
        tag("p", meanings, class_="soft small if-narrow") if meanings else None,
        render_figure(spec),
    )


def command(name: str) -> str:
    """Return what draws a figure again from what is stored beside the page."""
    return f"iolab report {PLACE}   # then {PLACE}/report.html#{name}; {DIR_NOTE}"


def by_figure(specs: Iterable[ChartSpec]) -> list[list[ChartSpec]]:
    """Put the views of one figure together."""
    found: dict[str, list[ChartSpec]] = {}
    for spec in specs:
        found.setdefault(spec.tab[0] if spec.tab else spec.name, []).append(spec)
    return list(found.values())


def _tabs(views: Sequence[ChartSpec]) -> Markup:
    group = f"tab-{views[0].name}"
    buttons: list[Markup] = []
    for index, view in enumerate(views):
        name = f"{group}-{index}"
        buttons.append(
            tag(
                "input",
                type="radio",
                name=group,
                id=name,
                class_="tab",
                checked=index == 0,
            )
        )
        buttons.append(tag("label", view.tab[1] if view.tab else view.title, for_=name))
    drawn = (tag("div", _drawing(view), class_="view") for view in views)
    return tag("div", join(*buttons), *drawn, class_="tabs")
