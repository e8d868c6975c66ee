"""Price of a choice: where the level to take is worse than the baseline, in words.

A median may fall while the longest wait grows, or while another stream pays; whoever reads only
which level to take would not know. Said are the longest wait, the slowest tenth where it is far
from the median, and comparisons by other metrics or of other operations, worse ones first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.report.conditions import P99, Condition
from iolab.stats.cell_class import MIXED
from iolab.stats.effect_words import size_of_effect
from iolab.stats.ledger import level_text
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.metrics.metric import format_ns
from iolab.stats.verdict import Comparison, StudyVerdict, TreatmentSummary

COSTS_MAX: Final = 3
FAR_TENTH: Final = 10.0
"""From so many medians on the slowest tenth is another experience than the median."""
_LONGEST: Final = "latency_ns_max"
_MEDIAN: Final = "latency_ns_p50"
_TENTH: Final = "latency_ns_p90"


def cost_text(verdict: StudyVerdict, rows: Sequence[Condition], choice: str) -> str:
    """Say what the choice of one group is worse in than the baseline.

    Parameters
    ----------
    verdict : the judged study.
    rows : the levels of the group.
    choice : text of the level to take; of several levels nothing is said.

    Returns
    -------
    Up to `COSTS_MAX` parts with commas; empty if it is the baseline, or if nothing is known to be
    worse.
    """
    factor, baseline = verdict.compared_factor, verdict.baseline
    row = next((row for row in rows if level_text(factor, row.level) == choice), None)
    if row is None or row.level == baseline:
        return ""
    ours = _of_level(verdict, row, row.level)
    theirs = _of_level(verdict, row, baseline)
    found: list[str] = []
    longest, before = ours.get(_LONGEST), theirs.get(_LONGEST)
    if longest is not None and before is not None and longest > before * (1 + verdict.margin):
        base = level_text(factor, baseline)
        found.append(f"longest wait {format_ns(longest)} ({base}: {format_ns(before)})")
    median, tenth = ours.get(_MEDIAN), ours.get(_TENTH)
    if median and tenth and tenth > FAR_TENTH * median:
        found.append(f"one operation in ten takes {format_ns(tenth)} or more")
    found += _worse(verdict, row)
    return ", ".join(found[:COSTS_MAX])


def _of_level(verdict: StudyVerdict, row: Condition, level: str) -> dict[str, float]:
    """Largest value of every latency of a level in the cells of a group."""
    found: dict[str, float] = {}
    for t in verdict.treatments:
        if t.level == level and t.metric.startswith("latency_ns_") and _is_in(t, row):
            found[t.metric] = max(t.value, found.get(t.metric, 0.0))
    return found


def _is_in(t: TreatmentSummary, row: Condition) -> bool:
    """Tell whether a treatment belongs to a group; one of a stream is named after it."""
    workload, is_direct, kind = row.group
    if (t.workload, t.is_direct) != (workload, is_direct):
        return False
    stream = kind.removeprefix("stream ")
    return not kind or t.kind == kind or t.operation.rpartition("/")[2] == stream


def _worse(verdict: StudyVerdict, row: Condition) -> list[str]:
    """Write what is worse by more than the margin in the same workload, decided or not."""
    mine = [
        c
        for c in (*verdict.pooled, *verdict.secondary)
        if c.level == row.level
        and c.workload == row.group[0]
        and c.metric != P99
        and (c.group, c.metric) != (row.group, row.metric.name)
        and (c.effect.ratio or 1.0) < 1 / (1 + verdict.margin)
        and c.effect.word in ("worse", "undecided")
    ]
    apart = [c for c in mine if c.kind != MIXED]
    mine = apart or mine  # Both together say nothing that the two do not.
    ranked = sorted(mine, key=lambda c: (c.effect.word != "worse", c.effect.ratio or 1.0))
    return [_said(c) for c in ranked]


def _said(c: Comparison) -> str:
    metric = METRIC_BY_NAME[c.metric]
    size = size_of_effect(metric, c.effect.ratio or 1.0)
    what = c.kind if metric.is_rate and c.kind else f"{metric.label} {c.kind}".strip()
    return f"{what} {size}" + (" (undecided)" if c.effect.word == "undecided" else "")
