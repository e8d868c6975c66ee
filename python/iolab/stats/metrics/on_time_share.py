"""Share of a rated stream's operations that ended within a period of their intended start."""

from iolab.stats.metrics.metric import share_metric

METRIC = share_metric("on_time_share", "operations on time")
