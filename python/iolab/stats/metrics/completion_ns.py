"""Time until the operations that a stream was given were done, its slowest worker's, in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("completion_ns", "time to completion")
