"""Response time averaged over the operations (from the intended start to completion), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("response_ns_mean", "mean response time")
