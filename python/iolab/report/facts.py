"""Rows that page and workbook share: facts that changed between trials, factors and settings.

A fact that is hardly ever twice the same (load, free memory) would fill the page: it gets one row.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from iolab.store.machine import readable_fact
from iolab.store.rows import StudyData, StudyRow
from iolab.wording import profile_text

VALUES_MAX: Final = 20
FEW_VALUES: Final = 3
"""Number that are listed even if no two trials saw the same."""


def varying_rows(data: StudyData) -> list[tuple[str, str, int]]:
    """Return fact, value and number of trials; facts by name, values in order."""
    rows = list[tuple[str, str, int]]()
    for name, values in sorted(data.varying_facts.items()):
        counts = Counter(values.values())
        is_its_own = len(counts) > FEW_VALUES and 2 * len(counts) > len(values)
        if len(counts) > VALUES_MAX or is_its_own:
            example = next(iter(counts))
            text = f"{len(counts)} different values, such as {readable_fact(example)}"
            rows.append((name, text, len(values)))
        else:
            rows += [(name, readable_fact(value), counts[value]) for value in sorted(counts)]
    return rows


def same_rows(data: StudyData) -> list[tuple[str, str]]:
    """Return facts that were the same in all trials, sizes in the units shown now."""
    return [
        (name, profile_text(readable_fact(value))) for name, value in sorted(data.facts.items())
    ]


def setting_rows(study: StudyRow) -> list[tuple[str, str, str]]:
    """Return factors and settings with their levels and what was done to them."""
    rows = [
        (name, ", ".join(levels), "varied" if len(levels) > 1 else "named")
        for name, levels in study.factors.items()
    ]
    return rows + [(name, level, "held") for name, level in study.settings.items()]
