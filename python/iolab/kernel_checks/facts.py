"""Facts of a file system's work, read from the block events of a trial.

Left out: reading the events, and comparing the facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from iolab.frozen import frozen

WINDOWS_MAX: Final = 64
"""First reads of a process that are compared."""
_SECTOR_BYTES: Final = 512
_ENTERED: Final = "Q"
_ISSUED: Final = "D"


class BlockEvent(NamedTuple):
    """One event of a trace."""

    at_ns: int
    action: str
    sector: int
    n_bytes: int
    flags: str
    process: int


Window = tuple[int, int]
"""Offset from the lowest read of its process, and length; bytes."""


@frozen
class TrialFacts:
    """Work of a file system in one trial.

    Parameters
    ----------
    windows : reads of data by process, in the order of their processes.
    requests : bytes of data by size of the request that carried them; None if the journal's writes
        cannot be told apart from them.
    extents : runs of neighbouring blocks per file; None if the file system does not tell.
    journal : bytes written to the journal or log; None if that cannot be told apart.
    commits : durable writes of it.
    """

    windows: tuple[tuple[Window, ...], ...]
    requests: Mapping[int, int] | None
    extents: float | None
    journal: int | None
    commits: int | None


def facts_of(
    events: Iterable[BlockEvent],
    span_ns: tuple[int, int],
    extents: float | None,
    *,
    has_marks: bool = True,
) -> TrialFacts:
    """Facts of the events that lie within a span.

    Writes of a journal are those that are metadata and waited for: both systems mark them so, and
    what is written back later is not waited for (Linux fs/jbd2/commit.c, fs/xfs/xfs_log.c).

    Parameters
    ----------
    span_ns : first and last time.
    extents : as told by who ran the trial.
    has_marks : whether this kernel marks the journal's writes (jbd2 since Linux 6.8).
    """
    reads = dict[int, list[Window]]()
    requests = Counter[int]()
    journal = commits = 0
    for event in events:
        if not span_ns[0] <= event.at_ns <= span_ns[1] or not event.n_bytes:
            continue
        is_metadata = "M" in event.flags
        if "R" in event.flags:
            if event.action == _ENTERED and not is_metadata:
                window = (event.sector * _SECTOR_BYTES, event.n_bytes)
                reads.setdefault(event.process, []).append(window)
            continue
        if "W" not in event.flags:
            continue
        if event.action == _ISSUED and not is_metadata:
            requests[event.n_bytes] += event.n_bytes
        if event.action == _ENTERED and is_metadata and "S" in event.flags:
            journal += event.n_bytes
            before, _, behind = event.flags.partition("W")
            commits += "F" in before and "F" in behind
    windows = tuple(_from_lowest(found) for found in reads.values())
    if not has_marks:
        return TrialFacts(windows, None, extents, None, None)
    return TrialFacts(windows, dict(requests), extents, journal, commits)


def _from_lowest(found: list[Window]) -> tuple[Window, ...]:
    lowest = min(place for place, _ in found)
    return tuple((place - lowest, length) for place, length in found[:WINDOWS_MAX])
