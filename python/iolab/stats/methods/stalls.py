"""Stalls: stretches of a trial in which (almost) nothing was completed.

A slice of time is quiet if it completed less than a tenth of the median slice; slices are first
joined until the median one completes `OPS_MIN` operations, so that slow operations are no stalls.

Where no joining gets the median there, more than half of the trial may be one long stall, and the
median says nothing. The slice at the upper tenth is the reference then: quiet is less than a
hundredth of it and fewer than `OPS_MIN` operations. A trial that is slow throughout has no such
upper tenth, and one that fell to a lower level still completes operations there: that is a decay.

A series of fewer than `SLICES_MIN` slices has no median worth comparing with, but a standstill
shows in it: `GAP_SLICES_MIN` empty slices or more in a row in which, at the rate of the others,
`GAP_OPS_MIN` operations were to be expected, unless such pauses are what the trial is made of.

Where more than a quarter of the slices are quiet and they come back in cycles, that is the rhythm
of the trial (its shape is `cyclic`) and no stall. Left out: causes; stalls shorter than a slice.

Source: none; the bounds are ours, checked by the tests of `stalls`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen
from iolab.stats.methods.autocorrelation import are_cyclic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

SLICES_MIN: Final = 40
OPS_MIN: Final = 5
"""With fewer operations in the median slice, an empty one is chance."""
QUIET_SHARE: Final = 0.10
STANDSTILL_SHARE: Final = 0.01
"""Of the slice at the upper tenth, where the median slice is quiet itself."""
GAP_SLICES_MIN: Final = 2
GAP_OPS_MIN: Final = 20
"""By chance a stream of that rate is silent so long less than once in 1e8 times (Poisson)."""
PAUSES_MIN: Final = 3
"""From so many pauses on the usual one is what the trial is made of."""
SHORT_MIN: Final = 4
"""Fewer slices show nothing at all."""
UPPER: Final = 0.9
RHYTHM_SHARE: Final = 0.25
"""Rarer quiet slices are stalls even if they come back in cycles (a flush every few seconds)."""


@frozen
class Stalls:
    """Slices in which (almost) nothing was completed."""

    longest_ns: int
    total_ns: int
    share: float
    """Of the time looked at."""
    resolution_ns: int
    """Shorter stalls cannot be seen."""
    began_ns: int = 0
    """Time at which the longest began, from the beginning of the series."""
    is_told: bool = True
    """True if a stall of half the trial would have been seen."""


def find_stalls(ops: Sequence[int], interval_ns: int) -> Stalls:
    """Measure the stalls of one trial.

    Parameters
    ----------
    ops : operations completed per slice, in order, without the last one, which is cut off.
    interval_ns : length of a slice.
    """
    is_quiet, width = quiet_slices(ops, interval_ns)
    longest = current = end = 0
    for place, quiet in enumerate(is_quiet, start=1):
        current = current + 1 if quiet else 0
        if current > longest:
            longest, end = current, place
    total = sum(is_quiet)
    is_told = bool(total) or (len(is_quiet) >= SHORT_MIN and _is_told(ops))
    share = total / max(1, len(is_quiet))
    return Stalls(longest * width, total * width, share, width, (end - longest) * width, is_told)


def _is_told(ops: Sequence[int]) -> bool:
    return len(ops) >= SLICES_MIN or sum(ops) >= 2 * GAP_OPS_MIN


def quiet_slices(ops: Sequence[int], interval_ns: int) -> tuple[list[bool], int]:
    """Say which slices are stalls; those are wider than `interval_ns` where they were joined.

    Returns
    -------
    A flag per slice (none of a trial of a few slices), and the length of a slice.
    """
    slices, width = _joined_until(ops, interval_ns, 0.5, OPS_MIN)
    if len(slices) >= SLICES_MIN:
        limit = QUIET_SHARE * _at(slices, 0.5)
    else:
        busy, busy_width = _joined_until(ops, interval_ns, UPPER, OPS_MIN / QUIET_SHARE)
        if len(busy) < SLICES_MIN:
            found = _standstills(ops)
            return (found, interval_ns) if any(found) or len(ops) < SLICES_MIN else ([], width)
        slices, width = busy, busy_width
        limit = min(STANDSTILL_SHARE * _at(slices, UPPER), OPS_MIN)
    is_quiet = [completed < limit for completed in slices]
    if sum(is_quiet) > RHYTHM_SHARE * len(slices) and _is_cyclic(slices):
        is_quiet = _out_of_rhythm(is_quiet)
    return is_quiet, width


def _standstills(ops: Sequence[int]) -> list[bool]:
    """Say which slices of a short series belong to a standstill."""
    if len(ops) < SHORT_MIN:
        return []
    runs = [(flag, len(list(group))) for flag, group in itertools.groupby(n == 0 for n in ops)]
    pauses = [length for is_empty, length in runs if is_empty]
    rate = sum(ops) / max(1, len(ops) - sum(pauses))
    usual = _at(pauses, 0.5) if len(pauses) >= PAUSES_MIN else 0
    least = max(GAP_SLICES_MIN, 2 * usual + 1)
    return [
        is_empty and length >= least and length * rate >= GAP_OPS_MIN
        for is_empty, length in runs
        for _ in range(length)
    ]


def _out_of_rhythm(is_quiet: Sequence[bool]) -> list[bool]:
    """Keep what lasts longer than twice the usual pause of a trial with a rhythm."""
    runs = [(flag, len(list(group))) for flag, group in itertools.groupby(is_quiet)]
    usual = _at([length for flag, length in runs if flag], 0.5)
    return [flag and length > 2 * usual for flag, length in runs for _ in range(length)]


def without_stalls(ops: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Say of many trials at once which have no stall for certain; others need a closer look.

    Parameters
    ----------
    ops : shape (m, n), one trial per row, n at least `SLICES_MIN`.
    """
    import numpy as np

    middle = np.partition(ops, ops.shape[1] // 2, axis=1)[:, ops.shape[1] // 2]
    return (middle >= OPS_MIN) & (ops.min(axis=1) >= QUIET_SHARE * middle)


def _joined_until(
    ops: Sequence[int], width_ns: int, quantile: float, ops_min: float
) -> tuple[list[int], int]:
    """Join neighbours until a quantile completes enough, or too few slices are left to tell."""
    slices = list(ops)
    while len(slices) >= SLICES_MIN and _at(slices, quantile) < ops_min:
        slices = [a + b for a, b in zip(slices[::2], slices[1::2], strict=False)]
        width_ns *= 2
    return slices, width_ns


def _at(slices: Sequence[int], quantile: float) -> int:
    return sorted(slices)[int(quantile * len(slices))]


def _is_cyclic(slices: Sequence[int]) -> bool:
    import numpy as np

    return bool(are_cyclic(np.asarray([slices], dtype=np.float64))[0])
