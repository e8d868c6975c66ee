"""Elements of HTML and SVG, escaped by construction: only `Markup` is ever inserted as it is."""

from __future__ import annotations

import html
from typing import Final

_FORBIDDEN: Final = dict.fromkeys(
    [code for code in (*range(32), 0xFFFE, 0xFFFF) if code not in (9, 10, 13)],
    "\N{REPLACEMENT CHARACTER}",
)
"""Characters that XML 1.0 (2.2) does not allow: a picture with one of them is none."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Escape a value for element content and attributes; keep percent signs with their number."""
    if isinstance(value, Markup):
        return value
    shown = str(value).translate(_FORBIDDEN).replace(" %", "\N{NO-BREAK SPACE}%")
    return Markup(html.escape(shown, quote=True))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Make an element.

    Parameters
    ----------
    name : element name.
    children : strings are escaped, `Markup` is not; None is left out.
    attributes : ``class_`` is written ``class``, other underscores become hyphens; None and False
        are left out, True stands alone.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written = key.rstrip("_").replace("_", "-")
        parts.append(written if value is True else f'{written}="{text(_number(value))}"')
    content = "".join(text(child) for child in children if child is not None)
    opening = " ".join(parts)
    if not children and name in VOID:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{content}</{name}>")


def join(*parts: Markup | None) -> Markup:
    """Put elements one after the other."""
    return Markup("".join(part for part in parts if part is not None))


def _number(value: object) -> object:
    """Shorten coordinates to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


VOID = frozenset(
    {"br", "hr", "meta", "line", "rect", "circle", "path", "polyline", "polygon", "input"}
)
