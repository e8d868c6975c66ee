"""Charts as files of their own: a page with their data, or a drawing for a document.

A drawing is SVG with colours and fonts in it, since no style sheet goes along; it is light, for
paper. Left out: images, which a browser makes of drawings (`iolab.library.drawn_file`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Final

from iolab.report.chart import ChartSpec
from iolab.report.html import kind_box, question, style_sheet, whole_page
from iolab.report.markup import Markup, join, tag
from iolab.report.svg import render_figure, render_svg
from iolab.report.svg_parts import WIDTH
from iolab.report.tables import data_table
from iolab.store.rows import StudyData

_CAPTION_CHARS: Final = 118
_LINE: Final = 17
_TITLE: Final = 30
_FONT: Final = 'font-family: "DejaVu Sans", "Segoe UI", sans-serif; font-size: 12px'
_RULE: Final = re.compile(r"^((?:svg [^{\n]+|\.c\d|\.grey)) \{([^}]*)\}", re.MULTILINE)
_COLORS: Final = re.compile(r"(\.c\d) \{([^}]*)\}")
_VARIABLE: Final = re.compile(r"(--[\w-]+): ([^;]+);")


def chart_page(data: StudyData, charts: Sequence[tuple[ChartSpec, str]]) -> str:
    """Compose a page of charts with their data.

    Parameters
    ----------
    data : the study that they are of.
    charts : each with the command that draws it again.
    """
    figures = (
        tag(
            "figure",
            tag("h2", spec.title),
            tag("figcaption", spec.caption),
            render_figure(spec),
            data_table(spec.table, spec.name, command),
            id=spec.name,
        )
        for spec, command in charts
    )
    head = tag("header", tag("h1", data.study.name), tag("p", question(data), class_="question"))
    title = f"iolab: {data.study.name}: {charts[0][0].title}"
    return whole_page(title, join(head, kind_box(data), tag("main", *figures)))


def chart_svg(data: StudyData, spec: ChartSpec) -> str:
    """Draw a chart as a file of its own, with title and caption."""
    return plain_svg(spec, f"Study {data.study.name}. {spec.caption}")


def plain_svg(spec: ChartSpec, caption: str) -> str:
    """Draw a chart as a file of its own.

    Parameters
    ----------
    caption : text below it.
    """
    return framed_svg(spec.title, render_svg(spec), caption)


def framed_svg(title: str, inner: str, caption: str) -> str:
    """Frame a drawing of a page as a file of its own.

    Parameters
    ----------
    title : text above it.
    inner : the drawing, which uses the page's classes.
    caption : text below it.
    """
    found = re.search(r'viewBox="0 0 \d+ (\d+)"', inner)
    height = int(found[1]) if found else WIDTH
    lines = textwrap.wrap(caption, _CAPTION_CHARS)
    total = _TITLE + height + _LINE * len(lines) + 14
    texts = (
        tag("text", line, x=8, y=_TITLE + height + _LINE * (place + 1), class_="note")
        for place, line in enumerate(lines)
    )
    content = tag(
        "svg",
        tag("style", Markup(_style())),
        tag("rect", x=0, y=0, width=WIDTH, height=total, fill="#ffffff"),
        tag("text", title, x=8, y=20, class_="strong title"),
        tag("svg", Markup(inner), x=0, y=_TITLE, width=WIDTH, height=height),
        *texts,
        xmlns="http://www.w3.org/2000/svg",
        width=WIDTH,
        height=total,
        viewBox=f"0 0 {WIDTH} {total}",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{content}\n'


def _style() -> str:
    """Rules of the page that a drawing needs, with light colours in place of variables."""
    sheet = style_sheet()
    light = dict(_VARIABLE.findall(sheet.partition("@media")[0]))
    rules = [f"{name} {{{body}}}" for name, body in _RULE.findall(sheet) if ".c" not in name[:2]]
    rules += [f"{name} {{{body}}}" for name, body in _COLORS.findall(sheet)]
    text = "\n".join([f"svg {{ {_FONT}; }}", *dict.fromkeys(rules), ".title { font-size: 15px; }"])
    text = text.replace("font-family: inherit;", "")
    return re.sub(r"var\((--[\w-]+)\)", lambda found: light[found[1]], text)
