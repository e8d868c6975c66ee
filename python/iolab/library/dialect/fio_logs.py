"""The logs that a fio job file asks for: `write_bw_log`, `write_lat_log` and their like.

The plan says which files there are and whose transfers are in them
(`crates/iolab-dialect/src/fio/logs.rs`). The engine logs single transfers, or sums of windows, into
a directory of the run, one binary file per worker (`crates/iolab-drive/src/op_log.rs`). After the
run they are read in parts of a fixed size and written as fio writes them: lines of
``ms, value, direction, bytes[, offset], priority``. A line of a histogram is ``ms, direction,
bytes`` and the counts of fio's buckets. Every log is written whole or not at all, under the rule
for the user's files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError
from iolab.frozen import frozen, replace
from iolab.library.dialect.files import check_all_written
from iolab.library.dialect.side import wall_clock
from iolab.store.users_files import opened_replacing

if TYPE_CHECKING:
    from iolab.library.dialect.plan import DialectPlan
    from iolab.protocol import (
        FioLog,
        FioLogSource,
        PhaseRecord,
        Record,
        ShownByFio,
        StreamReport,
        Tenant,
        Workload,
    )

_OP: Final = struct.Struct("<QQQII")
"""Offset in bytes, end of the op and its service time in ns, bytes, direction and file."""
_WINDOW: Final = struct.Struct("<QQQQII")
"""End of the window, sum and longest of the service times in ns, bytes, ops, direction."""
_OP_APART: Final = struct.Struct("<QQQIIQ")
"""The same with the time of submission."""
_WINDOW_APART: Final = struct.Struct("<QQQQIIQQQ")
"""The same with sum and longest of the times of submission, and the longest of the rest."""
_OP_FIELDS: Final = 5
_TRIM: Final = 2
_ACTIONS: Final = ("read", "write", "trim", "sync", "datasync", "sync")
"""Names of the directions of entries in a log of actions; the last one, `sync_file_range`, is one
that fio writes and cannot do again."""
_DIRECTION_BITS: Final = 8
"""Of the directions in the engine's logs; above them is the number of the file."""
_DIRECTION_MASK: Final = (1 << _DIRECTION_BITS) - 1
_TIMES: Final = ("latency", "submission", "completion")
_PART_ENTRIES: Final = 1 << 15
_FOLDER: Final = "operations"
_NS_PER_MS: Final = 1_000_000
_NS_PER_US: Final = 1_000
_SLACK_NS: Final = _NS_PER_MS
"""Between the worker's beginning and the first op, from which the engine counts windows."""
_MS_PER_S: Final = 1000
_KIB: Final = 1024

_BUCKET_BITS: Final = 6
_BUCKETS: Final = 29 << _BUCKET_BITS
"""fio's buckets: exact below 128 ns, then 64 for each power of two."""


_VALUES: Final[Mapping[str, Callable[[tuple[int, ...]], int]]] = {
    "latency": lambda row: row[2],
    "completion": lambda row: row[2] - (row[5] if len(row) > _OP_FIELDS else 0),
    "submission": lambda row: row[5],
    "iops": lambda _: 1,
    "bandwidth": lambda row: row[3] * _NS_PER_MS // max(1, row[2]),
}
"""Of one transfer, by kind of log: fio's bandwidth of a transfer is in kB/s."""


@frozen
class Entry:
    """One transfer, or all of one direction in a window."""

    ended_ns: int
    """After the beginning of the log; of a window: its end."""
    total_ns: int
    longest_ns: int
    bytes: int
    ops: int
    direction: int
    offset: int
    submission_ns: int = 0
    """Sum of the times of submission."""
    longest_submission_ns: int = 0
    longest_completion_ns: int = 0
    """Longest time from the end of a submission on."""
    file: int = 0
    """Place of its file among those of the log."""


def _logs_of(plan: DialectPlan) -> list[FioLog]:
    return cast("ShownByFio", plan.values["show"]).get("logs", [])


def check_logs(plan: DialectPlan) -> list[Path]:
    """Refuse logs that cannot or must not be written, before anything is measured; returns them.

    Raises
    ------
    IolabError : a log cannot be written.
    RefusedError : a file is there that iolab did not make.
    """
    return check_all_written((log["file"] for log in _logs_of(plan)), plan.allowed, "write_*_log")


@contextmanager
def log_folder(plan: DialectPlan, out_dir: Path) -> Generator[Path | None]:
    """A directory for the engine's logs of a run, if any are wanted; removed in the end."""
    if not _logs_of(plan):
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
    """The workload, with the engine's logs of those tenants that fio's logs are made of."""
    if folder is None:
        return workload
    sources = [source for log in _logs_of(plan) for clone in log["clones"] for source in clone]
    wanted = {(source["phase"], source["tenant"]) for source in sources}

    def with_log(place: tuple[int, int], tenant: Tenant) -> Tenant:
        if place not in wanted:
            return tenant
        manner = {**tenant.get("manner", {}), "op_log": str(folder)}
        return cast("Tenant", {**tenant, "manner": manner})

    phases = [
        {
            **phase,
            "tenants": [with_log((at, of), tenant) for of, tenant in enumerate(phase["tenants"])],
        }
        for at, phase in enumerate(workload["phases"])
    ]
    return cast("Workload", {**workload, "phases": phases})


def write_logs(plan: DialectPlan, record: Record, folder: Path | None) -> None:
    """Write all logs of a run.

    Parameters
    ----------
    plan : the plan of the command line.
    record : what was measured; phases that did not run have no lines.
    folder : where the engine's logs are, if there are any.

    Raises
    ------
    IolabError : a log cannot be written; what was measured is stored all the same.
    RefusedError : a file was made meanwhile that is the user's own.
    """
    if folder is None:
        return
    for log in _logs_of(plan):
        path = Path(log["file"])
        try:
            with opened_replacing(path, plan.allowed) as file:
                for line in _all_lines(log, record, folder):
                    file.write(line.encode())
        except OSError as error:
            raise IolabError(
                f"{path} cannot be written: {error.strerror}", "the results are stored"
            ) from None


def _all_lines(log: FioLog, record: Record, folder: Path) -> Iterator[str]:
    """Lines of all clones: one after the other, but actions in the order of time."""
    if log["kind"] == "actions":
        yield from _actions(log, _actions_of_all(log, record, folder))
        return
    for clone in log["clones"]:
        yield from _clone_lines(log, clone, record, folder)


def _actions_of_all(log: FioLog, record: Record, folder: Path) -> list[Entry]:
    """Entries of all clones by the times when they began, from the first clone's beginning on."""
    clones = [_done(clone, record) for clone in log["clones"]]
    origin_ns = min((int(done[0][1]["started_ns"]) for done in clones if done), default=0)
    found = [entry for done in clones for entry in _entries(log, done, folder, origin_ns)]
    return sorted(found, key=lambda entry: entry.ended_ns - entry.total_ns)


def _done(clone: Sequence[FioLogSource], record: Record) -> list[tuple[FioLogSource, StreamReport]]:
    """Parts of a clone's work that were done, with their reports."""
    found = [(source, _report(record["phases"], source)) for source in clone]
    return [(source, report) for source, report in found if report is not None]


def _clone_lines(
    log: FioLog, clone: Sequence[FioLogSource], record: Record, folder: Path
) -> Iterator[str]:
    """Lines of a clone's work, with times from the beginning of its first phase on, or of 1970."""
    done = _done(clone, record)
    if not done:
        return
    origin_ns = int(done[0][1]["started_ns"]) + log["ramp_ns"]
    added_ms = (origin_ns + wall_clock(record)) // _NS_PER_MS if log["is_unix_time"] else 0
    if log["kind"] == "submission":
        done = [(source, report) for source, report in done if _is_apart(source)]
    if log["window_ns"] or log["kind"] == "histogram":
        yield from _lines(log, _entries(log, done, folder, origin_ns), added_ms)
        return
    for source, _ in done:
        yield from _single_lines(log, source, folder, (origin_ns, added_ms))


def _single_lines(
    log: FioLog, source: FioLogSource, folder: Path, origin: tuple[int, int]
) -> Iterator[str]:
    """Lines of single transfers, many together: in seconds there are millions."""
    path = folder / source["file"]
    if not path.exists():
        return
    form = _OP_APART if _is_apart(source) else _OP
    value = _VALUES[log["kind"]]
    (origin_ns, added_ms), has_offsets = origin, log["has_offsets"]
    end = f", {log['priority']}\n" if has_offsets else f" {log['priority']}\n"
    earliest_ns = origin_ns - _SLACK_NS if log["ramp_ns"] else 0
    with path.open("rb") as file:
        while block := file.read(form.size * _PART_ENTRIES):
            lines = list[str]()
            for row in form.iter_unpack(_whole(block, form)):
                offset, ended_ns, took_ns, size, packed = row[:5]
                way = packed & _DIRECTION_MASK
                if way > _TRIM or ended_ns - took_ns < earliest_ns:
                    continue
                ms = max(0, ended_ns - origin_ns) // _NS_PER_MS + added_ms
                place = f" {offset}" if has_offsets else ""
                lines.append(f"{ms}, {value(row)}, {way}, {size},{place}{end}")
            yield "".join(lines)


def _is_apart(source: FioLogSource) -> bool:
    """Tell whether a clone's times of submission are known."""
    return source.get("has_submissions", False)


def _entries(
    log: FioLog,
    done: Sequence[tuple[FioLogSource, StreamReport]],
    folder: Path,
    origin_ns: int,
) -> Iterator[Entry]:
    """All entries of a clone, with times from `origin_ns` on."""
    for source, report in done:
        path = folder / source["file"]
        if not path.exists():
            continue
        window_ns = log["engine_window_ns"]
        finish_ns = int(report["started_ns"]) + int(report["elapsed_ns"]) - origin_ns
        is_apart = _is_apart(source)
        for entry in _read(path, has_windows=window_ns > 0, has_submissions=is_apart):
            began_ns = entry[0] - (window_ns or entry[1])
            if log["ramp_ns"] and began_ns + _SLACK_NS < origin_ns:
                continue
            ended_ns = max(0, entry[0] - origin_ns)
            if window_ns:
                ended_ns = _end_of_window(ended_ns, window_ns, finish_ns)
            place = entry[10] - source.get("first_path", 0) + source.get("first_target", 0)
            yield Entry(ended_ns, *entry[1:10], file=place)


def _end_of_window(last_ns: int, window_ns: int, finish_ns: int) -> int:
    """End of a window of which its end or its last op is known: not beyond the worker's."""
    whole_ns = -(-(last_ns - _SLACK_NS) // window_ns) * window_ns
    return max(whole_ns if whole_ns <= finish_ns + _SLACK_NS else finish_ns, 0)


def _report(phases: Sequence[PhaseRecord], source: FioLogSource) -> StreamReport | None:
    """Report of the clone's worker; None if its phase did not run."""
    if source["phase"] >= len(phases):
        return None
    tenants = phases[source["phase"]]["tenants"]
    if source["tenant"] >= len(tenants):
        return None
    workers = tenants[source["tenant"]]["workers"]
    return workers[source["worker"]] if source["worker"] < len(workers) else None


def _whole(block: bytes, form: struct.Struct) -> bytes:
    """The whole entries of a block: a worker that died may have left a part of one."""
    return block[: len(block) // form.size * form.size]


def _read(path: Path, *, has_windows: bool, has_submissions: bool) -> Iterator[tuple[int, ...]]:
    """Entries of one of the engine's logs, in the order of an `Entry`'s fields."""
    if has_windows:
        form = _WINDOW_APART if has_submissions else _WINDOW
    else:
        form = _OP_APART if has_submissions else _OP
    with path.open("rb") as file:
        while block := file.read(form.size * _PART_ENTRIES):
            entries = form.iter_unpack(_whole(block, form))
            if has_windows:
                for ended, total, longest, size, ops, direction, *more in entries:
                    times = more or (0, 0, longest)
                    yield ended, total, longest, size, ops, direction, 0, *times, 0
            else:
                for offset, ended, took, size, packed, *more in entries:
                    way, place = packed & _DIRECTION_MASK, packed >> _DIRECTION_BITS
                    first: int = more[0] if more else 0
                    times = first, first, took - first
                    yield ended, took, took, size, 1, way, offset, *times, place


def _lines(log: FioLog, entries: Iterable[Entry], added_ms: int) -> Iterator[str]:
    """The lines of a clone's log."""
    entries = (entry for entry in entries if entry.direction <= _TRIM)
    if log["kind"] == "histogram":
        yield from _histograms(log, entries, added_ms)
        return
    window_ns = log["window_ns"]
    if window_ns and not log["engine_window_ns"]:
        entries = _windows(entries, window_ns)
    offsets = log["has_offsets"]
    for entry in entries:
        value = _windowed(log, entry)
        if value is None:
            continue
        place = f" {entry.offset}," if offsets else ""
        ms = entry.ended_ns // _NS_PER_MS + added_ms
        yield f"{ms}, {value}, {entry.direction}, 0,{place} {log['priority']}\n"


def _time(log: FioLog, entry: Entry) -> int:
    """Sum of the times that a log is about."""
    if log["kind"] == "submission":
        return entry.submission_ns
    return entry.total_ns - (entry.submission_ns if log["kind"] == "completion" else 0)


def _longest(log: FioLog, entry: Entry) -> int:
    """The longest of the times that a log is about."""
    if log["kind"] == "submission":
        return entry.longest_submission_ns
    return entry.longest_completion_ns if log["kind"] == "completion" else entry.longest_ns


def _windowed(log: FioLog, entry: Entry) -> int | None:
    """Value of a window; None of a rate's last window if too little of it has passed."""
    if log["kind"] in _TIMES:
        return _longest(log, entry) if log["is_maximum"] else _time(log, entry) // max(1, entry.ops)
    window_ns = log["window_ns"]
    passed_ns = entry.ended_ns % window_ns or window_ns
    if passed_ns * 2 < window_ns < entry.ended_ns:
        return None
    ms = max(1, round(passed_ns / _NS_PER_MS))
    amount = entry.ops if log["kind"] == "iops" else entry.bytes / _KIB
    return round(amount * _MS_PER_S / ms)


def _windows(entries: Iterable[Entry], window_ns: int) -> Iterator[Entry]:
    """Sums of single transfers over windows, by direction; the last window ends with its last."""
    waiting, last_ns = list[Entry](), 0
    for index, group in groupby(entries, lambda entry: entry.ended_ns // window_ns):
        yield from waiting
        inside = list(group)
        end_ns = (index + 1) * window_ns
        waiting = [_sum(inside, direction, end_ns) for direction in _directions(inside)]
        last_ns = inside[-1].ended_ns
    for entry in waiting:
        yield replace(entry, ended_ns=last_ns)


def _directions(entries: Iterable[Entry]) -> list[int]:
    return sorted({entry.direction for entry in entries})


def _sum(entries: Iterable[Entry], direction: int, end_ns: int) -> Entry:
    same = [entry for entry in entries if entry.direction == direction]
    return Entry(
        end_ns,
        sum(entry.total_ns for entry in same),
        max(entry.longest_ns for entry in same),
        sum(entry.bytes for entry in same),
        sum(entry.ops for entry in same),
        direction,
        0,
        sum(entry.submission_ns for entry in same),
        max(entry.longest_submission_ns for entry in same),
        max(entry.longest_completion_ns for entry in same),
    )


def _histograms(log: FioLog, entries: Iterable[Entry], added_ms: int) -> Iterator[str]:
    """A line for each window and direction: how many latencies fell into each bucket."""
    window_ns, stride = log["window_ns"], 1 << log["coarseness"]
    for index, group in groupby(entries, lambda entry: entry.ended_ns // window_ns):
        counts = dict[int, list[int]]()
        for entry in group:
            of = counts.setdefault(entry.direction, [0] * (_BUCKETS // stride))
            of[_bucket(entry.total_ns - entry.submission_ns) // stride] += 1
        ms = (index + 1) * window_ns // _NS_PER_MS + added_ms
        for direction, of in sorted(counts.items()):
            yield f"{ms}, {direction}, {log['block_bytes']}, {', '.join(map(str, of))}\n"


def _actions(log: FioLog, entries: Sequence[Entry]) -> Iterator[str]:
    """A log that can be done again: microseconds, file, action, place and length."""
    names = log["targets"]
    yield "fio version 3 iolog\n"
    for name in dict.fromkeys(names):
        yield f"0 {name} add\n"
    places, us = dict[str, int](), 0
    for entry in entries:
        us = max(0, entry.ended_ns - entry.total_ns) // _NS_PER_US
        name = names[entry.file]
        if name not in places:
            yield f"{us} {name} open\n"
        if entry.direction <= _TRIM:
            places[name] = entry.offset
        at = places.setdefault(name, 0)
        yield f"{us} {name} {_ACTIONS[entry.direction]} {at} {entry.bytes}\n"
    for name in places:
        yield f"{us} {name} close\n"


def _bucket(ns: int) -> int:
    """Ordinal of the bucket of a latency."""
    shift = max(0, ns.bit_length() - _BUCKET_BITS - 1)
    low = (ns >> shift) & ((1 << _BUCKET_BITS) - 1)
    exact = ns < 2 << _BUCKET_BITS
    return ns if exact else min(((shift + 1) << _BUCKET_BITS) + low, _BUCKETS - 1)
