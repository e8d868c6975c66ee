"""The list of metrics; its order is the order of preference and of display.

A metric is one row: name with its unit, noun for sentences and axes, and one sentence that says
what it is. Its value is derived from a record in `iolab.run.record`.
"""

from typing import Final

from iolab.stats.metrics.metric import (
    BYTES_PER_S,
    OPS_PER_S,
    Metric,
    amount_metric,
    cost_metric,
    count_metric,
    duration_metric,
    format_bytes_per_s,
    format_ops_per_s,
    latency_metric,
    rate_metric,
    share_metric,
)

METRICS: Final[tuple[Metric, ...]] = (
    rate_metric(
        "throughput_bytes_per_s",
        "throughput",
        "Bytes moved at the system calls per second of the timed region, all workers added up.",
        unit=BYTES_PER_S,
        text=format_bytes_per_s,
    ),
    rate_metric(
        "throughput_ops_per_s",
        "operation rate",
        "Operations finished per second of the timed region, all workers added up.",
        unit=OPS_PER_S,
        text=format_ops_per_s,
    ),
    latency_metric(
        "latency_ns_p50",
        "median latency",
        "Service time that half of the operations did not exceed (from submission), in ns.",
    ),
    latency_metric(
        "latency_ns_p90",
        "p90 latency",
        "Service time that 90 % of the operations did not exceed (from submission), in ns.",
    ),
    latency_metric(
        "latency_ns_p99",
        "p99 latency",
        "Service time that 99 % of the operations did not exceed (from submission), in ns.",
        role="secondary",
    ),
    latency_metric(
        "latency_ns_p999",
        "p99.9 latency",
        "Service time that 99.9 % of the operations did not exceed (from submission), in ns.",
    ),
    latency_metric(
        "latency_ns_timed_p99",
        "time-weighted p99 latency",
        "Service time so long that slower operations take 1 % of all time spent waiting, in ns.",
    ),
    latency_metric(
        "latency_ns_max",
        "longest latency",
        "Service time of the slowest operation (from submission to completion), in ns.",
        is_maximum=True,
    ),
    latency_metric(
        "latency_ns_mean",
        "mean latency",
        "Service time averaged over the operations (from submission to completion), in ns.",
    ),
    latency_metric(
        "response_ns_p50",
        "median response time",
        "Response time that half of the operations did not exceed (from the intended "
        "start), in ns.",
    ),
    latency_metric(
        "response_ns_p90",
        "p90 response time",
        "Response time that 90 % of the operations did not exceed (from the intended "
        "start), in ns.",
    ),
    latency_metric(
        "response_ns_p99",
        "p99 response time",
        "Response time that 99 % of the operations did not exceed (from the intended "
        "start), in ns.",
        role="secondary",
    ),
    latency_metric(
        "response_ns_p999",
        "p99.9 response time",
        "Response time that 99.9 % of the operations did not exceed (from the intended "
        "start), in ns.",
    ),
    latency_metric(
        "response_ns_max",
        "longest response time",
        "Response time of the slowest operation (from the intended start to completion), in ns.",
        is_maximum=True,
    ),
    latency_metric(
        "response_ns_mean",
        "mean response time",
        "Response time averaged over the operations (from the intended start to "
        "completion), in ns.",
    ),
    duration_metric(
        "elapsed_ns_total",
        "elapsed time",
        "Time that a whole operation took, as an imported table prints it.",
    ),
    cost_metric(
        "cpu_user_share",
        "processor, user",
        "Share of a processor that a job spent in its own program, as imported output prints it.",
    ),
    cost_metric(
        "cpu_system_share",
        "processor, system",
        "Share of a processor that a job spent in the kernel, as imported output prints it.",
    ),
    latency_metric(
        "flush_ns_p50",
        "median flush time",
        "Time that half of the flushes between operations did not exceed (fsync and its "
        "like), in ns.",
    ),
    latency_metric(
        "flush_ns_p99",
        "p99 flush time",
        "Time that 99 % of the flushes between operations did not exceed (fsync and its "
        "like), in ns.",
    ),
    latency_metric(
        "flush_ns_max",
        "longest flush time",
        "Time that the slowest flush between operations took (fsync and its like), in ns.",
        is_maximum=True,
    ),
    latency_metric(
        "q2d_ns_p50",
        "median wait before the device",
        "Time from entering the block layer to being given to the device (Q2D of a trace), which "
        "half of the requests did not exceed, in ns.",
    ),
    latency_metric(
        "q2d_ns_p99",
        "p99 wait before the device",
        "Time from entering the block layer to being given to the device (Q2D of a trace), which "
        "99 % of the requests did not exceed, in ns.",
    ),
    latency_metric(
        "d2c_ns_p50",
        "median time in the device",
        "Time that the device had a request (D2C of a trace), which "
        "half of the requests did not exceed, in ns.",
    ),
    latency_metric(
        "d2c_ns_p99",
        "p99 time in the device",
        "Time that the device had a request (D2C of a trace), which "
        "99 % of the requests did not exceed, in ns.",
    ),
    latency_metric(
        "q2c_ns_p50",
        "median time in the block layer",
        "Time from entering the block layer to completion (Q2C of a trace), which "
        "half of the requests did not exceed, in ns.",
    ),
    latency_metric(
        "q2c_ns_p99",
        "p99 time in the block layer",
        "Time from entering the block layer to completion (Q2C of a trace), which "
        "99 % of the requests did not exceed, in ns.",
    ),
    amount_metric(
        "block_read_bytes",
        "bytes read from the device",
        "Bytes of the reads that the devices completed (C of a trace).",
    ),
    amount_metric(
        "block_write_bytes",
        "bytes written to the device",
        "Bytes of the writes that the devices completed (C of a trace): with those of journals, "
        "metadata and parity.",
    ),
    count_metric(
        "block_requests",
        "requests to the device",
        "Reads, writes and discards that the devices completed (C of a trace).",
    ),
    count_metric(
        "bios_per_request",
        "bios per request",
        "Bios that entered the block layer per request that the devices completed (Q per C of a "
        "trace): above 1 they were merged, below 1 split.",
        is_higher_better=True,
    ),
    amount_metric(
        "request_bytes_mean",
        "size of a request",
        "Mean size of the reads and writes that the devices completed (C of a trace), in bytes.",
        is_higher_better=True,
    ),
    count_metric(
        "in_flight_mean",
        "requests in the device",
        "Requests that the devices had at the same time (between D and C of a trace), mean over "
        "time.",
        is_higher_better=True,
    ),
    count_metric(
        "in_flight_max",
        "most requests in the device",
        "Most requests that a device had at the same time (between D and C of a trace).",
        is_higher_better=True,
    ),
    count_metric(
        "extents_per_file",
        "extents per file",
        "Runs of neighbouring blocks that the data of a file lie in at the end of the operation "
        "(FIEMAP), mean of its first thousand files; not told while data have no place yet.",
    ),
    count_metric(
        "store_write_amplification",
        "write amplification of the key-value store",
        "Bytes that a key-value store wrote to its own files for each byte that it was given, "
        "as it counts them.",
    ),
    count_metric(
        "device_write_amplification",
        "write amplification at the device",
        "Bytes that reached the devices, until the flush after the run, for each byte that "
        "clients gave to a key-value store.",
    ),
    latency_metric(
        "completion_ns",
        "time to completion",
        "Time until the operations that a stream was given were done, its slowest worker's, in ns.",
    ),
    share_metric(
        "on_time_share",
        "operations on time",
        "Share of a rated stream's operations that ended within a period of their intended start.",
    ),
    latency_metric(
        "gap_ns_max",
        "longest gap",
        "Longest time that a worker of the stream went without an operation that ended, in ns.",
        is_maximum=True,
    ),
    share_metric(
        "flowing_time_share",
        "time without stalls",
        "Share of time in which a stream moved at least a tenth of its own median "
        "throughput per slice.",
    ),
    share_metric(
        "running_share",
        "time with a processor",
        "Share of the workers' time in which none of them waited for a processor (their run "
        "delay, as the kernel's scheduler counts it).",
    ),
    share_metric(
        "fairness_jain",
        "fairness among equals",
        "Jain's fairness index over the rates of the workers: 1 is equal shares, 1/n is "
        "one takes all.",
        as_percent=False,
    ),
    share_metric(
        "fairness_jain_shares",
        "fairness of promised shares",
        "Jain's fairness index over the streams' rates, each divided by its weight or priority.",
        as_percent=False,
    ),
)
METRIC_BY_NAME: Final[dict[str, Metric]] = {metric.name: metric for metric in METRICS}

__all__ = ["METRICS", "METRIC_BY_NAME", "Metric"]
