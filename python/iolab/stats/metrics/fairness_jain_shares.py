"""Jain's fairness index over the streams' rates, each divided by its weight or priority."""

from iolab.stats.metrics.metric import share_metric

METRIC = share_metric("fairness_jain_shares", "fairness of promised shares", as_percent=False)
