"""Response time that 99 % of the operations did not exceed (from the intended start), in ns."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("response_ns_p99", "p99 response time", role="secondary")
