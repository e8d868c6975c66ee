"""JSON texts with the type of what they hold: how values cross to and from the extension.

The types are those of `iolab.protocol`, which are made of the declarations in Rust. Nothing is
checked while a program runs; pyright compares both sides.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

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


def compact_encoder() -> Callable[[object], str]:
    """Return the function that writes values as JSON without spaces.

    `json.dumps` makes an encoder for each value, which takes as long as writing a short one. Values
    that contain themselves are not looked for.
    """
    plain = json.JSONEncoder(check_circular=False, separators=(",", ":"))
    make: Any = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    marks = (None, ":", ",", False, False, True)
    parts: Any = make(None, plain.default, encoder.encode_basestring_ascii, *marks)

    def encode(value: object) -> str:
        return "".join(parts(value, 0))

    return encode
