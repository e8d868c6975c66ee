"""What a trial will cost, guessed before anything ran.

Bytes are exact for workloads that visit every record once and upper guesses for those that run for
a fixed time. Durations assume one modest device and are replaced by observed times as soon as
there are any; they only give a first ETA and warn of studies that cannot fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iolab import units
from iolab.study.model import IozoneWorkload, MixedWorkload
from iolab.study.treatment import Treatment

ASSUMED_BYTES_PER_S: Final = 200_000_000
ASSUMED_SLOWEST_BYTES_PER_S: Final = 2_000_000
TRIAL_OVERHEAD_NS: Final = 1_000_000_000
MIN_TIME_LIMIT_NS: Final = 600_000_000_000
_WRITING_TESTS: Final = frozenset(
    {
        "write",
        "rewrite",
        "random-write",
        "record-rewrite",
        "fwrite",
        "frewrite",
        "mix",
        "pwrite",
        "repwrite",
        "pwritev",
    }
)
_CREATING_TESTS: Final = frozenset({"write", "fwrite", "pwrite", "pwritev"})


@dataclass(frozen=True, slots=True)
class Cost:
    """Guessed cost of one trial, or of several added up."""

    written_bytes: int
    moved_bytes: int
    file_bytes: int
    """Space its files take at the same time."""
    duration_ns: int


def cost_of(treatment: Treatment) -> Cost:
    """Cost of one trial of `treatment`."""
    workload = treatment.workload
    if isinstance(workload, IozoneWorkload):
        return _iozone_cost(workload, treatment.effective)
    return _mixed_cost(workload)


def ops_of(treatment: Treatment) -> int | None:
    """Operations of the tests of one trial; None if it ends by the clock."""
    workload = treatment.workload
    if not isinstance(workload, IozoneWorkload):
        return None
    effective = treatment.effective
    file_bytes = units.parse_bytes(effective["file_size"]) * int(effective["workers"])
    record_bytes = units.parse_bytes(effective["record_size"])
    return len(workload.tests) * -(-file_bytes // record_bytes)


def time_limit_ns(treatment: Treatment) -> int:
    """After how long a trial is given up: far beyond any honest device, at least ten minutes."""
    cost = cost_of(treatment)
    slowest_ns = cost.moved_bytes * 1_000_000_000 // ASSUMED_SLOWEST_BYTES_PER_S
    return max(MIN_TIME_LIMIT_NS, slowest_ns, 4 * cost.duration_ns)


def _iozone_cost(workload: IozoneWorkload, effective: dict[str, str]) -> Cost:
    file_bytes = units.parse_bytes(effective["file_size"]) * int(effective["workers"])
    n_writes = sum(test in _WRITING_TESTS for test in workload.tests)
    n_layouts = 0 if workload.tests[0] in _CREATING_TESTS else 1
    moved = file_bytes * (len(workload.tests) + n_layouts)
    return Cost(
        written_bytes=file_bytes * (n_writes + n_layouts),
        moved_bytes=moved,
        file_bytes=file_bytes,
        duration_ns=TRIAL_OVERHEAD_NS + moved * 1_000_000_000 // ASSUMED_BYTES_PER_S,
    )


def _mixed_cost(workload: MixedWorkload) -> Cost:
    file_bytes = sum(stream.file_bytes * stream.workers for stream in workload.streams)
    is_writing = any(stream.read_share < 1 for stream in workload.streams)
    timed = ASSUMED_BYTES_PER_S * workload.duration_ns // 1_000_000_000
    layout_ns = file_bytes * 1_000_000_000 // ASSUMED_BYTES_PER_S
    return Cost(
        written_bytes=file_bytes + (timed if is_writing else 0),
        moved_bytes=file_bytes + timed,
        file_bytes=file_bytes,
        duration_ns=TRIAL_OVERHEAD_NS + layout_ns + workload.duration_ns,
    )
