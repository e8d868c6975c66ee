"""Table of validity: workloads and knobs for which alternating slices may stand in for trials: a
table of rows, each to be earned.

Two levels that alternate in slices of some milliseconds meet the same moment of a noisy machine,
which whole trials seconds apart do not. It is not valid everywhere: a level that keeps state (an
adaptive scheduler, a page cache, a new file) needs longer than a slice to become itself. So the
design is offered only for the combinations of factor, program, testbed and metric below, and it is
the default only where it is *shown*: pairs and at least 30 rounds of trials agreed within the
margin by an equivalence test (``make bench-aa VALIDITY=1``; `validity_results.json` has what it
found, for one program, testbed and metric each). What is in no row gets trials.

Where knobs differ there are *twins*: one loop device for each set of knobs, made alike. Every
device keeps its knobs for a block of slices; then they move on by one device, so that a balanced
unit has each set on each device and what the devices differ in cancels. The knobs of one device
(*switched*) are written before each slice, which only levels without a state of their own survive.

Left out: simulated stacks, whose trials do not disturb each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from iolab.errors import StudyError
from iolab.frozen import frozen
from iolab.study.factors import find_factor, is_factor
from iolab.study.model import IozoneWorkload, Levels, MixedWorkload, Stream, Study, WorkloadPlan
from iolab.study.names import KNOBS
from iolab.study.operations import operations_of_treatment
from iolab.study.treatment import Treatment
from iolab.study.validity_results import is_earned

Slices = Literal["short", "long", "adjacent", "trials"]
"""Short slices (12 to 65 ms), long ones (0.5 to 2 s), adjacent pairs of trials, whole trials."""
Devices = Literal["one", "switched", "twins", "images"]
"""One device for all levels, one whose knobs are written before each slice, one for each set of
knobs, exchanged from block to block, or one for each file system, made anew for each round."""
Program = Literal["tests", "streams", "contention"]
"""IOzone's tests, one stream for a fixed time, or several that compete."""

PAIRS: Final = "pairs"
ADJACENT: Final = "adjacent"
TRIALS: Final = "trials"
DESIGNS_ASKED: Final = (PAIRS, ADJACENT, TRIALS)
TWINS_MAX: Final = 8
"""Loop devices that the agent makes alike."""
BUDGET_NS: Final = 180_000_000_000
"""Budget of a study in slices that names none: three minutes."""
UNITS_MAX: Final = 1000
IMAGE_SETS_MIN: Final = 5
"""Sets of images, each made anew, on which an interval may rest."""
SCHEDULERS_WITHOUT_STATE: Final = ("none", "mq-deadline")
NEW_FILE_TESTS: Final = ("write", "fwrite", "pwrite", "pwritev")
_SCHEDULER_KNOB: Final = "scheduler"
_READ_AHEAD_KNOB: Final = "read_ahead_kb"
STREAM_TESTS: Final = ("fwrite", "frewrite", "fread", "freread", "mix")
"""Tests through the C library's streams, which know no direct I/O, and the one of two kinds."""


@frozen
class ValidityRow:
    """One combination, and the slices that it may be compared in."""

    factor: str
    programs: tuple[Program, ...]
    testbeds: tuple[str, ...]
    metrics: tuple[str, ...]
    slices: Slices
    devices: Devices = "one"
    levels: tuple[str, ...] = ()
    """The only levels for which it holds; empty: all."""
    is_shown: bool = False
    """True if an equivalence test of pairs against trials was passed."""
    is_of_buffered: bool = False
    """True if that test is one of buffered reads; else of direct I/O."""
    why: str = ""


_NEIGHBOURS: Final = "compare whole trials that run next to each other: --design adjacent"
_BOTH: Final[tuple[Program, ...]] = ("tests", "streams")
_ALL: Final[tuple[Program, ...]] = (*_BOTH, "contention")
TIME_CONSTANTS_NS: Final = {
    name: constant for knob in KNOBS for name, constant in knob.time_constants_ns
}
"""Longest time in ns after which a scheduler acts upon what it has seen."""
_QUEUE_KNOBS: Final = (
    *("nr_requests", "driver_queue_depth", "max_sectors_kb"),
    *("nomerges", "rq_affinity"),
)
_OF_QUEUES: Final = "a property of the queue, on a device of its own, exchanged"
_ADAPTIVE: Final = (
    "slices of at least four times the longest time constant; each on a device of its own,"
    " exchanged"
)
_DEVICES_OF_KNOBS: Final[tuple[tuple[str, Devices], ...]] = (
    ("loop", "twins"),
    ("device", "switched"),
)
_READ_AHEAD: Final = (
    "files take it anew for each slice, and the pages that it has read are dropped before"
)
_FILE_SYSTEM_FACTORS: Final = ("fs", "mkfs_options", "mount_options")
_OF_IMAGES: Final = (
    "a level is bound to its image: the unit is a set of images, one for each, freshly made"
)
_RATES: Final = ("throughput_bytes_per_s", "throughput_ops_per_s")
_QUANTILES: Final = ("latency_ns_p50", "latency_ns_p90", "latency_ns_p99", "latency_ns_mean")
_OF_CALLS: Final = "a property of the call: nothing of it is left when the call is over"

VALIDITY: Final = (
    *(
        ValidityRow(name, _BOTH, ("loop", "dir", "device"), metrics, "short", why=_OF_CALLS)
        for name in ("record_size", "engine", "depth", "label")
        for metrics in (_RATES, _QUANTILES)
    ),
    ValidityRow(
        "label",
        ("contention",),
        ("loop", "dir", "device"),
        _RATES,
        "long",
        why="streams compete for longer than a slice of milliseconds",
    ),
    ValidityRow(
        "scheduler",
        ("tests", "streams"),
        ("loop",),
        _RATES,
        "short",
        "twins",
        levels=SCHEDULERS_WITHOUT_STATE,
        why="a lone stream meets no deadline; each on a device of its own, exchanged",
    ),
    ValidityRow(
        "scheduler",
        ("tests", "streams"),
        ("device",),
        _RATES,
        "short",
        "switched",
        levels=SCHEDULERS_WITHOUT_STATE,
        why="neither keeps state; written before each slice, on a device that is ours",
    ),
    *(
        ValidityRow("scheduler", _ALL, ("loop",), metrics, "long", "twins", why=_ADAPTIVE)
        for metrics in (_RATES, _QUANTILES)
    ),
    ValidityRow(
        "scheduler",
        _ALL,
        ("device",),
        _RATES,
        "trials",
        why="bfq and kyber adapt within 0.1 to 0.3 s: a switch would show their first moments",
    ),
    *(
        ValidityRow(name, _BOTH, ("loop",), _RATES, "short", "twins", why=_OF_QUEUES)
        for name in _QUEUE_KNOBS
    ),
    *(
        ValidityRow(name, ("contention",), ("loop",), _RATES, "long", "twins", why=_ADAPTIVE)
        for name in _QUEUE_KNOBS
    ),
    *(
        ValidityRow(knob.name, _ALL, ("loop",), _RATES, "long", "twins", why=_ADAPTIVE)
        for knob in KNOBS
        if "." in knob.name and knob.name.partition(".")[0] in TIME_CONSTANTS_NS
    ),
    *(
        ValidityRow(
            "read_ahead_kb",
            _BOTH,
            (kind,),
            metrics,
            "short",
            devices,
            is_of_buffered=True,
            why=_READ_AHEAD,
        )
        for kind, devices in _DEVICES_OF_KNOBS
        for metrics in (_RATES, _QUANTILES)
    ),
    ValidityRow(
        "read_ahead_kb",
        ("contention",),
        ("loop",),
        _RATES,
        "long",
        "twins",
        is_of_buffered=True,
        why="streams compete for longer than a slice of milliseconds",
    ),
    ValidityRow(
        "read_ahead_kb",
        ("contention",),
        ("device",),
        _RATES,
        "trials",
        why="streams that compete need slices longer than one that a device is switched for",
    ),
    ValidityRow(
        "read_ahead_kb",
        _ALL,
        ("dir",),
        _RATES,
        "trials",
        why="the device below a directory has other readers, who would feel each switch",
    ),
    *(
        ValidityRow(name, _BOTH, ("loop",), metrics, "short", "images", why=_OF_IMAGES)
        for name in _FILE_SYSTEM_FACTORS
        for metrics in (_RATES, _QUANTILES)
    ),
    ValidityRow(
        "wbt_lat_usec",
        _ALL,
        ("loop", "dir", "device"),
        _RATES,
        "trials",
        why="it acts on buffered writes, which are written back during the slices of others",
    ),
    *(
        ValidityRow(
            knob.name,
            _ALL,
            ("loop", "dir", "device"),
            _RATES,
            "adjacent",
            why="it belongs to the machine: devices cannot differ in it",
        )
        for knob in KNOBS
        if knob.name.startswith(("vm.", "cpu."))
    ),
    ValidityRow(
        "cache",
        _ALL,
        ("loop", "dir", "device"),
        _RATES,
        "adjacent",
        why="the page cache keeps state",
    ),
)
"""Every combination that was thought of; the first row that fits decides."""


def row_for(
    factor: str, levels: Sequence[str], program: Program, place: tuple[str, str]
) -> ValidityRow | None:
    """Find the first row that fits; `place` is the kind of testbed and the metric."""
    testbed, metric = place
    for row in VALIDITY:
        fits = row.factor == factor and program in row.programs and testbed in row.testbeds
        has_levels = not row.levels or set(levels) <= set(row.levels)
        if fits and has_levels and metric in row.metrics:
            return row
    return None


def check_pairs(study: Study, treatments: Sequence[Treatment]) -> None:
    """Refuse what slices cannot compare.

    Raises
    ------
    StudyError : names the first reason, and what to do.
    """
    for problem, remedy in _problems(study, treatments):
        raise StudyError(f"alternating slices cannot compare this: {problem}", remedy)


def check_adjacent(study: Study) -> None:
    """Refuse what cannot run as neighbours.

    Raises
    ------
    StudyError : the compared factor needs a new file system, or the order is that of a table.
    """
    compared = study.compared_factor
    refused = "adjacent trials cannot compare this"
    if is_factor(compared) and find_factor(compared).is_hard_to_change:
        raise StudyError(
            f"{refused}: each level of {compared} needs a new file system, which takes longer than"
            " neighbours may be apart",
            "leave design out, which gives each level file systems of its own in every round",
        )
    if study.command:
        raise StudyError(
            f"{refused}: the rows of a command line run in their order",
            "leave design out",
        )


def is_shown(study: Study, treatments: Sequence[Treatment]) -> bool:
    """Tell whether slices are valid for a study, and every row that it needs is shown."""
    rows = list(_combinations(study))
    is_buffered = not all(treatment.is_direct for treatment in treatments)
    if any(_writes_buffered(treatment) for treatment in treatments):
        return False  # No row rests on a test of writes that end with an fsync.
    is_usual = bool(rows) and all(
        row is not None
        and (
            (row.is_shown and row.is_of_buffered == is_buffered)
            or is_earned(factor, program, place, is_buffered=is_buffered)
        )
        for factor, program, place, row in rows
    )
    return is_usual and next(_problems(study, treatments), None) is None


def _combinations(
    study: Study,
) -> Iterator[tuple[str, Program, tuple[str, str], ValidityRow | None]]:
    """Factor, program, testbed and metric for which a study would need a row."""
    place = (study.testbed.kind, study.metric or _RATES[0])
    for factor in study.factors:
        for workload in study.workloads:
            program = program_of(workload)
            row = row_for(factor.name, factor.levels, program, place)
            yield factor.name, program, place, row


def _rows(study: Study) -> Iterator[tuple[str, ValidityRow | None]]:
    return ((factor, row) for factor, _, _, row in _combinations(study))


def program_of(workload: WorkloadPlan) -> Program:
    """Program that a workload counts as in the table."""
    if isinstance(workload, MixedWorkload):
        return "contention" if len(workload.streams) > 1 else "streams"
    return "tests"


def _problems(study: Study, treatments: Sequence[Treatment]) -> Iterator[tuple[str, str]]:
    trials = "leave design out, which compares whole trials"
    if study.width is not None:
        yield "a wanted width counts rounds by a pilot of trials", "give a budget instead of width"
    if not study.factors:
        yield "nothing is varied", "give a factor at least two levels"
    for name, row in _rows(study):
        if row is None:
            yield f"nobody has looked whether they are valid for {name} here", trials
        elif row.slices not in ("short", "long"):
            is_adjacent = row.slices == "adjacent"
            yield f"{name}: {row.why}", _NEIGHBOURS if is_adjacent else trials
    has_long = is_long(study)
    for workload in study.workloads:
        if isinstance(workload, IozoneWorkload):
            yield from _problems_of_tests(workload)
        elif isinstance(workload, MixedWorkload):
            yield from _problems_of_streams(workload, is_long=has_long)
        else:
            yield f"'{workload.name}' is another program's workload", trials
    yield from _problems_of_treatments(treatments, is_long=has_long)
    if devices_of(study) == "images":
        yield from _problems_of_images(study, treatments)
    if devices_of(study) == "switched":
        yield from _problems_of_knobs(study, treatments)
    if len(knob_sets(treatments)) > TWINS_MAX and devices_of(study) == "twins":
        yield (
            f"{len(knob_sets(treatments))} sets of knobs would need as many devices made alike",
            f"compare {TWINS_MAX} at most, or whole trials",
        )


def _problems_of_tests(workload: IozoneWorkload) -> Iterator[tuple[str, str]]:
    for test in workload.tests:
        if test in NEW_FILE_TESTS:
            yield f"test {test} makes new files", "leave it out: --test rewrite,random-read"
        elif test in STREAM_TESTS:
            yield f"test {test} has no direct I/O", "leave it out: --test rewrite,random-read"


def _problems_of_streams(workload: MixedWorkload, *, is_long: bool) -> Iterator[tuple[str, str]]:
    trials = "leave design out, which compares whole trials"
    if len(workload.streams) > 1 and not is_long:
        yield f"'{workload.name}' has competing streams", trials
    if workload.changes:
        yield f"'{workload.name}' changes knobs while it runs", trials
    for stream in workload.streams:
        why = _why_not_standing(stream)
        if why:
            yield f"stream {stream.name} {why}", trials


def _why_not_standing(stream: Stream) -> str:
    """Reason why a stream cannot go on for ever at its own speed; empty if it can."""
    if stream.rate_ops_per_s is not None:
        return "has a rate, so that all levels have one throughput"
    if stream.fsync_every:
        return "flushes, which takes longer than a slice"
    if stream.begins_ns or stream.ends_ns is not None or stream.ops is not None:
        return "begins or ends inside the workload"
    return "has a control group" if stream.has_cgroup else ""


def _problems_of_treatments(
    treatments: Sequence[Treatment], *, is_long: bool
) -> Iterator[tuple[str, str]]:
    for treatment in treatments:
        effective = treatment.effective
        yield from _problems_of_cache(treatment)
        has_several = effective.get("workers", "1") != "1" or _workers(treatment) > 1
        if has_several and not is_long:
            yield f"{treatment.name} has several workers", "use one worker, and depth"
        is_timed = effective.get("fsync") == "timed" and not _is_flushed(treatment)
        if is_timed or effective.get("fsync_every", "never") != "never":
            yield f"{treatment.name} flushes inside the timed region", "leave the flushes out"
        if effective.get("memory_limit", "none") != "none":
            yield f"{treatment.name} has a memory limit", "leave it out: the I/O is direct"
        if effective.get("verify", "none") != "none":
            yield f"{treatment.name} verifies its data", "verify in a study of its own"


def _problems_of_cache(treatment: Treatment) -> Iterator[tuple[str, str]]:
    """Buffered I/O begins each slice with a cold file; writes end each with an fsync."""
    operations = operations_of_treatment(treatment)
    buffered = [operation for operation in operations if operation.access != "direct"]
    if any(operation.access != "plain" for operation in buffered):
        yield f"{treatment.name} maps its file", "use direct I/O (--direct), or another engine"
    elif any(operation.writes for operation in buffered) and not _is_flushed(treatment):
        has_tests = isinstance(treatment.workload, IozoneWorkload)
        how = "--fsync timed, which ends each slice with an fsync, or " if has_tests else ""
        yield (
            f"{treatment.name} writes through the page cache, and what a slice leaves there is"
            " written during the slices of others",
            f"use {how}direct I/O (--direct)",
        )
    elif buffered and treatment.effective.get("cache", "cold") != "cold":
        yield (
            f"{treatment.name} keeps its file in the page cache, of which each slice drops it",
            "use --cache cold, or direct I/O: --direct",
        )
    if not buffered and _READ_AHEAD_KNOB in dict(treatment.levels):
        yield (
            f"{_READ_AHEAD_KNOB} does nothing to {treatment.name}: direct I/O reads nothing ahead",
            "use --buffered (direct = false)",
        )


def _is_flushed(treatment: Treatment) -> bool:
    """Tell whether a slice that writes would end with an fsync inside its time."""
    is_asked = treatment.effective.get("fsync") == "timed"
    return is_asked and _writes_buffered(treatment)


def _writes_buffered(treatment: Treatment) -> bool:
    return any(
        operation.writes and operation.access != "direct"
        for operation in operations_of_treatment(treatment)
    )


def _problems_of_images(study: Study, treatments: Sequence[Treatment]) -> Iterator[tuple[str, str]]:
    """Each file system has a device; that leaves none to exchange knobs between."""
    if len(knob_sets(treatments)) > 1:
        yield "file systems and knobs are varied at once", "vary one of them, or compare trials"
    if len(image_sets(treatments)) > TWINS_MAX:
        yield (
            f"{len(image_sets(treatments))} file systems would need as many devices made alike",
            f"compare {TWINS_MAX} at most, or whole trials",
        )
    if study.rounds is not None and study.rounds < IMAGE_SETS_MIN:
        yield (
            f"{study.rounds} sets of images are too few: every set has a layout of its own",
            f"give --rounds {IMAGE_SETS_MIN} or more",
        )
    if any(treatment.effective.get("external_journal") == "true" for treatment in treatments):
        yield "twin devices have no device for a journal", "leave external_journal out"


def _workers(treatment: Treatment) -> int:
    workload = treatment.workload
    if isinstance(workload, MixedWorkload):
        return max(stream.workers for stream in workload.streams)
    return 1


def _problems_of_knobs(study: Study, treatments: Sequence[Treatment]) -> Iterator[tuple[str, str]]:
    """A switch of the scheduler resets other settings of the queue."""
    if study.factor(_SCHEDULER_KNOB) is None:
        return
    varied = [f.name for f in study.factors if is_factor(f.name) and find_factor(f.name).is_knob]
    for treatment in treatments:
        for name in treatment.effective:
            if is_factor(name) and find_factor(name).is_knob and name not in varied:
                yield (
                    f"{name} would be reset whenever {_SCHEDULER_KNOB} is written",
                    f"leave {name} out, or compare whole trials",
                )


def devices_of(study: Study) -> Devices:
    """On which devices the levels of a study take turns."""
    found = {row.devices for _, row in _rows(study) if row is not None}
    order: tuple[Devices, ...] = ("images", "twins", "switched", "one")
    return next(devices for devices in order if devices in found or devices == "one")


def twins_of(study: Study, treatments: Sequence[Treatment]) -> int:
    """Devices made alike that a study in slices needs: one for each set of knobs or file system, or
    1.
    """
    devices = devices_of(study)
    if devices == "images":
        return len(image_sets(treatments))
    return len(knob_sets(treatments)) if devices == "twins" else 1


def image_sets(treatments: Sequence[Treatment]) -> list[Levels]:
    """Different file systems with their options, in the order of the treatments."""
    return list(dict.fromkeys(treatment.whole_plot for treatment in treatments))


def knob_sets(treatments: Sequence[Treatment]) -> list[dict[str, str]]:
    """Different sets of knobs, in the order of the treatments."""
    found = list[dict[str, str]]()
    for treatment in treatments:
        knobs = {
            name: level
            for name, level in treatment.effective.items()
            if is_factor(name) and find_factor(name).is_knob
        }
        if knobs not in found:
            found.append(knobs)
    return found


def is_long(study: Study) -> bool:
    """Tell whether a study needs long slices."""
    if any(row is not None and row.slices == "long" for _, row in _rows(study)):
        return True
    # Its knobs are exchanged under a scheduler that adapts.
    in_use = study.levels_in_use("scheduler")
    adapts = any(
        TIME_CONSTANTS_NS.get(name, 0) and name not in SCHEDULERS_WITHOUT_STATE for name in in_use
    )
    return adapts and devices_of(study) != "one"
