"""Files that a dialect writes beside its report: IOzone's -Q, -+z and -+T.

The engine logs single operations into a directory of the run, one binary file per worker
(`crates/iolab-drive/src/op_log.rs`). After a row they are read in parts of a fixed size, so that a
long run needs no memory, the dialect says what each part looks like, and it is appended to a file
in the current directory, as the original appends. The logs are removed.
"""

from __future__ import annotations

import json
import struct
import time
from bisect import bisect_left
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.dialect.plan import DialectCore, DialectPlan
from iolab.store.users_files import append_file, refuse_foreign

if TYPE_CHECKING:
    from iolab.library.dialect.results import SideFiles
    from iolab.protocol import Phase, PhaseRecord, Record, StreamReport, Workload

_ENTRY: Final = struct.Struct("<QQQII")
"""Offset in bytes, end and service time in ns, bytes, direction."""
_WRITE: Final = 1
_PART_ENTRIES: Final = 1 << 15
_FOLDER: Final = "operations"
Part: TypeAlias = Mapping[str, object]
"""Part that the dialect is asked to write: a part of a file, and whose it is."""
Operation: TypeAlias = tuple[int, int, int]


@frozen
class Child:
    """One worker of a phase, as the dialect counts them."""

    number: int
    """Of the child."""
    ordinal: int
    """Of the worker in its phase: its log is called by it."""
    is_writer: bool
    report: StreamReport


def _side(plan: DialectPlan) -> SideFiles:
    """Files that are wanted; only one dialect has any."""
    return cast("SideFiles", plan.values["show"].get("side", {}))


@contextmanager
def log_folder(plan: DialectPlan, out_dir: Path) -> Generator[Path | None]:
    """A directory for the logs of a row, if any are wanted; it is removed in the end."""
    if not _side(plan).get("logged"):
        yield None
        return
    folder = out_dir.resolve() / _FOLDER
    folder.mkdir()
    try:
        yield folder
    finally:
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)


def logged(plan: DialectPlan, workload: Workload, folder: Path | None) -> Workload:
    """The workload, with its single operations logged where that is wanted."""
    if folder is None:
        return workload
    wanted = _side(plan).get("logged", ())

    def with_log(phase: Phase) -> Phase:
        if phase["name"] not in wanted:
            return phase
        tenants = [
            {**tenant, "manner": {**tenant.get("manner", {}), "op_log": str(folder)}}
            for tenant in phase["tenants"]
        ]
        return cast("Phase", {**phase, "tenants": tenants})

    return {**workload, "phases": [with_log(phase) for phase in workload["phases"]]}


def children_of(plan: DialectPlan, planned: Phase, phase: PhaseRecord) -> list[Child]:
    """Workers of a measured phase; `planned` is the same phase of the workload."""
    numbers = {name: number for number, name in enumerate(plan.values["files"])}
    found = list[Child]()
    for tenant, asked in zip(phase["tenants"], planned["tenants"], strict=True):
        # Names for each child: IOzone's -F. Files of a set are nobody's number.
        named = asked.get("files", ()) if not asked.get("program") else ()
        for report in tenant["workers"]:
            ordinal = len(found)
            number = numbers[named[report["worker"]]] if named else ordinal
            writes = asked["direction"]["kind"] == "write"
            found.append(Child(number, ordinal, writes, report))
    return found


def check_side_files(plan: DialectPlan, core: DialectCore) -> list[Path]:
    """Refuse, before anything is measured, to append to files that are the user's own.

    Returns those that are appended to.

    Raises
    ------
    RefusedError : one is there that iolab did not make.
    """
    side = _side(plan)
    kinds = list[Part]()
    if side.get("has_stamps"):
        kinds.append({"part": "stamps", "began": "", "ended": ""})
    if side.get("has_latencies"):
        kinds.append({"part": "operations", "is_first": True, "operations": [], "times_ns": None})
    if side.get("has_histograms"):
        kinds.append({"part": "histogram", "counts": [0] * (len(_limits(side)) + 1)})
    if not kinds:
        return []
    found = set[Path]()
    phases = [phase for row in plan.rows for phase in row["workload"]["phases"]]
    for phase in phases:
        count = sum(int(tenant["workers"]) for tenant in phase["tenants"])
        for child, is_writer, kind in product(range(count), (False, True), kinds):
            who = {"test": phase["name"], "child": child, "is_writer": is_writer}
            event = json.dumps({"event": "side", **kind, "who": who})
            shown = json.loads(core.dialect_render(plan.dialect, plan.text, event))
            found.add(Path(shown["name"]))
    refuse_foreign(sorted(found), plan.allowed)
    return sorted(found)


def write_side_files(
    plan: DialectPlan,
    core: DialectCore,
    workload: Workload,
    record: Record,
    folder: Path | None,
) -> None:
    """Append what a measured row has to tell to the files that the plan asks for.

    Parameters
    ----------
    plan, core : what was asked, and who knows how it looks.
    workload : that of the plan's row.
    record : what was measured.
    folder : where the logs of single operations are, if there are any.

    Raises
    ------
    IolabError : a file cannot be written; what was measured is stored all the same.
    """
    side = _side(plan)
    if not side:
        return
    writer = _Writer(plan, core)
    clock_ns = wall_clock(record)
    try:
        phases = {phase["name"]: phase for phase in workload["phases"]}
        for phase in record["phases"]:
            name = phase["name"]
            for child in children_of(plan, phases[name], phase):
                who = {"test": name, "child": child.number, "is_writer": child.is_writer}
                if side.get("has_stamps"):
                    writer.append(_stamps(who, child.report, clock_ns))
                log = None if folder is None else folder / f"{name}.{child.ordinal}"
                # A phase that failed may have none.
                if log is not None and log.exists():
                    _show_operations(writer, side, who, log, _times(phase))
    except OSError as error:
        raise IolabError(
            f"{error.filename} cannot be written: {error.strerror}", "the results are stored"
        ) from None


@frozen
class _Writer:
    """Appends what the dialect says to files in the current directory."""

    plan: DialectPlan
    core: DialectCore

    def append(self, part: Part) -> None:
        """Append what a part looks like."""
        event = json.dumps({"event": "side", **part})
        shown = json.loads(self.core.dialect_render(self.plan.dialect, self.plan.text, event))
        append_file(Path(shown["name"]), shown["text"], self.plan.allowed)


def _show_operations(
    writer: _Writer, side: SideFiles, who: Part, log: Path, times_ns: tuple[int, int, int]
) -> None:
    limits = _limits(side)
    counts = [0] * (len(limits) + 1)
    is_first = True
    for operations in _parts(log):
        if side.get("has_latencies"):
            part = {"part": "operations", "who": who, "is_first": is_first}
            writer.append({**part, "operations": operations, "times_ns": None})
        if side.get("has_histograms"):
            for _, elapsed_ns, _ in operations:
                counts[bisect_left(limits, elapsed_ns)] += 1
        is_first = False
    if side.get("has_latencies"):
        part = {"part": "operations", "who": who, "is_first": is_first, "operations": []}
        writer.append({**part, "times_ns": times_ns})
    if side.get("has_histograms"):
        writer.append({"part": "histogram", "who": who, "counts": counts})


def _parts(log: Path) -> Iterator[list[Operation]]:
    """The operations of a log, some at a time."""
    with log.open("rb") as file:
        while block := file.read(_ENTRY.size * _PART_ENTRIES):
            entries = _ENTRY.iter_unpack(block)
            yield [(at, ns, size) for at, _, ns, size, kind in entries if kind <= _WRITE]


def _limits(side: SideFiles) -> list[int]:
    """Upper ends of the classes of a histogram."""
    return side.get("limits_ns", [])


def cpu_times(phase: PhaseRecord) -> tuple[int, int]:
    """User and system time of a phase, in ns; zero where none was measured."""
    cpu = phase.get("cpu")
    return (cpu["user_ns"], cpu["system_ns"]) if cpu else (0, 0)


def _times(phase: PhaseRecord) -> tuple[int, int, int]:
    """User, system and real time of a phase."""
    return *cpu_times(phase), phase["elapsed_ns"]


def wall_clock(record: Record) -> int:
    """Difference from a worker's times to those of the wall, in ns.

    Its clock is the machine's monotonic one; of a simulated one only differences mean something,
    and its first phase begins with the trial.
    """
    if "simulation" in record:
        first_ns = min((phase["started_ns"] for phase in record["phases"]), default=0)
        return (record.get("started_at_unix_ns") or 0) - first_ns
    return time.time_ns() - time.monotonic_ns()


def _stamps(who: Part, report: StreamReport, clock_ns: int) -> Part:
    """Times at which a worker's timed region began and ended, on the clock of the wall."""
    began_ns = report["started_ns"] + clock_ns
    ended_ns = began_ns + report["elapsed_ns"]
    began, ended = (time.ctime(at // 1_000_000_000) for at in (began_ns, ended_ns))
    return {"part": "stamps", "who": who, "began": began, "ended": ended}
