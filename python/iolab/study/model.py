"""The words of a study: what is varied, what is held, what is asked of the target.

All values are frozen and hold *canonical* levels (``4k``, ``true``, ``mq-deadline``), so that two
studies which mean the same compare equal. Reading and checking happens in `iolab.study.load`,
ordering in `iolab.study.plan`.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from iolab.frozen import frozen, frozen_with_caches, replace
from iolab.json_text import read_json
from iolab.study.demand import DiskDemand
from iolab.study.testbeds import TestbedKind, testbed_kind

if TYPE_CHECKING:
    from iolab.json_text import JsonText
    from iolab.protocol import CommandExtras, Tenant, Workload
    from iolab.study.trace_words import TraceEvents

Levels: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of factor name and canonical level, in a fixed order."""

Flush: TypeAlias = Literal["fsync", "fdatasync", "sync_file_range", "msync", "msync_async"]
Lock: TypeAlias = Literal["none", "whole_file", "record"]
Pattern: TypeAlias = Literal["sequential", "reverse", "stride", "permutation", "uniform", "same"]


@frozen
class Factor:
    """Setting that is varied on purpose, with at least two levels in the order given."""

    name: str
    levels: tuple[str, ...]


@frozen
class TestbedRequest:
    """Testbed as it was asked for; `iolab.testbed.model` decides what it means."""

    __test__: ClassVar[bool] = False

    kind: str
    argument: str = ""
    options: Levels = ()

    @property
    def text(self) -> str:
        """Short form as typed on the command line, ``loop:1g``; options are left out."""
        return f"{self.kind}:{self.argument}" if self.argument else self.kind

    @property
    def row(self) -> TestbedKind:
        """Abilities of that kind."""
        return testbed_kind(self.kind)

    @property
    def has_file_system(self) -> bool:
        """Tell whether it makes a file system of its own, which a study may choose."""
        return self.row.has_file_system


@frozen
class IozoneWorkload:
    """IOzone's tests, one phase each, on one file per worker."""

    kind: ClassVar[str] = "iozone"

    name: str
    tests: tuple[str, ...]
    stride: int = 17
    settings: Levels = ()
    """Levels held for this workload only."""


@frozen
class Priority:
    """I/O priority of a worker, as `ionice` knows it; level 0 is the most urgent of 0 to 7."""

    class_: Literal["rt", "be", "idle"]
    level: int = 4

    @property
    def text(self) -> str:
        """As written in a study: ``rt/0``, ``be/2``, ``idle``."""
        return "idle" if self.class_ == "idle" else f"{self.class_}/{self.level}"


@frozen
class Stream:
    """Some equal workers of a mixed workload, running beside other streams."""

    name: str
    read_share: float
    pattern: Pattern
    io_size_bytes: int
    depth: int
    workers: int
    file_bytes: int
    rate_ops_per_s: float | None = None
    fsync_every: int = 0
    think_ns: int = 0
    """Pause after each operation."""
    priority: Priority | None = None
    """Priority; None leaves what a process is born with, best effort 4."""
    flush: Flush = "fsync"
    """Form of the flushes of `fsync_every`."""
    vectors: int = 1
    """Parts of each transfer, in calls that take several buffers."""
    flags: tuple[str, ...] = ()
    """Flags of each transfer (preadv2, pwritev2): ``dsync``, ``nowait`` ..."""
    lock: Lock = "none"
    is_preallocated: bool = False
    begins_ns: int = 0
    """From the beginning of the timed region to that of this stream."""
    ends_ns: int | None = None
    """To its end; None is the end of the workload."""
    ops: int | None = None
    """Operations of each worker, after which the stream is done; None is no such end."""
    cgroup_weight: int | None = None
    """Weight of the control group of its workers; None is no control group."""
    limits: tuple[tuple[str, int], ...] = ()
    """Limits per second of that group, by the names of `LIMITS`."""

    @property
    def has_cgroup(self) -> bool:
        """Tell whether its workers go into a control group of their own."""
        return self.cgroup_weight is not None or bool(self.limits)


PILOT_ROUNDS: Final = 8
"""Rounds of a study with a wanted width from which the others are counted (Stein's first stage)."""

LIMITS: Final = ("max_read", "max_write", "max_read_iops", "max_write_iops")
"""Limits of a stream: bytes per second, and operations per second."""


@frozen
class KnobChange:
    """Knobs that change while a workload runs."""

    at_ns: int
    """After the beginning of the timed region."""
    knobs: Levels


@frozen
class MixedWorkload:
    """Several streams at once for a fixed time, so that requests really queue."""

    kind: ClassVar[str] = "mixed"

    name: str
    duration_ns: int
    streams: tuple[Stream, ...]
    settings: Levels = ()
    """Levels held for this workload only."""
    changes: tuple[KnobChange, ...] = ()
    """In the order of time."""


@frozen
class WorkerGroup:
    """Control group of I/O that the workers of some tenants share."""

    tenants: tuple[str, ...]
    weight: int | None = None
    """Share of the device relative to other groups; None is the kernel's own."""


@frozen_with_caches
class DialectRow:
    """Row that a dialect measures at once, as data."""

    name: str
    levels: Levels
    """Levels of its place among the rows of its workload: varied words first, then sizes."""
    facts: Levels
    """Levels that follow from the description, for reports and checks."""
    description: JsonText[Workload]
    """The workload as it crosses to the agent: docs/design/0002, workload spec, as JSON."""
    demand: DiskDemand | None = None
    """Space that its programs may take of a disk; None if it has none."""
    control_groups: tuple[WorkerGroup, ...] = ()
    """Control groups of its tenants, if it asks for some."""

    @cached_property
    def workload(self) -> Workload:
        """The description, read."""
        return read_json(self.description)

    @property
    def tenants(self) -> list[Tenant]:
        """Tenants of all phases."""
        return [tenant for phase in self.workload["phases"] for tenant in phase["tenants"]]

    @property
    def operations(self) -> tuple[str, ...]:
        """Names of what it does: a phase, or each tenant of one and all of them together."""
        found = list[str]()
        for phase in self.workload["phases"]:
            names = [tenant["name"] for tenant in phase["tenants"]]
            parts = [f"{phase['name']}/{name}" for name in (*names, "all")]
            found += parts if len(names) > 1 else [phase["name"]]
        return tuple(found)


@frozen
class RecordingIdentity:
    """File of a recorded stream, and what it was when the study was planned."""

    file: str
    """A whole path."""
    size_bytes: int
    digest: str
    """FNV-1a of its bytes, 64 bits."""

    @property
    def identity(self) -> str:
        """Size and digest in words."""
        return f"{self.size_bytes} bytes, digest {self.digest}"


@frozen_with_caches
class DialectWorkload:
    """A workload in another program's words, or in a file; see `iolab.study.dialects`."""

    kind: ClassVar[str] = "dialect"

    name: str
    dialect: str
    text: str
    """The command's words, or the text of the file."""
    file: str = ""
    """Name of that file."""
    vary: tuple[Factor, ...] = ()
    """Words, or names in the file, that are varied."""
    settings: Levels = ()
    """Levels held for this workload only."""
    entry: str = ""
    """Name in the study file; other than `name` if the command has unlike rows."""
    cache: str = "as_is"
    """Treatment of the page cache by the dialect, if the study says nothing."""
    files: tuple[str, ...] = ()
    """Names of files that it uses; empty if nobody needs to know them."""
    asked: str = "{}"
    """Requests of the command beside measuring, as JSON."""
    rows: tuple[DialectRow, ...] = ()
    recordings: tuple[RecordingIdentity, ...] = ()
    """Files of recorded streams that it does again."""

    @cached_property
    def request(self) -> CommandExtras:
        """Requests of the command beside measuring; without keys if it is a file."""
        return json.loads(self.asked)

    @cached_property
    def own_factors(self) -> frozenset[str]:
        """Names of the factors that its rows are levels of."""
        return frozenset(name for row in self.rows for name, _ in row.levels)

    @cached_property
    def operations(self) -> tuple[str, ...]:
        """Names of what it does, as its results are called: a phase, or a tenant of one."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.operations))

    def row(self, levels: Levels) -> DialectRow:
        """The row at some levels."""
        wanted = dict(levels)
        return next(
            row for row in self.rows if all(wanted.get(name) == level for name, level in row.levels)
        )


WorkloadPlan: TypeAlias = IozoneWorkload | MixedWorkload | DialectWorkload


@frozen
class Study:
    """The whole question.

    At least one of `rounds` and `budget_ns` is set; with both, whichever ends first. `seed` is
    None until one is drawn or read back from a store.
    """

    name: str
    testbed: TestbedRequest
    factors: tuple[Factor, ...]
    settings: Levels
    workloads: tuple[WorkloadPlan, ...]
    compared_factor: str
    """Factor whose levels the verdict ranks; empty if nothing is varied."""
    baseline: str
    """Level of it that ratios are formed against; empty if nothing is varied."""
    margin: float = 0.05
    rounds: int | None = None
    budget_ns: int | None = None
    seed: int | None = None
    looks: int | None = None
    """Planned looks: after the last round and, at equal distances, before; it may end at each."""
    metric: str | None = None
    """Metric that carries the verdict; None is the usual one."""
    metric_of: str | None = None
    """Stream or test whose metric it is; None is all of them."""
    specification: tuple[tuple[str, int], ...] = ()
    """Promises of the device's data sheet: ``read`` and ``write``, bytes per second."""
    width: float | None = None
    """Wanted half width of the headline's intervals, relative; a pilot says how many rounds."""
    trace: TraceEvents | None = None
    """Events that are recorded during each trial; None: no trace."""
    design: str | None = None
    """Design, by which levels are brought together: ``trials`` or ``pairs``; None is the usual
    one.
    """
    command: tuple[str, ...] = ()
    """The command line of another program that it stands for: dialect and words."""

    def with_seed(self, seed: int) -> Study:
        """The same study with its seed decided."""
        return replace(self, seed=seed)

    @property
    def is_comparison(self) -> bool:
        """Tell whether there is more than one configuration."""
        return bool(self.factors)

    def factor(self, name: str) -> Factor | None:
        """The varied factor called `name`, if there is one."""
        return next((factor for factor in self.factors if factor.name == name), None)

    @property
    def has_real_time_streams(self) -> bool:
        """Tell whether some stream asks for real-time priority."""
        streams = [
            stream
            for workload in self.workloads
            if isinstance(workload, MixedWorkload)
            for stream in workload.streams
        ]
        return any(stream.priority and stream.priority.class_ == "rt" for stream in streams)

    @property
    def has_cgroups(self) -> bool:
        """Tell whether some worker runs in a control group of I/O."""
        return any(
            stream.has_cgroup
            for workload in self.workloads
            if isinstance(workload, MixedWorkload)
            for stream in workload.streams
        ) or any(
            row.control_groups
            for workload in self.workloads
            if isinstance(workload, DialectWorkload)
            for row in workload.rows
        )

    @property
    def has_weights(self) -> bool:
        """Tell whether some control group has a weight."""
        weights = [
            stream.cgroup_weight
            for workload in self.workloads
            if isinstance(workload, MixedWorkload)
            for stream in workload.streams
        ] + [
            group.weight
            for workload in self.workloads
            if isinstance(workload, DialectWorkload)
            for row in workload.rows
            for group in row.control_groups
        ]
        return any(weight is not None for weight in weights)

    @property
    def knobs_changed(self) -> tuple[str, ...]:
        """Knobs that change while some workload runs."""
        changes = [c for w in self.workloads if isinstance(w, MixedWorkload) for c in w.changes]
        return tuple(dict.fromkeys(name for change in changes for name, _ in change.knobs))

    def levels_in_use(self, name: str) -> tuple[str, ...]:
        """Every level of `name` that some trial has, varied or held, without repetition."""
        varied = self.factor(name)
        used = list(varied.levels) if varied else []
        held = [self.settings, *(workload.settings for workload in self.workloads)]
        held += [
            change.knobs
            for workload in self.workloads
            if isinstance(workload, MixedWorkload)
            for change in workload.changes
        ]
        used.extend(level for levels in held for key, level in levels if key == name)
        return tuple(dict.fromkeys(used))
