"""Student's t for the mean of one sample of ln-ratios, one value per round.

Model: the ln-ratios of different rounds are independent and roughly normal; nothing is assumed
about the distribution of operations inside a trial. Left out: weights, degrees of freedom other
than n - 1.

Source: Student (1908), Biometrika 6(1); used on paired differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iolab.frozen import frozen, replace


@frozen
class MeanEstimate:
    """A sample reduced to what a t interval needs.

    ``mean`` and ``sd`` are in the unit of the sample (here ln of a ratio: none); ``sd`` is None
    below two values.
    """

    mean: float
    sd: float | None
    n: int
    rounding: float = 0.0
    """Largest error of the mean because values were stored rounded; more rounds do not help."""

    def half_width(self, confidence: float, *, n: int | None = None) -> float:
        """Return half the width of the two-sided t interval of the mean.

        Parameters
        ----------
        confidence : coverage, in (0, 1).
        n : pretend that this many values with the same spread had been seen (planning).

        Returns
        -------
        float : unit of the sample; infinite below two values.
        """
        count = self.n if n is None else n
        if self.sd is None or count < 2:
            return math.inf
        quantile = t_quantile_real(0.5 + confidence / 2, self.freedom_of(count))
        return quantile * self.sd / math.sqrt(count) + self.rounding

    def freedom_of(self, count: int) -> float:
        """Return the degrees of freedom that `count` such values would have."""
        return count - 1

    def p_value(self) -> float | None:
        """Return the two-sided p of "the mean is 0"; None below two values."""
        one_sided = self._tail(max(0.0, abs(self.mean) - self.rounding))
        return None if one_sided is None else min(1.0, 2 * one_sided)

    def p_beyond(self, edge: float) -> float | None:
        """Return the p of "the mean lies `edge` or more from 0" (two one-sided tests).

        Source: Schuirmann (1987), J. Pharmacokinet. Biopharm. 15(6). None below two values.
        """
        return self._tail(edge - abs(self.mean) - self.rounding)

    def _tail(self, distance: float) -> float | None:
        """Return the chance of a mean at least `distance` above the true one."""
        if self.sd is None or self.n < 2:
            return None
        if self.sd == 0:
            return 0.0 if distance > 0 else 0.5 if distance == 0 else 1.0
        return t_cdf_real(-distance * math.sqrt(self.n) / self.sd, self.freedom_of(self.n))


def mirrored(estimate: MeanEstimate) -> MeanEstimate:
    """Return the estimate of the same difference the other way round."""
    return replace(estimate, mean=-estimate.mean)


def estimate_mean(values: Sequence[float]) -> MeanEstimate:
    """Reduce `values` (shape (n,), n >= 1, finite) to mean, sample deviation and n.

    Raises
    ------
    ValueError : no value at all.
    """
    if not values:
        raise ValueError("the mean of no values does not exist")
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return MeanEstimate(mean, None, n)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return MeanEstimate(mean, sd, n)


def spread_bound(estimate: MeanEstimate, confidence: float) -> float | None:
    """Return the upper `confidence` bound of the true deviation; None below two values.

    ``sd * sqrt((n - 1) / q)`` with q the (1 - confidence) quantile of chi-square, n - 1 degrees.
    """
    if estimate.sd is None or estimate.n < 2:
        return None
    from scipy.special import chdtri

    degrees = estimate.n - 1
    return estimate.sd * math.sqrt(degrees / float(chdtri(degrees, confidence)))


def t_quantile(probability: float, degrees_of_freedom: int) -> float:
    """Return the `probability` quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def t_quantile_real(probability: float, degrees_of_freedom: float) -> float:
    """Return the `probability` quantile of Student's t; degrees of freedom as Welch's test has."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def t_cdf(value: float, degrees_of_freedom: int) -> float:
    """Return P(T <= `value`) of Student's t."""
    return t_cdf_real(value, degrees_of_freedom)


def t_cdf_real(value: float, degrees_of_freedom: float) -> float:
    """Return P(T <= `value`) of Student's t; degrees of freedom as Welch's test has them."""
    from scipy.special import stdtr

    return float(stdtr(degrees_of_freedom, value))
