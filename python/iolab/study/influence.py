"""Which factors cannot matter where: what is varied without effect must not look like a finding.

Left out: effects that are merely unlikely. A row stands here only if the calls that are made, or
the simulated events, are the same whatever the level. Sources: the phases that the workload
builders make (crates/iolab-workload/src/preset/iozone.rs) and open(2) on O_DIRECT.
"""

from __future__ import annotations

from typing import Final

STREAM_TESTS: Final = frozenset({"fwrite", "frewrite", "fread", "freread"})
"""Tests through streams of the C library, which know no direct I/O."""
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
PAGE_CACHE_FACTORS: Final = {
    "cache": "direct I/O does not pass the page cache",
    "read_ahead_kb": "direct I/O reads nothing ahead",
}
"""Factors that only buffered files feel, and why."""
NOT_SIMULATED: Final = {
    "engine": "all engines submit alike",
    "workers_as": "threads and processes are alike",
    "lock": "locks cost nothing",
    "vectors": "parts of a record cost nothing",
    "preallocate": "there is no file system that would allocate",
    "wbt_lat_usec": "files are direct, and write-back throttling holds back buffered writes only",
}
"""Factors that a simulation accepts at one level, and why several levels would be equal."""


def unaffected_tests(factor: str) -> frozenset[str]:
    """IOzone's tests that make the same calls whatever the level of a factor."""
    return frozenset(_UNAFFECTED.get(factor, ()))
