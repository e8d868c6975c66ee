"""Bytes moved at the system calls per second of the timed region, all workers added up."""

from iolab.stats.metrics.metric import MIB, Metric, format_bytes_per_s

METRIC = Metric(
    name="throughput_bytes_per_s",
    unit="bytes/s",
    label="throughput",
    is_higher_better=True,
    display_unit="MiB/s",
    display_scale=1 / MIB,
    format=format_bytes_per_s,
    role="primary",
)
