"""Operations finished per second of the timed region, all workers added up."""

from iolab.stats.metrics.metric import Metric, format_ops_per_s

METRIC = Metric(
    name="throughput_ops_per_s",
    unit="ops/s",
    label="operation rate",
    is_higher_better=True,
    read_unit="ops/s",
    read_scale=1.0,
    format=format_ops_per_s,
    role="primary",
)
