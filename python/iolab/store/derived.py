"""Values that `iolab.run.record` derives from one record, in the shape of the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen
from iolab.store.rows import Caveat, Nature, TrialStatus

if TYPE_CHECKING:
    from iolab.protocol import Record

PAGE_CACHE_SHARE: Final = 0.5
"""From this share of bytes on a cell is labelled "page cache" (most bytes came from there)."""
FLUSH_BOUND: Final = "flush_bound"
"""Code of the note of operations that wait for flushes most of the time."""
FLUSH_BOUND_SHARE: Final = 0.5


@frozen
class PhaseRow:
    """One operation of one trial: a phase, or one stream of a phase, or all streams together."""

    operation: str
    elapsed_ns: int | None
    cache_share: float | None
    harness_ns_per_op: float | None
    cpu_user_ns: int | None
    cpu_system_ns: int | None
    device_read_bytes: int | None
    device_write_bytes: int | None
    device_flushed_write_bytes: int | None
    depth_reached_mean: float | None
    workers: list[dict[str, int]]
    caveats: tuple[Caveat, ...]
    metrics: dict[str, float]
    nature: Nature = Nature()
    """Of an imported table nothing may be known."""


@frozen
class SeriesPart:
    """Throughput over time of one operation."""

    operation: str
    interval_ns: int
    ops: tuple[int, ...]
    bytes: tuple[int, ...]
    latency_ns_max: tuple[int, ...]


@frozen
class DerivedRecord:
    """One record, understood; ``phases`` and ``series`` are empty unless ``status`` is ok."""

    status: TrialStatus
    started_at_unix_ns: int
    elapsed_ns: int
    error: str | None
    caveats: tuple[Caveat, ...]
    facts: dict[str, str]
    phases: tuple[PhaseRow, ...] = ()
    series: tuple[SeriesPart, ...] = ()
    record: Record | None = None
    """The record as it came, to be kept whole; None: see ``source``."""
    source: Mapping[str, object] = field(default_factory=dict[str, object])
    """Source that is kept in place of a record: the rows of an imported table."""
