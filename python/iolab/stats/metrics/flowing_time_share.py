"""Share of time in which a stream moved at least a tenth of its own median throughput per slice."""

from iolab.stats.metrics.metric import share_metric

METRIC = share_metric("flowing_time_share", "time without stalls")
