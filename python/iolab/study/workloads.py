"""Reading the workloads of a study: IOzone's tests, mixes of streams, dialects and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from iolab import units
from iolab.frozen import replace
from iolab.study.factors import (
    FACTORS,
    Scope,
)
from iolab.study.model import (
    IozoneWorkload,
    KnobChange,
    MixedWorkload,
    WorkloadPlan,
)
from iolab.study.names import TESTS
from iolab.study.presets import find_preset, preset_workload
from iolab.study.read_dialect import read_dialect
from iolab.study.reader import Reader
from iolab.study.settings import SURROUNDINGS, merged, parse_name, read_settings
from iolab.study.stream_keys import read_stream, whole_number
from iolab.study.typed_workloads import CONTENTION
from iolab.wording import nearest

IOZONE_TESTS: Final = tuple(test.name for test in TESTS)
DEFAULT_TESTS: Final = ("write", "read", "random-read", "random-write")
"""The tests that are taken if nobody names a workload."""
_SHARED_SCOPES: Final = (Scope.ACCESS, *SURROUNDINGS)
_PRESET_DURATION_NS: Final = 10_000_000_000
_PRESET_FILE_BYTES: Final = 64 << 20


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
        stride=reader.read_or("stride", whole_number, 17),
        settings=merged(reader, inline, (Scope.PATTERN, *_SHARED_SCOPES)),
    )


def _read_mixed(reader: Reader) -> MixedWorkload:
    held = [definition.name for definition in FACTORS if definition.scope is Scope.ACCESS]
    reader.only(["name", "kind", "duration", "streams", "settings", "changes", *held])
    inline = {key: value for key, value in reader.values.items() if key in held}
    streams = tuple(read_stream(stream) for stream in reader.tables("streams"))
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
