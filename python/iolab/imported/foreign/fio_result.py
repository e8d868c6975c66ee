"""fio's results, the same whatever form they were printed in: jobs, and what they become.

Jobs of one group run at the same time, hence are one execution. A group of one job is named by what
it does (``randread``, ``randrw write``) and its options are levels; jobs that run beside each other
are told apart by their names. Clones (``numjobs``) and clients are added up: rates are sums, means
are weighted by their operations, percentiles are read from the histograms of all of them (json+)
or left out, never averaged.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NoReturn

from iolab.frozen import frozen, replace
from iolab.imported.foreign.fio_options import about_options, access_of, size_of
from iolab.imported.foreign.found import Found, Source, shown
from iolab.imported.table import Background
from iolab.store.derived import SeriesPart
from iolab.store.verify import VALUE_MAX
from iolab.study.operations import Kind

TOOL: Final = "fio"
DIRECTIONS: Final = ("read", "write", "trim", "mixed")
KINDS: Final[dict[str, Kind]] = {"read": "read", "write": "write", "mixed": "mixed"}
"""Kind of operation of each direction; others are `other`."""
PERCENTILES: Final = {
    "latency_ns_p50": Decimal("50"),
    "latency_ns_p90": Decimal("90"),
    "latency_ns_p99": Decimal("99"),
    "latency_ns_p999": Decimal("99.9"),
}
FLUSHES: Final = {"flush_ns_p50": Decimal("50"), "flush_ns_p99": Decimal("99")}
RATES: Final = ("B/s", "KiB/s", "MiB/s", "GiB/s", "IOPS")
"""Units of what is added up over clones."""
USER_CPU: Final = "cpu_user_share"
SYSTEM_CPU: Final = "cpu_system_share"
SHORT_MS: Final = 100
"""A direction that ran shorter carries a note: its rate is coarse."""
_NUMBER: Final = re.compile(r"\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,2})?")
_AMOUNT_MAX: Final = Decimal(VALUE_MAX)
_COUNT_MAX: Final = 1 << 62
_TIME_NS_MAX: Final = 1 << 62
"""146 years; larger times have no place in a study."""
_NOT_A_NUMBER: Final = re.compile(r"[-+]?(nan|inf(inity)?)", re.IGNORECASE)
_UNKNOWN: Final = "job"
_ZERO: Final = "printed 0: below what the output resolves"


@frozen
class Bins:
    """A whole histogram, as small as it can be kept."""

    values: array[int]
    """Nanoseconds."""
    counts: array[int]


@dataclass(slots=True)
class Way:
    """One direction of one job; amounts by their unit, which is a metric's name for times."""

    direction: str
    amounts: dict[str, Decimal] = field(default_factory=dict[str, Decimal])
    operations: int = 0
    """Operations that finished; 0 where the form does not say it."""
    runtime_ms: Decimal = Decimal(0)
    bins: Bins | None = None
    """The histogram, where it was printed."""
    notes: list[str] = field(default_factory=list[str])
    series: SeriesPart | None = None


@dataclass(slots=True)
class PrintedJob:
    """One job, or one group of jobs, as printed."""

    line: int
    name: str
    group: int = 0
    error: int = 0
    ways: list[Way] = field(default_factory=list[Way])
    options: dict[str, str] | None = None
    """None where the form does not echo them."""
    started_at_unix_ns: int = 0
    user_percent: Decimal | None = None
    system_percent: Decimal | None = None
    runtime_ms: Decimal = Decimal(0)

    def way(self, direction: str) -> Way:
        """Return the way of a direction, made if it is not there."""
        for way in self.ways:
            if way.direction == direction:
                return way
        self.ways.append(Way(direction))
        return self.ways[-1]


@frozen
class PrintedRun:
    """One start of fio."""

    version: str
    jobs: Sequence[PrintedJob]


def number(source: Source, text: object, line: int, what: str) -> Decimal | None:
    """Understand a number that is not below zero; None for what fio prints in place of none.

    Raises
    ------
    TableError : it is none, or no machine measures so much.
    """
    plain = str(text).strip()
    if text is None or not plain or _NOT_A_NUMBER.fullmatch(plain):
        return None
    if not _NUMBER.fullmatch(plain) or (found := Decimal(plain)) > _AMOUNT_MAX:
        refuse_number(source, plain, line, what)
    return found


def whole_ns(source: Source, value: Decimal, line: int, what: str) -> int:
    """Understand a time as whole nanoseconds.

    Raises
    ------
    TableError : no machine has run so long.
    """
    if value >= _TIME_NS_MAX:
        refuse_number(source, f"{value / 1_000_000_000:.3g} s", line, what)
    return int(value)


def whole(source: Source, text: object, line: int, what: str) -> int:
    """Understand a count, of errors or operations; 0 for what fio prints in place of none.

    Raises
    ------
    TableError : it is none, or nothing is counted so far.
    """
    found = number(source, text, line, what)
    if found is not None and found >= _COUNT_MAX:
        refuse_number(source, str(text), line, what)
    return int(found) if found is not None else 0


def refuse_number(source: Source, text: str, line: int, what: str) -> NoReturn:
    """Raise an error about a number that fio does not print."""
    source.fail(
        f"{what}: {shown(text)} is no number that fio prints",
        "is the file damaged? Import a copy that fio wrote",
        line=line,
    )


def add_runs(source: Source, runs: Iterable[PrintedRun]) -> None:
    """Hand on every number of runs of fio.

    Raises
    ------
    TableError : no job of them did any I/O.
    """
    source.is_named = False
    execution, is_any = 0, False
    line = 1
    for run in runs:
        groups: dict[int, list[PrintedJob]] = defaultdict(list)
        for job in run.jobs:
            groups[job.group].append(job)
            line = job.line
        for jobs in groups.values():
            is_any |= _add_group(source, run.version, jobs, execution)
            execution += 1
    if not is_any:
        source.fail(
            "no job of fio did any I/O",
            "the run was broken off before its first operation, or its jobs had nothing to do",
            line=line,
        )


def _add_group(source: Source, version: str, jobs: list[PrintedJob], execution: int) -> bool:
    """Hand on a group; whether it holds a number or a failure."""
    streams: dict[object, list[PrintedJob]] = defaultdict(list)
    for job in jobs:
        streams[job.name, _key(job.options)].append(job)
    is_alone = len(streams) == 1
    about = _about(version, list(streams.values()))
    if any(job.options is not None for job in jobs):
        source.defaults |= {"iodepth": "1", "bs": "4k", "direct": "0", "numjobs": "1"}
    failed = next((job for job in jobs if job.error), None)
    started = [job.started_at_unix_ns for job in jobs]
    background = Background(
        execution,
        _task(list(streams.values())),
        f"{failed.name}: error {failed.error}" if failed is not None else "",
        min(started) if all(started) else 0,
        _elapsed_ns(source, jobs),
    )
    if failed is not None:
        name = _operation(failed, _first_direction(failed), is_alone=is_alone)
        source.add(Found(failed.line, TOOL, name, "", "KiB/s", "", about, background))
        return True
    names: set[str] = set()
    before = len(source.numbers)
    for clones in streams.values():
        label = _free(clones[0].name, names)
        names.add(label)
        _add_stream(source, clones, label if not is_alone else "", about, background)
    return len(source.numbers) > before


def _elapsed_ns(source: Source, jobs: list[PrintedJob]) -> int:
    longest = max(jobs, key=lambda job: job.runtime_ms)
    what = f"job {shown(longest.name)}: run time"
    return whole_ns(source, longest.runtime_ms * 1_000_000, longest.line, what)


def _task(streams: list[list[PrintedJob]]) -> str:
    """Name of a group's work: what its jobs do; their names only where several run together.

    Where no option is echoed the names of jobs are levels, and all of them do the same.
    """
    if len(streams) == 1:
        first = streams[0][0]
        return _rw(first) if first.options is not None else _UNKNOWN
    return ", ".join(f"{clones[0].name} {_rw(clones[0])}" for clones in streams)


def _rw(job: PrintedJob) -> str:
    """Pattern of a job without its sequencer; its name where no option is echoed."""
    if job.options is None:
        return job.name
    rw = job.options.get("rw") or job.options.get("readwrite") or "read"
    return rw.partition(":")[0].strip() or "read"


def _key(options: dict[str, str] | None) -> object:
    return None if options is None else frozenset(about_options(options).items())


def _free(name: str, taken: set[str]) -> str:
    """Name that no other job of the group has: two sections may be called the same."""
    if name not in taken:
        return name
    return next(n for i in range(2, len(taken) + 3) if (n := f"{name} {i}") not in taken)


def _about(version: str, streams: list[list[PrintedJob]]) -> tuple[tuple[str, str], ...]:
    """Levels of a group: its options; where its jobs differ in one, those of all of them."""
    about = {"fio_version": version} if version else {}
    if len(streams) == 1:
        job = streams[0][0]
        if job.options is None:
            return (*about.items(), ("job", job.name))
        return (*about.items(), *_without_rw(about_options(job.options)).items())
    each = [(clones[0].name, about_options(clones[0].options or {})) for clones in streams]
    for option in dict.fromkeys(name for _, options in each for name in options):
        values = [options.get(option, "") for _, options in each]
        if len(set(values)) == 1:
            about[option] = values[0]
        else:
            said = [
                f"{value or 'default'} ({name})"
                for (name, _), value in zip(each, values, strict=False)
            ]
            about["block_sizes" if option == "bs" else option] = ", ".join(said)
    return tuple(about.items())


def _without_rw(options: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name != "rw"}


def _first_direction(job: PrintedJob) -> str:
    return job.ways[0].direction if job.ways else "read"


def _operation(job: PrintedJob, direction: str, *, is_alone: bool, label: str = "") -> str:
    """Name of an operation: what the job does if it is alone, else the job's name."""
    if not is_alone:
        return f"{label or job.name} {direction}"
    if job.options is None:
        return direction
    rw = _rw(job)
    is_one = rw.removeprefix("rand") == direction
    return rw if is_one else f"{rw} {direction}"


def _add_stream(
    source: Source,
    clones: list[PrintedJob],
    label: str,
    about: tuple[tuple[str, str], ...],
    background: Background,
) -> None:
    first = clones[0]
    ways: dict[str, list[Way]] = defaultdict(list)
    for job in clones:
        for way in job.ways:
            ways[way.direction].append(way)
    options = first.options
    cpu = _cpu(source, clones)
    if len(ways) > 1:
        whole = label or _rw(first)
        own = replace(background, kind="mixed", access=access_of(options))
        for unit, value in _cpu_shares(clones).items():
            note = "of all directions together"
            source.add(Found(first.line, TOOL, whole, plain(value), unit, note, about, own))
    for direction, found in ways.items():
        way = _together(found) if len(found) > 1 else found[0]
        name = _operation(first, direction, is_alone=not label, label=label)
        is_all = len(ways) == 1
        own = replace(
            background,
            kind=KINDS.get(direction, "other"),
            access=access_of(options),
            io_size_bytes=size_of((options or {}).get("bs", "")),
            cpu_user_ns=cpu[0] if cpu and is_all else None,
            cpu_system_ns=cpu[1] if cpu and is_all else None,
            series=way.series,
        )
        amounts = dict(way.amounts)
        if is_all:
            amounts |= _cpu_shares(clones)
        notes = list(way.notes)
        if Decimal(0) < way.runtime_ms < SHORT_MS:
            notes.append(f"ran {plain(way.runtime_ms)} ms only: the rate is coarse")
        for unit, value in amounts.items():
            said = notes if value else [*notes, _ZERO]
            text = plain(value) if value else ""
            note = "; ".join(said)
            source.add(Found(first.line, TOOL, name, text, unit, note, about, own))


def plain(value: Decimal) -> str:
    """A number without exponent or idle digits."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _cpu(source: Source, clones: list[PrintedJob]) -> tuple[int, int] | None:
    """Nanoseconds of processor time of all clones, by user and system."""
    user = system = Decimal(0)
    for job in clones:
        if job.user_percent is None or job.system_percent is None or not job.runtime_ms:
            return None
        user += job.user_percent * job.runtime_ms * 10_000
        system += job.system_percent * job.runtime_ms * 10_000
    line, what = clones[0].line, f"job {shown(clones[0].name)}: processor time"
    return whole_ns(source, user, line, what), whole_ns(source, system, line, what)


def _cpu_shares(clones: list[PrintedJob]) -> dict[str, Decimal]:
    """Shares of a processor, mean over the clones."""
    users = [job.user_percent for job in clones if job.user_percent is not None]
    systems = [job.system_percent for job in clones if job.system_percent is not None]
    found: dict[str, Decimal] = {}
    for unit, values in ((USER_CPU, users), (SYSTEM_CPU, systems)):
        if values and sum(values, Decimal(0)):
            found[unit] = sum(values, Decimal(0)) / len(values) / 100
    return found


def _together(ways: list[Way]) -> Way:
    """One direction of several clones as one."""
    whole = Way(ways[0].direction)
    whole.notes = [f"the sum over {len(ways)} jobs of this name", *ways[0].notes]
    whole.operations = sum(way.operations for way in ways)
    whole.runtime_ms = max(way.runtime_ms for way in ways)
    for unit in dict.fromkeys(unit for way in ways for unit in way.amounts):
        values = [way.amounts[unit] for way in ways if unit in way.amounts]
        if unit in RATES:
            whole.amounts[unit] = sum(values, Decimal(0))
        elif unit.endswith("_max"):
            whole.amounts[unit] = max(values)
        elif unit == "latency_ns_mean" and all(way.operations for way in ways):
            weighted = sum(way.amounts.get(unit, Decimal(0)) * way.operations for way in ways)
            whole.amounts[unit] = Decimal(weighted) / whole.operations
    bins = [way.bins for way in ways if way.bins is not None]
    if len(bins) == len(ways):
        whole.amounts |= percentiles_of(*bins)
    elif any(unit in PERCENTILES for way in ways for unit in way.amounts):
        whole.notes.append(
            "percentiles of several jobs have no mean: run fio with group_reporting or json+"
        )
    return whole


def percentiles_of(*histograms: Bins) -> dict[str, Decimal]:
    """Percentiles of histograms, as fio reads them: the first bin that reaches the share."""
    together: dict[int, int] = defaultdict(int)
    for bins in histograms:
        for value, count in zip(bins.values, bins.counts, strict=True):
            together[value] += count
    total, found = sum(together.values()), dict[str, Decimal]()
    wanted = list(PERCENTILES.items())
    seen = 0
    for value in sorted(together):
        seen += together[value]
        while wanted and seen * 100 >= wanted[0][1] * total and total:
            found[wanted.pop(0)[0]] = Decimal(value)
    return found
