"""Randomised complete rounds, with whole plots for what is hard to change.

Each round holds every treatment exactly once. Treatments that share their hard-to-change levels
(file system, mkfs and mount options) form a whole plot; the plots are shuffled, and inside each
plot the treatments are shuffled, afresh in every round. Randomising inside a round, not only the
order of rounds, is what keeps drift out of the paired ratios.

The order is a pure function of seed and round. It uses only ``random.Random`` seeded with a text
and its ``random()`` method, the two things Python guarantees to be the same in every version.

Left out: fractional designs for more than some 64 treatments.

References
----------
Cochran and Cox (1957), Experimental Designs, chapters 4 (blocks) and 7 (split plots).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from iolab.study.model import Levels
from iolab.study.treatment import Treatment

if TYPE_CHECKING:
    from random import Random

T = TypeVar("T")


def order_factorial_round(
    treatments: Sequence[Treatment], *, compared: str, seed: int, round_number: int
) -> tuple[Treatment, ...]:
    """Every treatment once, plots and treatments inside plots in random order.

    Parameters
    ----------
    treatments : all treatments of the study, in a fixed order.
    compared : name of the compared factor, which changes nothing here.
    seed : seed of the study.
    round_number : 1-based.
    """
    del compared
    from random import Random  # Not for a table, whose order is its own.

    rng = Random(f"iolab/{seed}/round/{round_number}")
    plots: dict[Levels, list[Treatment]] = {}
    for treatment in treatments:
        plots.setdefault(treatment.whole_plot, []).append(treatment)
    return tuple(
        treatment
        for plot in shuffled(rng, list(plots.values()))
        for treatment in shuffled(rng, plot)
    )


def shuffled(rng: Random, items: Sequence[T]) -> list[T]:
    """Items in random order, with draws that are the same in every version of Python."""
    draws = [rng.random() for _ in items]
    return [items[index] for index in sorted(range(len(items)), key=draws.__getitem__)]
