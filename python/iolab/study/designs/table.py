"""The order of a table: every treatment once, as they are given, in every round.

For command lines of programs that print their results while they go, from the top. What changes
with time inside a round cannot be told from differences between treatments.
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.study.treatment import Treatment


def order_table_round(
    treatments: Sequence[Treatment], *, compared: str, seed: int, round_number: int
) -> tuple[Treatment, ...]:
    """Every treatment once, as given; nothing else changes the order."""
    del compared, seed, round_number
    return tuple(treatments)
