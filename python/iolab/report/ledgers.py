"""One ledger for all parts of a report: sorting a large study's measurements takes seconds."""

from __future__ import annotations

from functools import lru_cache

from iolab.stats.ledger import Ledger, build_ledger
from iolab.store.rows import StudyData


class _Same:
    """A study as a key: equal only to itself, since its contents have no hash."""

    __slots__ = ("data",)

    def __init__(self, data: StudyData) -> None:
        self.data = data

    def __hash__(self) -> int:
        return id(self.data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.data is self.data


def ledger_of(data: StudyData) -> Ledger:
    """Sort a study's measurements, or return what was sorted for the part before."""
    return _ledger(_Same(data))


@lru_cache(maxsize=1)
def _ledger(study: _Same) -> Ledger:
    return build_ledger(study.data)
