"""The ledger that the parts of a report start from: the one that judging made."""

from __future__ import annotations

from iolab.report.balanced import Balanced, balanced
from iolab.stats.ledger import AnyGroup, Ledger, build_ledger
from iolab.store.rows import StudyData

_Tables = dict[AnyGroup, Balanced | None]


def ledger_of(data: StudyData) -> Ledger:
    """Sort a study's measurements, or return what was sorted before."""
    return build_ledger(data)


def balanced_of(data: StudyData, group: AnyGroup) -> Balanced | None:
    """Return the complete part of one group (`balanced`), or what was returned before."""
    tables: _Tables = data.derived.setdefault("balanced", _Tables())
    if group not in tables:
        tables[group] = balanced(build_ledger(data), group)
    return tables[group]
