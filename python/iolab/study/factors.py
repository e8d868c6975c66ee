"""The typed table of everything that can be varied or held.

One row per factor drives the command line's flags, the validation of study files and the help
texts. Knobs are factors too; a scheduler's own tunables are named ``SCHEDULER.TUNABLE``. Which
knobs and engines there are is the agent's to say (rule R9, :mod:`iolab.study.names`); what a value
does on the running kernel is checked by the agent, which reads back what it wrote. A simulated
queue has schedulers of its own, older ones among them (:mod:`iolab.study.simulated`):
:func:`factor_on` gives a factor as a kind of testbed has it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Never, cast

from iolab import units
from iolab.errors import StudyError
from iolab.frozen import frozen, replace
from iolab.pattern import pattern
from iolab.study import simulated
from iolab.study.names import ENGINES, KNOBS, KnobName
from iolab.study.testbeds import NO_FILE_SYSTEM, testbed_kind
from iolab.wording import nearest

DEFAULT_OPTIONS: Final = "defaults"
"""Level of an option list that adds nothing."""

MAX_RANGE_LEVELS: Final = 24
MAX_COUNT: Final = 4096
DELAY_PREFIX: Final = "delay="
"""Begins the label whose treatment pauses after each operation: a slow-down of known size."""
_INTEGER = pattern(r"-?\d+")
_LABEL = pattern(r"[A-Za-z][\w-]{0,29}")


class FactorKind(Enum):
    """Form in which a level is written."""

    SIZE = "size"
    COUNT = "count"
    BOOL = "bool"
    NAME = "name"
    OPTION_LIST = "option-list"
    KNOB = "knob"
    LABEL = "label"


class Scope(Enum):
    """Part of a study that a factor belongs to, hence which workloads and testbeds have it."""

    STACK = "stack"
    MACHINE = "machine"
    ACCESS = "access"
    PATTERN = "pattern"


@frozen
class FactorDefinition:
    """One row: a factor that may be varied or held.

    ``Scope.STACK`` needs a testbed that makes its own file system; ``Scope.PATTERN`` belongs to
    workloads without streams of their own, ``Scope.ACCESS`` and ``Scope.MACHINE`` to all.
    ``default`` is the level of a trial for which nobody chose one; None leaves the machine's own.
    ``former_choices`` are names of older kernels, each with what comes closest today; numbers that
    ``are_codes`` lie on no scale. ``bounds`` are the least and the greatest whole number accepted;
    ``is_of_model`` is a knob that only the queue of a simulated stack has.
    """

    name: str
    kind: FactorKind
    scope: Scope
    help: str
    choices: tuple[str, ...] = ()
    former_choices: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    is_hard_to_change: bool = False
    needs_root: bool = False
    empty_level: str | None = None
    default: str | None = None
    is_knob: bool = False
    are_codes: bool = False
    bounds: tuple[int, int] | None = None
    is_of_model: bool = False

    @property
    def flag(self) -> str:
        """Long option of the command line."""
        return "--" + self.name.replace("_", "-").replace(".", "-")

    @property
    def has_own_flag(self) -> bool:
        """Tell whether the command line has an option for it (tunables go through ``--knob``)."""
        return "." not in self.name

    @property
    def is_numeric(self) -> bool:
        """Tell whether its levels are sizes or counts, which lie on a scale."""
        return self.kind in (FactorKind.SIZE, FactorKind.COUNT)

    def parse(self, value: object) -> tuple[str, ...]:
        """Canonical levels of one value as typed; a range gives several.

        Raises
        ------
        ValueError : the value is no level of this factor; the message says what would be.
        """
        if self.kind is FactorKind.OPTION_LIST:
            return (self._checked_options(_option_list(value)),)
        if isinstance(value, list):
            raise ValueError(f"{value} is a list inside a list")
        if self.empty_level is not None and str(value).strip() == self.empty_level:
            return (self.empty_level,)
        if self.kind is FactorKind.NAME:
            return (self._parse_name(value),)
        levels = _PARSERS[self.kind](value)
        if self.bounds is not None:
            for level in levels:
                self._check_bounds(int(level))
        return levels

    def _check_bounds(self, value: int) -> None:
        low, high = self.bounds or (value, value)
        if not low <= value <= high:
            raise ValueError(f"{self.name} = {value} is out of range: it goes from {low} to {high}")

    def _checked_options(self, text: str) -> str:
        """Only known options, where they are known; those of mkfs and mount are not."""
        for option in text.split(",") if self.choices and text != DEFAULT_OPTIONS else ():
            if option.strip() == DEFAULT_OPTIONS:
                raise ValueError(
                    f"'{DEFAULT_OPTIONS}' stands for none of them and so stands alone: "
                    "levels to compare are written one by one, each with the option's name"
                )
            if option.strip() not in self.choices:
                raise ValueError(
                    f"'{option}' is not one of {', '.join(self.choices)}"
                    f"{nearest(option, self.choices)}"
                )
        return text

    def _parse_name(self, value: object) -> str:
        text = str(value).strip()
        if text in self.choices:
            return text
        for former, today in self.former_choices:
            if text == former:
                raise ValueError(
                    f"'{text}' is a {self.name} of older kernels; today's kernel offers "
                    f"'{today}' instead (nothing was changed)"
                )
        raise ValueError(
            f"'{text}' is not one of {', '.join(self.choices)}{nearest(text, self.choices)}"
        )


def _option_list(value: object) -> str:
    if isinstance(value, list):
        parts = [str(part).strip() for part in cast("list[object]", value)]
        text = ",".join(part for part in parts if part)
    elif isinstance(value, str):
        text = value.strip()
    else:
        raise ValueError(f"{value} is not an option text such as 'noatime,nodelalloc'")
    return text or DEFAULT_OPTIONS


def _scale(value: object, parse: Callable[[Never], int]) -> tuple[int, ...]:
    ends = units.doubling_range(value) if isinstance(value, str) else None
    if ends is None:
        return (parse(cast("Never", value)),)
    low, high = (parse(cast("Never", end)) for end in ends)
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


def _parse_count(value: object) -> int:
    text = str(value).strip()
    if isinstance(value, bool | float) or not text.isdecimal() or int(text) < 1:
        raise ValueError(f"'{value}' is not a whole number above zero")
    if int(text) > MAX_COUNT:
        raise ValueError(f"'{value}' is more than {MAX_COUNT}, the most that is accepted")
    return int(text)


def _parse_bool(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value in ("true", "false"):
        return value
    raise ValueError(f"'{value}' is neither true nor false")


def _parse_knob(value: object) -> str:
    text = str(value).strip()
    if isinstance(value, bool | float) or not _INTEGER.fullmatch(text):
        raise ValueError(f"'{value}' is not a whole number")
    return str(int(text))


def _parse_label(value: object) -> str:
    """A name, or ``delay=50us``: the one thing that a label can do."""
    text = str(value).strip()
    if text.startswith(DELAY_PREFIX):
        delay_ns = units.parse_duration_ns(text.removeprefix(DELAY_PREFIX))
        return f"{DELAY_PREFIX}{units.format_duration(delay_ns)}"
    if not _LABEL.fullmatch(text):
        raise ValueError(f"'{text}' is no label: a letter, then letters, digits, - and _ (30)")
    return text


def label_delay_ns(label: str) -> int:
    """Pause after each operation that a label asks for; 0 for a mere name."""
    if not label.startswith(DELAY_PREFIX):
        return 0
    return units.parse_duration_ns(label.removeprefix(DELAY_PREFIX))


def is_mere_label(factor: str, level: str) -> bool:
    """Tell whether a level of a factor is a name for the same thing: that of an A/A study."""
    return factor == "label" and not level.startswith(DELAY_PREFIX)


_PARSERS: Final[dict[FactorKind, Callable[[object], tuple[str, ...]]]] = {
    FactorKind.SIZE: lambda value: tuple(map(units.format_bytes, _scale(value, units.parse_bytes))),
    FactorKind.COUNT: lambda value: tuple(map(str, _scale(value, _parse_count))),
    FactorKind.BOOL: lambda value: (_parse_bool(value),),
    FactorKind.KNOB: lambda value: (_parse_knob(value),),
    FactorKind.LABEL: lambda value: (_parse_label(value),),
}


_ALIASES: Final = {"scheduler": ("schedulers", "sched")}
"""Other words for a knob that people bring along."""


def _knob(knob: KnobName) -> FactorDefinition:
    return FactorDefinition(
        knob.name,
        FactorKind.NAME if knob.choices else FactorKind.KNOB,
        Scope.MACHINE,
        knob.help,
        choices=knob.choices,
        former_choices=knob.former_choices,
        aliases=_ALIASES.get(knob.name, ()),
        needs_root=True,
        is_knob=True,
        are_codes=knob.are_codes,
    )


def _simulated_tunables() -> dict[str, FactorDefinition]:
    """Tunables of the simulated schedulers, as a simulated queue has them."""
    return {
        f"{scheduler.name}.{tunable.name}": FactorDefinition(
            f"{scheduler.name}.{tunable.name}",
            FactorKind.KNOB,
            Scope.MACHINE,
            f"{scheduler.name}: {tunable.about.rstrip('.')}"
            + (f", {tunable.unit}" if tunable.unit else ""),
            is_knob=True,
            bounds=(tunable.min, tunable.max),
            is_of_model=True,
        )
        for scheduler in simulated.SCHEDULERS
        for tunable in scheduler.tunables
    }


_REAL_KNOBS: Final = frozenset(knob.name for knob in KNOBS)
_SIMULATED_TUNABLES: Final = _simulated_tunables()

FACTORS: Final[tuple[FactorDefinition, ...]] = (
    *(_knob(knob) for knob in KNOBS if knob.choices),
    FactorDefinition(
        "fs",
        FactorKind.NAME,
        Scope.STACK,
        "file system made for the study (none: a whole device without one, the default there; "
        "ufs, vxfs, qfs and zfs can only be simulated)",
        choices=(
            "ext2",
            "ext3",
            "ext4",
            "xfs",
            "btrfs",
            "ufs",
            "vxfs",
            "qfs",
            "zfs",
            NO_FILE_SYSTEM,
        ),
        aliases=("filesystem", "file_system"),
        is_hard_to_change=True,
        default="ext4",
    ),
    FactorDefinition(
        "mkfs_options",
        FactorKind.OPTION_LIST,
        Scope.STACK,
        "options for mkfs as one text, such as '-b 1024'; given again, another level",
        is_hard_to_change=True,
        empty_level=DEFAULT_OPTIONS,
        default=DEFAULT_OPTIONS,
    ),
    FactorDefinition(
        "mount_options",
        FactorKind.OPTION_LIST,
        Scope.STACK,
        "mount options as one text, such as 'noatime,nodelalloc'; given again, another level",
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
        "operations in flight per worker (above 1: an asynchronous engine)",
        aliases=("iodepth", "queue_depth"),
        default="1",
    ),
    FactorDefinition(
        "engine",
        FactorKind.NAME,
        Scope.ACCESS,
        "how operations are submitted",
        choices=tuple(engine.name for engine in ENGINES),
        aliases=("ioengine",),
        default="psync",
    ),
    FactorDefinition(
        "verify",
        FactorKind.NAME,
        Scope.ACCESS,
        "compare what is read with what was written: block headers, or every byte",
        choices=("none", "headers", "full"),
        default="none",
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
    FactorDefinition(
        "fsync_every",
        FactorKind.COUNT,
        Scope.PATTERN,
        "writes of a worker between two flushes inside the timed region ('never' = none)",
        empty_level="never",
        default="never",
    ),
    FactorDefinition(
        "flush",
        FactorKind.NAME,
        Scope.PATTERN,
        "call that makes the flushes of --fsync-every",
        choices=("fsync", "fdatasync", "sync_file_range", "msync", "msync_async"),
        default="fsync",
    ),
    FactorDefinition(
        "vectors",
        FactorKind.COUNT,
        Scope.PATTERN,
        "parts of each record, in calls that take several buffers",
        default="1",
    ),
    FactorDefinition(
        "flags",
        FactorKind.OPTION_LIST,
        Scope.PATTERN,
        "flags of each transfer, such as 'dsync,nowait' (engines pvsync2, io_uring)",
        choices=("hipri", "dsync", "sync", "nowait", "dontcache"),
        aliases=("rwf",),
        empty_level=DEFAULT_OPTIONS,
        default=DEFAULT_OPTIONS,
    ),
    FactorDefinition(
        "lock",
        FactorKind.NAME,
        Scope.PATTERN,
        "what is locked while operating: nothing, the file, or each record",
        choices=("none", "whole_file", "record"),
        default="none",
    ),
    FactorDefinition(
        "preallocate",
        FactorKind.BOOL,
        Scope.PATTERN,
        "allocate a new file's blocks before writing it",
        default="false",
    ),
    FactorDefinition(
        "label",
        FactorKind.LABEL,
        Scope.MACHINE,
        "names that change nothing (`iolab aa`); 'delay=50us' pauses a mixed workload's operations",
    ),
    *(_knob(knob) for knob in KNOBS if not knob.choices),
    *(row for name, row in _SIMULATED_TUNABLES.items() if name not in _REAL_KNOBS),
)

_BY_NAME: Final = {definition.name: definition for definition in FACTORS}
_BY_ALIAS: Final = {alias: definition for definition in FACTORS for alias in definition.aliases}


def is_factor(name: str) -> bool:
    """Tell whether `name` (or an alias, dashes allowed) is in the table."""
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
        f"'{name}' is neither a factor nor a knob{nearest(name, [*_BY_NAME, *_BY_ALIAS])}",
        "`iolab compare --help` lists the factors, docs/reference/knobs.md the knobs",
    )


def factor_on(kind: str, name: str) -> FactorDefinition:
    """Definition of a factor as a kind of testbed (``loop``, ``sim`` ...) has it.

    Raises
    ------
    StudyError : there is no such factor, or not there; says what comes nearest, or where it is.
    """
    definition = find_factor(name)
    has_queue_of_model = testbed_kind(kind).has_queue_of_model
    if definition.is_of_model and not has_queue_of_model:
        raise StudyError(
            f"{definition.name} is a tunable that no scheduler of the running kernel has",
            "use it in simulation: --on sim:PROFILE",
        )
    if not has_queue_of_model or not definition.is_knob:
        return definition
    if definition.name not in _KNOBS_OF_MODEL:
        known = ", ".join(name for name in _KNOBS_OF_MODEL if "." not in name)
        raise StudyError(
            f"a {kind} testbed has no knob {definition.name}"
            f"{nearest(definition.name, _KNOBS_OF_MODEL)}",
            f"it has {known} and the schedulers' own tunables",
        )
    return _KNOBS_OF_MODEL[definition.name]


def _knobs_of_model() -> dict[str, FactorDefinition]:
    """Knobs of a simulated queue: some of the real ones, with its own schedulers and tunables."""
    knobs = {name: replace(_BY_NAME[name], needs_root=False) for name in simulated.KNOBS}
    names = tuple(scheduler.name for scheduler in simulated.SCHEDULERS)
    knobs["scheduler"] = replace(knobs["scheduler"], choices=names, former_choices=())
    return knobs | _SIMULATED_TUNABLES


_KNOBS_OF_MODEL: Final = _knobs_of_model()
_SCHEDULERS: Final = frozenset(
    (*_BY_NAME["scheduler"].choices, *(scheduler.name for scheduler in simulated.SCHEDULERS))
)


def scheduler_of(name: str) -> str | None:
    """Scheduler that a tunable belongs to: ``bfq`` of ``bfq.slice_idle``."""
    head, dot, _ = name.partition(".")
    return head if dot and head in _SCHEDULERS else None
