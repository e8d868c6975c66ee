"""Which factors cannot matter where: what is varied without effect must not look like a finding.

Left out: effects that are merely unlikely. A row stands here only if the calls that are made, or
the simulated events, are the same whatever the level. What a file looks like on the disk is such an
effect: with buffered writes, how they are made durable may decide where blocks go, so that reading
the file later counts as affected. Sources: the phases that the workload builders make
(crates/iolab-workload/src/preset/iozone.rs, layout.rs), open(2) on O_DIRECT, preadv2(2) on
RWF_DSYNC and RWF_SYNC, and the kernel's Documentation/admin-guide/sysctl/vm.rst on vm.dirty_*.
"""

from __future__ import annotations

from typing import Final

from iolab.frozen import frozen
from iolab.study.model import IozoneWorkload, Study
from iolab.study.treatment import Treatment

STREAM_TESTS: Final = frozenset({"fwrite", "frewrite", "fread", "freread"})
"""Tests through streams of the C library, which know no direct I/O."""
READING_TESTS: Final = frozenset(
    {
        "read",
        "reread",
        "random-read",
        "backward-read",
        "stride-read",
        "fread",
        "freread",
        "pread",
        "repread",
        "preadv",
    }
)
"""Tests that never write; ``mix`` does."""
_OWN_CALLS: Final = STREAM_TESTS | {"pwrite", "repwrite", "pread", "repread", "pwritev", "preadv"}
_UNAFFECTED: Final = {
    "engine": _OWN_CALLS,
    "vectors": _OWN_CALLS,
    "direct": STREAM_TESTS,
    "durability": STREAM_TESTS,
    "flags": _OWN_CALLS,
    "lock": STREAM_TESTS,
    "flush": STREAM_TESTS,
}
_NOTHING_DIRTY: Final = "direct I/O leaves no dirty pages behind"
_DIRTY_KNOBS: Final = (
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
)
PAGE_CACHE_FACTORS: Final = {
    "cache": "direct I/O does not pass the page cache",
    "read_ahead_kb": "direct I/O reads nothing ahead",
    "memory_limit": "it limits the page cache, which direct I/O does not pass",
    **dict.fromkeys(_DIRTY_KNOBS, _NOTHING_DIRTY),
}
"""Factors that only buffered files feel, and why."""
_OF_WRITES: Final = {
    "durability": "only writes are made durable",
    "fsync": "only writing phases are flushed",
    "fsync_every": "only writes are flushed",
    "flush": "only writes are flushed",
    **dict.fromkeys(_DIRTY_KNOBS, "what only reads leaves no dirty pages behind"),
}
"""Factors of writing, and why reading does not feel them."""
_FLAGS_OF_WRITES: Final = frozenset({"dsync", "sync"})
_POLLING_ENGINES: Final = frozenset({"io_uring_poll"})
_POLLING_FLAG: Final = "hipri"
_NEVER: Final = "never"
_ALL: Final = ""
"""Stands for everything that a workload of streams does."""


@frozen
class Inert:
    """Why a factor has no effect, and what to do."""

    reason: str
    hint: str


def unaffected_tests(factor: str) -> frozenset[str]:
    """IOzone's tests that make the same calls whatever the level of a factor."""
    return frozenset(_UNAFFECTED.get(factor, ()))


def inert_parts(study: Study, factor: str, treatment: Treatment) -> dict[str, Inert]:
    """Tests of a treatment that all levels of a factor leave as they are, and why.

    Streams have one part, called ``""``, because each feels what the others do.
    """
    found = dict[str, Inert]()
    for test in _tests(treatment) or (_ALL,):
        inert = _why_inert(study, factor, treatment, test)
        if inert is not None:
            found[test] = inert
    return found


def _why_inert(study: Study, factor: str, treatment: Treatment, test: str) -> Inert | None:
    is_direct = treatment.is_direct and test not in STREAM_TESTS
    if factor in PAGE_CACHE_FACTORS and is_direct:
        hint = "use --buffered (direct = false), or hold it at one level"
        return Inert(PAGE_CACHE_FACTORS[factor], hint)
    if factor == "io_poll" and not _polls(treatment):
        return Inert("only requests that ask for polling feel it", "use --engine io_uring_poll")
    if factor == "flush" and treatment.effective.get("fsync_every") == _NEVER:
        return Inert("flush is never called: fsync_every is missing", "add --fsync-every N")
    if test in unaffected_tests(factor):
        return Inert(
            "these tests have calls of their own, whatever is chosen",
            "use tests such as write, read, random-read, random-write",
        )
    reason = _reason_of_writes(study, factor)
    if reason is None or not _only_reads(treatment, test):
        return None
    # Where something else of the trial writes through the cache, blocks may lie elsewhere.
    if is_direct or not _writes(treatment):
        return Inert(reason, "use tests that write, such as write, rewrite, random-write")
    return None


def _reason_of_writes(study: Study, factor: str) -> str | None:
    if factor != "flags":
        return _OF_WRITES.get(factor)
    varied = study.factor(factor)
    used = {name for level in (varied.levels if varied else ()) for name in level.split(",")}
    if used - {"defaults"} <= _FLAGS_OF_WRITES:
        return "dsync and sync say how writes are made durable"
    return None


def _polls(treatment: Treatment) -> bool:
    """Whether a treatment may wait for completions by polling."""
    flags = {*treatment.effective.get("flags", "").split(",")}
    if not isinstance(treatment.workload, IozoneWorkload):
        flags |= {flag for stream in treatment.workload.streams for flag in stream.flags}
    return treatment.effective.get("engine") in _POLLING_ENGINES or _POLLING_FLAG in flags


def _tests(treatment: Treatment) -> tuple[str, ...]:
    workload = treatment.workload
    return workload.tests if isinstance(workload, IozoneWorkload) else ()


def _only_reads(treatment: Treatment, test: str) -> bool:
    return test in READING_TESTS if test else not _writes(treatment)


def _writes(treatment: Treatment) -> bool:
    """Whether anything in the trial writes, besides what lays its files out."""
    workload = treatment.workload
    if isinstance(workload, IozoneWorkload):
        return not READING_TESTS.issuperset(workload.tests)
    return any(stream.read_share < 1 for stream in workload.streams)
