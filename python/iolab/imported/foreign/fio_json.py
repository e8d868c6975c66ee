"""fio's JSON and json+ of all versions since 2.0: one document or several, text between them.

Notes that fio prints on the same stream are passed over, and so are the interim documents of
`--status-interval`: they count from the same start, so that only the last one is a result. Numbers
stay text until they are used. Bins are kept only as a histogram, everything else that is not used
is dropped while it is read, so that memory stays near the size of the file.

In version 2 times are in microseconds (``clat``) and ``io_bytes`` counts KiB; from version 3 they
are in nanoseconds (``clat_ns``) and bytes.
"""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NoReturn, TypeAlias, cast

from iolab.frozen import frozen
from iolab.imported.foreign.fio_result import (
    DIRECTIONS,
    FLUSHES,
    PERCENTILES,
    Bins,
    PrintedJob,
    PrintedRun,
    Way,
    number,
    percentiles_of,
    whole,
)
from iolab.imported.foreign.found import Source, shown
from iolab.wording import counted

Node: TypeAlias = "dict[str, Node] | list[Node] | Bins | str | bool | None"
_MARK: Final = re.compile(rb'"fio version"\s*:')
_MARK_IN_TEXT: Final = re.compile(r'"fio version"\s*:')
_START: Final = re.compile(r"^[ \t]*\{", re.MULTILINE)
_HEAD: Final = re.compile(r'\{\s*"(fio version|timestamp)')
_JOBNAME: Final = re.compile(r'"jobname"\s*:')
_BARE: Final = re.compile(r"(:\s*)[-+]?(?:nan|inf)\b", re.IGNORECASE)
_BINS_MIN: Final = 40
"""An object with more keys than percentiles has, all of them digits, is a histogram."""
_COUNT_DIGITS_MAX: Final = 18
_TRIES_MAX: Final = 50
"""Objects that do not begin like fio's and are looked into nevertheless."""
_SAME_START_S: Final = 3
_JOBS_MAX: Final = 20_000
_KEPT: Final = frozenset(
    (
        *("fio version", "timestamp", "timestamp_ms", "global options", "jobs", "client_stats"),
        *("jobname", "groupid", "error", "elapsed", "job options", "job_runtime", "job_start"),
        *("usr_cpu", "sys_cpu", "hostname", "sync", *DIRECTIONS, "io_bytes", "io_kbytes", "bw"),
        *("bw_bytes", "iops", "runtime", "total_ios", "clat", "clat_ns", "lat", "lat_ns"),
        *("mean", "max", "N", "percentile", "bins"),
    )
)


class _Dropped(dict[str, "Node"]):
    """An object of which nothing is used."""


def is_json(content: bytes) -> bool:
    """Tell whether a file holds a result of fio as JSON."""
    return b"{" in content and _MARK.search(content) is not None


def read_json(source: Source, text: str) -> list[PrintedRun]:
    """Every run of a text; interim results are left out.

    Raises
    ------
    TableError : a document is broken off or is no result.
    """
    runs: list[_Document] = []
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_float=str, parse_int=str, parse_constant=str
    )
    place, line, tries = 0, 1, 0
    while (start := _START.search(text, place)) is not None:
        begin = start.end() - 1
        line += text.count("\n", place, begin)
        place = start.end()
        if _HEAD.match(text, begin):
            node, end = _decode(source, decoder, text, begin, line)
        elif (tries := tries + 1) <= _TRIES_MAX:
            node, end = _try(decoder, text, begin)
        else:
            continue
        if "fio version" in _dict(node):
            runs.append(_document(source, node, text, (begin, end), line))
        elif _HEAD.match(text, begin) is None and _MARK_IN_TEXT.search(text, begin, end):
            continue  # A result may lie inside.
        line += text.count("\n", place, max(place, end))
        place = max(place, end)
    if not runs:
        source.fail("no document of fio in it", "import what fio wrote with --output-format=json")
    last = [
        one
        for one, later in zip(runs, [*runs[1:], None], strict=False)
        if not _is_interim(one, later)
    ]
    if len(last) < len(runs):
        source.notes.append(
            f"{source.path.name}: {counted(len(runs) - len(last), 'interim result')} passed over:"
            " each counts from the same start as the one after it"
        )
    return [one.run for one in last]


def _decode(
    source: Source, decoder: json.JSONDecoder, text: str, start: int, line: int
) -> tuple[Node, int]:
    """One document; numbers that fio prints as bare `nan` read as nothing."""
    try:
        return decoder.raw_decode(text, start)
    except RecursionError:
        source.fail("nested too deeply", "this is not what fio writes", line=line)
    except ValueError as first:
        if not _BARE.search(text, start):
            _refuse(source, text, start, line, first)
        # Of the same length, so that places stay.
        repaired = _BARE.sub(lambda m: m[1] + '""'.ljust(len(m[0]) - len(m[1])), text)
        try:
            return decoder.raw_decode(repaired, start)
        except (ValueError, RecursionError):
            _refuse(source, text, start, line, first)


def _try(decoder: json.JSONDecoder, text: str, start: int) -> tuple[Node, int]:
    """A document that may be anything; nothing if it is no JSON."""
    try:
        return decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start


def _refuse(source: Source, text: str, start: int, line: int, error: ValueError) -> NoReturn:
    at = getattr(error, "pos", len(text))
    where = line + text.count("\n", start, at)
    names = _names(text[start:at])
    job = f" in job {shown(names[-1])}" if names else ""
    if not text[at:].strip() or "Unterminated" in str(error):
        hint = "fio was stopped or the disk was full: leave this file out, or run fio again"
        if _HEAD.search(text, 0, start):
            hint = f"to import the complete results above, cut the file before line {line}"
        source.fail(f"the JSON is broken off{job}", hint, line=where)
    source.fail(
        f"not well-formed JSON{job}: {shown(text[at : at + 30])}",
        "is the file damaged, or was something else printed into it?",
        line=where,
    )


def _names(text: str) -> list[str]:
    return re.findall(r'"jobname"\s*:\s*"([^"\n]{0,200})', text[-2_000_000:])


def _histogram(pairs: list[tuple[str, Node]]) -> Bins:
    """Bins of json+; a count that is none is -1."""
    values, counts = array("q"), array("q")
    for key, count in pairs:
        is_whole = isinstance(count, str) and count.isdecimal() and count.isascii()
        is_sound = is_whole and max(len(key), len(str(count))) <= _COUNT_DIGITS_MAX
        values.append(int(key) if is_sound and key.isdecimal() and key.isascii() else 0)
        counts.append(int(str(count)) if is_sound else -1)
    return Bins(values, counts)


def _object(pairs: list[tuple[str, Node]]) -> dict[str, Node] | Bins:
    """Keep what is used: bins become two arrays, echoed options stay whole."""
    if len(pairs) >= _BINS_MIN and pairs[0][0].isdecimal() and pairs[-1][0].isdecimal():
        return _histogram(pairs)
    kept = {name: value for name, value in pairs if name in _KEPT}
    if kept:
        return kept | {n: v for n, v in pairs if isinstance(v, str) and n not in kept}
    return dict(pairs) if all(isinstance(value, str) for _, value in pairs) else _Dropped()


@dataclass(slots=True)
class _Document:
    run: PrintedRun
    started_s: Decimal | None
    elapsed_s: Decimal
    key: object
    """Names and groups of the jobs."""
    operations: int


def _is_interim(one: _Document, later: _Document | None) -> bool:
    """Tell whether the document after it goes on counting from the same start."""
    if later is None or one.key != later.key or one.elapsed_s > later.elapsed_s:
        return False
    if one.operations > later.operations:
        return False
    if one.started_s is not None and later.started_s is not None:
        return abs(one.started_s - later.started_s) < _SAME_START_S
    return one.elapsed_s < later.elapsed_s


def _document(source: Source, node: Node, text: str, span: tuple[int, int], line: int) -> _Document:
    top = _dict(node)
    listed = top.get("jobs") or top.get("client_stats")
    if not isinstance(listed, list) or not listed:
        source.fail(
            "no job in it", "fio ended before its jobs began; its messages say why", line=line
        )
    if len(listed) > _JOBS_MAX:
        source.fail(f"more than {_JOBS_MAX} jobs", "import the runs in parts", line=line)
    lines = _job_lines(text, span, line)
    entries = [_dict(one) for one in listed]
    common = _options(top.get("global options"))
    seconds = _Seconds.of(source, top, entries, line)
    jobs: list[PrintedJob] = []
    for place, entry in enumerate(entries):
        at = lines[place] if place < len(lines) else line
        job = _job(source, entry, common, at)
        job.started_at_unix_ns = seconds.start_of(source, entry, at)
        jobs.append(job)
    jobs = _of_clients(entries, jobs)
    operations = sum(way.operations for job in jobs for way in job.ways)
    return _Document(
        PrintedRun(_text(top.get("fio version"))[:60], jobs),
        seconds.started,
        seconds.elapsed,
        tuple((job.name, job.group) for job in jobs),
        operations,
    )


@frozen
class _Seconds:
    """End of a document and how long fio had run by then."""

    end: Decimal | None
    elapsed: Decimal

    @classmethod
    def of(
        cls, source: Source, top: dict[str, Node], entries: list[dict[str, Node]], line: int
    ) -> _Seconds:
        """Understand the times of a document."""
        end = number(source, top.get("timestamp_ms"), line, "timestamp_ms")
        if end is not None:
            end /= 1000
        else:
            end = number(source, top.get("timestamp"), line, "timestamp")
        found = [number(source, e.get("elapsed"), line, "elapsed") for e in entries]
        return cls(end, max((one for one in found if one is not None), default=Decimal(0)))

    @property
    def started(self) -> Decimal | None:
        """Second of the start of fio, if the document says it."""
        return self.end - self.elapsed if self.end is not None and self.elapsed else None

    def start_of(self, source: Source, entry: dict[str, Node], line: int) -> int:
        """Nanosecond of the start of a job, as far as seconds say it; 0 if unknown."""
        own = number(source, entry.get("job_start"), line, "job_start")
        if own:
            return _bounded(own * 1_000_000)
        return _bounded(self.started * 1_000_000_000) if self.started is not None else 0


def _bounded(nanoseconds: Decimal) -> int:
    return int(nanoseconds) if 0 < nanoseconds < 1 << 62 else 0


def _job_lines(text: str, span: tuple[int, int], line: int) -> list[int]:
    """Line of each job of a document."""
    found: list[int] = []
    place = span[0]
    for match in _JOBNAME.finditer(text, *span):
        line += text.count("\n", place, match.start())
        place = match.start()
        found.append(line)
    return found


def _of_clients(entries: list[dict[str, Node]], jobs: list[PrintedJob]) -> list[PrintedJob]:
    """Leave out the sum over all clients, or take only it where all of them did the same.

    The server writes it last and it alone knows percentiles over all of them.
    """
    if len(jobs) < 3 or not all("hostname" in entry for entry in entries[:-1]):
        return jobs
    last = jobs[-1]
    if last.name != "All clients":
        return jobs
    parts = jobs[:-1]
    if len({(job.name, str(job.options)) for job in parts}) > 1 or any(j.error for j in parts):
        return parts
    last.name, last.options, last.group = parts[0].name, parts[0].options, parts[0].group
    for way in last.ways:
        way.notes.append(f"the sum over {len(parts)} clients")
    return [last]


def _job(
    source: Source, entry: dict[str, Node], common: dict[str, str] | None, line: int
) -> PrintedJob:
    own = _options(entry.get("job options"))
    options = None if own is None and common is None else (common or {}) | (own or {})
    name = _text(entry.get("jobname"))[:100] or "(unnamed)"
    job = PrintedJob(
        line,
        name,
        whole(source, entry.get("groupid"), line, "groupid"),
        _error(source, entry.get("error"), line),
        options=options,
        user_percent=number(source, entry.get("usr_cpu"), line, "usr_cpu"),
        system_percent=number(source, entry.get("sys_cpu"), line, "sys_cpu"),
        runtime_ms=number(source, entry.get("job_runtime"), line, "job_runtime") or Decimal(0),
    )
    for direction in DIRECTIONS:
        way = _way(source, job, direction, entry.get(direction))
        if way is not None:
            job.ways.append(way)
    if not job.runtime_ms:
        job.runtime_ms = max((way.runtime_ms for way in job.ways), default=Decimal(0))
    if any(way.direction == "mixed" for way in job.ways) and len(job.ways) > 1:
        job.ways = [way for way in job.ways if way.direction != "mixed"]
    _add_flushes(source, job, entry.get("sync"))
    return job


def _way(source: Source, job: PrintedJob, direction: str, node: Node) -> Way | None:
    """One direction; None if nothing was done in it."""
    found = _dict(node)
    what = f"job {shown(job.name)}, {direction}"

    def at(name: str) -> Decimal | None:
        return number(source, found.get(name), job.line, f"{what}.{name}")

    operations = whole(source, found.get("total_ios"), job.line, f"{what}.total_ios")
    moved = at("io_bytes")
    if not operations and not moved:
        return None
    way = Way(direction, operations=operations, runtime_ms=at("runtime") or Decimal(0))
    rate = at("bw_bytes")
    if rate is not None:
        way.amounts["B/s"] = rate
    elif (rate := at("bw")) is not None:
        way.amounts["KiB/s"] = rate
    if (rate := at("iops")) is not None:
        way.amounts["IOPS"] = rate
    _add_latency(source, job, way, found, what)
    return way


def _add_latency(
    source: Source, job: PrintedJob, way: Way, found: dict[str, Node], what: str
) -> None:
    """Completion latency; the total one where only that was asked for."""
    for name, scale in (("clat_ns", 1), ("clat", 1000), ("lat_ns", 1), ("lat", 1000)):
        node = _dict(found.get(name))
        # A run without latencies (disable_clat, gtod_reduce) prints zeros.
        mean = number(source, node.get("mean"), job.line, f"{what}.{name}.mean")
        largest = number(source, node.get("max"), job.line, f"{what}.{name}.max")
        if not largest:
            continue
        if name.startswith("lat"):
            way.notes.append("latency from the call on (lat): completion latency was not recorded")
        if mean is not None:
            way.amounts["latency_ns_mean"] = mean * scale
        way.amounts["latency_ns_max"] = largest * scale
        way.operations = way.operations or whole(source, node.get("N"), job.line, f"{name}.N")
        way.bins = _bins(source, job, node, what) if scale == 1 else None
        printed = _percentiles(source, job.line, node, f"{what}.{name}")
        way.amounts |= {u: printed[p] * scale for u, p in PERCENTILES.items() if p in printed}
        if way.bins is not None and not any(unit in way.amounts for unit in PERCENTILES):
            way.amounts |= percentiles_of(way.bins)
        return


def _percentiles(
    source: Source, line: int, node: dict[str, Node], what: str
) -> dict[Decimal, Decimal]:
    """Percentiles as printed, in the unit of the node."""
    printed: dict[Decimal, Decimal] = {}
    for key, text in _dict(node.get("percentile")).items():
        share = number(source, key, line, f"{what}.percentile")
        value = number(source, text, line, f"{what}.percentile.{key}")
        if share is not None and value is not None:
            printed[share] = value
    return printed


def _bins(source: Source, job: PrintedJob, node: dict[str, Node], what: str) -> Bins | None:
    bins = node.get("bins")
    if isinstance(bins, dict) and bins:
        bins = _histogram(list(bins.items()))
    if not isinstance(bins, Bins):
        return None
    if min(bins.counts) < 0:
        source.fail(
            f"{what}.bins: a count that is no whole number",
            "is the file damaged? Import a copy that fio wrote",
            line=job.line,
        )
    return bins


def _add_flushes(source: Source, job: PrintedJob, node: Node) -> None:
    """Flushes belong to the writes between which they were made."""
    found = _dict(node)
    times = _dict(found.get("lat_ns"))
    largest = number(source, times.get("max"), job.line, "sync.lat_ns.max")
    way = next((way for way in job.ways if way.direction in ("write", "mixed")), None)
    if not largest or way is None:
        return
    way.amounts["flush_ns_max"] = largest
    printed = _percentiles(source, job.line, times, "sync.lat_ns")
    way.amounts |= {unit: printed[p] for unit, p in FLUSHES.items() if p in printed}


def _error(source: Source, node: Node, line: int) -> int:
    """Error number; fio prints it with either sign."""
    return whole(source, _text(node).removeprefix("-") or "0", line, "error")


def _options(node: Node) -> dict[str, str] | None:
    if not isinstance(node, dict):
        return None
    return {name[:60]: _text(value)[:200] for name, value in node.items()}


def _dict(node: Node) -> dict[str, Node]:
    return cast("dict[str, Node]", node) if isinstance(node, dict) else {}


def _text(node: Node) -> str:
    return node if isinstance(node, str) else ""
