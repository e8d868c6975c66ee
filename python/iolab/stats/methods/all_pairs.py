"""Every pair of levels: paired t on the ln-values of shared rounds, Holm over all pairs.

The intervals have the Bonferroni width of their Holm step, as those against the baseline. Beside
it the exact p of `sign_flip`, where there are at most 12 rounds, and how large the difference is
beside the noise (`effect_size`).

Source: Holm (1979), Scandinavian Journal of Statistics 6(2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from iolab.stats.methods.holm import holm_steps
from iolab.stats.methods.sign_flip import sign_flip_p
from iolab.stats.methods.student import estimate_mean


@dataclass(frozen=True, slots=True)
class PairOfLevels:
    """One pair: ln-ratio first / second, above 0 if the first is better."""

    first: str
    second: str
    difference: float
    half_width: float
    """Infinite below two rounds."""
    confidence: float
    p_adjusted: float | None
    p_exact: float | None
    """Unadjusted, by sign flips; None above 12 rounds."""
    n_rounds: int


def all_pairs(log_values: Mapping[str, Mapping[int, float]]) -> list[PairOfLevels]:
    """Compare every pair of levels that share a round, in the order given."""
    samples: list[tuple[str, str, list[float]]] = []
    for first, second in combinations(log_values, 2):
        ours, theirs = log_values[first], log_values[second]
        shared = sorted(set(ours) & set(theirs))
        if shared:
            samples.append((first, second, [ours[r] - theirs[r] for r in shared]))
    estimates = [estimate_mean(values) for _, _, values in samples]
    steps = holm_steps([estimate.p_value() for estimate in estimates])
    return [
        PairOfLevels(
            first,
            second,
            estimate.mean,
            estimate.half_width(1 - 0.05 / step.divisor),
            1 - 0.05 / step.divisor,
            step.p_adjusted,
            sign_flip_p(values),
            estimate.n,
        )
        for (first, second, values), estimate, step in zip(samples, estimates, steps, strict=True)
    ]
