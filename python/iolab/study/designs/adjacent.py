"""Randomised complete rounds in which the levels that are compared run next to each other.

Each round holds every treatment exactly once. Treatments that differ in the compared factor alone
are neighbours, in random order; such groups are shuffled, inside the whole plots of what is hard to
change. Noise that lives for seconds then meets both sides of a ratio alike, which a factorial round
of many cells cannot do.

Left out: a compared factor that is hard to change itself; its levels belong to whole plots.

References
----------
Cochran and Cox (1957), Experimental Designs, chapter 4 (blocks).
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.study.designs.factorial import shuffled
from iolab.study.model import Levels
from iolab.study.treatment import Treatment


def order_adjacent_round(
    treatments: Sequence[Treatment], *, compared: str, seed: int, round_number: int
) -> tuple[Treatment, ...]:
    """Every treatment once: plots, cells in plots and levels in cells in random order.

    Parameters
    ----------
    treatments : all treatments of the study, in a fixed order.
    compared : name of the factor whose levels become neighbours.
    seed : seed of the study.
    round_number : 1-based.
    """
    from random import Random  # Not for a table, whose order is its own.

    rng = Random(f"iolab/{seed}/round/{round_number}")
    plots: dict[Levels, dict[object, list[Treatment]]] = {}
    for treatment in treatments:
        rest = tuple(level for level in treatment.levels if level[0] != compared)
        cells = plots.setdefault(treatment.whole_plot, {})
        cells.setdefault((treatment.workload.name, rest), []).append(treatment)
    return tuple(
        treatment
        for plot in shuffled(rng, list(plots.values()))
        for cell in shuffled(rng, list(plot.values()))
        for treatment in shuffled(rng, cell)
    )
