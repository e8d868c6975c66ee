"""Service time that 90 % of the operations did not exceed (from submission), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("latency_ns_p90", "p90 latency")
