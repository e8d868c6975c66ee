"""Statistic that a time is, by the words in the name of its operation.

A name is read word by word, ``_`` and a change to capitals (``avgLatency``) part words. A plain
``latency`` is bonnie++'s, which prints the longest one. What iolab has no metric for (the shortest,
a deviation, p95) is no metric of another name: it has none.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

ELAPSED: Final = "elapsed_ns_total"
_MEAN: Final = "latency_ns_mean"
_LONGEST: Final = "latency_ns_max"
_PERCENTILES: Final = {
    Decimal(50): "latency_ns_p50",
    Decimal(90): "latency_ns_p90",
    Decimal(99): "latency_ns_p99",
    Decimal("99.9"): "latency_ns_p999",
    Decimal(100): _LONGEST,
}
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z]|P\d)")
_WORD: Final = re.compile(r"[a-zµ]+")
_RANK: Final = re.compile(
    r"(?<![a-z\d.])(?:p|(?:pct|perc|percentile) ?)(\d{1,5}(?:\.\d{1,4})?)(?![a-z\d]|\.\d)"
)
"""p99, p99.9, p999, percentile 99."""
_ORDINAL: Final = re.compile(
    r"(?<![a-z\d.])(\d{1,3}(?:\.\d{1,4})?)(?:(?:st|nd|rd|th)(?![a-z\d])| ?(?=percentile|pct\b))"
)
"""99th, 99 percentile."""
_SHARE: Final = re.compile(r"(?<![a-z\d.])(\d{1,3}(?:\.\d{1,4})?) ?%")
"""99 %, of a latency; `70 % read` is a mixture."""
_BARE: Final = re.compile(r"(?<![a-z\d.])(99\.\d{1,4})(?![a-z\d]|\.\d)")
_RANK_MIN: Final = 50
"""A `1st` or `p2` that is of no latency is no percentile."""
_LATENCIES: Final = frozenset(("latency", "latencies", "lat", "clat", "slat"))
_PLAIN: Final = frozenset(("latency", "latencies"))
_MEANS: Final = frozenset(("mean", "avg", "average"))
_LONGEST_WORDS: Final = frozenset(("max", "maximum", "longest", "worst", "highest"))
_UNKNOWN_WORDS: Final = frozenset(
    (
        *("min", "minimum", "shortest", "lowest", "stddev", "stdev", "stdevp", "std", "deviation"),
        *("variance", "jitter", "iqr"),
    )
)
_SERVICE: Final = re.compile(r"\b[aw]?svc t\b|\bawait\b|\btime per op\b")
"""Means that iostat prints (svc_t, asvc_t, await, r_await), and iozone's -N."""


def metric_of_time(operation: str, *, is_short: bool) -> str | None:
    """Metric of a time; None for a statistic that no metric is.

    Parameters
    ----------
    operation : name of what took the time.
    is_short : whether its unit is below a second: `max_us` is of latencies, `max compression` in
        seconds is not.
    """
    text = _CAPITAL.sub(" ", operation).lower().replace("_", " ")
    words = set(_WORD.findall(text))
    is_latency = bool(words & _LATENCIES)
    is_statistic = is_latency or is_short
    ranks = _ranks(text, is_statistic=is_statistic, is_latency=is_latency)
    if (words & _UNKNOWN_WORDS and is_statistic) or len(ranks) > 1:
        return None
    if ranks:
        return _PERCENTILES.get(ranks.pop())
    if "median" in words:
        return _PERCENTILES[Decimal(50)]
    if _SERVICE.search(text) or (words & _MEANS and is_statistic):
        return _MEAN
    if words & _LONGEST_WORDS and is_statistic:
        return _LONGEST
    if words & _PLAIN:
        return _LONGEST
    return None if is_latency else ELAPSED


def names_a_statistic(operation: str) -> bool:
    """Tell whether a name says that times of single operations are summed up in it."""
    return metric_of_time(operation, is_short=True) != ELAPSED


def _ranks(text: str, *, is_statistic: bool, is_latency: bool) -> set[Decimal]:
    """Percentiles that a name holds; p999 is 99.9."""
    found: set[Decimal] = set()
    for digits in _RANK.findall(text):
        is_run_together = "." not in digits and len(digits) > 2 and digits != "100"
        found.add(Decimal(f"{digits[:2]}.{digits[2:]}" if is_run_together else digits))
    if not is_statistic:
        found = {rank for rank in found if rank >= _RANK_MIN}
    is_told = "percentile" in text
    ordinals = map(Decimal, _ORDINAL.findall(text))
    found |= {rank for rank in ordinals if is_told or rank >= _RANK_MIN}
    if is_latency:
        found |= {Decimal(digits) for digits in _SHARE.findall(text)}
    return found | {Decimal(digits) for digits in _BARE.findall(text)}
