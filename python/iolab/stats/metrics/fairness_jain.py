"""Jain's fairness index over the rates of the workers: 1 is equal shares, 1/n is one takes all."""

from iolab.stats.metrics.metric import share_metric

METRIC = share_metric("fairness_jain", "fairness among equals", as_percent=False)
