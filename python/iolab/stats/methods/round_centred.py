"""Levels and rounds as a table: means, and the spread that is left when both are taken off.

The model of the comparisons that share one standard error (`dunnett`, `hsu_mcb`): ln-value = level
+ round + noise of one size. Only rounds that all levels share are used.

Source: randomised complete blocks; Cochran and Cox, Experimental Designs, chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoundCentred:
    """What is left of a table of levels by rounds."""

    means: dict[str, float]
    sd: float
    """Of one value about level and round."""
    n_rounds: int
    degrees_of_freedom: int

    @property
    def error(self) -> float:
        """Standard error of the difference of two levels."""
        return self.sd * math.sqrt(2 / self.n_rounds)


def centre_rounds(log_values: Mapping[str, Mapping[int, float]]) -> RoundCentred | None:
    """Reduce level -> round -> ln-value; None below two levels or two shared rounds."""
    if len(log_values) < 2:
        return None
    shared = sorted(set.intersection(*(set(by_round) for by_round in log_values.values())))
    if len(shared) < 2:
        return None
    n, k = len(shared), len(log_values)
    means = {
        level: math.fsum(by_round[r] for r in shared) / n for level, by_round in log_values.items()
    }
    grand = math.fsum(means.values()) / k
    of_round = {
        r: math.fsum(by_round[r] for by_round in log_values.values()) / k - grand for r in shared
    }
    rest = math.fsum(
        (by_round[r] - means[level] - of_round[r]) ** 2
        for level, by_round in log_values.items()
        for r in shared
    )
    freedom = (k - 1) * (n - 1)
    return RoundCentred(means, math.sqrt(rest / freedom), n, freedom)
