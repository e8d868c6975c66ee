"""Benjamini-Hochberg p: the share of false discoveries among exploratory findings.

Source: Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57(1).
"""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values so that "adjusted p < q" keeps the false discovery rate below q.

    Parameters
    ----------
    p_values : shape (m,); None (too few rounds) is passed through and does not count in m.
    """
    known = [(p, index) for index, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    running = 1.0
    for rank, (p, index) in reversed(list(enumerate(sorted(known), start=1))):
        running = min(running, p * len(known) / rank)
        adjusted[index] = running
    return adjusted
