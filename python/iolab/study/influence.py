"""Factors that cannot matter in some cells: what is varied without effect must not look like a
finding.

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
from iolab.study.model import MixedWorkload, Study, WorkloadPlan
from iolab.study.names import ENGINES
from iolab.study.operations import Operation, operations_of_treatment
from iolab.study.treatment import Treatment

_OF_CHOSEN_CALLS: Final = frozenset({"engine", "vectors", "flags"})
"""Factors that operations with calls of their own do not feel."""
_NOT_OF_STREAMS: Final = frozenset({"direct", "durability", "lock", "flush"})
"""Factors that streams of the C library do not feel."""
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
_POLLING_ENGINES: Final = frozenset(engine.name for engine in ENGINES if engine.is_polled)
_POLLING_FLAG: Final = "hipri"
NEVER: Final = "never"
_ALL: Final = ""
"""Stands for everything that a workload of streams does."""
_TRANSFERS: Final = frozenset({"read", "write", "mixed", "update"})


@frozen
class Inert:
    """Reason why a factor has no effect, and advice."""

    reason: str
    hint: str


def inert_parts(study: Study, factor: str, treatment: Treatment) -> dict[str, Inert]:
    """Tests of a treatment that all levels of a factor leave as they are, and why.

    Streams have one part, called ``""``, because each feels what the others do.
    """
    found = dict[str, Inert]()
    everything = operations_of_treatment(treatment)
    for name, operations in _parts(treatment.workload, everything):
        inert = _why_inert(study, factor, treatment, operations)
        if inert is not None:
            found[name] = inert
    return found


def parts_of(treatment: Treatment) -> tuple[str, ...]:
    """Names of what feels a factor one by one; ``""`` of all streams of a workload."""
    parts = _parts(treatment.workload, operations_of_treatment(treatment))
    return tuple(name for name, _ in parts)


def _parts(
    workload: WorkloadPlan, everything: tuple[Operation, ...]
) -> list[tuple[str, tuple[Operation, ...]]]:
    """Operations that feel a factor together: one by one, or all streams of a workload."""
    if isinstance(workload, MixedWorkload):
        return [(_ALL, everything)]
    return [(operation.id, (operation,)) for operation in everything]


def _why_inert(
    study: Study, factor: str, treatment: Treatment, operations: tuple[Operation, ...]
) -> Inert | None:
    is_direct = all(operation.access == "direct" for operation in operations)
    if factor in PAGE_CACHE_FACTORS and is_direct:
        hint = "use --buffered (direct = false), or hold it at one level"
        return Inert(PAGE_CACHE_FACTORS[factor], hint)
    if factor == "io_poll" and not _polls(treatment):
        return Inert("only requests that ask for polling feel it", "use --engine io_uring_poll")
    if factor == "flush" and treatment.effective.get("fsync_every") == NEVER:
        return Inert("flush is never called: fsync_every is missing", "add --fsync-every N")
    if all(_is_unaffected(operation, factor) for operation in operations):
        return Inert(
            "these tests have calls of their own, whatever is chosen",
            "use tests such as write, read, random-read, random-write",
        )
    reason = _reason_of_writes(study, factor)
    if reason is None or not all(_only_reads(operation) for operation in operations):
        return None
    # Where something else of the trial writes through the cache, blocks may lie elsewhere.
    if is_direct or not any(one.writes for one in operations_of_treatment(treatment)):
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
    """Tell whether a treatment may wait for completions by polling."""
    flags = {*treatment.effective.get("flags", "").split(",")}
    if isinstance(treatment.workload, MixedWorkload):
        flags |= {flag for stream in treatment.workload.streams for flag in stream.flags}
    return treatment.effective.get("engine") in _POLLING_ENGINES or _POLLING_FLAG in flags


def _is_unaffected(operation: Operation, factor: str) -> bool:
    """Tell whether an operation makes the same calls whatever the level of a factor."""
    is_stream = operation.access == "stdio" and operation.has_own_calls
    return (factor in _OF_CHOSEN_CALLS and operation.has_own_calls) or (
        factor in _NOT_OF_STREAMS and is_stream
    )


def _only_reads(operation: Operation) -> bool:
    return operation.kind in _TRANSFERS and not operation.writes
