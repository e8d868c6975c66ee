"""JSON texts with the type of what they hold: how values cross to and from the extension.

The types are those of `iolab.protocol`, which are made of the declarations in Rust. Nothing is
checked while a program runs; pyright compares both sides.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Generic, TypeVar, cast

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

if TYPE_CHECKING:

    class JsonText(str, Generic[T_co]):
        """JSON of a value of this type; a `str` while a program runs."""


def read_json(text: JsonText[T]) -> T:
    """Return the value that a text holds."""
    return json.loads(text)


def write_json(value: T) -> JsonText[T]:
    """Return a value as JSON."""
    return cast("JsonText[T]", json.dumps(value))
