"""Units of a table and the metrics they stand for.

KB means 1024 bytes as in IOzone, bonnie++ and iostat; MB and GB are powers of ten, MiB and GiB
powers of two. A duration is a latency if the operation's name says of which kind, else the time
that the operation took. A unit may also be the name of a metric, value in the metric's own unit.
"""

from __future__ import annotations

import re
from typing import Final

from iolab.frozen import frozen
from iolab.stats.metrics import METRIC_BY_NAME

_RATES: Final = {
    "b/s": 1.0,
    "kb/s": 1024.0,
    "kib/s": 1024.0,
    "mb/s": 1e6,
    "mib/s": float(1 << 20),
    "gb/s": 1e9,
    "gib/s": float(1 << 30),
}
_COUNTS: Final = ("1/s", "ops/s", "iops", "io/s", "req/s", "requests/s")
_TIMES: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_LATENCIES: Final = (
    (re.compile(r"p99\.?9\b|99\.9", re.IGNORECASE), "latency_ns_p999"),
    (re.compile(r"p99\b|99th", re.IGNORECASE), "latency_ns_p99"),
    (re.compile(r"p90\b|90th", re.IGNORECASE), "latency_ns_p90"),
    (re.compile(r"p50\b|median", re.IGNORECASE), "latency_ns_p50"),
    (
        re.compile(r"svc_t|await|mean.*latency|latency.*mean|\bavg.*lat|time per op", re.I),
        "latency_ns_mean",
    ),
    (re.compile(r"latency|\bmax.*lat", re.IGNORECASE), "latency_ns_max"),
)
"""First match counts. A plain ``latency`` is bonnie++'s, which prints the longest one."""
KNOWN_UNITS: Final = (
    "B/s",
    "KB/s",
    "MB/s",
    "GB/s",
    "KiB/s",
    "MiB/s",
    "GiB/s",
    "1/s",
    "ops/s",
    "IOPS",
    "ns",
    "us",
    "ms",
    "s",
)


@frozen
class Quantity:
    """Quantity of a value in a unit: a metric, and the factor to the metric's own unit."""

    metric: str
    scale: float


def quantity_of(unit: str, operation: str) -> Quantity | None:
    """Metric of a value; None for a unit that no verdict can rest on."""
    if unit in METRIC_BY_NAME:
        return Quantity(unit, 1.0)
    folded = unit.strip().lower()
    if folded in _RATES:
        return Quantity("throughput_bytes_per_s", _RATES[folded])
    if folded in _COUNTS:
        return Quantity("throughput_ops_per_s", 1.0)
    if folded in _TIMES:
        names = (metric for pattern, metric in _LATENCIES if pattern.search(operation))
        return Quantity(next(names, "elapsed_ns_total"), _TIMES[folded])
    return None
