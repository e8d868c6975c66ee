"""All levels against one baseline, jointly: intervals that together cover in 95 % of studies.

On ln-values with levels and rounds taken off (`round_centred`): one spread for all levels, so that
the intervals are narrower than pairwise ones when levels are equally noisy, and wrong when
they are not; the words of a verdict therefore rest on paired intervals (`student`, `holm`).

Source: Dunnett (1955), JASA 50(272).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iolab.stats.methods.equicorrelated import largest_cdf, largest_quantile
from iolab.stats.methods.round_centred import centre_rounds


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """One level against the baseline."""

    level: str
    difference: float
    low: float
    high: float
    p: float
    """Adjusted for all levels that were compared."""


def dunnett(
    log_values: Mapping[str, Mapping[int, float]], baseline: str, *, confidence: float = 0.95
) -> list[AgainstBaseline]:
    """Compare every other level with `baseline`.

    Parameters
    ----------
    log_values : level -> round -> oriented ln-value.

    Returns
    -------
    In the order given; empty if the baseline is missing, or fewer than two rounds are shared.
    """
    table = centre_rounds(log_values)
    if table is None or baseline not in table.means:
        return []
    count, freedom = len(table.means) - 1, table.degrees_of_freedom
    half = largest_quantile(confidence, count, freedom, is_two_sided=True) * table.error
    found: list[AgainstBaseline] = []
    for level, mean in table.means.items():
        if level == baseline:
            continue
        difference = mean - table.means[baseline]
        if table.error > 0:
            p = 1 - largest_cdf(abs(difference) / table.error, count, freedom, is_two_sided=True)
        else:
            p = 1.0 if difference == 0 else 0.0
        found.append(
            AgainstBaseline(level, difference, difference - half, difference + half, max(0.0, p))
        )
    return found
