"""A ratio in words, and an interval of ratios: the only place where one becomes the other.

Between a half and twice a change is read as a percentage (``12 % slower``), beyond as a multiple
(``2.3 times as fast``, ``0.43 times as fast``, below a tenth as a fraction: ``1/79 as fast``):
100 % slower would mean that it stands still, and nothing is "79 times lower". The ends of an
interval have one unit, whatever lies between them: ``0.71 to 29 times as fast``; and all that is
said in one sentence has one form (`form_of`): as multiples if any needs them. A size and the ends
beside it have as many further digits (`further_digits`) as keep the size from looking like an end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from iolab.stats.methods.verdict_rule import EQUAL_WITHIN
from iolab.stats.metrics import Metric
from iolab.stats.metrics.metric import format_significant
from iolab.wording import counted

TIMES_FROM: Final = 2.0
"""From this factor on a change is a multiple."""

CAP: Final = 1000.0
"""Factor from which on an interval's end is written as ``>999``, and its inverse ``<.001``, as in
the tables, where it reaches over more than the factor.
"""
ROUNDS_MIN: Final = 3
"""From fewer an interval may be so wide that it says nothing."""

FRACTION_BELOW: Final = 0.1
"""Smaller multiples are fractions: ``1/79`` is read at once, 0.0127 is not."""

EQUAL: Final = "equal"
"""Stands for a size of no difference."""
_LEAST_PERCENT: Final = EQUAL_WITHIN * 100
"""Smaller differences are printed as none, and have the word of none."""

Form = Literal["percent", "times"]
"""Form of changes: as percentages, or as multiples."""


SAME_EACH_TIME: Final = "the same each time"
"""Stands for an interval without width."""
NO_WIDTH: Final = 1e-9
"""Relative width below which an interval has none: what is left is the rounding of logarithms."""
DIGITS_MAX: Final = 2
"""Further digits of numbers beside each other, at most."""


def has_no_width(ends: tuple[float, float]) -> bool:
    """Tell whether all rounds said the same, so that more of them would, too."""
    return ends[1] <= ends[0] * (1 + NO_WIDTH)


def further_digits(
    metric: Metric, middle: float, ends: tuple[float, float], form: Form | None = None
) -> int:
    """Return the digits beyond the usual that tell a size from both ends of its interval.

    ``11 times (10 to 11 times)`` is to be read as 10.6 times (10.2 to 11.0 times). Ends that are
    the size itself need none.
    """
    known = [end for end in ends if not math.isclose(end, middle, rel_tol=NO_WIDTH)]
    if _is_none(middle):
        return 0
    for further in range(DIGITS_MAX):
        told = _words(metric, _natural(metric, middle), form, further)
        if all(_words(metric, _natural(metric, end), form, further) != told for end in known):
            return further
    return DIGITS_MAX


def no_interval(n: int, ends: tuple[float, float], unit: str = "round") -> str:
    """Say that too few rounds have no useful interval; empty where theirs says something.

    `ends` of a useless one are further from the middle than half and twice of it.
    """
    low, high = ends
    if n >= ROUNDS_MIN or high <= low * TIMES_FROM**2:
        return ""
    return f"no useful interval from {counted(n, unit)}"


def percent(fraction: float) -> str:
    """Write a fraction of at least 0 as percent, two digits below 10."""
    return f"{_percentage(fraction)} %"


def form_of(ratios: Iterable[float]) -> Form:
    """Return the one form in which all of these ratios can be written."""
    return "percent" if all(1 / TIMES_FROM < ratio < TIMES_FROM for ratio in ratios) else "times"


def size_of_effect(
    metric: Metric, ratio: float, form: Form | None = None, *, further: int = 0
) -> str:
    """Write an oriented ratio in the metric's own direction: ``12 % slower``, ``1/79 as high``.

    For throughputs the words are faster and slower, for all others lower and higher; no difference
    is ``equal``. `form` is that of the sentence; None is that of the ratio. `further` digits are
    those of the interval beside it.
    """
    if _is_none(ratio):
        return EQUAL
    return _joined(_words(metric, _natural(metric, ratio), form, further))


def joint_of(size: str) -> str:
    """Return the word between a size and what it is compared with."""
    return "to" if size == EQUAL else "as" if " as " in size else "than"


def amount_of_effect(metric: Metric, ratio: float, form: Form | None = None) -> str:
    """Write an oriented ratio as an amount: ``12 % less throughput``."""
    natural = _natural(metric, ratio)
    number, unit, _ = _words(metric, natural, form)
    if unit == "%":
        return f"{number} {unit} {'more' if natural >= 1 else 'less'} {metric.label}"
    return f"{number} {unit or 'of'} the {metric.label}"


def size_of_interval(
    metric: Metric,
    middle: float,
    ends: tuple[float, float],
    form: Form | None = None,
    *,
    further: int = 0,
) -> str:
    """Write an interval of oriented ratios, its direction only where that of `middle` differs."""
    told = _words(metric, _natural(metric, middle), form)[1:]
    if _is_none(middle) and not all(map(_is_none, ends)):
        told = ("", "")  # Its word has no direction.
    worse, better = (_natural(metric, ratio) for ratio in ends)
    if (form or form_of(ends)) == "percent":
        words = [_words(metric, end, "percent", further) for end in (worse, better)]
        if words[0][1:] != words[1][1:]:
            return " to ".join(map(_joined, words))
        return _span([number for number, *_ in words], words[0][1:], told)
    return _multiples(metric, sorted((worse, better)), told, further)


def _is_none(ratio: float) -> bool:
    """Tell whether a ratio says no difference."""
    return abs(ratio - 1) * 100 < _LEAST_PERCENT


def _multiples(metric: Metric, ends: Sequence[float], told: tuple[str, str], further: int) -> str:
    """Write ends, the smaller first, as multiples; below one as fractions if the middle is."""
    low, high = ends
    is_capped = high > low * CAP
    if high <= 1 and told == ("", _as(metric)):
        ends_shown = [f"1/{_times(1 / high, further)}", _least(low, is_capped, further)]
        return _span(ends_shown, ("", _as(metric)), told)
    ends_shown = [_end(end, is_capped, further) for end in (low, high)]
    return _span(ends_shown, ("times", _as(metric)), told)


def _span(numbers: list[str], unit: tuple[str, str], told: tuple[str, str]) -> str:
    near, far = sorted(numbers, key=_size)
    words = (unit[0], "" if unit == told else unit[1])
    return _joined((f"{near} to {far}", *words))


def _size(number: str) -> float:
    """Read a number back: of fractions the part below the line."""
    return float(number.replace(_GROUP, "").lstrip("<>").removeprefix("1/"))


def _joined(words: Iterable[str]) -> str:
    return " ".join(word for word in words if word)


def _natural(metric: Metric, ratio: float) -> float:
    """Turn an oriented ratio (above 1 is better) into one of the values themselves."""
    return ratio if metric.is_higher_better else 1 / ratio


def _words(
    metric: Metric, natural: float, form: Form | None = None, further: int = 0
) -> tuple[str, str, str]:
    """Split what is said of a ratio: number, unit (none of a fraction), direction."""
    if (form or form_of([natural])) == "times":
        if natural < FRACTION_BELOW:
            return f"1/{_times(1 / natural, further)}", "", _as(metric)
        return _times(natural, further), "times", _as(metric)
    up, down = ("faster", "slower") if metric.is_rate else ("higher", "lower")
    return _percentage(abs(natural - 1), further), "%", up if natural >= 1 else down


def _as(metric: Metric) -> str:
    return f"as {'fast' if metric.is_rate else 'high'}"


def _percentage(fraction: float, further: int = 0) -> str:
    """Write a percentage; one below a tenth with as many digits as it needs to be none of zero."""
    value = fraction * 100
    if value < _LEAST_PERCENT:
        return "0"
    if value < 0.05:
        return format_significant(value, 1 + further)
    return _two_digits(value, further)


def _two_digits(value: float, further: int) -> str:
    """Write a number with a decimal below 10 and none above, and `further` ones."""
    decimals = further if value >= 10 - 0.5 * 10 ** -(1 + further) else 1 + further
    return f"{value:.{decimals}f}"


_GROUP: Final = "\N{NARROW NO-BREAK SPACE}"
_GROUPED_FROM: Final = 9999.5
"""Longer numbers have their digits in groups."""


def _end(value: float, is_capped: bool, further: int) -> str:
    if is_capped and (value >= CAP or value < 1 / CAP):
        return ">999" if value >= 1 else "<.001"
    return _times(value, further)


def _least(value: float, is_capped: bool, further: int) -> str:
    """Write the far end of an interval of fractions."""
    return "<1/999" if is_capped and value < 1 / CAP else f"1/{_times(1 / value, further)}"


def _times(value: float, further: int = 0) -> str:
    """Write a multiple: below the factor that needs it with the digits that a percentage has."""
    if value >= _GROUPED_FROM:
        return f"{value:,.{further}f}".replace(",", _GROUP)
    if value < TIMES_FROM:
        digits = 2 + further
        return f"{value:.{digits}f}" if value >= 0.1 else format_significant(value, digits)
    return _two_digits(value, further)
