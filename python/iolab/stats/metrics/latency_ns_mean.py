"""Service time averaged over the operations (from submission to completion), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("latency_ns_mean", "mean latency")
