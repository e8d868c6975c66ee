"""Response time that 90 % of the operations did not exceed (from the intended start), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("response_ns_p90", "p90 response time")
