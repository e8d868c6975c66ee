"""fio's normal output, in the layouts of version 2 and of version 3, as people keep it.

Numbers have three or four digits there. In version 2 KB and MB are powers of 1024; in version 3 the
number before the brackets is. Left out: the lines of whole groups and of disks.
"""

from __future__ import annotations

import calendar
import re
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from iolab.imported.foreign.fio_result import (
    FLUSHES,
    PERCENTILES,
    PrintedJob,
    PrintedRun,
    Way,
    number,
)
from iolab.imported.foreign.found import Source

_HEAD: Final = re.compile(
    r"(?P<name>.{1,200}?): \(g=(?P<group>\d{1,6})\): rw=(?P<rw>\w+), (?:bs=(?P<bs>.*?), )?"
    r"ioengine=(?P<engine>[\w:./-]+), iodepth=(?P<depth>\d{1,9})\s*"
)
_STATUS: Final = re.compile(
    r"(?P<name>.{1,200}?): \(groupid=(?P<group>\d{1,6}), jobs=(?P<jobs>\d{1,6})\): "
    r"err=\s*(?P<error>-?\d{1,6})(?P<rest>.*)"
)
_VERSION: Final = re.compile(r"(fio|iolab)-[\w.+-]{1,40}")
_DATE: Final = re.compile(r": \w{3} (\w{3}\s+\d{1,2} \d\d:\d\d:\d\d \d{4})")
_WAY: Final = re.compile(r"\s*(read|write|trim|mixed)\s*: (.*)", re.IGNORECASE)
_RATE_3: Final = re.compile(
    r"IOPS=(?P<iops>[\d.]+)(?P<iops_unit>[kMGT]?), BW=(?P<bw>[\d.]+)(?P<bw_unit>[KMGTP]?)i?"
    r"(?:B/s)? .*?/\s*(?P<ms>\d+)msec\)"
)
_RATE_2: Final = re.compile(
    r"io=.*?, bw=(?P<bw>[\d.]+)(?P<bw_unit>[KMGTP]?)B/s, iops=(?P<iops>[\d.]+)"
    r"(?P<iops_unit>[kKMG]?)\s*, runt=\s*(?P<ms>\d+)msec"
)
_TIMES: Final = re.compile(
    r"\s*(?P<what>slat|clat|lat|sync) \((?P<unit>nsec|usec|msec|sec)\)\s*: min=.*?, "
    r"max=\s*(?P<max>[\d.]+)(?P<max_unit>[kKMGT]?), avg=\s*(?P<mean>[\d.]+|-?nan)"
)
_TABLE: Final = re.compile(r"\s*(?P<what>slat|clat|lat|sync) percentiles \((nsec|usec|msec|sec)\):")
_SHARE: Final = re.compile(r"([\d.]{1,12})th=\[\s*>?\s*(\d{1,15})(k?)\s*\]")
_CPU: Final = re.compile(r"\s*cpu\s*: usr=([\d.]{1,10})%, sys=([\d.]{1,10})%")
_SIZE_3: Final = re.compile(r"\([RWT]\) (\S+?)-(\S+?)(?:,|$)")
_SIZE_2: Final = re.compile(r"([^-/,\s]+)-([^-/,\s]+)")
_NS: Final = {"nsec": 1, "usec": 1000, "msec": 1_000_000, "sec": 1_000_000_000}
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_BYTES: Final = {"": "B/s", "k": "KiB/s", "m": "MiB/s", "g": "GiB/s"}
_ROUNDED: Final = "rounded as printed: fio's JSON has all digits"
_LINE_MAX: Final = 4096


@dataclass(slots=True)
class _State:
    """PrintedJob that lines belong to."""

    version: str = ""
    heads: dict[tuple[int, str], dict[str, str]] = field(
        default_factory=dict[tuple[int, str], dict[str, str]]
    )
    runs: list[tuple[str, list[PrintedJob]]] = field(
        default_factory=list[tuple[str, list[PrintedJob]]]
    )
    job: PrintedJob | None = None
    way: Way | None = None
    table: str = ""
    """Times whose percentiles follow."""
    table_ns: int = 1
    has_completion: bool = False
    """True once the direction has a table of completion latencies."""


def is_status_line(line: str) -> bool:
    """Tell whether a line begins the result of a job."""
    return len(line) < _LINE_MAX and _STATUS.match(line) is not None


def read_text(source: Source, lines: list[str]) -> list[PrintedRun]:
    """All results of a text.

    Raises
    ------
    TableError : a line that says rates has none.
    """
    state = _State()
    for at, line in enumerate(lines, start=1):
        if len(line) < _LINE_MAX:
            _read_line(source, state, at, line.rstrip())
    return [PrintedRun(version, jobs) for version, jobs in state.runs]


def _read_line(source: Source, state: _State, at: int, line: str) -> None:
    if _VERSION.fullmatch(line):
        state.version, state.job, state.way = line, None, None
        state.runs.append((line, []))
    elif (match := _HEAD.fullmatch(line)) is not None:
        _note_head(state, match)
    elif (match := _STATUS.match(line)) is not None:
        _begin_job(source, state, at, match)
    elif state.job is None:
        return
    elif line.startswith("Run status group"):
        state.job, state.way = None, None
    elif (match := _WAY.match(line)) is not None:
        _begin_way(source, state, at, match)
    elif (match := _CPU.match(line)) is not None:
        state.job.user_percent = number(source, match[1], at, "cpu usr")
        state.job.system_percent = number(source, match[2], at, "cpu sys")
    elif state.way is not None:
        _read_times(source, state, at, line)


def _note_head(state: _State, match: re.Match[str]) -> None:
    options = {"rw": match["rw"], "ioengine": match["engine"], "iodepth": match["depth"]}
    size = _block_size(match["bs"] or "")
    if size:
        options["bs"] = size
    # The head stands before the line with the version in all layouts.
    state.heads[int(match["group"]), match["name"]] = options


def _block_size(text: str) -> str:
    """One size if all directions have the same one, else the whole text."""
    pairs = _SIZE_3.findall(text) or _SIZE_2.findall(text)
    sizes = {end for pair in pairs for end in pair}
    return sizes.pop().removesuffix("B") if len(sizes) == 1 else text


def _begin_job(source: Source, state: _State, at: int, match: re.Match[str]) -> None:
    key = (int(match["group"]), match["name"])
    if not state.runs:
        state.runs.append((state.version, []))
    if any((job.group, job.name) == key for job in state.runs[-1][1]) and _is_new_run(state, key):
        state.runs.append((state.version, []))
    options = state.heads.get(key)
    job = PrintedJob(at, match["name"][:100], int(match["group"]))
    job.error = abs(int(match["error"]))
    job.options = dict(options) if options is not None else None
    if job.options is not None and int(match["jobs"]) > 1:
        job.options["numjobs"] = match["jobs"]
    date = _DATE.search(match["rest"])
    job.started_at_unix_ns = _seconds(date[1]) * 1_000_000_000 if date else 0
    state.runs[-1][1].append(job)
    state.job, state.way, state.table = job, None, ""


def _is_new_run(state: _State, key: tuple[int, str]) -> bool:
    """Tell a repeated run, whose names come back in order, from clones of one job."""
    last = state.runs[-1][1][-1]
    return (last.group, last.name) != key


def _seconds(text: str) -> int:
    """Seconds of a date as fio prints it; its zone is not known, their order is."""
    try:
        return max(calendar.timegm(time.strptime(" ".join(text.split()), "%b %d %H:%M:%S %Y")), 0)
    except ValueError:
        return 0


def _begin_way(source: Source, state: _State, at: int, match: re.Match[str]) -> None:
    rates = _RATE_3.match(match[2]) or _RATE_2.match(match[2])
    if state.job is None or rates is None:
        if "BW=" in match[2] or "bw=" in match[2]:
            source.fail(f"the rates of {match[1]} cannot be read", "is the line damaged?", line=at)
        return
    way = state.job.way(match[1].lower())
    way.notes.append(_ROUNDED)
    way.runtime_ms = number(source, rates["ms"], at, "run time") or Decimal(0)
    state.job.runtime_ms = max(state.job.runtime_ms, way.runtime_ms)
    iops = number(source, rates["iops"], at, "IOPS")
    moved = number(source, rates["bw"], at, "bandwidth")
    unit = rates["bw_unit"].lower()
    if iops is not None:
        way.amounts["IOPS"] = iops * 1000 ** _POWERS[rates["iops_unit"].lower()]
    if moved is not None and unit in _BYTES:
        way.amounts[_BYTES[unit]] = moved
    elif moved is not None:
        way.amounts["GiB/s"] = moved * 1024 ** (_POWERS[unit] - 3)
    state.way, state.table, state.has_completion = way, "", False


def _read_times(source: Source, state: _State, at: int, line: str) -> None:
    way = state.way
    if way is None:
        return
    if (match := _TIMES.match(line)) is not None:
        _add_times(source, way, match, at)
    elif (match := _TABLE.match(line)) is not None:
        state.table, state.table_ns = match["what"], _NS[match[2]]
        state.has_completion |= state.table == "clat"
    elif "th=[" in line:
        _add_percentiles(source, state, way, line, at)


def _add_times(source: Source, way: Way, match: re.Match[str], at: int) -> None:
    scale = _NS[match["unit"]]
    largest = number(source, match["max"], at, "max")
    mean = number(source, match["mean"], at, "avg")
    if largest is None:
        return
    largest = largest * 1000 ** _POWERS[match["max_unit"].lower()] * scale
    what = match["what"]
    if what == "sync":
        way.amounts["flush_ns_max"] = largest
    elif what == "clat" or (what == "lat" and "latency_ns_max" not in way.amounts):
        way.amounts["latency_ns_max"] = largest
        if mean is not None:
            way.amounts["latency_ns_mean"] = mean * scale


def _add_percentiles(source: Source, state: _State, way: Way, line: str, at: int) -> None:
    wanted = {"clat": PERCENTILES, "sync": FLUSHES}.get(state.table, {})
    if state.table == "lat" and not state.has_completion:
        wanted = PERCENTILES
    for share, text, kilo in _SHARE.findall(line):
        key = number(source, share, at, "a percentile")
        value = number(source, text, at, f"{share} %")
        for unit, wish in wanted.items():
            if key == wish and value is not None:
                way.amounts[unit] = value * (1000 if kilo else 1) * state.table_ns
