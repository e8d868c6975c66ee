"""Cost of a trial, guessed before anything ran.

Bytes are exact for workloads that visit every record once, upper bounds for streams that a rate,
a limit, a pause or a number of operations holds back, and guesses for those that write as fast as
they can for a fixed time: these depend on the device's speed, and `Cost.is_bound` says so.
Durations assume one modest device and are replaced by observed times as soon as there are any;
they only give a first ETA and warn of studies that cannot fit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.frozen import frozen
from iolab.study.demand import DiskDemand
from iolab.study.model import (
    DialectRow,
    DialectWorkload,
    IozoneWorkload,
    MixedWorkload,
    Stream,
)
from iolab.study.names import TESTS
from iolab.study.operations import operations_of
from iolab.study.treatment import Treatment

if TYPE_CHECKING:
    from iolab.protocol import Tenant

ASSUMED_BYTES_PER_S: Final = 200_000_000
ASSUMED_DIRECT_OP_NS: Final = 100_000
"""Time of an operation that goes past the page cache, of whoever has one under way at a time."""
ASSUMED_SLOWEST_BYTES_PER_S: Final = 2_000_000
TRIAL_OVERHEAD_NS: Final = 1_000_000_000
MIN_TIME_LIMIT_NS: Final = 600_000_000_000
_NS_PER_S: Final = 1_000_000_000
_LIMIT_SLACK_S: Final = 1.0
"""A control group's limit lets a burst pass; this much of it is plenty."""
_CREATING_TESTS: Final = frozenset(test.name for test in TESTS if test.creates)


@frozen
class Cost:
    """Guessed cost of one trial, or of several added up."""

    written_bytes: int
    moved_bytes: int
    file_bytes: int
    """Space its files take at the same time."""
    duration_ns: int
    is_bound: bool = True
    """True if no device, however fast, is made to write more data than that."""
    is_file_bound: bool = True
    """True if files never take more; else they grow as long as the clock lets them."""


def cost_of(treatment: Treatment) -> Cost:
    """Cost of one trial of `treatment`."""
    workload = treatment.workload
    if isinstance(workload, IozoneWorkload):
        return _iozone_cost(workload, treatment.effective, is_direct=treatment.is_direct)
    if treatment.row is not None:
        return _row_cost(treatment.row)
    if isinstance(workload, DialectWorkload):
        raise AssertionError(f"{treatment.name} has no row")
    return _mixed_cost(workload, is_direct=treatment.is_direct)


def ops_of(treatment: Treatment) -> int | None:
    """Operations of the tests of one trial; None if it ends by the clock."""
    workload = treatment.workload
    if treatment.row is not None:
        return _row_ops(treatment.row)
    if not isinstance(workload, IozoneWorkload):
        return None
    effective = treatment.effective
    file_bytes = units.parse_bytes(effective["file_size"]) * int(effective["workers"])
    record_bytes = units.parse_bytes(effective["record_size"])
    return len(workload.tests) * -(-file_bytes // record_bytes)


def time_limit_ns(treatment: Treatment) -> int:
    """After how long a trial is given up: far beyond any honest device, at least ten minutes."""
    cost = cost_of(treatment)
    slowest_ns = cost.moved_bytes * _NS_PER_S // ASSUMED_SLOWEST_BYTES_PER_S
    return max(MIN_TIME_LIMIT_NS, slowest_ns, 4 * cost.duration_ns)


def _iozone_cost(workload: IozoneWorkload, effective: dict[str, str], *, is_direct: bool) -> Cost:
    file_bytes = units.parse_bytes(effective["file_size"]) * int(effective["workers"])
    n_writes = sum(operation.writes for operation in operations_of(workload))
    n_layouts = 0 if workload.tests[0] in _CREATING_TESTS else 1
    moved = file_bytes * (len(workload.tests) + n_layouts)
    moving_ns = moved * _NS_PER_S // ASSUMED_BYTES_PER_S
    if is_direct:
        record_bytes = max(1, units.parse_bytes(effective["record_size"]))
        ops = units.parse_bytes(effective["file_size"]) // record_bytes * len(workload.tests)
        moving_ns = max(moving_ns, ops * ASSUMED_DIRECT_OP_NS // max(1, int(effective["depth"])))
    return Cost(
        written_bytes=file_bytes * (n_writes + n_layouts),
        moved_bytes=moved,
        file_bytes=file_bytes,
        duration_ns=TRIAL_OVERHEAD_NS + moving_ns,
    )


def _row_cost(row: DialectRow) -> Cost:
    """Cost of what a dialect measures at once, from its description."""
    written = moved = duration_ns = 0
    files: dict[str, int] = {}
    streams = [tenant for tenant in row.tenants if not tenant.get("program")]
    for tenant in streams:
        once = _file_bytes(tenant) * tenant["workers"]
        name = tenant["file"]
        space = _file_bytes(tenant) if tenant["is_file_shared"] else once
        files[name] = max(files.get(name, 0), space)
        limit = tenant["limit"]
        passed = once
        if limit["kind"] == "time":
            duration_ns += limit["duration_ns"]
            passed = ASSUMED_BYTES_PER_S * limit["duration_ns"] // _NS_PER_S
        elif limit["kind"] == "ops":
            passed = limit["ops"] * tenant["io_size_bytes"] * tenant["workers"]
        moved += passed
        if tenant["direction"]["kind"] != "read":
            written += passed
    # A first phase that reads lays its files out.
    if streams and streams[0]["opening"] != "create":
        written += sum(files.values())
        moved += sum(files.values())
    cost = Cost(
        written_bytes=written,
        moved_bytes=moved,
        file_bytes=sum(files.values()),
        duration_ns=TRIAL_OVERHEAD_NS + duration_ns + moved * _NS_PER_S // ASSUMED_BYTES_PER_S,
    )
    return cost if row.demand is None else _with_programs(cost, row.demand)


def _with_programs(streamed: Cost, demand: DiskDemand) -> Cost:
    """Cost of streams and of programs beside them."""
    in_time = ASSUMED_BYTES_PER_S * demand.time_ns // _NS_PER_S
    written, moved = (
        in_time if most is None else most for most in (demand.written_bytes, demand.moved_bytes)
    )
    laid_ns = demand.laid_bytes * _NS_PER_S // ASSUMED_BYTES_PER_S
    moved_ns = moved * _NS_PER_S // ASSUMED_BYTES_PER_S
    return Cost(
        written_bytes=streamed.written_bytes + demand.laid_bytes + written,
        moved_bytes=streamed.moved_bytes + demand.laid_bytes + moved,
        file_bytes=streamed.file_bytes + demand.file_bytes,
        duration_ns=streamed.duration_ns
        + laid_ns
        + (min(demand.time_ns, moved_ns) if demand.time_ns else moved_ns),
        is_bound=streamed.is_bound and demand.written_bytes is not None,
        is_file_bound=demand.is_file_bound,
    )


def _file_bytes(tenant: Tenant) -> int:
    """Bytes of one worker's files."""
    many = tenant.get("file_set")
    if many is not None:
        return max(1, many["files"]) * many["size_max_bytes"]
    return tenant["file_bytes"]


def space_text(cost: Cost) -> str:
    """Space that its files take, in words."""
    size = units.format_bytes_rounded(cost.file_bytes)
    if cost.is_file_bound:
        return f"files take {size} at most"
    return f"files take {size}, and what they grow by until the time is over"


def _row_ops(row: DialectRow) -> int | None:
    """Operations of a row; None if some end in another way than by passing over a file."""
    total = 0
    for tenant in row.tenants:
        size = tenant["io_size_bytes"]
        has_steps = tenant.get("file_set") or tenant.get("program")
        if tenant["limit"]["kind"] != "once" or has_steps or not size:
            return None
        total += -(-tenant["file_bytes"] // size) * tenant["workers"]
    return total


def _mixed_cost(workload: MixedWorkload, *, is_direct: bool) -> Cost:
    file_bytes = sum(stream.file_bytes * stream.workers for stream in workload.streams)
    layout_ns = file_bytes * _NS_PER_S // ASSUMED_BYTES_PER_S
    held_bytes, free_ns = 0.0, 0.0
    for stream in workload.streams:
        as_fast_as_it_can_ns = _window_ns(stream, workload) * (1 - stream.read_share)
        most = _written_at_most(stream, workload, is_direct=is_direct)
        if most <= as_fast_as_it_can_ns * ASSUMED_BYTES_PER_S / _NS_PER_S:
            held_bytes += most
        else:
            free_ns += as_fast_as_it_can_ns
    # Streams that write as fast as they can share one device.
    free_bytes = min(free_ns, workload.duration_ns) * ASSUMED_BYTES_PER_S / _NS_PER_S
    return Cost(
        written_bytes=file_bytes + math.ceil(held_bytes + free_bytes),
        moved_bytes=file_bytes + ASSUMED_BYTES_PER_S * workload.duration_ns // _NS_PER_S,
        file_bytes=file_bytes,
        duration_ns=TRIAL_OVERHEAD_NS + layout_ns + workload.duration_ns,
        is_bound=free_ns == 0,
    )


def _window_ns(stream: Stream, workload: MixedWorkload) -> int:
    """Time that a stream runs."""
    end = workload.duration_ns if stream.ends_ns is None else stream.ends_ns
    return max(0, min(end, workload.duration_ns) - stream.begins_ns)


def _written_at_most(stream: Stream, workload: MixedWorkload, *, is_direct: bool) -> float:
    """Bytes that a stream may write by its own words; infinite if it may as many as it can."""
    if stream.read_share >= 1:
        return 0.0
    window_s = _window_ns(stream, workload) / _NS_PER_S
    # What goes through the page cache is written by the kernel, and may escape the group's limits.
    limits = dict(stream.limits) if is_direct else {}
    each = [math.inf if stream.ops is None else float(stream.ops)]
    if stream.rate_ops_per_s is not None:
        each.append(math.ceil(stream.rate_ops_per_s * window_s) + 1)
    if stream.think_ns:
        each.append(stream.depth * (window_s * _NS_PER_S / stream.think_ns + 1))
    ops = min(each) * stream.workers
    writes = ops * (1 - stream.read_share)
    if math.isfinite(ops):
        # Which operation reads is drawn: four standard deviations above the mean, not above all.
        writes = min(ops, writes + 4 * math.sqrt(writes * stream.read_share))
    if "max_write_iops" in limits:
        writes = min(writes, limits["max_write_iops"] * (window_s + _LIMIT_SLACK_S))
    most = writes * stream.io_size_bytes
    if "max_write" in limits:
        most = min(most, limits["max_write"] * (window_s + _LIMIT_SLACK_S))
    return most
