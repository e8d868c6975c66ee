"""Time that 99 % of the flushes between operations did not exceed (fsync and its like), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("flush_ns_p99", "p99 flush time")
