"""A disk's head as an animation: one page with play, speed and a slider.

The page has a script, which the reports have not, because nothing moves without one. Its policy
allows this script only, by its hash, and no network.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from iolab.report.html import SECURITY, style_sheet
from iolab.report.markup import Markup, tag
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.protocol import DevicePlot, TracePlotAnswer

_SECONDS: Final = 20.0
"""Time that the whole trace takes at the speed that is chosen first."""
_SPEEDS: Final = (0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 100.0)
_STYLE: Final = """
.movie { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
.movie canvas { max-width: 100%; border: 1px solid var(--line); }
.controls { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: .8rem 0; }
.controls input { flex: 1 1 12rem; }
.controls button, .controls select { font: inherit; padding: .2rem .8rem; }
"""


def movie_page(name: str, trace: TracePlotAnswer, command: str) -> str:
    """Compose the page of the device with the most requests.

    Parameters
    ----------
    name : what the trace is called.
    trace : a plot with moves.
    command : what makes the page again.
    """
    plot = trace["devices"][0]
    script = files("iolab.report").joinpath("templates/head.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"{SECURITY}; script-src 'sha256-{digest}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("title", f"iolab: {name}: the head of {plot['device']}"),
        tag("style", Markup(style_sheet() + _STYLE)),
    )
    # A name with markup in it must not end the element: `<` is written as JSON can.
    data = Markup(json.dumps(_data(plot, trace["span_ns"])).replace("<", "\\u003c"))
    body = tag(
        "body",
        tag("header", tag("h1", f"Head of {plot['device']}"), tag("p", _text(name, plot))),
        _stage(trace["span_ns"]),
        tag("footer", tag("p", "Made by ", tag("code", command))),
        tag("script", data, type="application/json", id="moves"),
        tag("script", Markup(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _stage(span_ns: int) -> Markup:
    first = min(_SPEEDS, key=lambda speed: abs(span_ns / 1e9 / speed - _SECONDS))
    # As text: a number in an attribute is rounded as those of drawings are, and 0.001 would be 0.
    options = [
        tag("option", f"{speed:g} times", value=f"{speed:g}", selected="selected")
        if speed == first
        else tag("option", f"{speed:g} times", value=f"{speed:g}")
        for speed in _SPEEDS
    ]
    controls = tag(
        "div",
        tag("button", "play", id="play", type="button"),
        tag("input", id="at", type="range", min=0, max=10000, value=0, aria_label="time"),
        tag("label", "speed ", tag("select", *options, id="speed")),
        class_="controls",
    )
    canvases = tag(
        "div",
        tag("canvas", id="disk", width=320, height=320, aria_label="the disk from above"),
        tag("canvas", id="track", width=660, height=320, aria_label="places over time"),
        class_="movie",
    )
    return tag("main", canvases, controls, tag("p", "", id="told"))


def _text(name: str, plot: DevicePlot) -> str:
    every = plot["moves"]["every"]
    shown = "" if every == 1 else f" One of {every} requests is shown."
    return (
        f"{name}: {counted(plot['requests'], 'request')}. The first byte of the device is at the "
        "outer edge, the last place that was used at the inner one; reads are blue, writes are "
        f"orange. The angle is not known and not shown.{shown}"
    )


def _data(plot: DevicePlot, span_ns: int) -> dict[str, object]:
    moves = plot["moves"]
    offsets = moves["offsets"]
    return {**moves, "span_ns": span_ns, "low": 0, "high": max(offsets, default=0) + 1}
