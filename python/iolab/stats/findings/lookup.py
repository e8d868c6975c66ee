"""Finds the row of a finding by its name."""

from __future__ import annotations

from typing import Final

from iolab.stats.finding import FindingKind
from iolab.stats.findings.judged import JUDGED
from iolab.stats.findings.recorded import RECORDED

FINDINGS: Final[tuple[FindingKind, ...]] = (*JUDGED, *RECORDED)
_BY_NAME: Final = {kind.name: kind for kind in FINDINGS}


def kind_of(name: str) -> FindingKind:
    """Return the row of a kind; one that another version recorded is a doubt without advice."""
    return _BY_NAME.get(name) or FindingKind(name, "", "recorded by another version of iolab", "")
