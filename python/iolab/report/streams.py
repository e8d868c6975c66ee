"""Competing streams side by side: a table for all renderers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.report.chart import Table, Value
from iolab.stats import longest_latencies
from iolab.stats.ledger import factor_head, is_segment
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.verdict import StudyVerdict, TreatmentSummary

COLUMNS: Final = (
    ("throughput_bytes_per_s", ""),
    ("latency_ns_p50", "p50"),
    ("latency_ns_p90", "p90"),
    ("latency_ns_p99", "p99"),
    ("latency_ns_p999", "p99.9"),
    ("latency_ns_max", "longest"),
    ("flush_ns_p50", "flush p50"),
    ("flush_ns_p99", "flush p99"),
    ("gap_ns_max", "longest gap"),
    ("flowing_time_share", "flowing"),
    ("fairness_jain", "fairness"),
    ("fairness_jain_shares", "of shares"),
    ("completion_ns", "completion"),
    ("on_time_share", "on time"),
)
"""Metric and header, none if its unit says all; a column that nobody has is left out."""
NOTE: Final = (
    "Geometric means over trials; longest: of all trials. flowing = share of time at a tenth or "
    "more of the stream's own median throughput; fairness = Jain's index over workers, "
    "or over streams that do the same."
)
_TRIAL: Final = ("trial of the longest",)


def stream_table(verdict: StudyVerdict) -> Table | None:
    """One row per stream and level of every workload in which streams compete; None without."""
    rows = _rows(verdict)
    if not rows:
        return None
    known = {t.metric for members in rows.values() for t in members}
    columns = [(name, header) for name, header in COLUMNS if name in known]
    headers = [_header(name, header) for name, header in columns]
    return Table(
        (
            "stream",
            factor_head(verdict.compared_factor),
            *headers,
            "n",
            *(_TRIAL if longest_latencies.METRIC in known else ()),
        ),
        tuple(_row(key, members, [name for name, _ in columns]) for key, members in rows.items()),
    )


def _header(name: str, header: str) -> str:
    unit = METRIC_BY_NAME[name].display_unit
    return f"{header} ({unit})" if header and unit else header or unit


def _rows(verdict: StudyVerdict) -> dict[tuple[str, str], list[TreatmentSummary]]:
    """Summaries by (stream at its other levels, level), streams of one workload together."""
    mixed = {t.workload for t in verdict.treatments if "/" in t.operation}
    mixed |= {t.workload for t in verdict.treatments if t.metric == "gap_ns_max" and _alone(t)}
    found: dict[tuple[str, str], list[TreatmentSummary]] = {}
    for t in verdict.treatments:
        if t.workload not in mixed or is_segment(t.operation):
            continue
        name = f"{t.operation} · {t.cell_label}" if t.cell_label else t.operation
        mode = ", buffered" if t.is_direct is False else ""
        found.setdefault((f"{name}{mode}", t.level or "all"), []).append(t)
    order = list(dict.fromkeys(name for name, _ in found))
    return dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))


def _alone(t: TreatmentSummary) -> bool:
    """Tell whether a phase is called like its workload: a mixed workload of one stream."""
    return t.operation == t.workload


def _row(
    key: tuple[str, str], members: Sequence[TreatmentSummary], metrics: Sequence[str]
) -> tuple[Value, ...]:
    by_metric = {t.metric: t for t in members}
    values: list[Value] = []
    for name in metrics:
        t = by_metric.get(name)
        values.append(None if t is None else METRIC_BY_NAME[name].display(t.value))
    row = (*key, *values, max(t.n for t in members))
    if longest_latencies.METRIC not in metrics:
        return row
    t = by_metric.get(longest_latencies.METRIC)
    return (*row, None if t is None else t.maximum_trial)
