"""A study as a notebook shows it: the sentence, what to take, the ratios, how far to trust them.

Styles stand in the elements, because a notebook has its own style sheet and others throw away ours.
Colours are those of the notebook except in the drawing, which has its own ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.report.answer import Answer, Take, answer
from iolab.report.chart_files import framed_svg
from iolab.report.charts import CHARTS
from iolab.report.conditions import conditions
from iolab.report.findings import page_list
from iolab.report.html import kind_box, question
from iolab.report.markup import Markup, join, tag
from iolab.report.side_by_side import tidied
from iolab.report.svg import render_svg
from iolab.report.trust import SIGNS, reasons
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData

_SENTENCE: Final = "border-left: 4px solid #3b6ea5; padding: .2em .8em; font-size: 1.1em"
_CELL: Final = "text-align: left; vertical-align: top; padding: .15em 1em .15em 0"
_SOFT: Final = "opacity: .75"


def notebook_html(data: StudyData, verdict: StudyVerdict) -> str:
    """Draw a study for the output of a notebook's cell."""
    rows = conditions(data, verdict) if data.study.is_comparison else []
    (forest,) = (row for row in CHARTS if row.name == "forest")
    drawn = [tidied(spec) for spec in forest.build(data, verdict)[:1]] if rows else []
    found = answer(data, verdict, rows) if rows else None
    return tag(
        "div",
        tag("p", tag("b", data.study.name), tag("span", f" {question(data)}", style=_SOFT)),
        kind_box(data),
        tag("p", verdict.sentence, style=_SENTENCE),
        _answer(found) if found is not None else None,
        *(Markup(framed_svg(spec.title, render_svg(spec), spec.caption)) for spec in drawn),
        _trust(data, verdict),
        style="max-width: 56em",
    )


def _answer(found: Answer) -> Markup:
    return join(
        _table(("take", "for", "because"), [_take(take) for take in found.take]),
        tag("p", tag("b", "How sure: "), "; ".join(found.sure), "."),
        tag(
            "p",
            tag("b", "Next: "),
            " ".join(f"{say} {typed}".strip() for say, typed in found.steps),
        )
        if found.steps
        else None,
    )


def _take(take: Take) -> tuple[object, ...]:
    cost = f"; but: {take.cost}" if take.cost else ""
    return tag("b", take.choice), f"{take.purpose} ({take.where})", f"{take.reason}{cost}"


def _trust(data: StudyData, verdict: StudyVerdict) -> Markup:
    told = [(SIGNS[one.sign], one.label, one.value) for one in reasons(data, verdict)]
    table = _table(("", "how far to trust this", ""), told)
    return tag("details", tag("summary", "How far to trust this"), table, page_list(verdict))


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    line = tag("tr", *(tag("th", name, style=_CELL) for name in head))
    body = (tag("tr", *(tag("td", cell, style=_CELL) for cell in row)) for row in rows)
    return tag("table", tag("thead", line), tag("tbody", *body))
