"""The list of metrics; its order is the order of preference and of display."""

from typing import Final

from iolab.stats.metrics import (
    completion_ns,
    elapsed_ns_total,
    fairness_jain,
    fairness_jain_shares,
    flowing_time_share,
    flush_ns_max,
    flush_ns_p50,
    flush_ns_p99,
    gap_ns_max,
    latency_ns_max,
    latency_ns_mean,
    latency_ns_p50,
    latency_ns_p90,
    latency_ns_p99,
    latency_ns_p999,
    latency_ns_timed_p99,
    on_time_share,
    response_ns_max,
    response_ns_mean,
    response_ns_p50,
    response_ns_p90,
    response_ns_p99,
    response_ns_p999,
    throughput_bytes_per_s,
    throughput_ops_per_s,
)
from iolab.stats.metrics.metric import Metric

METRICS: Final[tuple[Metric, ...]] = (
    throughput_bytes_per_s.METRIC,
    throughput_ops_per_s.METRIC,
    latency_ns_p50.METRIC,
    latency_ns_p90.METRIC,
    latency_ns_p99.METRIC,
    latency_ns_p999.METRIC,
    latency_ns_timed_p99.METRIC,
    latency_ns_max.METRIC,
    latency_ns_mean.METRIC,
    response_ns_p50.METRIC,
    response_ns_p90.METRIC,
    response_ns_p99.METRIC,
    response_ns_p999.METRIC,
    response_ns_max.METRIC,
    response_ns_mean.METRIC,
    elapsed_ns_total.METRIC,
    flush_ns_p50.METRIC,
    flush_ns_p99.METRIC,
    flush_ns_max.METRIC,
    completion_ns.METRIC,
    on_time_share.METRIC,
    gap_ns_max.METRIC,
    flowing_time_share.METRIC,
    fairness_jain.METRIC,
    fairness_jain_shares.METRIC,
)
METRIC_BY_NAME: Final[dict[str, Metric]] = {metric.name: metric for metric in METRICS}

__all__ = ["METRICS", "METRIC_BY_NAME", "Metric"]
