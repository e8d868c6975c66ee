"""One page for both systems of units: drawn once in each, and merged where they differ.

A text that is the same in powers of 1024 and of 1000 stands in the page once. One that is not
stands there twice, and the style sheet shows the one whose button is pressed: the page has no
script. A figure that differs is there twice as a whole, because its axis needs round ticks in each
unit, and because a browser shows the title of a mark whatever the style sheet says. Since either
drawing is complete in itself, sentences, tables and figures cannot disagree.

Left out: attributes outside figures. They hold identifiers and data, which know bytes alone; a
page in which one differs is an error of the code that made it.
"""

from __future__ import annotations

import re
from typing import Final

from iolab.report.markup import Markup, join, tag
from iolab.units import SYSTEMS, System

BUTTONS: Final[dict[System, tuple[str, str]]] = {
    "iec": ("KiB, MiB", "powers of 1024"),
    "si": ("kB, MB", "powers of 1000"),
}
_FIGURE: Final = re.compile(r"(<svg .*?</svg>)", re.DOTALL)
_TAG: Final = re.compile(r"(<[^>]*>)")


def is_same(drawings: dict[System, Markup]) -> bool:
    """Tell whether the page shows no amount of bytes at all."""
    return drawings["iec"] == drawings["si"]


def merged(drawings: dict[System, Markup], first: System) -> Markup:
    """Merge the two drawings of a page; `first` is shown until somebody presses a button."""
    parts: list[str] = []
    pairs = zip(*(_FIGURE.split(drawings[system]) for system in SYSTEMS), strict=True)
    for place, pair in enumerate(pairs):
        if pair[0] == pair[1]:
            parts.append(pair[0])
        elif place % 2:
            parts += (
                drawn.replace(' class="', f'{_undrawn(system, first)} class="in-{system} ', 1)
                for system, drawn in zip(SYSTEMS, pair, strict=True)
            )
        else:
            parts.append(_texts(pair[0], pair[1], first))
    return Markup("".join(parts))


def switch(first: System) -> tuple[Markup, Markup]:
    """Return the two radio buttons, which must precede the page, and their labels."""
    buttons = (
        tag(
            "input", type="radio", name="units", id=f"units-{s}", class_="units", checked=s == first
        )
        for s in SYSTEMS
    )
    labels = (
        tag("label", name, for_=f"units-{system}", title=powers)
        for system, (name, powers) in BUTTONS.items()
    )
    return join(*buttons), tag("p", tag("span", "Bytes in "), *labels, class_="units")


def _texts(iec: str, si: str, first: System) -> str:
    """Merge a part of the page without figures; both have the same elements."""
    parts: list[str] = []
    for place, pair in enumerate(zip(_TAG.split(iec), _TAG.split(si), strict=True)):
        if pair[0] == pair[1]:
            parts.append(pair[0])
            continue
        if place % 2:
            raise AssertionError(f"more than text depends on units: {pair[0]} and {pair[1]}")
        parts += (
            f'<span class="in-{system}"{_hidden(system, first)}>{said}</span>'
            for system, said in zip(SYSTEMS, pair, strict=True)
        )
    return "".join(parts)


def _hidden(system: System, first: System) -> str:
    """Hide the other system where a page is shown without its style sheet, too."""
    return "" if system == first else ' hidden=""'


def _undrawn(system: System, first: System) -> str:
    """Do the same to a drawing, which knows no ``hidden``."""
    return "" if system == first else ' display="none"'
