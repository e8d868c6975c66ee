"""Service time of the slowest operation (from submission to completion), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("latency_ns_max", "longest latency", is_maximum=True)
