"""Scope of a study in words: workload, device, time taken, and what was not tested.

Every sentence comes from what is stored. Left out where it is not known: of an imported table that
is most of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias, cast

from iolab import units
from iolab.stats.metrics.metric import format_ns
from iolab.stats.sentence import testbed_name
from iolab.store.machine import machine_text
from iolab.store.rows import StudyData, StudyRow, TrialRow
from iolab.study.testbeds import testbed_kind
from iolab.wording import profile_text

Table: TypeAlias = Mapping[str, object]
_PATTERNS: Final = {
    "sequential": "sequentially",
    "reverse": "backwards",
    "stride": "in strides",
    "permutation": "in random order",
    "uniform": "at random",
    "same": "at one place",
}
_VERBS: Final = {"read": "reads", "write": "writes"}
_DEVICES_MAX: Final = 2
_PAUSE_NS: Final = 60 * 10**9
"""Time without a trial from which on a study was interrupted."""


def stored_spec(study: StudyRow) -> Table:
    """Tables of the study file as it was stored; empty if it can no longer be read."""
    try:
        return tomllib.loads(study.spec_toml)
    except (tomllib.TOMLDecodeError, RecursionError):
        return dict[str, object]()


def workload_text(data: StudyData, most: int | None = None) -> str:
    """Say what ran, one workload after the other; of more than `most` the first are described."""
    said = _workloads(data)
    modes = {m.is_direct for m in data.measurements if m.is_direct is not None}
    shown = said if most is None else said[:most]
    text = "; ".join(shown)
    if len(shown) < len(said):
        text += f"; and {len(said) - len(shown)} more"
    if modes == {True}:
        text += "; direct I/O"
    elif modes == {False}:
        text += "; through the page cache"
    if any(detail["nature"].kind == "mixed" for detail in data.phase_details):
        text += "; reads and writes together"
    return text + _compared(data)


def _compared(data: StudyData) -> str:
    """Say that data were compared, and that none was wrong; what was wrong is told elsewhere."""
    is_compared = any(c.code == "verifying" for m in data.measurements for c in m.caveats)
    is_wrong = any(c.code == "verify_failed" for trial in data.trials for c in trial.caveats)
    if not is_compared or is_wrong:
        return ""
    if {detail["nature"].kind for detail in data.phase_details} == {"write"}:
        return "; nothing was read, and so nothing was checked against what was written"
    return "; what was read was checked against what was written: no difference"


def device_text(data: StudyData, *, is_short: bool = False) -> str:
    """Name the testbed, its file system and its device; `is_short` leaves out what is modelled."""
    study = data.study
    if study.kind == "imported":
        return "not known: the table does not say"
    if study.is_simulated and is_short:
        return testbed_name(study) + _simulated_files(data)
    if study.is_simulated:
        titles = [
            profile_text(text).partition(" (parameters: ")[0]
            for name, text in data.facts.items()
            if name.startswith("sim.profile.")
        ]
        of_what = f": {' and '.join(titles)}" if titles else ""
        return f"{testbed_name(study)}{_simulated_files(data)}, a simulation{of_what}"
    systems = " or ".join(sorted(_values(data, lambda name: name == "fs.type")))
    devices = ", ".join(_devices(data))
    below = " on ".join(part for part in (systems, devices) if part)
    return f"{study.testbed}: {below}" if below else study.testbed


def _simulated_files(data: StudyData) -> str:
    """Name the file systems of a simulation that are not compared; empty without any."""
    systems = {text.partition(":")[0] for text in _values(data, lambda name: name == "sim.fs")}
    if len(systems) != 1 or systems == {"none"}:
        return ""
    options = _values(data, lambda name: name == "sim.fs.mount_options")
    shared = f" ({' '.join(options)})" if len(options) == 1 and options != {""} else ""
    return f" with a fresh {' '.join(systems)}{shared}"


def duration_text(data: StudyData) -> str:
    """Time from the first trial to the end of the last, or of the trials alone if they paused."""
    ran = [t for t in data.trials if t.started_at_unix_ns and t.elapsed_ns is not None]
    if not ran:
        return ""
    span = max(map(_end, ran)) - min(t.started_at_unix_ns or 0 for t in ran)
    worked = sum(t.elapsed_ns or 0 for t in ran)
    if span <= 2 * worked + _PAUSE_NS:
        return _rounded(max(span, worked))
    return f"{_rounded(worked)} of trials within {_rounded(span)}"


def machine_line(data: StudyData) -> str:
    """Name the machine that was measured, and say if it is a virtual one; empty without one."""
    if data.study.kind != "real":
        return ""
    kinds = _values(data, lambda name: name == "virtualization") - {"none"}
    names = sorted(kinds - {"hypervisor"})
    virtual = "; a virtual machine" if kinds else ""
    return machine_text(data) + virtual + (f" ({' or '.join(names)})" if names else "")


def day_text(data: StudyData) -> str:
    """Day on which the first trial began, in UTC."""
    began = min((t.started_at_unix_ns for t in data.trials if t.started_at_unix_ns), default=0)
    return f"{datetime.fromtimestamp(began / 1e9, tz=UTC):%Y-%m-%d}" if began else ""


def not_tested(data: StudyData) -> str:
    """List what a reader might take the answer to hold for, though it was not measured.

    Of an imported table little is known, and perhaps nothing can be said.
    """
    found = list[str]()
    modes = {m.is_direct for m in data.measurements if m.is_direct is not None}
    if len(modes) == 1 and data.study.compared_factor != "direct":
        found.append("buffered I/O" if True in modes else "direct I/O")
    kinds = {detail["nature"].kind for detail in data.phase_details} - {None}
    if kinds and kinds <= {"read", "write"} and len(kinds) == 1:
        found.append("writes" if "read" in kinds else "reads")
    if data.phase_details and all(_is_alone(detail) for detail in data.phase_details):
        found.append("parallel requests")
    systems = _values(data, lambda name: name == "fs.type")
    if len(systems) == 1:
        found.append("other file systems")
    if data.study.kind != "imported":
        found.append(testbed_kind(data.study.testbed.partition(":")[0]).untested)
    return ", ".join(found)


def _is_alone(detail: Mapping[str, object]) -> bool:
    """Tell whether one worker had one request at a time."""
    workers = cast("Sequence[object]", detail.get("workers") or ())
    depth = cast("float | None", detail.get("depth_reached_mean"))
    return len(workers) <= 1 and depth is not None and depth < 1.5


def _end(trial: TrialRow) -> int:
    return (trial.started_at_unix_ns or 0) + (trial.elapsed_ns or 0)


def _rounded(ns: int) -> str:
    return format_ns(ns) if ns < 10**9 else units.format_duration_rounded(ns)


def _workloads(data: StudyData) -> list[str]:
    found = stored_spec(data.study).get("workloads")
    tables = cast("list[object]", found) if isinstance(found, list) else []
    said = [_workload(cast("Table", one), data) for one in tables if isinstance(one, dict)]
    return said or list(data.study.workloads)


def _workload(table: Table, data: StudyData) -> str:
    """Describe one workload of a study file: tests, streams, or the words of another program."""
    kind = str(table.get("dialect") or table.get("kind", ""))
    name = str(table.get("name", kind))
    streams, tests = table.get("streams"), table.get("operations") or table.get("tests")
    what = ""
    if isinstance(streams, list):
        listed = [one for one in cast("list[object]", streams) if isinstance(one, dict)]
        what = _listed([_stream(cast("Table", one)) for one in listed])
        if table.get("duration"):
            what += f" for {_duration(table['duration'])}"
    elif table.get("command"):
        what = f"{kind} {table['command']}"
    elif isinstance(tests, list):
        held = {**data.study.settings, **{k: v for k, v in table.items() if isinstance(v, str)}}
        names = [str(one) for one in cast("list[object]", tests)]
        what = f"{kind} {'test' if len(names) == 1 else 'tests'} {_listed(names)}"
        if held.get("record_size"):
            what += f" with records of {held['record_size']}"
        if held.get("file_size"):
            what += f" on a file of {held['file_size']}"
        if held.get("workers", "1") != "1":
            what += f" for each of {held['workers']} workers"
    if not what or (name == kind and not isinstance(streams, list)):
        return what or name
    return f"{name}: {what}"


def _stream(table: Table) -> str:
    """Describe a stream: ``reader (4 workers) reads 64k sequentially``."""
    workers, depth = table.get("workers", 1), table.get("depth", 1)
    direction = str(table.get("direction", ""))
    parts = [
        str(table.get("name", "a stream")),
        "" if workers == 1 else f"({workers} workers)",
        _VERBS.get(direction, f"reads ({direction}) and writes"),
        str(table.get("record_size", "")),
        _PATTERNS.get(str(table.get("pattern", "")), ""),
        "" if depth == 1 else f"with {depth} requests at once",
        f"with pauses of {_duration(table['think'])}" if table.get("think") else "",
    ]
    return " ".join(part for part in parts if part)


def _duration(value: object) -> str:
    try:
        return format_ns(units.parse_duration_ns(str(value)))
    except ValueError:
        return str(value)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _devices(data: StudyData) -> list[str]:
    """Device below the file system with size and model, as far as facts tell them."""
    sources = _values(data, lambda name: name == "fs.source")
    shown = " or ".join(sorted(sources)) if len(sources) <= _DEVICES_MAX else ""
    models = _values(data, lambda name: _is_of_device(name, "model"))
    sizes = {
        units.format_bytes_rounded(int(value) * 512)
        for value in _values(data, lambda name: _is_of_device(name, "size_sectors"))
        if value.isdecimal()
    }
    about = [*sorted(models), *(sizes if len(sizes) == 1 else ())]
    return [text for text in (shown, *about) if text]


def _is_of_device(name: str, fact: str) -> bool:
    parts = name.split(".", 2)
    return len(parts) == 3 and parts[0] == "device" and parts[2] == fact


def _values(data: StudyData, is_wanted: Callable[[str], bool]) -> set[str]:
    """Values of all facts of a name, over all trials."""
    found = {value for name, value in data.facts.items() if is_wanted(name) and value}
    for name, values in data.varying_facts.items():
        if is_wanted(name):
            found |= {value for value in values.values() if value}
    return found
