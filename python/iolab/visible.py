r"""Text that somebody else wrote, made harmless for a terminal.

A name in a file may hold characters that a terminal obeys: ESC sequences change its title, colours
or clipboard, bidirectional controls let text read as another. They are shown as ``\u001b``, which
JSON reads as the character again.
"""

from __future__ import annotations

import re
from typing import Final

from iolab.pattern import pattern

_OBEYED: Final = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f"  # C0 without tab and line feed, DEL, C1 (ECMA-48).
    "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069"  # Bidirectional controls (UAX #9).
    "\\u2028\\u2029"  # Line and paragraph separator.
    "\\ud800-\\udfff"  # Halves of surrogate pairs: no stream can encode them.
)
_NUMBER: Final = pattern(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?%?")
_IN_TEXT: Final = pattern(f"[{_OBEYED}]")
_IN_LINE: Final = pattern(f"[\\t\\n{_OBEYED}]")


_BEGINS_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n")
"""Beginnings of texts that spreadsheets take for formulas, in a text as in a file."""
_ASCII: Final = {
    "·": "-",
    "…": "~",
    "µ": "u",
    "±": "+-",
    "–": "-",
    "\N{NARROW NO-BREAK SPACE}": " ",
    "\N{NO-BREAK SPACE}": " ",
    "×": "x",
    **dict(zip("▁▂▃▄▅▆▇█", "12345678", strict=True)),
}


def cell_text(text: str) -> str:
    """A text as a cell of a CSV file: one that would be a formula begins with an apostrophe.

    A number is none, whatever its sign. Workbooks need no such thing: their cells have types.
    """
    text = text.replace("\r", " ")  # Written without quotes, it would begin another cell.
    if not text.lstrip(" ").startswith(_BEGINS_FORMULA) or _NUMBER.fullmatch(text):
        return text
    return "'" + text


def visible_text(text: str) -> str:
    """Text of many lines without characters that a terminal obeys; tabs and line ends stay."""
    # Of what is printable nothing is obeyed; to ask costs less than to compile the set.
    is_plain = text.replace("\n", "").isprintable()
    return text if is_plain else _IN_TEXT.sub(_escaped, text)


def visible_line(text: str) -> str:
    """The same for a name or a cell of a table, which cannot begin a new line either."""
    return text if text.isprintable() else _IN_LINE.sub(_escaped, text)


def to_ascii(text: str) -> str:
    """Write a text for a terminal that can show nothing else."""
    for character, plain in _ASCII.items():
        text = text.replace(character, plain)
    return text.encode("ascii", "replace").decode()


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
