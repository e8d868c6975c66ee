"""Levels that lie on a scale: sizes (``4k``) and plain numbers, but not coded names."""

from __future__ import annotations

from collections.abc import Sequence

from iolab import units
from iolab.study.factors import find_factor, is_factor


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
    are_codes = is_factor(factor) and find_factor(factor).are_codes
    return known if known and len(known) == len(numbers) and not are_codes else None
