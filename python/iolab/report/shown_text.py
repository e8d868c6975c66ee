"""Texts of findings in the units that are shown now."""

from __future__ import annotations

from iolab import units
from iolab.stats.findings import kind_of


def shown_text(kind: str, text: str) -> str:
    """Return a text in the units shown now; quoted sources and names of levels stay."""
    return text if kind_of(kind).is_quoting else units.reworded(text)
