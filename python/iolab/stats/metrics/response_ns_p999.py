"""Response time that 99.9 % of the operations did not exceed (from the intended start), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("response_ns_p999", "p99.9 response time")
