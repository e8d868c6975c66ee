"""Names of the metrics that a study may be judged by, as `iolab.stats.metrics` defines them.

A study knows names only: what a metric is belongs to `iolab.stats`, which knows studies.
"""

from __future__ import annotations

import difflib
from typing import Final

from iolab.wording import nearest

METRIC_NAMES: Final = (
    "throughput_bytes_per_s",
    "throughput_ops_per_s",
    "latency_ns_p50",
    "latency_ns_p90",
    "latency_ns_p99",
    "latency_ns_p999",
    "latency_ns_timed_p99",
    "latency_ns_max",
    "latency_ns_mean",
    "response_ns_p50",
    "response_ns_p90",
    "response_ns_p99",
    "response_ns_p999",
    "response_ns_max",
    "response_ns_mean",
    "flush_ns_p50",
    "flush_ns_p99",
    "flush_ns_max",
    "q2d_ns_p50",
    "q2d_ns_p99",
    "d2c_ns_p50",
    "d2c_ns_p99",
    "q2c_ns_p50",
    "q2c_ns_p99",
    "block_read_bytes",
    "block_write_bytes",
    "block_requests",
    "bios_per_request",
    "request_bytes_mean",
    "in_flight_mean",
    "in_flight_max",
    "extents_per_file",
    "store_write_amplification",
    "device_write_amplification",
    "completion_ns",
    "elapsed_ns_total",
    "cpu_user_share",
    "cpu_system_share",
    "on_time_share",
    "gap_ns_max",
    "flowing_time_share",
    "running_share",
    "fairness_jain",
    "fairness_jain_shares",
)
SHORT_NAMES: Final = {
    "throughput": "throughput_bytes_per_s",
    "iops": "throughput_ops_per_s",
    "median": "latency_ns_p50",
    "p50": "latency_ns_p50",
    "p90": "latency_ns_p90",
    "p99": "latency_ns_p99",
    "p999": "latency_ns_p999",
    "p99.9": "latency_ns_p999",
    "max": "latency_ns_max",
    "flush": "flush_ns_p99",
    "fairness": "fairness_jain",
    "gap": "gap_ns_max",
    "completion": "completion_ns",
    "on_time": "on_time_share",
    "flowing": "flowing_time_share",
}
"""Short names that people say instead."""
_USUAL: Final = ("throughput", "iops", "p50", "p99", "max")
_NEAR_MAX: Final = 3
_WHERE: Final = f"docs/reference/metrics.md lists all {len(METRIC_NAMES)}"


def parse_metric(value: object) -> str:
    """Name of a metric from its name or a short one.

    Raises
    ------
    ValueError : there is no such metric; names the nearest.
    """
    name = str(value).strip()
    name = SHORT_NAMES.get(name, name)
    if name in METRIC_NAMES:
        return name
    raise ValueError(f"'{value}' is not a metric{near_metrics(name)}")


def near_metrics(name: str) -> str:
    """Say which metrics have names like this one, and where all of them are."""
    known = [*SHORT_NAMES, *METRIC_NAMES]
    said = nearest(name, known)
    found = difflib.get_close_matches(name.lower(), known, n=_NEAR_MAX + 1, cutoff=0.5)
    others = [one for one in found if f"'{one}'" not in said][:_NEAR_MAX]
    if not said:
        return f"; usual ones: {', '.join(_USUAL)}; {_WHERE}"
    like = f" Others like it: {', '.join(others)};" if others else ""
    return f"{said}{like} {_WHERE}"
