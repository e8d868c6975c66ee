"""Measures of block traces, out of the records: one row per operation that was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal, cast

from iolab.store.rows import TracedPhase

if TYPE_CHECKING:
    from iolab.protocol import Record, StagesOfDevice

_READS, _WRITES, _DISCARDS = 0, 1, 2
"""Places of directions in the counts of a trace."""
_MOVED: Final = (_READS, _WRITES)
_ALL: Final = (_READS, _WRITES, _DISCARDS)


def traced_of(trial_id: str, record: Record) -> Iterator[TracedPhase]:
    """Rows of a trial; none if it was not recorded, or nothing reached a device."""
    told = record.get("trace")
    if told is None:
        return
    for phase in record.get("phases") or []:
        trace = phase.get("trace")
        if not trace or not trace["devices"]:
            continue
        devices = cast("Sequence[StagesOfDevice]", trace["devices"])
        begin_ns = int(phase["started_ns"])
        length_ns = int(phase.get("parent_ns") or phase["elapsed_ns"])
        tenants = phase["tenants"]
        name = str(phase["name"])
        yield TracedPhase(
            trial_id=trial_id,
            operation=name if len(tenants) == 1 else f"{name}/all",
            file=str(told.get("file", "")),
            sha256=str(told.get("sha256", "")),
            span_ns=(begin_ns, begin_ns + length_ns),
            stages=trace["stages"],
            read_bytes=_done(devices, (_READS,), "bytes"),
            write_bytes=_done(devices, (_WRITES,), "bytes"),
            requests=_done(devices, _ALL, "count"),
            transfers=_done(devices, _MOVED, "count"),
            bios=sum(
                int(way["count"])
                for one in devices
                for way in one["counts"]["queued"][: _DISCARDS + 1]
            ),
            flushes=sum(int(one["counts"]["flushes"]) for one in devices),
            sequential_share=_sequential_share(devices),
            in_flight_mean=sum(float(one["in_flight"]["mean"]) for one in devices),
            in_flight_max=max(int(one["in_flight"]["max"]) for one in devices),
            busy_share=max(float(one["in_flight"]["busy_share"]) for one in devices),
            bytes_asked=sum(
                int(worker["bytes"]) for tenant in tenants for worker in tenant["workers"]
            ),
        )


def _done(
    devices: Sequence[StagesOfDevice], directions: Sequence[int], unit: Literal["bytes", "count"]
) -> int:
    return sum(
        int(one["counts"]["completed_of"][direction][unit])
        for one in devices
        for direction in directions
    )


def _sequential_share(devices: Sequence[StagesOfDevice]) -> float | None:
    """Share of the requests that were issued where the one before ended."""
    seeks = [row for one in devices if (row := one["issue_seeks"])]
    total = sum(int(row["count"]) for row in seeks)
    if not total:
        return None
    return sum(float(row["sequential_share"]) * int(row["count"]) for row in seeks) / total
