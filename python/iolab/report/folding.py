"""Text on lines of a given width, without characters that could move a cursor."""

from __future__ import annotations

import re
import textwrap
from typing import Final

FIXED_SPACES: Final = re.compile("[\N{NARROW NO-BREAK SPACE}\N{NO-BREAK SPACE}]")


def fold_text(text: str, width: int, indent: str = "") -> str:
    """Fold a text; a percent sign stays with its number."""
    parts = (clean_text(part) for part in FIXED_SPACES.split(text))
    kept = "\N{NO-BREAK SPACE}".join(parts).replace(" %", "\N{NO-BREAK SPACE}%")
    folded = textwrap.fill(kept, width, subsequent_indent=indent, break_on_hyphens=False)
    return folded.replace("\N{NO-BREAK SPACE}", " ")


def clean_text(text: str) -> str:
    """Replace what could move the cursor or break a line; every kind of space is an ordinary one.

    Not every terminal can show the narrow space inside large numbers.
    """
    plain = FIXED_SPACES.sub(" ", text)
    return "".join(c if c.isprintable() else "?" for c in plain)


def fit_text(text: str, room: int) -> str:
    """Cut in the middle, pad to the right."""
    text = clean_text(text)
    if len(text) > room:
        head = max(1, (room - 1) * 2 // 3)
        text = f"{text[:head]}…{text[len(text) - (room - 1 - head) :]}" if room > 2 else text[:room]
    return text.ljust(room)
