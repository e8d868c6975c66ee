"""Service time that 99.9 % of the operations did not exceed (from submission), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("latency_ns_p999", "p99.9 latency")
