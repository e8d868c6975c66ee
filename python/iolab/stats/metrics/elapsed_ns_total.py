"""Time that a whole operation took, as an imported table prints it."""

from iolab.stats.metrics.metric import latency_metric

METRIC = latency_metric("elapsed_ns_total", "elapsed time", role="secondary")
