"""Longest time that a worker of the stream went without an operation that ended, in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("gap_ns_max", "longest gap", is_maximum=True)
