"""Time that the slowest flush between operations took (fsync and its like), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("flush_ns_max", "longest flush time", is_maximum=True)
