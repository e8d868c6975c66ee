"""Sections of the page below the first screen, and its table of contents.

A section is folded if it says nothing that most readers need. A link of the contents leads to a
mark inside the section, so that browsers unfold it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.report.markup import Markup, join, tag

CONTENTS: Final = "contents"
"""Mark that the link at the top of the page leads to."""


@frozen
class Part:
    """A section with its title; before a colon stands what it shows, behind it of what."""

    title: str
    content: Markup
    is_open: bool = True

    @property
    def subject(self) -> str:
        """Title without what it is of."""
        return re.split(r": | in single cells| of [^ ]+ and ", self.title)[0]


def contents(parts: Sequence[Part]) -> Markup:
    """Draw the table of contents: one link per subject, to the first section of it."""
    first = dict[str, tuple[int, Part]]()
    for place, part in enumerate(parts):
        first.setdefault(part.subject, (place, part))
    links = (
        tag(
            "li",
            tag("a", subject, href=f"#{_mark(place)}", class_=None if part.is_open else "folded"),
        )
        for subject, (place, part) in first.items()
    )
    legend = None
    if any(not part.is_open for _, part in first.values()):
        legend = tag("p", "Grey: folded; a click unfolds it.", class_="soft small")
    return tag(
        "nav", tag("h2", "Contents"), tag("ul", *links), legend, class_="contents", id=CONTENTS
    )


def drawn_parts(parts: Sequence[Part]) -> Iterator[Markup]:
    """Draw the sections."""
    for place, part in enumerate(parts):
        head = tag("summary", tag("h2", part.title))
        mark = tag("span", id=_mark(place), class_="mark-of-part")
        content = tag("div", mark, part.content, class_="content")
        yield tag("details", join(head, content), class_="part", open=part.is_open)


def _mark(place: int) -> str:
    return f"part-{place + 1}"
