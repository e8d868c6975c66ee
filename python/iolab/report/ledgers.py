"""One ledger for all parts of a report: sorting a large study's measurements takes seconds.

It holds the metrics that carry verdicts, and p99.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from iolab.stats.ledger import Ledger, build_ledger
from iolab.stats.metrics import METRICS
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import StudyData

P99 = "latency_ns_p99"


class _Same:
    """A judged study as a key: equal only to itself, since its contents have no hash."""

    __slots__ = ("data", "verdict")

    def __init__(self, data: StudyData, verdict: StudyVerdict) -> None:
        self.data = data
        self.verdict = verdict

    def __hash__(self) -> int:
        return id(self.data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.data is self.data


def ledger_of(data: StudyData, verdict: StudyVerdict) -> Ledger:
    """Sort what is drawn of a study's measurements, or return what was sorted before."""
    return _ledger(_Same(data, verdict))


@lru_cache(maxsize=1)
def _ledger(study: _Same) -> Ledger:
    data, verdict = study.data, study.verdict
    judged = {(c.workload, c.is_direct) for c in verdict.pooled}
    if judged != {(t.workload, t.is_direct) for t in verdict.treatments}:
        return build_ledger(data)
    wanted = {c.metric for c in verdict.pooled} | {METRICS[0].name, P99}
    kept = [m for m in data.measurements if m.metric in wanted]
    return build_ledger(replace(data, measurements=kept))
