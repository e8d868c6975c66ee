"""Facts that changed between trials, as rows: every value with the trials that saw it.

A fact that is never twice the same (load, free memory) would fill the page: it gets one row.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from iolab.store.rows import StudyData

VALUES_MAX: Final = 20


def varying_rows(data: StudyData) -> list[tuple[str, str, int]]:
    """Return fact, value and number of trials; facts by name, values in order."""
    rows = list[tuple[str, str, int]]()
    for name, values in sorted(data.varying_facts.items()):
        counts = Counter(values.values())
        if len(counts) > VALUES_MAX:
            example = next(iter(counts))
            text = f"{len(counts)} different values, such as {example}"
            rows.append((name, text, len(values)))
        else:
            rows += [(name, value, counts[value]) for value in sorted(counts)]
    return rows
