"""Measures of block traces, out of the records: one row per operation that was recorded.

Trials whose trace lost events or ended early have no row: their amounts would be too small. Neither
has a trace whose summary is not as this program writes it: an older program, or anybody, made it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, cast

from iolab.store.rows import TracedPhase

if TYPE_CHECKING:
    from iolab.protocol import (
        PhaseRecord,
        PhaseTrace,
        Record,
        StagesOfDevice,
        StageTimes,
        TraceOfTrial,
    )

_READS, _WRITES, _DISCARDS = 0, 1, 2
"""Places of directions in the counts of a trace."""
_MOVED: Final = (_READS, _WRITES)
_ALL: Final = (_READS, _WRITES, _DISCARDS)
_COUNT_MAX: Final = 1 << 63


def traced_of(trial_id: str, record: Record) -> Iterator[TracedPhase]:
    """Rows of a trial; none if it was not recorded whole, or nothing reached a device."""
    told = record.get("trace")
    if not told:
        return
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        if told["lost"] or told["problem"] is not None:
            return
        for phase in record.get("phases") or []:
            trace = phase.get("trace")
            if trace and trace["devices"]:
                yield _row(trial_id, told, phase, trace)


def _row(trial_id: str, told: TraceOfTrial, phase: PhaseRecord, trace: PhaseTrace) -> TracedPhase:
    devices = cast("Sequence[StagesOfDevice]", trace["devices"])
    tenants, name = phase["tenants"], str(phase["name"])
    begin_ns = _count(phase["started_ns"])
    length_ns = _count(phase.get("parent_ns") or phase["elapsed_ns"])
    return TracedPhase(
        trial_id=trial_id,
        operation=name if len(tenants) == 1 else f"{name}/all",
        file=str(told.get("file", "")),
        sha256=str(told.get("sha256", "")),
        span_ns=(begin_ns, begin_ns + length_ns),
        stages={str(stage): _checked(row) for stage, row in trace["stages"].items()},
        read_bytes=_done(devices, (_READS,), "bytes"),
        write_bytes=_done(devices, (_WRITES,), "bytes"),
        requests=_done(devices, _ALL, "count"),
        transfers=_done(devices, _MOVED, "count"),
        bios=sum(
            _count(way["count"])
            for one in devices
            for way in one["counts"]["queued"][: _DISCARDS + 1]
        ),
        flushes=sum(_count(one["counts"]["flushes"]) for one in devices),
        sequential_share=_sequential_share(devices),
        in_flight_mean=sum(_amount(one["in_flight"]["mean"]) for one in devices),
        in_flight_max=max(_count(one["in_flight"]["max"]) for one in devices),
        busy_share=max(_amount(one["in_flight"]["busy_share"]) for one in devices),
        bytes_asked=sum(
            _count(worker["bytes"]) for tenant in tenants for worker in tenant["workers"]
        ),
    )


def _count(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < _COUNT_MAX:
        raise ValueError("a count is none")
    return value


def _amount(value: object) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError("an amount is none")
    return float(value)


def _checked(row: StageTimes) -> StageTimes:
    """The times of a stage, if what is drawn of them are numbers."""
    for value in (row["count"], row["sum_ns"], row["p99_ns"]):
        _count(value)
    return row


def _done(
    devices: Sequence[StagesOfDevice], directions: Sequence[int], unit: Literal["bytes", "count"]
) -> int:
    return sum(
        _count(one["counts"]["completed_of"][direction][unit])
        for one in devices
        for direction in directions
    )


def _sequential_share(devices: Sequence[StagesOfDevice]) -> float | None:
    """Share of the requests that were issued where the one before ended."""
    seeks = [row for one in devices if (row := one["issue_seeks"])]
    total = sum(_count(row["count"]) for row in seeks)
    if not total:
        return None
    return sum(_amount(row["sequential_share"]) * row["count"] for row in seeks) / total
