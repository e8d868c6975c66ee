"""Reading the workloads of a study: IOzone's tests, mixes of streams, dialects and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar, cast, get_args

from iolab import units
from iolab.study.factors import (
    DEFAULT_OPTIONS,
    FACTORS,
    MAX_COUNT,
    Scope,
    find_factor,
)
from iolab.study.model import (
    LIMITS,
    Flush,
    IozoneWorkload,
    KnobChange,
    Lock,
    MixedWorkload,
    Pattern,
    Priority,
    Stream,
    WorkloadPlan,
)
from iolab.study.names import TESTS
from iolab.study.presets import find_preset, preset_workload
from iolab.study.read_dialect import read_dialect
from iolab.study.reader import Reader
from iolab.study.settings import SURROUNDINGS, merged, parse_name, read_settings
from iolab.study.typed_workloads import CONTENTION
from iolab.wording import nearest

IOZONE_TESTS: Final = tuple(test.name for test in TESTS)
DEFAULT_TESTS: Final = ("write", "read", "random-read", "random-write")
"""The tests that are taken if nobody names a workload."""
PATTERNS: Final[tuple[Pattern, ...]] = get_args(Pattern)
FLUSHES: Final[tuple[Flush, ...]] = get_args(Flush)
LOCKS: Final[tuple[Lock, ...]] = get_args(Lock)
RESERVED_STREAM_NAME: Final = "all"
_SHARED_SCOPES: Final = (Scope.ACCESS, *SURROUNDINGS)
_STREAM_KEYS: Final = (
    "name",
    "direction",
    "pattern",
    "record_size",
    "depth",
    "workers",
    "file_size",
    "rate",
    "fsync_every",
    "flush",
    "vectors",
    "flags",
    "lock",
    "preallocate",
    "begin",
    "end",
    "think",
    "priority",
    "operations",
    "cgroup_weight",
    *LIMITS,
)
_WEIGHT_MAX: Final = 1000
"""Linux block/bfq-iosched.h: BFQ_MAX_WEIGHT; the least is 1."""
_OPS_MAX: Final = 1 << 40
_PRESET_DURATION_NS: Final = 10_000_000_000
_PRESET_FILE_BYTES: Final = 64 << 20
_Name = TypeVar("_Name", bound=str)
_CLASSES: Final = ("rt", "be", "idle")
_LEVEL_MAX: Final = 7


def parse_tests(value: object) -> tuple[str, ...]:
    """IOzone's tests from a list or from text with commas, in the order given."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not items:
        raise ValueError("give at least one test, such as write,read")
    names = tuple(str(item).strip() for item in cast("list[object]", items))
    for name in names:
        if name not in IOZONE_TESTS:
            raise ValueError(
                f"'{name}' is not a test{nearest(name, IOZONE_TESTS)} (known: "
                + ", ".join(IOZONE_TESTS)
                + ")"
            )
    if len(set(names)) != len(names):
        raise ValueError("a test is named twice; rounds repeat it, a list must not")
    return names


def read_workloads(readers: list[Reader], *, is_line: bool = False) -> tuple[WorkloadPlan, ...]:
    """All workloads of a study, names checked to be different.

    Parameters
    ----------
    is_line : it is the study of a command line, which may ask for what other studies cannot.
    """
    found = list[WorkloadPlan]()
    seen = set[str]()
    for reader in readers:
        if "dialect" in reader.values or "file" in reader.values:
            workloads = read_dialect(reader, is_line=is_line)
        else:
            workloads = (_read_workload(reader),)
        for workload in workloads:
            if workload.name in seen:
                reader.refuse("name", f"two workloads are called '{workload.name}'", "rename one")
            seen.add(workload.name)
        found += workloads
    return tuple(found)


def _read_workload(reader: Reader) -> WorkloadPlan:
    kinds: dict[str, Callable[[Reader], WorkloadPlan]] = {
        IozoneWorkload.kind: _read_iozone,
        MixedWorkload.kind: _read_mixed,
        CONTENTION: _read_contention,
    }

    def parse_kind(value: object) -> Callable[[Reader], WorkloadPlan]:
        kind = cast("str", value)
        if kind not in kinds:
            raise ValueError(
                f"'{value}' is not a kind of workload{nearest(str(value), kinds)}; "
                f"known are {', '.join(kinds)}"
            )
        return kinds[kind]

    return reader.read("kind", parse_kind)(reader)


def _read_iozone(reader: Reader) -> IozoneWorkload:
    held = [
        definition.name
        for definition in FACTORS
        if definition.scope in (Scope.PATTERN, Scope.ACCESS)
    ]
    reader.only(["name", "kind", "tests", "stride", "settings", *held])
    inline = {key: value for key, value in reader.values.items() if key in held}
    return IozoneWorkload(
        name=reader.read_or("name", parse_name, "iozone"),
        tests=reader.read("tests", parse_tests),
        stride=reader.read_or("stride", _whole_number, 17),
        settings=merged(reader, inline, (Scope.PATTERN, *_SHARED_SCOPES)),
    )


def _read_mixed(reader: Reader) -> MixedWorkload:
    held = [definition.name for definition in FACTORS if definition.scope is Scope.ACCESS]
    reader.only(["name", "kind", "duration", "streams", "settings", "changes", *held])
    inline = {key: value for key, value in reader.values.items() if key in held}
    streams = tuple(_read_stream(stream) for stream in reader.tables("streams"))
    if not streams:
        reader.refuse("streams", "a mixed workload needs streams", "add [[workloads.streams]]")
    names = [stream.name for stream in streams]
    if len(set(names)) != len(names):
        reader.refuse("streams", "two streams have the same name", "rename one")
    workload = MixedWorkload(
        name=reader.read_or("name", parse_name, "mixed"),
        duration_ns=reader.read("duration", units.parse_duration_ns),
        streams=streams,
        settings=merged(reader, inline, _SHARED_SCOPES),
    )
    return replace(workload, changes=_read_changes(reader, workload))


def _read_contention(reader: Reader) -> MixedWorkload:
    held = [definition.name for definition in FACTORS if definition.scope is Scope.ACCESS]
    reader.only(["name", "kind", "preset", "duration", "file_size", "settings", "changes", *held])
    inline = {key: value for key, value in reader.values.items() if key in held}
    preset = reader.read("preset", find_preset)
    workload = preset_workload(
        preset,
        reader.read_or("duration", units.parse_duration_ns, _PRESET_DURATION_NS),
        reader.read_or("file_size", units.parse_bytes, _PRESET_FILE_BYTES),
    )
    workload = replace(
        workload,
        name=reader.read_or("name", parse_name, preset.name),
        settings=merged(reader, inline, _SHARED_SCOPES),
    )
    return replace(workload, changes=_read_changes(reader, workload))


def _read_changes(reader: Reader, workload: MixedWorkload) -> tuple[KnobChange, ...]:
    changes = list[KnobChange]()
    for table in reader.tables("changes"):
        at_ns = table.read("at", units.parse_duration_ns)
        knobs = replace(
            table, values={key: value for key, value in table.values.items() if key != "at"}
        ).flat()
        for key in knobs.values:
            if not reader.parsed("changes", key, reader.find).is_knob:
                table.refuse(
                    key, f"{key} cannot change while a workload runs", "knobs can: scheduler, ..."
                )
        levels = read_settings(knobs)
        if not levels:
            table.refuse(None, "nothing changes", 'name a knob, as in scheduler = "bfq"')
        if at_ns >= workload.duration_ns:
            table.refuse("at", "the workload has ended by then", "change earlier, or run longer")
        if at_ns == 0:
            table.refuse("at", "at the very beginning nothing runs yet", "use [settings]")
        if changes and at_ns <= changes[-1].at_ns:
            table.refuse("at", "this is not after the change before", "write them in order of time")
        changes.append(KnobChange(at_ns, levels))
    return tuple(changes)


def _read_stream(reader: Reader) -> Stream:
    reader.only(_STREAM_KEYS)
    stream = Stream(
        name=reader.read("name", _stream_name),
        read_share=reader.read("direction", _read_share),
        pattern=reader.read_or("pattern", _pattern, "uniform"),
        io_size_bytes=reader.read("record_size", units.parse_bytes),
        depth=reader.read_or("depth", _whole_number, 1),
        workers=reader.read_or("workers", _whole_number, 1),
        file_bytes=reader.read("file_size", units.parse_bytes),
        rate_ops_per_s=reader.read_or("rate", _rate, None),
        fsync_every=reader.read_or("fsync_every", _count_or_zero, 0),
        think_ns=reader.read_or("think", units.parse_pause_ns, 0),
        priority=reader.read_or("priority", parse_priority, None),
        flush=reader.read_or("flush", _flush, "fsync"),
        vectors=reader.read_or("vectors", _whole_number, 1),
        flags=reader.read_or("flags", _flags, ()),
        lock=reader.read_or("lock", _lock, "none"),
        is_preallocated=reader.read_or("preallocate", _bool, False),
        begins_ns=reader.read_or("begin", units.parse_duration_ns, 0),
        ends_ns=reader.read_or("end", units.parse_duration_ns, None),
        ops=reader.read_or("operations", _operations, None),
        cgroup_weight=reader.read_or("cgroup_weight", _weight, None),
        limits=tuple(
            (name, reader.read(name, _per_second)) for name in LIMITS if name in reader.values
        ),
    )
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


def _whole_number(value: object) -> int:
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
    return 0 if type(value) is int and value == 0 else _whole_number(value)


def _rate(value: object) -> float | None:
    try:
        rate = float(str(value).strip().removesuffix("/s"))
    except ValueError:
        rate = 0.0
    if isinstance(value, bool) or not 0 < rate < float("inf"):
        raise ValueError(f"'{value}' is not a rate: write operations per second, such as 500")
    return rate
