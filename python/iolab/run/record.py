"""From the record of a trial to measurements.

Throughput is what one worker moved in its own timed region; with several workers it is the sum of
their rates (IOzone's "children see"). Latencies come from the merged histograms of reads and
writes; a quantile is given only if enough operations lie beyond it. The share served by the page
cache is what the system calls moved and the devices did not.

Left out: simulation; statistics over trials, which begin in `iolab.stats`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, get_args

from iolab.errors import TestbedError
from iolab.frozen import replace
from iolab.json_text import write_json
from iolab.run.contention import Grants, behind_its_rate, contention_metrics, cut_off
from iolab.run.core import Core
from iolab.run.key_values import key_value_metrics
from iolab.run.traces import block_metrics, stage_metrics
from iolab.store.derived import (
    FLUSH_BOUND,
    FLUSH_BOUND_SHARE,
    DerivedRecord,
    PhaseRow,
    SeriesPart,
)
from iolab.store.rows import Caveat, Nature, TrialStatus

if TYPE_CHECKING:
    from iolab import protocol
    from iolab.protocol import (
        ClassHistograms,
        DeviceRecord,
        Histogram,
        OperationCount,
        PhaseRecord,
        Record,
        StreamReport,
        TenantOutcome,
    )

NS_PER_S: Final = 1e9
QUANTILES: Final = (("p50", 0.5, 1), ("p90", 0.9, 10), ("p99", 0.99, 1000), ("p999", 0.999, 10_000))
"""Name, quantile, and the operations needed: for the tails so many that ten lie beyond it. With
fewer a quantile depends on how many operations there were: of 100 against 150 of one distribution
p99 differs "significantly" in one comparison of seven."""
TIMED_QUANTILE: Final = 0.99
TIMED_MIN: Final = 100

FLUSH_METRICS: Final = (
    "flush_ns_p50",
    "flush_ns_p99",
    "flush_ns_max",
)
"""Quantiles of the flushes that are metrics."""


def derive(record: Record, core: Core, grants: Grants | None = None) -> DerivedRecord:
    """Everything that the tables of the store want to know about `record`.

    `grants` are those of the trial's streams (`iolab.run.contention.grants_of`).

    Raises
    ------
    TestbedError : the record is not what the agent protocol promises.
    """
    try:
        return _derive(record, core, grants or {})
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise TestbedError(
            f"the record of {record.get('trial', 'a trial')} cannot be understood "
            f"({type(error).__name__}: {error})",
            "install the agent and this program from the same version",
        ) from error


def failed_record(trial_id: str, message: str, *, started_at_unix_ns: int) -> Record:
    """Record of a trial that left none because its request failed."""
    return {
        "trial": trial_id,
        "status": "failed",
        "error": message,
        "started_at_unix_ns": started_at_unix_ns,
        "elapsed_ns": 0,
        "engine": "",
        "knobs": {},
        "stack": None,
        "facts": {},
        "warnings": [],
        "actions": [],
        "phases": [],
    }


def _derive(record: Record, core: Core, grants: Grants) -> DerivedRecord:
    status = record["status"]
    if status == "dry_run" or status not in get_args(TrialStatus):
        raise ValueError(f"status '{status}'")
    phases = list[PhaseRow]()
    series = list[SeriesPart]()
    measured = record["phases"] if status == "ok" else []
    for phase in measured:
        phases.extend(_operations(phase, core, grants))
        series.extend(_series(phase))
    return DerivedRecord(
        status=status,
        started_at_unix_ns=int(record["started_at_unix_ns"]),
        elapsed_ns=int(record["elapsed_ns"]),
        error=_error_text(record.get("error")),
        caveats=caveats_of(record.get("warnings", [])),
        facts={str(name): str(value) for name, value in record.get("facts", {}).items()},
        phases=tuple(phases),
        series=tuple(series),
        record=record,
    )


def caveats_of(warnings: Sequence[protocol.Warning]) -> tuple[Caveat, ...]:
    """Typed caveats from the protocol's warnings."""
    return tuple(
        Caveat(str(item["code"]), str(item["message"]), str(item.get("hint") or ""))
        for item in warnings
    )


def _error_text(error: object) -> str | None:
    if error is None:
        return None
    if isinstance(error, Mapping):
        fields: Mapping[str, object] = error  # pyright: ignore[reportUnknownVariableType]
        parts = (str(fields.get("message", fields)), str(fields.get("hint") or ""))
        return ": ".join(part for part in parts if part)
    return str(error)


def _operations(phase: PhaseRecord, core: Core, grants: Grants) -> list[PhaseRow]:
    """Rows of one phase: its only tenant, or each tenant and all of them together."""
    tenants = phase["tenants"]
    if len(tenants) == 1:
        whole = _operation(phase, phase["name"], tenants, core)
        return [
            whole,
            *_segments(phase, tenants[0], whole, core),
            *_steps(tenants[0], whole, core),
        ]
    rows = [
        _operation(phase, f"{phase['name']}/{tenant['name']}", [tenant], core) for tenant in tenants
    ]
    total = _operation(phase, f"{phase['name']}/all", tenants, core, grants)
    parts = [
        part
        for tenant, whole in zip(tenants, rows, strict=True)
        for part in (*_segments(phase, tenant, whole, core), *_steps(tenant, whole, core))
    ]
    return [*rows, total, *parts]


def _steps(tenant: TenantOutcome, whole: PhaseRow, core: Core) -> list[PhaseRow]:
    """Rows of the operations of a tenant's program, each by the user's word for it."""
    seconds = _length_ns(tenant) / NS_PER_S
    rows = list[PhaseRow]()
    for step in tenant.get("operations") or []:
        metrics = _quantiles([step["latency"]], "latency_ns", core)
        metrics |= _quantiles([step.get("response")], "response_ns", core)
        if seconds > 0 and step["ops"]:
            metrics["throughput_ops_per_s"] = step["ops"] / seconds
            if step["bytes"]:
                metrics["throughput_bytes_per_s"] = step["bytes"] / seconds
        rows.append(
            replace(
                whole,
                operation=f"{whole.operation}/{step['id']}",
                nature=_nature(step),
                workers=[],
                caveats=tuple(caveat for caveat in whole.caveats if caveat.code == FLUSH_BOUND),
                metrics=metrics,
            )
        )
    return rows


def _nature(about: PhaseRecord | TenantOutcome | OperationCount) -> Nature:
    return Nature(about.get("kind"), about.get("access"), about.get("io_size_bytes"))


def _segments(
    phase: PhaseRecord, tenant: TenantOutcome, whole: PhaseRow, core: Core
) -> list[PhaseRow]:
    """Rows of what a stream did between two changes of a knob, each with its own histogram."""
    rows = list[PhaseRow]()
    for segment in tenant.get("segments") or []:
        began = int(tenant.get("began_ns") or 0)
        end = min(began + _length_ns(tenant), segment["to_ns"] or 1 << 63)
        seconds = (end - max(began, segment["from_ns"])) / NS_PER_S
        metrics = _quantiles(_transfers(segment["service"]), "latency_ns", core)
        if seconds > 0 and segment["ops"]:
            metrics["throughput_bytes_per_s"] = segment["bytes"] / seconds
            metrics["throughput_ops_per_s"] = segment["ops"] / seconds
        name = segment_name(whole.operation, segment["from_ns"], segment["to_ns"])
        rows.append(replace(whole, operation=name, workers=[], caveats=(), metrics=metrics))
    return rows


def segment_name(operation: str, from_ns: int, to_ns: int | None) -> str:
    """Name of what an operation did between two instants: ``mixed/reader@0-5s``."""
    end = "" if to_ns is None else f"{to_ns / NS_PER_S:g}"
    return f"{operation}@{from_ns / NS_PER_S:g}-{end}s"


def _length_ns(tenant: TenantOutcome) -> int:
    return max((int(worker["elapsed_ns"]) for worker in tenant["workers"]), default=0)


def _operation(
    phase: PhaseRecord,
    operation: str,
    tenants: Sequence[TenantOutcome],
    core: Core,
    grants: Grants | None = None,
) -> PhaseRow:
    """Row of one stream; with `grants` that of all streams of the phase together."""
    is_total = grants is not None
    workers = [worker for tenant in tenants for worker in tenant["workers"]]
    metrics = _rates(tenants) | _running_share(workers)
    if not is_total:
        metrics |= _slice_rates(tenants[0])
    metrics |= contention_metrics(phase, tenants, is_total=is_total, grants=grants)
    if not is_total:  # Latencies of unlike streams have no common meaning.
        metrics |= _quantiles(_transfers(tenants[0].get("service")), "latency_ns", core)
        metrics |= _quantiles(_transfers(tenants[0].get("response")), "response_ns", core)
        metrics |= _flushes(tenants[0].get("service"), core)
    if is_total or len(phase["tenants"]) == 1:  # Devices do not know streams.
        metrics |= stage_metrics(phase) | block_metrics(phase) | _placement(phase)
        metrics |= key_value_metrics(phase, tenants)
    devices = phase.get("devices") or []
    cpu = phase.get("cpu")
    depths = [tenant.get("depth_reached_mean") for tenant in tenants]
    # What all streams together are, their phase says; what one of them is, it says itself.
    about = phase if is_total else tenants[0]
    return PhaseRow(
        operation=operation,
        nature=_nature(about),
        elapsed_ns=phase.get("elapsed_ns"),
        cache_share=_cache_share(phase, workers, devices),
        harness_ns_per_op=phase.get("harness_ns_per_op"),
        cpu_user_ns=cpu["user_ns"] if cpu else None,
        cpu_system_ns=cpu["system_ns"] if cpu else None,
        device_read_bytes=_device_sum(devices, "read_bytes"),
        device_write_bytes=_device_sum(devices, "write_bytes"),
        device_flushed_write_bytes=_device_sum(devices, "flushed_write_bytes"),
        depth_reached_mean=None if is_total else depths[0],
        workers=[
            {key: int(worker[key]) for key in ("worker", "ops", "bytes", "elapsed_ns")}
            for worker in workers
        ],
        caveats=(
            *caveats_of(phase.get("warnings", [])),
            *(() if is_total else cut_off(operation, tenants[0])),
            *(() if is_total else behind_its_rate(operation, tenants[0])),
            *_grouped(phase, operation),
            *_waits_for_flushes(operation, tenants if workers else phase["tenants"]),
        ),
        metrics=metrics,
    )


def _grouped(phase: PhaseRecord, operation: str) -> tuple[Caveat, ...]:
    """Caveat of operations that move many records in one call."""
    most = int(phase.get("records_per_op", 1))
    if most == 1:
        return ()
    return (
        Caveat(
            "records_grouped",
            f"{operation} moves up to {most} records in a call: its operations per second and "
            "latencies are those of such groups",
            "compare it with itself, or its throughput with others",
        ),
    )


def _waits_for_flushes(operation: str, tenants: Sequence[TenantOutcome]) -> tuple[Caveat, ...]:
    """Note that most of the time of an operation's workers went into flushes.

    Bytes between them may come from memory, and memory still decides nothing. Operations
    without workers of their own are parts of a loop, which flushes as a whole.
    """
    histograms = [tenant["service"] for tenant in tenants if tenant.get("service")]

    def spent_ns(of: Sequence[Histogram | None]) -> int:
        return sum(histogram["sum"] for histogram in of if histogram)

    flushes_ns = spent_ns([one.get("sync") for one in histograms])
    all_ns = flushes_ns + spent_ns([one for own in histograms for one in _transfers(own)])
    share = flushes_ns / all_ns if all_ns else 0.0
    if share < FLUSH_BOUND_SHARE:
        return ()
    return (
        Caveat(
            FLUSH_BOUND,
            f"{share:.0%} of the time of {operation} went into flushes: how long the device "
            "takes for them decides it",
            "compare it with other ways to be durable: --flush, --fsync-every, --durability",
        ),
    )


def _rates(tenants: Sequence[TenantOutcome]) -> dict[str, float]:
    """Rate of all workers: bytes and ops by the time from the first's start to the last's end.

    A sum of the workers' own rates would count time in which some had ended already: IOzone may
    print it, for there the first that ends stops the others. Empty if nothing was done in
    measurable time.
    """
    began = [int(tenant.get("began_ns") or 0) for tenant in tenants]
    end = max((at + _length_ns(t) for at, t in zip(began, tenants, strict=True)), default=0)
    seconds = (end - min(began, default=0)) / NS_PER_S
    workers = [worker for tenant in tenants for worker in tenant["workers"]]
    if seconds <= 0 or not any(worker["ops"] for worker in workers):
        return {}
    return {
        f"throughput_{unit}_per_s": sum(worker[unit] for worker in workers) / seconds
        for unit in ("bytes", "ops")
    }


def _placement(phase: PhaseRecord) -> dict[str, float]:
    """Extents per file; empty if they were not told, and of files without data."""
    placed = phase.get("placed")
    if not placed or not placed["extents"]:
        return {}
    return {"extents_per_file": placed["extents"] / placed["files"]}


def _running_share(workers: Sequence[StreamReport]) -> dict[str, float]:
    """Share of the workers' time in which they did not wait for a processor; empty if unknown.

    The delay is that of a worker's whole life: in a phase of microseconds it may be longer than the
    timed region, and then says nothing about it.
    """
    delays = [worker.get("run_delay_ns") for worker in workers]
    elapsed = sum(int(worker["elapsed_ns"]) for worker in workers)
    if not elapsed or None in delays:
        return {}
    share = 1 - sum(delay or 0 for delay in delays) / elapsed
    return {"running_share": share} if share > 0 else {}


def _slice_rates(tenant: TenantOutcome) -> dict[str, float]:
    """Geometric means of the rates of a tenant's slices; empty if it had none.

    Their logarithms are what a balanced unit pairs: a moment in which the machine was busy counts
    as one slice among many, and not as long as it lasted.
    """
    slices = tenant.get("slices")
    if not slices:
        return {}
    found = dict[str, float]()
    for unit in ("bytes", "ops"):
        pairs = zip(slices[unit], slices["length_ns"], strict=True)
        rates = [amount * NS_PER_S / length for amount, length in pairs if amount and length]
        if rates:
            found[f"throughput_{unit}_per_s"] = geometric_mean(rates)
    return found


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of values above zero."""
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _transfers(histograms: ClassHistograms | None) -> list[Histogram | None]:
    """Histograms of reads and of writes; fsyncs are not operations of the workload."""
    return [histograms.get("read"), histograms.get("write")] if histograms else []


def _quantiles(histograms: Sequence[Histogram | None], prefix: str, core: Core) -> dict[str, float]:
    """Quantiles of all these values together."""
    merged = merge_histograms(histograms)
    if merged is None:
        return {}
    wanted = [(name, q) for name, q, needed in QUANTILES if merged["count"] >= needed]
    values = core.histogram_quantiles(write_json(merged), [q for _, q in wanted])
    found = {f"{prefix}_{name}": value for (name, _), value in zip(wanted, values, strict=True)}
    if prefix == "latency_ns" and merged["count"] >= TIMED_MIN:
        found["latency_ns_timed_p99"] = timed_quantile(merged, TIMED_QUANTILE)
    found[f"{prefix}_max"] = float(merged["max"])
    found[f"{prefix}_mean"] = merged["sum"] / merged["count"]
    return found


def timed_quantile(histogram: Histogram, quantile: float) -> float:
    """Return the time so long that operations above it take `1 - quantile` of all waiting.

    A stream that waits for each answer issues nothing during a stall, which its percentiles count
    as one operation among many. Weighted by their own time, operations count as long as they last.
    """
    bits = int(histogram["sub_bucket_bits"])
    middles = [
        (min(max(middle_of(index, bits), histogram["min"]), histogram["max"]), count)
        for index, count in histogram["counts"]
    ]
    left = (1 - quantile) * sum(value * count for value, count in middles)
    for value, count in reversed(middles):
        left -= value * count
        if left <= 0:
            return float(value)
    return float(histogram["min"])


def middle_of(index: int, bits: int) -> float:
    """Return the middle of a histogram's part (`iolab_model::histogram`)."""
    if index < 2 << bits:
        return index
    shift = (index >> bits) - 1
    return ((index - (shift << bits)) << shift) + ((1 << shift) - 1) / 2


def _flushes(histograms: ClassHistograms | None, core: Core) -> dict[str, float]:
    """Times of the flushes between a stream's operations."""
    only = _quantiles([histograms.get("sync") if histograms else None], "flush_ns", core)
    return {name: only[name] for name in FLUSH_METRICS if name in only}


def merge_histograms(histograms: Sequence[Histogram | None]) -> Histogram | None:
    """One histogram of all values; None if there are none.

    Raises
    ------
    ValueError : the histograms have different resolutions.
    """
    filled = [histogram for histogram in histograms if histogram and histogram["count"]]
    if not filled:
        return None
    if len({(item["unit"], item["sub_bucket_bits"]) for item in filled}) > 1:
        raise ValueError("histograms of different resolution cannot be merged")
    counts: dict[int, int] = {}
    for item in filled:
        for index, count in item["counts"]:
            counts[index] = counts.get(index, 0) + count
    return {
        "unit": filled[0]["unit"],
        "count": sum(item["count"] for item in filled),
        "min": min(item["min"] for item in filled),
        "max": max(item["max"] for item in filled),
        "sum": sum(item["sum"] for item in filled),
        "sub_bucket_bits": filled[0]["sub_bucket_bits"],
        "counts": [[index, counts[index]] for index in sorted(counts)],
    }


def _cache_share(
    phase: PhaseRecord, workers: Sequence[StreamReport], devices: Sequence[DeviceRecord]
) -> float | None:
    """Share of these workers' bytes that no device moved in the timed region, in [0, 1].

    Devices do not know streams: a direction's share is that of the whole phase.
    """
    if not devices:
        return None
    everyone = [worker for tenant in phase["tenants"] for worker in tenant["workers"]]
    missed = asked = 0.0
    for key in ("read_bytes", "write_bytes"):
        total = sum(worker[key] for worker in everyone)
        own = sum(worker[key] for worker in workers)
        if total:
            moved = sum(device[key] for device in devices)
            own_read_bytes = phase.get("own_read_bytes")
            if key == "read_bytes" and own_read_bytes is not None:
                # Others may read from the same device: what storage gave to us alone counts, too.
                moved = min(moved, own_read_bytes)
            missed += own * min(1.0, max(0.0, 1.0 - moved / total))
            asked += own
    return missed / asked if asked else None


def _device_sum(devices: Sequence[DeviceRecord], key: str) -> int | None:
    return sum(int(device.get(key) or 0) for device in devices) if devices else None


def _series(phase: PhaseRecord) -> list[SeriesPart]:
    tenants = phase["tenants"]
    parts = list[SeriesPart]()
    for tenant in tenants:
        series = tenant.get("series")
        if series:
            name = phase["name"] if len(tenants) == 1 else f"{phase['name']}/{tenant['name']}"
            parts.append(
                SeriesPart(
                    name,
                    int(series["interval_ns"]),
                    tuple(series["ops"]),
                    tuple(series["bytes"]),
                    tuple(series["latency_ns_max"]),
                )
            )
    return parts
