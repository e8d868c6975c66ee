"""Keys of a stream of a mixed workload: read, written again, and asked of the compiled half.

A further one is a field of `iolab.study.model.Stream`, a row of `OPTIONAL` and a field of
`StreamRequest` in Rust.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast, get_args

from iolab import units
from iolab.frozen import frozen, replace
from iolab.study.factors import DEFAULT_OPTIONS, MAX_COUNT, find_factor
from iolab.study.model import LIMITS, Flush, Lock, Pattern, Priority, Stream
from iolab.study.reader import Reader
from iolab.study.settings import parse_name
from iolab.wording import nearest

if TYPE_CHECKING:
    from iolab.protocol import StreamRequest

PATTERNS: Final[tuple[Pattern, ...]] = get_args(Pattern)
FLUSHES: Final[tuple[Flush, ...]] = get_args(Flush)
LOCKS: Final[tuple[Lock, ...]] = get_args(Lock)
RESERVED_STREAM_NAME: Final = "all"
_WEIGHT_MAX: Final = 1000
"""Linux block/bfq-iosched.h: BFQ_MAX_WEIGHT; the least is 1."""
_OPS_MAX: Final = 1 << 40
_Name = TypeVar("_Name", bound=str)
_Value = TypeVar("_Value")
_CLASSES: Final = ("rt", "be", "idle")
_LEVEL_MAX: Final = 7
TomlScalar: TypeAlias = "str | int | float | bool"


@frozen
class StreamKey:
    """Key that a stream may have."""

    name: str
    """Name in a study file."""
    field: str
    """Field of `Stream`, and of the request where that has it; its default is that of the key."""
    parse: Callable[[object], object]
    show: Callable[[object], TomlScalar]
    """From the field's value to the one that the study file has."""
    ask: Callable[[object], object] | None
    """From the field's value to that of the request; None: the request has no such field."""

    def default(self) -> object:
        """Value of a stream without the key."""
        return _DEFAULTS[self.field]


_DEFAULTS: Final = {one.name: one.default for one in dataclasses.fields(Stream)}


def _row(
    name: str,
    field: str,
    parse: Callable[[str], _Value | None],
    show: Callable[[_Value], TomlScalar],
    ask: Callable[[_Value], object] | None = lambda value: value,
) -> StreamKey:
    """A row whose functions agree on the type of the value."""
    return StreamKey(
        name,
        field,
        cast("Callable[[object], object]", parse),
        cast("Callable[[object], TomlScalar]", show),
        cast("Callable[[object], object] | None", ask),
    )


def _same(value: TomlScalar) -> TomlScalar:
    return value


def parse_priority(value: object) -> Priority:
    """Class and level of an I/O priority, as `ionice` knows them: ``rt/0``, ``be/2``, ``idle``."""
    name, slash, level = str(value).strip().partition("/")
    if name not in _CLASSES:
        raise ValueError(
            f"'{value}' is not a priority{nearest(name, _CLASSES)}; write rt/0 to rt/7, be/0 to "
            "be/7 (0 is the most urgent) or idle"
        )
    if name == "idle":
        if slash:
            raise ValueError(f"'{value}': idle has no levels; write idle")
        return Priority("idle")
    if not slash:
        return Priority(name)  # pyright: ignore[reportArgumentType]
    if not level.isdecimal() or int(level) > _LEVEL_MAX:
        raise ValueError(f"'{value}': the level goes from 0 (most urgent) to {_LEVEL_MAX}")
    return Priority(name, int(level))  # pyright: ignore[reportArgumentType]


def _stream_name(value: object) -> str:
    name = parse_name(value)
    if name == RESERVED_STREAM_NAME:
        raise ValueError("'all' is the sum of the streams; choose another name")
    return name


def _read_share(value: object) -> float:
    words = {"read": 1.0, "write": 0.0}
    if value in words:
        return words[cast("str", value)]
    text = str(value).strip().removesuffix("%").strip()
    try:
        share = float(text) / 100
    except ValueError:
        share = -1.0
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise ValueError(f"'{value}' is not a direction: write read, write, or a read share 70%")
    return share


def _one_of(kind: str, names: tuple[_Name, ...]) -> Callable[[object], _Name]:
    """Reader of one of a few names."""

    def parse(value: object) -> _Name:
        for name in names:
            if value == name:
                return name
        raise ValueError(
            f"'{value}' is not a {kind}{nearest(str(value), names)} (known: {', '.join(names)})"
        )

    return parse


_pattern: Final[Callable[[object], Pattern]] = _one_of("pattern", PATTERNS)
_flush: Final[Callable[[object], Flush]] = _one_of("flush", FLUSHES)
_lock: Final[Callable[[object], Lock]] = _one_of("lock", LOCKS)


def _flags(value: object) -> tuple[str, ...]:
    text = find_factor("flags").parse(value)[0]
    return () if text == DEFAULT_OPTIONS else tuple(text.split(","))


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"'{value}' is neither true nor false")


def whole_number(value: object) -> int:
    """A whole number from 1 to `MAX_COUNT`."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_COUNT:
        return value
    raise ValueError(f"'{value}' is not a whole number from 1 to {MAX_COUNT}")


def _operations(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _OPS_MAX:
        return value
    raise ValueError(f"'{value}' is not a number of operations: a whole number above zero")


def _weight(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _WEIGHT_MAX:
        return value
    raise ValueError(
        f"'{value}' is not a weight: a whole number from 1 to {_WEIGHT_MAX}; 100 is usual"
    )


def _per_second(value: object) -> int:
    given = value.strip().removesuffix("/s") if isinstance(value, str) else value
    return units.parse_bytes(cast("str | int", given))


def _count_or_zero(value: object) -> int:
    return 0 if type(value) is int and value == 0 else whole_number(value)


def _rate(value: object) -> float | None:
    try:
        rate = float(str(value).strip().removesuffix("/s"))
    except ValueError:
        rate = 0.0
    if isinstance(value, bool) or not 0 < rate < float("inf"):
        raise ValueError(f"'{value}' is not a rate: write operations per second, such as 500")
    return rate


OPTIONAL: Final = (
    _row("rate", "rate_ops_per_s", _rate, _same),
    _row("fsync_every", "fsync_every", _count_or_zero, _same),
    _row("think", "think_ns", units.parse_pause_ns, units.format_duration),
    _row(
        "priority",
        "priority",
        parse_priority,
        lambda value: value.text,
        ask=lambda value: {"class": value.class_, "level": value.level},
    ),
    _row("flush", "flush", _flush, _same),
    _row("vectors", "vectors", whole_number, _same),
    _row("flags", "flags", _flags, ",".join, ask=list),
    _row("lock", "lock", _lock, _same),
    _row("preallocate", "is_preallocated", _bool, _same),
    _row("begin", "begins_ns", units.parse_duration_ns, units.format_duration),
    _row("end", "ends_ns", units.parse_duration_ns, units.format_duration),
    _row("operations", "ops", _operations, _same),
    _row("cgroup_weight", "cgroup_weight", _weight, _same, ask=None),
)
"""Keys that a stream may have, in the order in which they are written; limits stand behind them."""
_REQUIRED: Final = (
    "name",
    "direction",
    "pattern",
    "record_size",
    "depth",
    "workers",
    "file_size",
)
_KEYS: Final = (*_REQUIRED, *(key.name for key in OPTIONAL), *LIMITS)


def read_stream(reader: Reader) -> Stream:
    """The stream that a table of a study file describes."""
    reader.only(_KEYS)
    stream = Stream(
        name=reader.read("name", _stream_name),
        read_share=reader.read("direction", _read_share),
        pattern=reader.read_or("pattern", _pattern, "uniform"),
        io_size_bytes=reader.read("record_size", units.parse_bytes),
        depth=reader.read_or("depth", whole_number, 1),
        workers=reader.read_or("workers", whole_number, 1),
        file_bytes=reader.read("file_size", units.parse_bytes),
        limits=tuple(
            (name, reader.read(name, _per_second)) for name in LIMITS if name in reader.values
        ),
    )
    given = {key.field: reader.read_or(key.name, key.parse, key.default()) for key in OPTIONAL}
    stream = replace(stream, **given)
    _check_stream(reader, stream)
    return stream


def _check_stream(reader: Reader, stream: Stream) -> None:
    if stream.think_ns and stream.depth > 1:
        reader.refuse(
            "think",
            f"a worker that thinks between operations has one in flight, not {stream.depth}",
            "leave out depth, or use more workers",
        )
    if stream.fsync_every and stream.read_share == 1:
        reader.refuse("fsync_every", "a stream that only reads has nothing to fsync", "remove it")
    if stream.flush != "fsync" and not stream.fsync_every:
        reader.refuse(
            "flush", f"{stream.flush} is never called: fsync_every is missing", "add fsync_every"
        )
    if stream.ends_ns is not None and stream.ends_ns <= stream.begins_ns:
        reader.refuse("end", "the stream would end before it begins", "let it end later")


def shown_keys(stream: Stream) -> list[tuple[str, TomlScalar]]:
    """Keys of a stream that are not at their default, with the values that a study file has."""
    found = [(key, getattr(stream, key.field)) for key in OPTIONAL]
    shown = [(key.name, key.show(value)) for key, value in found if value != key.default()]
    return [*shown, *stream.limits]


def asked_keys(stream: Stream) -> StreamRequest:
    """The part of a request that the optional keys are."""
    asked = dict[str, object]()
    for key in OPTIONAL:
        value: object = getattr(stream, key.field)
        if key.ask is not None:
            asked[key.field] = None if value is None else key.ask(value)
    return cast("StreamRequest", asked)
