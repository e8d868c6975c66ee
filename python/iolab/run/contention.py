"""From a record to what competing streams are judged by: fairness, waiting, stalls, completion.

Jain's index of n values is (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything
(R. Jain, D. Chiu, W. Hawe, *A Quantitative Measure of Fairness and Discrimination for Resource
Allocation in Shared Computer Systems*, DEC-TR-301, 1984). Left out: quantiles, which every
operation has (`iolab.run.record`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Final

from iolab.store.rows import Caveat
from iolab.study.model import MixedWorkload, WorkloadPlan

if TYPE_CHECKING:
    from iolab.protocol import PhaseRecord, StreamReport, TenantOutcome

STALL: Final = 0.1
"""A slice of time below this part of a stream's own median slice is a stall."""
SLICES_MIN: Final = 5
"""Fewer slices have no median worth comparing with."""

OPS_PER_SLICE: Final = 10
"""With fewer on average, an empty slice is no news."""
MISSED_SHARE_MAX: Final = 0.01
"""Missed operations up to this share are those that were due in the last moment."""

Grants = Mapping[str, tuple[object, ...]]
"""Grants of each stream beside its work: weight, priority, limits."""


def grants_of(workload: WorkloadPlan) -> Grants:
    """Properties that make streams unequal that do the same; a record tells only their shares."""
    if not isinstance(workload, MixedWorkload):
        return {}
    return {
        stream.name: (stream.cgroup_weight, stream.priority, *sorted(stream.limits))
        for stream in workload.streams
    }


def contention_metrics(
    phase: PhaseRecord,
    tenants: Sequence[TenantOutcome],
    *,
    is_total: bool = False,
    grants: Grants | None = None,
) -> dict[str, float]:
    """Metrics of one stream, or (`is_total`) of what is between streams."""
    if is_total:
        return _between_streams(tenants, grants or {})
    tenant = tenants[0]
    found = dict[str, float]()
    workers = tenant["workers"]
    if len(workers) > 1:
        found |= _known("fairness_jain", jain([_rate(worker) for worker in workers]))
    found |= _waiting(phase, workers)
    found |= _known("on_time_share", on_time_share(workers))
    found |= _known("flowing_time_share", flowing_share(tenant))
    if tenant.get("asked_ops"):
        found["completion_ns"] = float(max(_lasted(phase, worker) for worker in workers))
    return found


def on_time_share(workers: Sequence[StreamReport]) -> float | None:
    """Share of the operations due that ended within a period; None without a rate.

    Those that were due and not even begun when the time was over are not on time.
    """
    if any(worker.get("late_ops") is None for worker in workers):
        return None
    missed = sum(int(worker.get("missed_ops") or 0) for worker in workers)
    due = sum(int(worker["ops"]) for worker in workers) + missed
    late = sum(int(worker["late_ops"] or 0) for worker in workers) + missed
    return 1 - late / due if due else None


def behind_its_rate(operation: str, tenant: TenantOutcome) -> tuple[Caveat, ...]:
    """Caveat of a stream that could not follow its rate."""
    missed = sum(int(worker.get("missed_ops") or 0) for worker in tenant["workers"])
    due = sum(int(worker["ops"]) for worker in tenant["workers"]) + missed
    if missed <= MISSED_SHARE_MAX * due:
        return ()
    return (
        Caveat(
            "rate_missed",
            f"{operation} could not follow its rate: {missed} of {due} operations were due and not "
            "begun when its time was over",
            "they count as late, and its response times hold the least that they waited; its "
            "throughput is what it reached",
        ),
    )


def cut_off(operation: str, tenant: TenantOutcome) -> tuple[Caveat, ...]:
    """Caveat of a stream that was cut off before its operations were done."""
    asked = tenant.get("asked_ops")
    done = min((int(worker["ops"]) for worker in tenant["workers"]), default=0)
    if not asked or done >= asked:
        return ()
    return (
        Caveat(
            "cut_off",
            f"{operation} was cut off after {done} of {asked} operations: its time to completion "
            "is longer than shown",
            "let the workload run longer, or give the stream fewer operations",
        ),
    )


def jain(values: Sequence[float]) -> float | None:
    """Jain's index; None if nobody has anything."""
    squares = sum(value * value for value in values)
    return None if squares == 0 else sum(values) ** 2 / (len(values) * squares)


def flowing_share(tenant: TenantOutcome) -> float | None:
    """Share of whole slices that are no stalls; None if there are too few.

    A series ends with the last operation: silence after it, to the end of the stream's own time,
    counts as slices without any. Slices are made so long that an average one holds
    `OPS_PER_SLICE` operations: a stream that does something twice a second does not stall between.
    """
    series = tenant.get("series")
    if not series:
        return None
    lasted = max((int(worker["elapsed_ns"]) for worker in tenant["workers"]), default=0)
    count = lasted // int(series["interval_ns"])
    if count < SLICES_MIN:
        return None
    slices = [int(moved) for moved in series["bytes"][:count]]
    slices += [0] * (count - len(slices))
    ops = sum(int(worker["ops"]) for worker in tenant["workers"])
    width = max(1, ceil(OPS_PER_SLICE * count / ops)) if ops else count
    slices = [sum(slices[at : at + width]) for at in range(0, count - width + 1, width)]
    count = len(slices)
    if count < SLICES_MIN:
        return None
    from statistics import median

    limit = STALL * median(slices)
    return sum(moved > 0 and moved >= limit for moved in slices) / count


def _between_streams(tenants: Sequence[TenantOutcome], grants: Grants) -> dict[str, float]:
    """Fairness among streams that do the same; of several such groups the least fair.

    Streams with other weights, priorities or limits are no equals. Against their promises they are
    compared only if their limits are the same: a limit is no promise.
    """
    groups: dict[int, list[TenantOutcome]] = {}
    for index, tenant in enumerate(tenants):
        groups.setdefault(int(tenant.get("alike", index)), []).append(tenant)
    plain = list[float | None]()
    promised = list[float | None]()
    for members in groups.values():
        if len(members) < 2:
            continue
        rates = [[_rate(worker) for worker in tenant["workers"]] for tenant in members]
        shares = [tenant.get("share") for tenant in members]
        granted = {grants.get(str(tenant["name"]), ()) for tenant in members}
        if len(set(shares)) == 1 == len(granted):  # Who was promised more is no equal.
            plain.append(jain([rate for found in rates for rate in found]))
        if None not in shares and len({grant[2:] for grant in granted}) == 1:
            promised.append(
                jain([sum(found) / float(s or 1) for found, s in zip(rates, shares, strict=True)])
            )
    return _known("fairness_jain", _least(plain)) | _known("fairness_jain_shares", _least(promised))


def _waiting(phase: PhaseRecord, workers: Sequence[StreamReport]) -> dict[str, float]:
    """Longest gap of any worker; of one that finished nothing, all its time."""
    if any("gap_ns_max" not in worker for worker in workers):
        return {}
    gaps = [
        int(worker["gap_ns_max"]) if worker["ops"] else int(phase["elapsed_ns"])
        for worker in workers
    ]
    return {"gap_ns_max": float(max(gaps))} if gaps and max(gaps) > 0 else {}


def _rate(worker: StreamReport) -> float:
    elapsed = int(worker["elapsed_ns"])
    return int(worker["bytes"]) / elapsed if elapsed > 0 else 0.0


def _lasted(phase: PhaseRecord, worker: StreamReport) -> int:
    return int(worker["elapsed_ns"]) or int(phase["elapsed_ns"])


def _least(values: Sequence[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _known(name: str, value: float | None) -> dict[str, float]:
    return {} if value is None else {name: value}
