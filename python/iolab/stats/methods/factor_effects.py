"""Effects of factors, and their dependence on each other: analysis of variance on ln-values.

A balanced factorial in rounds. Factors that are hard to change form whole plots: their effects are
judged against the spread of whole plots between rounds, everything else against the spread
inside them. That is the mixed model with round and whole plot as random effects; for balanced
data its estimates and tests are these sums of squares. Share: omega squared, the rounds taken
off. Left out: unbalanced data (incomplete rounds are dropped by the caller), interactions
of more than three factors (they go into the error).

Source: Yates (1935), J. R. Statist. Soc. Suppl. 2(2); Cochran and Cox, Experimental Designs,
chapter 7; Olejnik and Algina (2003), Psychological Methods 8(4), for omega squared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

from iolab.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Stratum = Literal["whole plot", "trial"]
ORDER_MAX: Final = 3
_ROUND: Final = 0
"""Place of the round in a row's key."""


@frozen
class Term:
    """One main effect or interaction."""

    factors: tuple[str, ...]
    stratum: Stratum
    degrees_of_freedom: int
    error_degrees_of_freedom: int
    f: float
    """Infinite where nothing varies but the effect."""
    p: float
    share: float
    """Omega squared, at least 0."""


@frozen
class FactorEffects:
    """All terms, largest share first, and what the error of each stratum is."""

    terms: tuple[Term, ...]
    round_sd: float
    """Spread of rounds (variance component, as sd); unit of the values."""
    whole_plot_sd: float | None
    """Spread of whole plots in a round; None without hard factors."""
    trial_sd: float
    n_rounds: int


def factor_effects(
    values: Mapping[tuple[int, tuple[str, ...]], float],
    factors: Sequence[str],
    hard: Sequence[str] = (),
) -> FactorEffects | None:
    """Analyse a complete factorial.

    Parameters
    ----------
    values : (round, one level per factor) -> ln-value.
    factors : names, in the order of the levels.
    hard : those of them that are whole plots.

    Returns
    -------
    None if some combination is missing in some round, or there is nothing to test with.
    """
    sizes = _sizes(values, len(factors))
    if sizes is None or sizes[_ROUND] < 2 or any(size < 2 for size in sizes[1:]):
        return None
    table: dict[tuple[object, ...], float] = {(r, *ls): value for (r, ls), value in values.items()}
    squares = _sums_of_squares(table, sizes)
    hard_places = {factors.index(name) + 1 for name in hard if name in factors}
    errors = _errors(squares, sizes, hard_places)
    if errors["trial"][1] < 1:
        return None
    total = math.fsum(ss for term, ss in squares.items() if term != (_ROUND,))
    terms: list[Term] = []
    for key, square in squares.items():
        if not key or _ROUND in key or len(key) > ORDER_MAX:
            continue
        stratum = _stratum(key, hard_places)
        names = tuple(factors[i - 1] for i in key)
        effect = (square, _freedom(key, sizes))
        terms.append(_term(names, effect, stratum, (errors[stratum], total)))
    trial = _mean_square(errors["trial"])
    cells = math.prod(sizes[1:])
    plot_sd = None
    above = trial
    if hard_places and errors["whole plot"][1] > 0:
        above = _mean_square(errors["whole plot"])
        in_plot = cells // math.prod(sizes[i] for i in hard_places)
        plot_sd = math.sqrt(max(0.0, above - trial) / in_plot)
    rounds = squares[_ROUND,] / (sizes[_ROUND] - 1)
    return FactorEffects(
        tuple(sorted(terms, key=lambda term: -term.share)),
        math.sqrt(max(0.0, rounds - above) / cells),
        plot_sd,
        math.sqrt(trial),
        sizes[_ROUND],
    )


def _sizes(
    values: Mapping[tuple[int, tuple[str, ...]], float], n_factors: int
) -> tuple[int, ...] | None:
    """Return rounds and levels per factor; None unless every combination is there once."""
    if not values or n_factors < 1:
        return None
    levels_of = [len({levels[i] for _, levels in values}) for i in range(n_factors)]
    sizes = (len({r for r, _ in values}), *levels_of)
    return sizes if math.prod(sizes) == len(values) else None


def _subsets(n: int) -> Iterator[tuple[int, ...]]:
    for size in range(n + 1):
        yield from combinations(range(n), size)


def _sums_of_squares(
    table: Mapping[tuple[object, ...], float], sizes: tuple[int, ...]
) -> dict[tuple[int, ...], float]:
    """Return the sum of squares of every subset of round and factors."""
    import numpy as np

    grand = math.fsum(table.values()) / len(table)
    centred = np.fromiter(table.values(), np.float64, len(table)) - grand
    codes = [_codes([key[i] for key in table]) for i in range(len(sizes))]
    squares: dict[tuple[int, ...], float] = {}
    for subset in _subsets(len(sizes)):
        places = np.zeros(len(table), np.int64)
        for i in subset:
            places = places * sizes[i] + codes[i]
        sums: list[float] = np.bincount(places, weights=centred).tolist()
        per = len(table) // math.prod(sizes[i] for i in subset)
        raw = math.fsum(total * total for total in sums) / per
        inner = (ss for other, ss in squares.items() if set(other) < set(subset))
        squares[subset] = max(0.0, raw - math.fsum(inner))
    return squares


def _codes(levels: Sequence[object]) -> npt.NDArray[np.int64]:
    """Number the levels of a factor."""
    import numpy as np

    numbers = {level: number for number, level in enumerate(dict.fromkeys(levels))}
    return np.fromiter((numbers[level] for level in levels), np.int64, len(levels))


def _freedom(key: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    return math.prod(sizes[i] - 1 for i in key)


def _stratum(key: tuple[int, ...], hard: set[int]) -> Stratum:
    return "whole plot" if hard and set(key) <= hard else "trial"


def _errors(
    squares: Mapping[tuple[int, ...], float], sizes: tuple[int, ...], hard: set[int]
) -> dict[Stratum, tuple[float, int]]:
    """Return sum of squares and degrees of freedom of each stratum's error."""
    found: dict[Stratum, tuple[float, int]] = {"whole plot": (0.0, 0), "trial": (0.0, 0)}
    for key, ss in squares.items():
        parts = tuple(i for i in key if i != _ROUND)
        is_error = (_ROUND in key and parts) or (_ROUND not in key and len(parts) > ORDER_MAX)
        if is_error:
            stratum = _stratum(parts, hard)
            before = found[stratum]
            found[stratum] = (before[0] + ss, before[1] + _freedom(key, sizes))
    return found


def _mean_square(error: tuple[float, int]) -> float:
    return error[0] / error[1]


def _term(
    factors: tuple[str, ...],
    effect: tuple[float, int],
    stratum: Stratum,
    against: tuple[tuple[float, int], float],
) -> Term:
    from scipy.special import fdtrc

    (square, freedom), (error, total) = effect, against
    noise = _mean_square(error) if error[1] else math.inf
    if noise > 0:
        f = square / freedom / noise
        p = float(fdtrc(freedom, error[1], f)) if error[1] else 1.0
    else:
        f, p = (math.inf, 0.0) if square > 0 else (0.0, 1.0)
    share = 0.0
    if math.isfinite(noise) and total + noise > 0:
        share = max(0.0, (square - freedom * noise) / (total + noise))
    return Term(factors, stratum, freedom, error[1], f, p, share)
