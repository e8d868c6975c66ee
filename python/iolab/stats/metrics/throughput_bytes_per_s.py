"""Bytes moved at the system calls per second of the timed region, all workers added up."""

from iolab.stats.metrics.metric import BYTES_PER_S, Metric, format_bytes_per_s

METRIC = Metric(
    name="throughput_bytes_per_s",
    unit=BYTES_PER_S,
    label="throughput",
    is_higher_better=True,
    read_unit=BYTES_PER_S,
    read_scale=1.0,
    format=format_bytes_per_s,
    role="primary",
)
