"""Response time of the slowest operation (from the intended start to completion), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("response_ns_max", "longest response time", is_maximum=True)
