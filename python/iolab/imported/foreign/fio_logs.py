"""fio's logs: bandwidth, IOPS and latencies over time, and histograms of latencies.

A line says when, how much, which direction and how long a block; with offsets or priorities more.
What the amount counts does not stand in it: the end of the name that fio gives says it
(``_bw.1.log``), or `--unit`. Logs of one prefix are of one run, those of several threads are added
up. A line per operation (the block is not 0) gives exact percentiles and rates; a line per window
gives means only.

Left out: what `log_max_value` turned into maxima, since no log says so.
"""

from __future__ import annotations

import itertools
import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Final

from iolab.imported.foreign.fio_result import (
    KINDS,
    PERCENTILES,
    TOOL,
    Bins,
    percentiles_of,
    plain,
)
from iolab.imported.foreign.found import Found, Source, shown
from iolab.imported.table import Background
from iolab.store.derived import SeriesPart

_LINE: Final = re.compile(rb"\d{1,19}, \d{1,19}, [0-3], \d{1,12}(, (0x)?[0-9a-fA-F]{1,19}){0,2}\s*")
_HISTOGRAM_START: Final = re.compile(rb"\d{1,19}, [0-3], \d{1,12}(, \d{1,19}){16}")
_BITS: Final = 6
_BIN_COUNTS: Final = {(29 << _BITS) >> coarse: coarse for coarse in range(_BITS + 1)}
"""Bins of a line to their coarseness."""
_NAME: Final = re.compile(r"(?P<prefix>.*)_(?P<what>bw|iops|slat|clat|lat|clat_hist)(\.\d+)?\.log")
_UNITS: Final = {"bw": "KiB/s", "iops": "IOPS", "clat": "ns", "lat": "ns", "slat": "ns"}
_TIMES: Final = {"ns": 1, "us": 1000, "ms": 1_000_000}
_RATES: Final = {"kib/s": "KiB/s", "kb/s": "KiB/s", "iops": "IOPS"}
_WAYS: Final = ("read", "write", "trim", "sync")
_SLICE_MS: Final = 100
_SLICES_MAX: Final = 1024
_EPOCH_MS: Final = 1_000_000_000_000
"""Times above count from 1970 (log_unix_epoch)."""
_VALUE_MAX: Final = 1 << 62


@dataclass(slots=True)
class Course:
    """One direction of one log."""

    values: array[int] = field(default_factory=lambda: array("q"))
    times_ms: list[int] = field(default_factory=list[int])
    """Times of windows; of single operations only the first and the last count."""
    slices: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    """Operations, bytes and largest value of each tenth of a second."""
    bytes: int = 0
    bins: list[Bins] = field(default_factory=list[Bins])


@dataclass(slots=True)
class Log:
    """One log file."""

    source: Source
    prefix: str
    what: str
    """Part of the name that says what is counted: `bw`, `clat_hist`."""
    unit: str
    courses: dict[str, Course] = field(default_factory=lambda: defaultdict(Course))


def is_log(content: bytes) -> bool:
    """Tell whether a file begins like a log of fio."""
    line = content[: content.find(b"\n") + 1] if b"\n" in content[:65536] else content[:65536]
    return _LINE.fullmatch(line) is not None or _HISTOGRAM_START.match(line) is not None


def is_empty_log(path: Path, content: bytes) -> bool:
    """Tell whether a file is a log that fio opened and had nothing to write into."""
    return not content and _NAME.fullmatch(path.name) is not None


def read_log(source: Source, content: bytes, unit: str = "") -> Log:
    """Understand a log.

    Raises
    ------
    TableError : a line is no line of the log, or nothing says what it counts.
    """
    source.is_named = False
    match = _NAME.fullmatch(source.path.name)
    if _HISTOGRAM_START.match(content[:65536]):
        log = Log(source, match["prefix"] if match else source.path.name, "clat_hist", "ns")
        _read_histograms(log, content)
        return log
    log = Log(source, match["prefix"] if match else source.path.name, "", "")
    what = match["what"] if match and match["what"] in _UNITS else ""
    log.unit = _UNITS.get(what, "")
    if unit:
        log.unit = _RATES.get(unit.lower(), unit if unit in _TIMES else "")
    log.what = what or {"KiB/s": "bw", "IOPS": "iops"}.get(log.unit, "lat")
    if not log.unit:
        source.fail(
            "a log of fio, but nothing says what it counts",
            "keep the end of the name that fio gave it (_bw.1.log), or say --unit KiB/s, IOPS or ns"
            " (us for fio 2)",
        )
    _read_lines(log, content)
    return log


def _read_lines(log: Log, content: bytes) -> None:
    columns = 0
    for at, line in enumerate(BytesIO(content), start=1):
        fields = line.split(b",")
        columns = columns or len(fields)
        if len(fields) != columns or not _LINE.fullmatch(line):
            _refuse(log, line, at, is_last=len(line) + 1 >= len(content) or line[-1:] != b"\n")
        when, value, way, block = (int(text) for text in fields[:4])
        if value > _VALUE_MAX or when > _VALUE_MAX:
            _refuse(log, line, at, is_last=False)
        course = log.courses[_WAYS[way]]
        course.values.append(value)
        if block:
            course.bytes += block
            one = course.slices[when // _SLICE_MS]
            one[0], one[1], one[2] = one[0] + 1, one[1] + block, max(one[2], value)
        if block and len(course.times_ms) > 1:
            course.times_ms[0] = min(course.times_ms[0], when)
            course.times_ms[-1] = max(course.times_ms[-1], when)
        else:
            course.times_ms.append(when)


def _refuse(log: Log, line: bytes, at: int, *, is_last: bool) -> None:
    text = shown(line[:60].decode("utf-8", "replace"))
    log.source.fail(
        f"not a line of the log: {text}",
        "fio was stopped while it wrote: cut the last line off"
        if is_last
        else "a line is time, value, direction and block size; is the file damaged?",
        line=at,
    )


def _read_histograms(log: Log, content: bytes) -> None:
    for at, line in enumerate(BytesIO(content), start=1):
        fields = line.split(b",")
        coarse = _BIN_COUNTS.get(len(fields) - 3)
        try:
            numbers = [int(text) for text in fields if len(text) < 21]
        except ValueError:
            numbers = []
        if coarse is None or len(numbers) != len(fields) or min(numbers) < 0:
            log.source.fail(
                f"a histogram of {len(fields) - 3} bins",
                f"fio writes {', '.join(map(str, _BIN_COUNTS))}; fio 2 wrote others; or the line"
                " is cut",
                line=at,
            )
        if numbers[1] >= len(_WAYS) or max(numbers) > _VALUE_MAX:
            _refuse(log, line, at, is_last=False)
        values, counts = array("q"), array("q")
        for place, count in enumerate(numbers[3:]):
            if count:
                values.append(bin_value(place << coarse, 1 << coarse))
                counts.append(count)
        course = log.courses[_WAYS[numbers[1]]]
        course.bins.append(Bins(values, counts))
        course.times_ms.append(numbers[0])


def bin_value(place: int, width: int = 1) -> int:
    """Nanoseconds that stand for the bins from a place on: the middle of the first and last."""
    return (_lowest(place) + _lowest(place + width)) // 2 if place >= 2 << _BITS else place


def _lowest(place: int) -> int:
    """Smallest value of a bin: exact below 128, then 64 bins for each power of two."""
    if place < 2 << _BITS:
        return place
    power = (place >> _BITS) - 1
    return ((1 << _BITS) + (place & ((1 << _BITS) - 1))) << power


def add_logs(logs: list[Log]) -> None:
    """Hand on what logs say; those of one prefix are one run, told in the first of its files."""
    runs: dict[tuple[Path, str], list[Log]] = defaultdict(list)
    for log in logs:
        runs[log.source.path.absolute().parent, log.prefix].append(log)
    for own in runs.values():
        found = _amounts(own)
        source = own[0].source
        for direction, (amounts, notes, series, elapsed_ms) in found.items():
            background = Background(
                0,
                elapsed_ns=elapsed_ms * 1_000_000,
                kind=KINDS.get(direction, "other"),
                series=series,
            )
            note = "; ".join(dict.fromkeys(notes))
            for unit, value in amounts.items():
                text = plain(value) if value else ""
                said = note if value else f"{note}; it is 0"
                source.add(Found(1, TOOL, direction, text, unit, said, (), background))


_Said = tuple[dict[str, Decimal], list[str], SeriesPart | None, int]


def _amounts(logs: list[Log]) -> dict[str, _Said]:
    found: dict[str, _Said] = {}
    for direction in _WAYS:
        amounts: dict[str, Decimal] = {}
        notes: list[str] = []
        elapsed_ms = 0
        by_what: dict[str, list[tuple[Log, Course]]] = defaultdict(list)
        for log in logs:
            if direction in log.courses:
                by_what[log.what].append((log, log.courses[direction]))
                elapsed_ms = max(elapsed_ms, _span_ms(log.courses[direction]))
        for what in _in_order(by_what):
            said, note = _of_kind(by_what[what], what)
            amounts |= {unit: value for unit, value in said.items() if unit not in amounts}
            notes.append(note)
        if amounts:
            series = _series(direction, by_what)
            found[direction] = (amounts, notes, series, elapsed_ms)
    return found


def _in_order(by_what: dict[str, list[tuple[Log, Course]]]) -> Iterator[str]:
    """Kinds of logs, the better source of a number first; submission is no latency."""
    for what in ("bw", "iops", "clat", "clat_hist", "lat"):
        if what in by_what:
            yield what


def _of_kind(courses: list[tuple[Log, Course]], what: str) -> tuple[dict[str, Decimal], str]:
    if what == "clat_hist":
        bins = [one for _, course in courses for one in course.bins]
        return dict(percentiles_of(*bins)), "percentiles of a log of histograms"
    is_single = all(course.slices for _, course in courses)
    unit = courses[0][0].unit
    if is_single:
        amounts = _rates(courses)
        if unit in _TIMES:
            amounts |= _latencies(courses, _TIMES[unit])
        return amounts, "from a log of single operations"
    windows = len(courses[0][1].values)
    if unit in _TIMES:
        values = [value for _, course in courses for value in course.values]
        mean = Decimal(sum(values)) / len(values) * _TIMES[unit]
        return {"latency_ns_mean": mean}, (
            f"mean over {windows} windows of a log, each counted alike however many operations it"
            " holds"
        )
    total = sum(
        (Decimal(sum(course.values)) / len(course.values) for _, course in courses), Decimal(0)
    )
    return {unit: total}, f"mean over {windows} windows of a log"


def _rates(courses: list[tuple[Log, Course]]) -> dict[str, Decimal]:
    """Bytes and operations over the time from the start to the last of them."""
    span = max(_span_ms(course) for _, course in courses)
    if not span:
        return {}
    moved = sum(course.bytes for _, course in courses)
    operations = sum(len(course.values) for _, course in courses)
    return {"B/s": Decimal(moved * 1000) / span, "IOPS": Decimal(operations * 1000) / span}


def _span_ms(course: Course) -> int:
    first, last = min(course.times_ms), max(course.times_ms)
    return last - first if first >= _EPOCH_MS else last


def _latencies(courses: list[tuple[Log, Course]], scale: int) -> dict[str, Decimal]:
    """Exact percentiles of all operations of all threads."""
    import numpy as np

    values = np.sort(np.concatenate([np.frombuffer(c.values, np.int64) for _, c in courses]))
    found = {
        unit: Decimal(int(values[max(0, math.ceil(len(values) * share / 100) - 1)])) * scale
        for unit, share in PERCENTILES.items()
    }
    found["latency_ns_mean"] = Decimal(sum(sum(c.values) for _, c in courses)) / len(values) * scale
    found["latency_ns_max"] = Decimal(int(values[-1])) * scale
    return found


def _series(direction: str, by_what: dict[str, list[tuple[Log, Course]]]) -> SeriesPart | None:
    """Throughput over time: of single operations, or of windows of bandwidth and IOPS."""
    singles = next(
        (
            courses
            for what, courses in by_what.items()
            if what != "clat_hist" and all(course.slices for _, course in courses)
        ),
        None,
    )
    if singles is not None:
        return _of_slices(direction, singles)
    courses = by_what.get("bw")
    if not courses or len(courses[0][1].times_ms) < 2:
        return None
    times = courses[0][1].times_ms
    gap_ms = int(median(b - a for a, b in itertools.pairwise(times)))
    if gap_ms <= 0:
        return None
    length = min(max(len(course.values) for _, course in courses), _SLICES_MAX)
    moved = _summed(courses, length)
    made = _summed(by_what.get("iops", []), length)
    return SeriesPart(
        direction,
        gap_ms * 1_000_000,
        tuple(value * gap_ms // 1000 for value in made),
        tuple(value * 1024 * gap_ms // 1000 for value in moved),
        (0,) * length,
    )


def _summed(courses: list[tuple[Log, Course]], length: int) -> list[int]:
    sums = [0] * length
    for _, course in courses:
        for place, value in enumerate(course.values[:length]):
            sums[place] += value
    return sums


def _of_slices(direction: str, courses: list[tuple[Log, Course]]) -> SeriesPart | None:
    first = min(min(course.slices) for _, course in courses)
    first = first if first * _SLICE_MS >= _EPOCH_MS else 0
    last = max(max(course.slices) for _, course in courses)
    width = (last - first) // _SLICES_MAX + 1
    length = (last - first) // width + 1
    ops, moved, longest = [0] * length, [0] * length, [0] * length
    for log, course in courses:
        scale = _TIMES.get(log.unit, 0)
        for place, (count, size, value) in course.slices.items():
            at = (place - first) // width
            ops[at] += count
            moved[at] += size
            longest[at] = max(longest[at], value * scale)
    if length < 2:
        return None
    interval_ns = width * _SLICE_MS * 1_000_000
    if interval_ns >= _VALUE_MAX:
        return None
    return SeriesPart(direction, interval_ns, tuple(ops), tuple(moved), tuple(longest))
