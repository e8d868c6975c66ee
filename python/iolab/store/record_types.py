"""Look whether a stored record has the types that the protocol promises.

Whoever reads records relies on them, and a record may come from anybody. An older agent may have
left keys out, or left them empty, and a newer one may have more: of every key that is known the
value is looked at, if there is one. Left out: words, which grow in number; whether values are true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from iolab import protocol
from iolab.store.cells import STRANGE
from iolab.store.curves import check_histogram

Look = Callable[[Any], str]
"""Return what is wrong with a value, after its place; empty if nothing is."""

_WHOLE_MAX: Final = 1 << 128
"""Of the largest sums that cross to Python."""
_NOT_RIGHT: Final = ": not as promised"


def problem_of(record: object) -> str:
    """Return the place of a value of another type than promised, and a word; empty if none is."""
    return _look_at(protocol.Record)(record)


_LOOKS: Final = dict[Any, Look]()


def _look_at(kind: Any) -> Look:
    try:
        known = _LOOKS.get(kind)
    except TypeError:  # A literal of lists cannot be a key.
        return _made(kind)
    if known is None:
        # One that contains itself finds this while it is made.
        def later(value: Any) -> str:
            return _LOOKS[kind](value)

        _LOOKS[kind] = later
        known = _LOOKS[kind] = _made(kind)
    return known


def _made(kind: Any) -> Look:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return _of_table(kind)
    if origin in (Union, UnionType):
        return _of_any([one for one in arguments if one is not NoneType])
    if origin is list:
        return _of_list(arguments[0])
    if origin is dict:
        return _of_entries(arguments[1])
    if origin is Literal:
        return _of_types({type(word) for word in arguments})
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    return _of_types({kind}) if kind in (str, bool) else lambda _: ""


def _of_types(kinds: set[type]) -> Look:
    return lambda value: "" if value is None or type(value) in kinds else _NOT_RIGHT


def _whole(value: Any) -> str:
    is_right = value is None or (type(value) is int and abs(value) < _WHOLE_MAX)
    return "" if is_right else _NOT_RIGHT


def _number(value: Any) -> str:
    if type(value) is float:
        return "" if math.isfinite(value) else _NOT_RIGHT
    return _whole(value)


_NUMBERS: Final[dict[Any, Look]] = {int: _whole, float: _number}


def _of_any(kinds: list[Any]) -> Look:
    looks = [_look_at(kind) for kind in kinds]

    def look(value: Any) -> str:
        found = [look(value) for look in looks]
        return "" if value is None or not all(found) else min(found, key=len)

    return look


def _of_list(kind: Any) -> Look:
    look, is_plain = _look_at(kind), kind is int

    def look_at_all(value: Any) -> str:
        if value is None:
            return ""
        if type(value) is not list:
            return _NOT_RIGHT
        items: list[Any] = value
        if (
            is_plain
            and set(map(type, items)) <= {int}
            and (not items or max(map(abs, items)) < _WHOLE_MAX)
        ):
            return ""
        for place, item in enumerate(items):
            found = look(item)
            if found or item is None:
                return f"[{place}]{found or _NOT_RIGHT}"
        return ""

    return look_at_all


def _of_entries(kind: Any) -> Look:
    look = _look_at(kind)

    def look_at_all(value: Any) -> str:
        if value is None:
            return ""
        if type(value) is not dict:
            return _NOT_RIGHT
        entries: dict[str, Any] = value
        return next((found for item in entries.values() if (found := look(item))), "")

    return look_at_all


def _of_table(kind: Any) -> Look:
    looks = {name: _look_at(own) for name, own in get_type_hints(kind).items()}
    is_histogram = kind is protocol.Histogram

    def look_at_all(value: Any) -> str:
        if value is None:
            return ""
        if type(value) is not dict:
            return _NOT_RIGHT
        table: dict[str, Any] = value
        for name, look in looks.items():
            if name in table and (found := look(table[name])):
                return f" {name}{found}"
        if is_histogram and table.get("count"):
            try:
                check_histogram(cast("protocol.Histogram", table))
            except STRANGE as error:
                return f": {error}"
        return ""

    return look_at_all
