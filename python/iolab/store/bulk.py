"""Many JSON cells of one column at once: a large study has hundreds of thousands of them.

Both readers give what `cells.read_json` gives for every cell, or None as soon as anything is
unusual: then the caller reads cell by cell, so that an error names its row.
"""

from __future__ import annotations

import json
import warnings
from array import array
from collections.abc import Sequence
from typing import Final

from iolab.store.cells import SHAPES

_PLAIN: Final = b"0123456789,"
_LARGE: Final = 10**18
"""Whole numbers from here on may have been cut by the fast parser."""


def whole_numbers(texts: Sequence[str]) -> list[array[int]] | None:
    """Lists of whole numbers from 0 to 10**18, as our own writer writes them (no spaces)."""
    import numpy as np

    bodies = _bodies(texts)
    if bodies is None or "".join(bodies).encode().translate(None, _PLAIN):
        return None
    if any(body[:1] == "," or body[-1:] == "," for body in bodies):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            values = np.fromstring(",".join(filter(None, bodies)), dtype=np.int64, sep=",")
        except (ValueError, DeprecationWarning):
            return None
    sizes = [body.count(",") + 1 if body else 0 for body in bodies]
    if len(values) != sum(sizes) or (len(values) and int(values.max()) >= _LARGE):
        return None
    packed, place = values.tobytes(), 0
    found: list[array[int]] = []
    for size in sizes:
        numbers = array("q")
        numbers.frombytes(packed[place : place + size * numbers.itemsize])
        place += size * numbers.itemsize
        found.append(numbers)
    return found


def lists(texts: Sequence[str], column: str) -> list[object] | None:
    """Lists of the shape that `column` has."""
    if _bodies(texts) is None:
        return None
    try:
        values = json.loads(f"[{','.join(texts)}]")
    except (ValueError, RecursionError):
        return None
    is_right = SHAPES[column][1]
    return values if len(values) == len(texts) and all(map(is_right, values)) else None


def _bodies(texts: Sequence[str]) -> list[str] | None:
    """Text between the brackets of every cell; None if one is no plain list of ASCII."""
    try:
        are_lists = all(text[:1] == "[" and text[-1:] == "]" for text in texts)
        is_plain = all(map(str.isascii, texts))
    except TypeError:  # No text at all.
        return None
    return [text[1:-1] for text in texts] if are_lists and is_plain else None
