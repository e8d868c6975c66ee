"""Noise of a machine by length of time: equal levels, compared in stretches of every length.

An A/A study in slices is one long series of rates. Stretches of it are averaged and neighbours
subtracted, as an Allan deviation is formed: that is the error with which slices of that length
would compare two levels. Independent noise gives every length the same error; noise that lasts for
seconds makes long stretches err more, because neighbours no longer meet the same moment.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from iolab.frozen import frozen, replace
from iolab.stats.methods.student import estimate_mean
from iolab.store.rows import StudyData
from iolab.study.factors import DELAY_PREFIX

LENGTH_PAIRS_MIN: Final = 8
THREE_MINUTES_NS: Final = 180e9
ALPHA: Final = 0.05
LABEL: Final = "label"


@frozen
class ErrorOfLength:
    """Error with which slices of a length would compare two equal levels."""

    length_ns: float
    error: float
    """Standard error of the ln-ratio after three minutes."""
    pairs: int
    """Stretches that were compared with their neighbours; few say little."""
    independent: float
    """The error if the noise of the shortest slices were independent: the same at any length."""
    low: float = 0.0
    high: float = math.inf
    """95 % interval of the error, as if differences of neighbours were normal and independent."""

    @property
    def scatter(self) -> float:
        """Allan deviation: scatter of the mean ln-rate of a stretch from that of its neighbour."""
        return self.error * math.sqrt(self.compared)

    @property
    def compared(self) -> float:
        """Half the pairs in three minutes: the squared error is the squared scatter over it."""
        return THREE_MINUTES_NS / (4 * self.length_ns)


def errors_of_series(logs: Sequence[float], slice_ns: float) -> list[ErrorOfLength]:
    """Errors by length, of a series of ln-rates of equal slices that follow each other.

    Parameters
    ----------
    slice_ns : mean length of a slice.

    Returns
    -------
    list : lengths double until fewer than `LENGTH_PAIRS_MIN` pairs are left.
    """
    from scipy.special import gammaincinv

    found = list[ErrorOfLength]()
    size = 1
    while (pairs := len(logs) // (2 * size)) >= LENGTH_PAIRS_MIN:
        means = [math.fsum(logs[i : i + size]) / size for i in range(0, 2 * pairs * size, size)]
        differences = [a - b for a, b in zip(means[::2], means[1::2], strict=True)]
        sd = estimate_mean(differences).sd
        if sd is None:
            break
        length_ns = size * slice_ns
        error = sd / math.sqrt(THREE_MINUTES_NS / (2 * length_ns))
        half = (pairs - 1) / 2
        low, high = (
            error * math.sqrt(half / float(gammaincinv(half, q)))
            for q in (1 - ALPHA / 2, ALPHA / 2)
        )
        first = found[0].error if found else error
        found.append(ErrorOfLength(length_ns, error, pairs, first, low, high))
        size *= 2
    return found


def error_by_length(data: StudyData) -> list[ErrorOfLength]:
    """Errors by length of the longest series of a study; slices of all labels are one series."""
    series: dict[tuple[int, str], list[tuple[int, float, int]]] = defaultdict(list)
    for row in data.slices:
        for begin, ops, length in zip(row.begin_ns, row.ops, row.length_ns, strict=True):
            if ops and length:
                key = (row.session, row.operation)
                series[key].append((begin, math.log(ops / length), length))
    if not series:
        return []
    longest = sorted(max(series.values(), key=len))
    slice_ns = math.fsum(length for _, _, length in longest) / len(longest)
    return errors_of_series([value for _, value, _ in longest], slice_ns)


def error_of_equal_labels(data: StudyData) -> list[ErrorOfLength]:
    """Errors by length of an A/A study in slices, a planted pause left out; else nothing."""
    if data.study.compared_factor != LABEL:
        return []
    labels = {trial.trial_id: trial.levels.get(LABEL, "") for trial in data.trials}
    equal = [row for row in data.slices if not labels[row.trial_id].startswith(DELAY_PREFIX)]
    return error_by_length(replace(data, slices=equal))


def chance_to_see(error: float, difference: float) -> float:
    """Chance that a 95 % interval excludes "equal", by the normal law.

    Parameters
    ----------
    error : standard error of the ln-ratio, above 0.
    difference : true one, as a share: 0.05 is five percent more.
    """
    from scipy.special import ndtr, ndtri

    edge, shift = float(ndtri(1 - ALPHA / 2)), abs(math.log1p(difference)) / error
    return float(ndtr(shift - edge) + ndtr(-shift - edge))


def smallest_seen(error: float, chance: float = 0.8) -> float:
    """Smallest difference, as a share, that a 95 % interval shows with this chance."""
    from scipy.special import ndtri

    return math.expm1(float(ndtri(1 - ALPHA / 2) + ndtri(chance)) * error)
