"""Treatment by treatment: geometric mean (of longest times: the longest), interval and n."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.stats.ledger import CellKey, Ledger, Samples, cache_share, is_page_cache
from iolab.stats.methods.log_ratio import geometric_mean, geometric_mean_and_interval
from iolab.stats.metrics import METRICS, Metric
from iolab.stats.verdict import Interval, TreatmentSummary
from iolab.store.rows import Measurement


def summaries(ledger: Ledger) -> list[TreatmentSummary]:
    """Summarise each treatment by each metric, metrics in the order of `METRICS`."""
    order = {level: place for place, level in enumerate(ledger.levels_in_order)}
    return [
        _summary(ledger, metric, key, level, samples)
        for metric in METRICS
        for key, by_level in ledger.cells.get(metric.name, {}).items()
        for level, samples in sorted(by_level.items(), key=lambda item: order.get(item[0], -1))
    ]


def value_over(metric: Metric, found: Sequence[Measurement]) -> float:
    """Return the one figure of several trials: their geometric mean, of longest times the longest.

    Every page, table and drawing that shows a value of several trials asks here.
    """
    values = [m.value for m in found]
    return max(values) if metric.is_maximum else geometric_mean(values)


def _possible(metric: Metric, bounds: tuple[float, float]) -> Interval:
    """Return the interval of a mean without what no value can be: shares end at 100 %."""
    low, high = bounds if metric.highest is None else (min(b, metric.highest) for b in bounds)
    return Interval(low, high, 0.95)


def _summary(
    ledger: Ledger, metric: Metric, key: CellKey, level: str, samples: Samples
) -> TreatmentSummary:
    found = samples.all()
    values = [m.value for m in found]
    longest = max(found, key=lambda m: m.value)
    mean, bounds = geometric_mean_and_interval(values)
    share = cache_share((samples,))
    levels = dict(key.levels) | ({ledger.data.study.compared_factor: level} if level else {})
    return TreatmentSummary(
        workload=key.workload,
        operation=key.operation,
        is_direct=key.is_direct,
        level=level or None,
        levels=levels,
        cell_label=ledger.label(key),
        metric=metric.name,
        geometric_mean=mean,
        interval=None if bounds is None else _possible(metric, bounds),
        n=len(values),
        minimum=min(values),
        maximum=longest.value,
        cache_share=share,
        is_page_cache=is_page_cache(share),
        is_generator_bound=ledger.is_generator_bound((samples,)),
        statistic=metric.statistic,
        value=value_over(metric, found),
        maximum_trial=longest.trial_id,
        maximum_round=longest.round,
        kind=ledger.kind_of(metric, key),
    )
