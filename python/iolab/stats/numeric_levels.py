"""Levels that lie on a scale: sizes (``4k``) and plain numbers, but not coded names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab import units

CODED_FACTORS: Final = ("nomerges", "rq_affinity")
"""Knobs whose numbers are names (Linux Documentation/ABI/stable/sysfs-block)."""


def numeric_level(text: str) -> float | None:
    """Return the number a level stands for (sizes in bytes), or None if it is a name."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(units.parse_bytes(text))
    except ValueError:
        return None


def numeric_levels(factor: str, levels: Sequence[str]) -> dict[str, float] | None:
    """Return level -> number if all levels of `factor` lie on a scale, else None."""
    numbers = {level: numeric_level(level) for level in levels}
    known = {level: number for level, number in numbers.items() if number is not None}
    return known if known and len(known) == len(numbers) and factor not in CODED_FACTORS else None
