"""Pictures of block traces as files: a page of all devices, or one drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.report.chart_files import framed_svg
from iolab.report.html import whole_page
from iolab.report.markup import join, tag
from iolab.report.trace_picture import DrawnDevice, drawn, picture_svg, sentence

if TYPE_CHECKING:
    from iolab.protocol import TracePlotAnswer


def picture_page(traces: Sequence[tuple[str, TracePlotAnswer]], command: str) -> str:
    """Compose a page of one trace or of two beside each other.

    Parameters
    ----------
    traces : names and plots.
    command : what draws the page again.
    """
    figures = [
        tag(
            "figure",
            tag("h2", " and ".join(dict.fromkeys(one.plot["device"] for one in row))),
            tag("figcaption", " ".join(map(sentence, row))),
            tag("div", picture_svg(row), class_="drawing"),
            id=f"device-{number}",
        )
        for number, row in enumerate(_side_by_side(traces), start=1)
    ]
    names = " and ".join(name for name, _ in traces)
    head = tag(
        "header",
        tag("h1", "Places over time"),
        tag("p", f"{names}: requests as they {_step(traces)}.", class_="question"),
    )
    foot = tag("footer", tag("p", "Made by ", tag("code", command)))
    return whole_page(f"iolab: {names}: places over time", join(head, tag("main", *figures), foot))


def picture_drawing(traces: Sequence[tuple[str, TracePlotAnswer]]) -> str:
    """Draw the device with the most requests of each trace as a file of its own.

    Parameters
    ----------
    traces : names and plots.
    """
    first = _side_by_side(traces)[0]
    return framed_svg("Places over time", picture_svg(first), " ".join(map(sentence, first)))


def _side_by_side(traces: Sequence[tuple[str, TracePlotAnswer]]) -> list[list[DrawnDevice]]:
    """Devices that stand beside each other: those of one name, the others by their requests."""
    first, *others = (list(drawn(name, trace)) for name, trace in traces)
    if not others:
        return [[one] for one in first]
    second = {one.plot["device"]: one for one in others[0]}
    pairs = [(one, second.pop(one.plot["device"], None)) for one in first]
    left = list(second.values())
    rows = [[one, other or (left.pop(0) if left else None)] for one, other in pairs]
    return [[one for one in row if one is not None] for row in rows] + [[one] for one in left]


def _step(traces: Sequence[tuple[str, TracePlotAnswer]]) -> str:
    steps = dict.fromkeys(trace["step"] for _, trace in traces)
    words = {"issued to the driver": "were issued to the driver", "completed": "were completed"}
    return " or ".join(words.get(step, step) for step in steps)
