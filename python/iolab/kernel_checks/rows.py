"""The workloads that are run on the kernel and in simulation, and what is compared of each.

A workload is a row: a command of a dialect on a fresh file system. Left out: the programs that run
it, and how close is close enough (`compared`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal, TypeAlias, get_args

from iolab.frozen import frozen

Measure: TypeAlias = Literal["windows", "requests", "expired", "extents", "journal", "commits"]
"""Measure by which a workload is compared.

windows : places and lengths of the first 64 data reads of each process, in their order.
requests : sizes of the requests that carry data, by bytes.
expired : bytes of data written by their age, where no call asks for them.
extents : runs of neighbouring blocks per file.
journal : bytes of the journal or log.
commits : durable writes of it: with a flush before them, and past the device's cache.
"""
Dialect: TypeAlias = Literal["fio", "bonnie++", "iozone"]
"""Program whose command a workload is."""
MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)
"""Every measure."""
_MEMORY: Final = "pages that chance to lie side by side in memory travel as one piece"
_TURNS: Final = "whose turn it is on the processors is simplified in simulation"
_LOCK: Final = "of two that allocate at once xfs may send the second to another group"
_TICK: Final = "writing the file again changes its times in the kernel, not in simulation"
_STEPS: Final = "the kernel finds the blocks in two steps, and sends what it has after each"
_PLACE: Final = "where ext4 looks first for blocks depends on the number of the process"
_LOG: Final = "some runs of the kernel log 640 bytes more with each commit: not explained"
READS: Final[tuple[Measure, ...]] = ("windows",)
WRITES: Final[tuple[Measure, ...]] = ("requests", "extents")
METADATA: Final[tuple[Measure, ...]] = ("journal", "commits")
AGED: Final[tuple[Measure, ...]] = ("expired",)
SYSTEMS: Final = ("ext4", "xfs")
"""File systems that are compared, if nobody names one."""
VARIANTS: Final[dict[str, tuple[str, ...]]] = {"ext4": ("delalloc", "nodelalloc")}
"""Mount options under which all workloads run; other file systems have their defaults."""


@frozen
class KnownReason:
    """A reason for which a measure may differ.

    Parameters
    ----------
    why : the reason.
    most : how far it may: share of the bytes in requests of other sizes, or factor of an amount.
    """

    why: str
    most: float


@frozen
class Check:
    """A workload that both run.

    Parameters
    ----------
    name : as on the command line and in tables.
    words : options of the dialect's program, without those that name files.
    measures : what is compared.
    dialect : the program.
    known : reasons for which a measure may differ, where they are known.
    settings : knobs that it needs besides those of all workloads.
    """

    name: str
    words: str
    measures: tuple[Measure, ...]
    dialect: Dialect = "fio"
    known: Mapping[Measure, KnownReason] = field(default_factory=dict[Measure, KnownReason])
    settings: Mapping[str, int] = field(default_factory=dict[str, int])


CHECKS: Final = (
    Check("read-4k", "--rw=read --bs=4k --size=16m", READS),
    Check("read-64k", "--rw=read --bs=64k --size=16m", READS),
    Check("read-1m", "--rw=read --bs=1m --size=16m", READS),
    Check("read-6k-odd", "--rw=read --bs=6k --size=6m", READS),
    Check("read-4k-unadvised", "--rw=read --bs=4k --size=16m --fadvise_hint=0", READS),
    Check("read-128k-unadvised", "--rw=read --bs=128k --size=16m --fadvise_hint=0", READS),
    Check("stride-16k", "--rw=read:12k --bs=4k --size=16m --fadvise_hint=0", READS),
    Check("stride-64k", "--rw=read:60k --bs=4k --size=16m --fadvise_hint=0", READS),
    Check("stride-1m", "--rw=read:960k --bs=64k --size=64m --fadvise_hint=0", READS),
    Check("backward-4k", "--rw=read:-8k --bs=4k --size=8m --fadvise_hint=0", READS),
    Check("backward-64k", "--rw=read:-128k --bs=64k --size=8m --fadvise_hint=0", READS),
    Check("random-4k", "--rw=randread --bs=4k --size=16m --io_size=1m", READS),
    Check(
        "random-64k-unadvised",
        "--rw=randread --bs=64k --size=16m --io_size=4m --fadvise_hint=0",
        READS,
    ),
    Check("mapped-read", "--ioengine=mmap --rw=read --bs=4k --size=16m --fadvise_hint=0", READS),
    Check(
        "mapped-random",
        "--ioengine=mmap --rw=randread --bs=4k --size=16m --io_size=1m --fadvise_hint=0",
        READS,
    ),
    Check("two-readers", "--rw=read --bs=4k --size=4m --numjobs=2", READS),
    Check("eight-readers", "--rw=read --bs=16k --size=4m --numjobs=8", READS),
    Check("direct-read", "--rw=read --bs=128k --size=8m --direct=1", READS),
    Check(
        "write-4k",
        "--rw=write --bs=4k --size=16m --end_fsync=1 --fallocate=none",
        WRITES,
        known={"requests": KnownReason(_MEMORY, 0.6)},
    ),
    Check(
        "write-64k",
        "--rw=write --bs=64k --size=64m --end_fsync=1 --fallocate=none",
        WRITES,
        known={"requests": KnownReason(_MEMORY, 0.1)},
    ),
    Check(
        "write-1m",
        "--rw=write --bs=1m --size=64m --end_fsync=1 --fallocate=none",
        WRITES,
        known={"requests": KnownReason(_MEMORY, 0.1)},
    ),
    Check(
        "write-allocated",
        "--rw=write --bs=64k --size=32m --end_fsync=1",
        WRITES,
        known={"requests": KnownReason(_MEMORY, 0.1)},
    ),
    Check(
        "eight-writers",
        "--rw=write --bs=4k --size=4m --numjobs=8 --end_fsync=1 --fallocate=none",
        WRITES,
        known={"requests": KnownReason(_MEMORY, 0.6)},
    ),
    Check(
        "two-appenders",
        "--rw=write --bs=4k --size=2m --numjobs=2 --fsync=16 --end_fsync=1 --fallocate=none",
        (*WRITES, *METADATA),
        known={
            "extents": KnownReason(_LOCK, 8),
            "journal": KnownReason(_TURNS, 2.5),
            "commits": KnownReason(_TURNS, 2.5),
        },
    ),
    Check(
        "extending-random",
        "--rw=randwrite --bs=4k --size=8m --end_fsync=1 --fallocate=none",
        WRITES,
    ),
    Check("holes", "--rw=write:4k --bs=4k --size=8m --end_fsync=1 --fallocate=none", WRITES),
    Check(
        "overwrite",
        "--rw=randwrite --bs=4k --size=8m --overwrite=1 --end_fsync=1",
        WRITES,
        known={"requests": KnownReason(_PLACE, 0.3)},
    ),
    Check(
        "direct-write",
        "--rw=write --bs=64k --size=8m --direct=1 --fallocate=none",
        WRITES,
    ),
    Check(
        "log",
        "--rw=write --bs=4k --size=1m --fsync=1 --end_fsync=1 --fallocate=none",
        (*WRITES, *METADATA),
        known={"extents": KnownReason(_PLACE, 6)},
    ),
    Check(
        "log-of-data",
        "--rw=write --bs=4k --size=1m --fdatasync=1 --end_fsync=1 --fallocate=none",
        (*WRITES, *METADATA),
        known={"extents": KnownReason(_PLACE, 6), "journal": KnownReason(_LOG, 1.7)},
    ),
    Check(
        "log-in-place",
        "--rw=write --bs=4k --size=1m --fdatasync=1 --overwrite=1",
        (*WRITES, *METADATA),
    ),
    Check(
        "synchronous",
        "--rw=write --bs=16k --size=2m --sync=1 --fallocate=none",
        (*WRITES, *METADATA),
        known={"journal": KnownReason(_LOG, 1.7)},
    ),
    Check(
        "small-files",
        "--rw=write --bs=4k --nrfiles=64 --filesize=16k --size=1m --fsync=4 "
        "--file_service_type=sequential --end_fsync=1 --fallocate=none",
        (*WRITES, *METADATA),
    ),
    Check("files-made", "-s 0 -n 1:4096:4096:2 -b", METADATA, dialect="bonnie++"),
    Check("names-made", "-s 0 -n 1:0:0:4 -b", METADATA, dialect="bonnie++"),
    Check(
        "rewritten",
        "-i 0 -s 4m -r 16k -e -c",
        (*WRITES, *METADATA),
        dialect="iozone",
        known={
            "requests": KnownReason(_STEPS, 0.25),
            "journal": KnownReason(_TICK, 8),
            "commits": KnownReason(_TICK, 2),
        },
    ),
    # Three seconds of 8 MiB each, written at 1.2 s and at 2.4 s: the flusher's first rounds in
    # which something is older than a second.
    Check(
        "left-to-age",
        "--rw=write --bs=64k --size=24m --rate=8m --fallocate=none",
        AGED,
        settings={"vm.dirty_expire_centisecs": 100, "vm.dirty_writeback_centisecs": 40},
    ),
)
"""Every workload, reads first."""
