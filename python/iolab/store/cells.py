"""Values inside the database that SQLite does not look into: JSON columns and packed records.

A database may be damaged, or made by somebody who wants to harm its reader. What is read here has
the shape that is promised, or the error names table, row and column.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from iolab.errors import StoreError
from iolab.pattern import pattern
from iolab.visible import visible_line

if TYPE_CHECKING:
    from iolab.protocol import Record

RECORD_BYTES_MAX: Final = 16 << 20
"""Of one record, unpacked: some ten times the largest. Nothing beyond it is ever unpacked."""
CELL_CHARACTERS_MAX: Final = 4 << 20
"""Of one JSON column: what Python makes of a text takes up to forty times its size."""
LISTS_MAX: Final = 1 << 20
"""Lists in one record: each takes some thirty times the characters that stand for it."""
SLICES_MAX: Final = 4096
"""Of one series: four times those that a trial stores (`iolab-drive`, series.rs), or an import."""
INTERVAL_NS_MAX: Final = 1 << 62
TABLES_MAX: Final = 1 << 17
"""Tables in one record, and in one JSON column."""
_COUNTED: Final = (("[", "lists", LISTS_MAX), ("{", "tables", TABLES_MAX))
STRANGE: Final = (
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    MemoryError,
    RecursionError,
)
"""Exceptions of code that reads a value of another shape than the one that was promised."""
_REASON_MAX: Final = 100
_TRIAL_ID: Final = pattern(r"t[0-9]{1,18}")
_OF_WORKER: Final = {"worker", "ops"}


class CellError(StoreError):
    """A value that iolab stores in no study; `iolab.store.store_errors` adds the file to it."""


def read_json(text: object, table: str, row: object, column: str) -> Any:
    """Value of a JSON column, in the shape that the column has.

    Raises
    ------
    CellError : it is none; names table, row and column.
    """
    place = f"table {table}, row {row}, column {column}"
    if not isinstance(text, str):
        raise CellError(f"{place} is no text")
    if len(text) > CELL_CHARACTERS_MAX:
        raise CellError(f"{place} has {len(text)} characters, which none of ours has")
    value = _parsed(text, place)
    what, is_right = SHAPES[column]
    if not is_right(value):
        raise CellError(f"{place} is not {what}")
    return value


def unpack_record(packed: object, row: object) -> Record:
    """Record of one trial from column ``record_zlib``.

    Raises
    ------
    CellError : it is damaged, or larger than any record; names the row.
    """
    place = f"table record, row {row}, column record_zlib"
    if not isinstance(packed, bytes):
        raise CellError(f"{place} is no packed record")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(packed, RECORD_BYTES_MAX + 1)
    except zlib.error as error:
        raise CellError(f"{place} cannot be unpacked ({error})") from None
    if len(text) > RECORD_BYTES_MAX:
        raise CellError(
            f"{place} would unpack to more than {RECORD_BYTES_MAX >> 20} MiB, which no record does"
        )
    if not unpacker.eof:
        raise CellError(f"{place} cannot be unpacked (it is cut off)")
    try:
        record = _parsed(text.decode(), place)
    except UnicodeDecodeError as error:
        raise CellError(f"{place} is no JSON ({error})") from None
    if not _is_record(record):
        raise CellError(f"{place} is not the record of a trial")
    return record


def pack_record(text: str, trial_id: str) -> bytes:
    """Column ``record_zlib``.

    Raises
    ------
    StoreError : the record is larger than any reader would unpack.
    """
    content = text.encode()
    if len(content) > RECORD_BYTES_MAX:
        raise StoreError(
            f"the record of {trial_id} has {len(content)} bytes, more than a study keeps "
            f"({RECORD_BYTES_MAX >> 20} MiB)",
            "take fewer workers, streams or intervals",
        )
    for sign, what, most in _COUNTED:
        if text.count(sign) > most:
            raise StoreError(
                f"the record of {trial_id} has more {what} than a study keeps ({most})",
                "take fewer workers, streams or intervals",
            )
    return zlib.compress(content)


def is_trial_id(value: object) -> bool:
    """Tell whether it is the name of a trial: the number of its place in the plan after a ``t``."""
    return isinstance(value, str) and _TRIAL_ID.fullmatch(value) is not None


def check_trial_id(value: object, table: str, row: object) -> None:
    """Refuse a name that no trial has; as a part of a path it could lead anywhere.

    Raises
    ------
    CellError : it is such; names table and row.
    """
    if not is_trial_id(value):
        raise CellError(
            f"table {table}, row {row}, column trial_id: {value!r} is no name of a trial"
        )


@contextmanager
def understood(row: object, column: str = "record_zlib") -> Generator[None, None, None]:
    """Turn what Python says of a record of another shape than ours into an error that names it.

    Raises
    ------
    CellError : the block failed as it does with values that no agent sends.
    """
    try:
        yield
    except STRANGE as error:
        raise CellError(
            f"table record, row {row}, column {column} is not as iolab stores it "
            f"({type(error).__name__}: {visible_line(str(error))[:_REASON_MAX]})"
        ) from None


def _parsed(text: str, place: str) -> Any:
    for sign, what, most in _COUNTED:
        if text.count(sign) > most:
            raise CellError(f"{place} has more {what} than any of ours ({most})")
    try:
        value = json.loads(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # Half a surrogate pair is no text.
    except (ValueError, RecursionError) as error:
        raise CellError(f"{place} is no JSON ({error})") from None
    return value


def _is_text_by_name(value: Any) -> bool:
    return _is_object(value) and all(map(_is_text, value.values()))


def _is_list(value: Any, is_item: Callable[[Any], bool]) -> bool:
    return type(value) is list and all(map(is_item, value))


def is_list_of_texts(value: object) -> bool:
    """Tell whether it is a list with texts only."""
    return _is_list(value, _is_text)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < 1 << 64


def are_whole(value: Any) -> bool:
    """Tell whether it is a list of whole numbers; lists are long: their types are asked at once."""
    return (
        type(value) is list
        and set(map(type, value)) <= {int}  # pyright: ignore[reportUnknownArgumentType]
        and (not value or (max(value) < 1 << 64 and min(value) > -1 << 64))
    )


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_levels(value: Any) -> bool:
    return _is_object(value) and all(
        _is_list(levels, _is_text) and levels for levels in value.values()
    )


def _is_caveat(value: Any) -> bool:
    return (
        _is_text_by_name(value)
        and {"code", "message"} <= value.keys()
        and value.keys() <= {"code", "message", "hint"}
    )


def _is_worker(value: Any) -> bool:
    return (
        _is_object(value)
        and value.keys() >= _OF_WORKER  # Empty ones would fill the memory.
        and all(map(_is_whole, value.values()))
    )


def _is_mark(value: Any) -> bool:
    return (
        _is_object(value)
        and all(_is_whole(value.get(name)) for name in ("asked_ns", "began_ns", "done_ns"))
        and _is_text(value.get("knob"))
        and all(name in value and _is_text(value[name] or "") for name in ("from", "to"))
    )


def _is_phase(value: Any) -> bool:
    return _is_object(value) and _is_list(value.get("marks") or [], _is_mark)


def _is_record(value: Any) -> bool:
    """As far as stored records are read again; the rest is kept as it came."""
    return (
        _is_object(value)
        and _is_text_by_name(value.get("knobs") or {})
        and _is_list(value.get("phases") or [], _is_phase)
        and _is_list(value.get("actions") or [], _is_object)
    )


def _is_testbed(value: Any) -> bool:
    return _is_object(value) and _is_list(value.get("knob_devices") or [], _is_text)


SHAPES: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "factors_json": ("lists of levels by factor", _is_levels),
    "settings_json": ("levels by factor", _is_text_by_name),
    "levels_json": ("levels by factor", _is_text_by_name),
    "workloads_json": ("a list of names", lambda value: _is_list(value, _is_text)),
    "caveats_json": ("a list of caveats", lambda value: _is_list(value, _is_caveat)),
    "testbed_json": ("the description of a testbed", _is_testbed),
    "workers_json": ("a list of workers", lambda value: _is_list(value, _is_worker)),
    "ops_json": ("a list of whole numbers", are_whole),
    "bytes_json": ("a list of whole numbers", are_whole),
    "latency_ns_max_json": ("a list of whole numbers", are_whole),
    "facts_json": ("a list of facts", lambda value: _is_list(value, _is_text)),
    "more_json": ("a list of facts", lambda value: _is_list(value, _is_text)),
}
"""Every JSON column there is: what it holds, and whether a value is such."""
