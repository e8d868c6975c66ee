"""Service time so long that slower operations take 1 % of all time spent waiting, in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("latency_ns_timed_p99", "time-weighted p99 latency")
