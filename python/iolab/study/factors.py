"""The typed table of everything that can be varied or held.

One row per factor drives the command line's flags, the validation of study files and the help
texts. Knobs are factors too; a scheduler's own tunables are named ``SCHEDULER.TUNABLE``. Accepted
names follow the agent's allow-list (rule R9); what a value does on the running kernel is checked by
the agent, which reads back what it wrote.

Source of the knobs and tunables: Linux 6.18 ``Documentation/block/`` and
``Documentation/admin-guide/sysctl/vm.rst``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from iolab import units
from iolab.errors import StudyError

DEFAULT_OPTIONS: Final = "defaults"
"""Level of an option list that adds nothing."""

SCHEDULERS: Final = ("none", "mq-deadline", "kyber", "bfq")
LEGACY_SCHEDULERS: Final = {
    "noop": "none",
    "deadline": "mq-deadline",
    "cfq": "bfq",
    "anticipatory": "bfq",
}
"""Names of the single-queue block layer (removed in Linux 5.0) to today's nearest."""

MAX_RANGE_LEVELS: Final = 24
MAX_COUNT: Final = 4096
_INTEGER = re.compile(r"-?\d+")


class FactorKind(Enum):
    """How a level is written."""

    SIZE = "size"
    COUNT = "count"
    BOOL = "bool"
    NAME = "name"
    OPTION_LIST = "option-list"
    KNOB = "knob"


class Scope(Enum):
    """What a factor belongs to, hence which workloads and testbeds have it."""

    STACK = "stack"
    MACHINE = "machine"
    ACCESS = "access"
    PATTERN = "pattern"


@dataclass(frozen=True, slots=True)
class FactorDefinition:
    """One row: a factor that may be varied or held.

    ``Scope.STACK`` needs a testbed that makes its own file system; ``Scope.PATTERN`` belongs to
    workloads without streams of their own, ``Scope.ACCESS`` and ``Scope.MACHINE`` to all.
    ``default`` is the level of a trial for which nobody chose one; None leaves the machine's own.
    """

    name: str
    kind: FactorKind
    scope: Scope
    help: str
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    is_hard_to_change: bool = False
    needs_root: bool = False
    empty_level: str | None = None
    default: str | None = None

    @property
    def flag(self) -> str:
        """Long option of the command line."""
        return "--" + self.name.replace("_", "-").replace(".", "-")

    @property
    def has_own_flag(self) -> bool:
        """Whether the command line has an option for it (tunables go through ``--knob``)."""
        return "." not in self.name

    @property
    def is_numeric(self) -> bool:
        """Whether its levels are sizes or counts, which lie on a scale."""
        return self.kind in (FactorKind.SIZE, FactorKind.COUNT)

    def parse(self, value: Any) -> tuple[str, ...]:
        """Canonical levels of one value as typed; a range gives several.

        Raises
        ------
        ValueError : the value is no level of this factor; the message says what would be.
        """
        if self.kind is FactorKind.OPTION_LIST:
            return (_option_list(value),)
        if isinstance(value, list):
            raise ValueError(f"{value} is a list inside a list")
        if self.empty_level is not None and str(value).strip() == self.empty_level:
            return (self.empty_level,)
        if self.kind is FactorKind.NAME:
            return (self._parse_name(value),)
        return _PARSERS[self.kind](value)

    def _parse_name(self, value: Any) -> str:
        text = str(value).strip()
        if text in self.choices:
            return text
        if self.name == "scheduler" and text in LEGACY_SCHEDULERS:
            raise ValueError(
                f"'{text}' is a scheduler of kernels before 5.0; today's kernel offers "
                f"'{LEGACY_SCHEDULERS[text]}' instead (nothing was changed)"
            )
        raise ValueError(
            f"'{text}' is none of {', '.join(self.choices)}{nearest(text, self.choices)}"
        )


def _option_list(value: Any) -> str:
    if isinstance(value, list):
        parts = [str(part).strip() for part in value]  # pyright: ignore
        text = ",".join(part for part in parts if part)
    elif isinstance(value, str):
        text = value.strip()
    else:
        raise ValueError(f"{value} is not an option text such as 'noatime,nodelalloc'")
    return text or DEFAULT_OPTIONS


def _scale(value: Any, parse: Callable[[Any], int]) -> tuple[int, ...]:
    ends = units.doubling_range(value) if isinstance(value, str) else None
    if ends is None:
        return (parse(value),)
    low, high = parse(ends[0]), parse(ends[1])
    if high < low:
        raise ValueError(f"'{value}' runs backwards: write the smaller end first")
    try:
        levels = units.expand_doubling(low, high)
    except ValueError:
        raise ValueError(
            f"'{value}' is not a doubling range: {ends[1]} is not {ends[0]} doubled some times"
        ) from None
    if len(levels) > MAX_RANGE_LEVELS:
        raise ValueError(f"'{value}' is {len(levels)} levels, more than {MAX_RANGE_LEVELS}")
    return levels


def _parse_count(value: Any) -> int:
    text = str(value).strip()
    if isinstance(value, bool | float) or not text.isdecimal() or int(text) < 1:
        raise ValueError(f"'{value}' is not a whole number above zero")
    if int(text) > MAX_COUNT:
        raise ValueError(f"'{value}' is more than {MAX_COUNT}, the most that is accepted")
    return int(text)


def _parse_bool(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in ("true", "false"):
        return value
    raise ValueError(f"'{value}' is neither true nor false")


def _parse_knob(value: Any) -> str:
    text = str(value).strip()
    if isinstance(value, bool | float) or not _INTEGER.fullmatch(text):
        raise ValueError(f"'{value}' is not a whole number")
    return str(int(text))


_PARSERS: Final[dict[FactorKind, Callable[[Any], tuple[str, ...]]]] = {
    FactorKind.SIZE: lambda value: tuple(map(units.format_bytes, _scale(value, units.parse_bytes))),
    FactorKind.COUNT: lambda value: tuple(map(str, _scale(value, _parse_count))),
    FactorKind.BOOL: lambda value: (_parse_bool(value),),
    FactorKind.KNOB: lambda value: (_parse_knob(value),),
}


def nearest(text: str, names: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the closest of `names`, or an empty text."""
    close = difflib.get_close_matches(text.lower(), list(names), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def _knob(name: str, text: str) -> FactorDefinition:
    return FactorDefinition(name, FactorKind.KNOB, Scope.MACHINE, text, needs_root=True)


SCHEDULER_TUNABLES: Final = {
    "mq-deadline": {
        "read_expire": "deadline of a read, ms",
        "write_expire": "deadline of a write, ms",
        "prio_aging_expire": "age at which a low priority is served, ms",
        "fifo_batch": "requests per batch",
        "writes_starved": "read batches before a write batch",
        "front_merges": "look for front merges, 0 or 1",
        "async_depth": "asynchronous requests in flight",
    },
    "kyber": {
        "read_lat_nsec": "target latency of reads, ns",
        "write_lat_nsec": "target latency of synchronous writes, ns",
    },
    "bfq": {
        "slice_idle": "idle wait for the next request of a queue, ms",
        "slice_idle_us": "the same in us",
        "low_latency": "favour interactive and soft real-time queues, 0 or 1",
        "strict_guarantees": "one request at a time, 0 or 1",
        "timeout_sync": "longest service of one queue, ms",
        "max_budget": "sectors per service, 0 = automatic",
        "fifo_expire_sync": "deadline of synchronous requests, ms",
        "fifo_expire_async": "deadline of asynchronous requests, ms",
        "back_seek_max": "longest backward seek, KiB",
        "back_seek_penalty": "cost of a backward seek, as a factor",
    },
}

FACTORS: Final[tuple[FactorDefinition, ...]] = (
    FactorDefinition(
        "scheduler",
        FactorKind.NAME,
        Scope.MACHINE,
        "I/O scheduler of the devices under the testbed",
        choices=SCHEDULERS,
        aliases=("schedulers", "sched"),
        needs_root=True,
    ),
    FactorDefinition(
        "fs",
        FactorKind.NAME,
        Scope.STACK,
        "file system made for the study",
        choices=("ext2", "ext3", "ext4", "xfs", "btrfs"),
        aliases=("filesystem", "file_system"),
        is_hard_to_change=True,
        default="ext4",
    ),
    FactorDefinition(
        "mkfs_options",
        FactorKind.OPTION_LIST,
        Scope.STACK,
        "options for mkfs as one text, such as '-b 1024'",
        is_hard_to_change=True,
        empty_level=DEFAULT_OPTIONS,
        default=DEFAULT_OPTIONS,
    ),
    FactorDefinition(
        "mount_options",
        FactorKind.OPTION_LIST,
        Scope.STACK,
        "mount options as one text, such as 'noatime,nodelalloc'",
        is_hard_to_change=True,
        empty_level=DEFAULT_OPTIONS,
        default=DEFAULT_OPTIONS,
    ),
    FactorDefinition(
        "external_journal",
        FactorKind.BOOL,
        Scope.STACK,
        "journal on a second device",
        is_hard_to_change=True,
        default="false",
    ),
    FactorDefinition(
        "cache",
        FactorKind.NAME,
        Scope.MACHINE,
        "page cache before each reading phase; cold and warm are verified",
        choices=("cold", "warm", "as_is"),
        default="cold",
    ),
    FactorDefinition(
        "memory_limit",
        FactorKind.SIZE,
        Scope.MACHINE,
        "memory of the workers, cache included ('none' = unlimited)",
        needs_root=True,
        empty_level="none",
        default="none",
    ),
    FactorDefinition(
        "record_size",
        FactorKind.SIZE,
        Scope.PATTERN,
        "bytes per operation: 4k, a list, or a doubling range 4k..16m",
        aliases=("io_size", "block_size", "reclen", "record_sizes"),
        default="4k",
    ),
    FactorDefinition(
        "file_size",
        FactorKind.SIZE,
        Scope.PATTERN,
        "bytes of each worker's file",
        aliases=("size", "filesize"),
        default="64m",
    ),
    FactorDefinition(
        "workers",
        FactorKind.COUNT,
        Scope.PATTERN,
        "workers at the same time, a file each",
        aliases=("threads", "jobs", "numjobs"),
        default="1",
    ),
    FactorDefinition(
        "depth",
        FactorKind.COUNT,
        Scope.PATTERN,
        "operations in flight per worker (above 1: engine io_uring)",
        aliases=("iodepth", "queue_depth"),
        default="1",
    ),
    FactorDefinition(
        "engine",
        FactorKind.NAME,
        Scope.ACCESS,
        "how operations are submitted",
        choices=("sync", "psync", "io_uring"),
        aliases=("ioengine",),
        default="psync",
    ),
    FactorDefinition(
        "workers_as",
        FactorKind.NAME,
        Scope.ACCESS,
        "what a worker is",
        choices=("threads", "processes"),
        default="threads",
    ),
    FactorDefinition(
        "direct",
        FactorKind.BOOL,
        Scope.ACCESS,
        "bypass the page cache (O_DIRECT)",
        aliases=("o_direct",),
        default="true",
    ),
    FactorDefinition(
        "durability",
        FactorKind.NAME,
        Scope.PATTERN,
        "none, or every write durable: O_SYNC or O_DSYNC",
        choices=("none", "sync", "dsync"),
        default="none",
    ),
    FactorDefinition(
        "fsync",
        FactorKind.NAME,
        Scope.PATTERN,
        "fsync at the end of a writing phase: never, after or inside the timed region",
        choices=("none", "after", "timed"),
        default="after",
    ),
    _knob("read_ahead_kb", "read-ahead, KiB"),
    _knob("nr_requests", "requests the scheduler may hold"),
    _knob("driver_queue_depth", "requests the driver takes at once; small = a scheduler can sort"),
    _knob("max_sectors_kb", "largest request, KiB"),
    _knob("nomerges", "0 all merges, 1 simple ones, 2 none"),
    _knob("rq_affinity", "CPU that completes a request: 0, 1 or 2"),
    _knob("wbt_lat_usec", "target of write-back throttling, us; 0 off, -1 default"),
    _knob("vm.dirty_ratio", "share of memory at which writers must write back, %"),
    _knob("vm.dirty_bytes", "the same in bytes"),
    _knob("vm.dirty_background_ratio", "share of memory at which write-back starts, %"),
    _knob("vm.dirty_background_bytes", "the same in bytes"),
    _knob("vm.dirty_expire_centisecs", "age at which dirty data is written, 10 ms"),
    _knob("vm.dirty_writeback_centisecs", "interval of the flusher, 10 ms"),
    _knob("vm.vfs_cache_pressure", "tendency to reclaim inodes and dentries"),
    *(
        _knob(f"{scheduler}.{tunable}", f"{scheduler}: {text}")
        for scheduler, tunables in SCHEDULER_TUNABLES.items()
        for tunable, text in tunables.items()
    ),
)

_BY_NAME: Final = {definition.name: definition for definition in FACTORS}
_BY_ALIAS: Final = {alias: definition for definition in FACTORS for alias in definition.aliases}


def is_factor(name: str) -> bool:
    """Whether `name` (or an alias, dashes allowed) is in the table."""
    plain = name.replace("-", "_")
    return any(key in table for key in (name, plain) for table in (_BY_NAME, _BY_ALIAS))


def find_factor(name: str) -> FactorDefinition:
    """Definition of a factor by name or alias; ``record-size`` is ``record_size``.

    Raises
    ------
    StudyError : no such factor; names the nearest.
    """
    for key in (name, name.replace("-", "_")):
        found = _BY_NAME.get(key) or _BY_ALIAS.get(key)
        if found is not None:
            return found
    raise StudyError(
        f"'{name}' is not a factor{nearest(name, [*_BY_NAME, *_BY_ALIAS])}",
        "see `iolab compare --help` for all of them",
    )


def scheduler_of(name: str) -> str | None:
    """Scheduler that a tunable belongs to: ``bfq`` of ``bfq.slice_idle``."""
    head, dot, _ = name.partition(".")
    return head if dot and head in SCHEDULER_TUNABLES else None
