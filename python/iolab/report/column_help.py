"""Explanations that appear when the mouse rests on the head of a column.

Fixed heads have a sentence in `COLUMNS`, metrics have theirs in their own row, factors in theirs.
An ending in parentheses is a unit, `95 % low` and `95 % high` are the ends of an interval.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from iolab.stats.metrics import METRICS
from iolab.study.factors import FACTORS

_UNIT: Final = re.compile(r" \([^()]*\)$")
_INTERVAL: Final = re.compile(r"^(?:(.*) )?(?:\d+(?:\.\d+)? % )?(low|high|interval)$")
_AGAINST: Final = "against "
_ENDS: Final = {
    "low": "Lower end of the interval of {what}.",
    "high": "Upper end of the interval of {what}.",
    "interval": "Range that holds {what} in 95 % of studies like this one.",
}

COLUMNS: Final[dict[str, str]] = {
    "BCa interval": "Interval by the bootstrap over rounds, corrected for bias and skew.",
    "BH p": "Chance of such a difference without any effect, adjusted for all single cells"
    " (Benjamini and Hochberg).",
    "CPU per I/O": "Time of the processors per operation, of the program and of the kernel.",
    "CPU time per operation": "Time of the processors per operation, of the program and of the"
    " kernel.",
    "F": "Variance that the effect explains, divided by the spread it is judged against; its"
    " degrees of freedom.",
    "a": "Time per request that does not depend on its size.",
    "adjusted p": "Chance of such a difference without any effect, adjusted for all comparisons of"
    " the family.",
    "against the best": "The bound compared with the fastest level.",
    "at most": "The bound: nothing can be faster than this.",
    "b": "Time per byte of a request.",
    "best": "Level with the best mean in this cell.",
    "bound": "Name of the limit.",
    "caveat": "Code of the doubt; the page on honesty describes it.",
    "cell": "One operation with one level of every factor that is not compared.",
    "change": "Setting that was switched while the trial ran.",
    "class": "Kind of shape that the series has.",
    "comparison": "The two levels that are compared.",
    "confidence": "Share of studies like this one whose interval holds the true value.",
    "count": "Number of times.",
    "depth asked": "Operations in flight that the workload asks for.",
    "operation and cell": "Operation, and the levels of the factors that are not compared.",
    "read": "Bytes that the device read.",
    "written": "Bytes that the device wrote.",
    "per byte asked": "Bytes that the device moved for each byte that was asked for.",
    "requests": "Requests that the device completed.",
    "requests per trial": "Requests that the device completed, mean of the trials.",
    "mean request": "Mean size of a request at the device.",
    "bios per request": "What the file system asked for, joined into one request.",
    "sequential": "Share of the requests that begin where the one before ended.",
    "mean depth": "Requests at the driver at the same time, mean over time.",
    "largest depth": "Most requests at the driver at the same time.",
    "busy": "Share of the time with a read or write at the driver.",
    "Q2C mean": "Mean time from when a request is asked for to its completion.",
    "Q2G mean": "Mean time until there is a request for it.",
    "G2I mean": "Mean time from the request to its place in the scheduler.",
    "Q2M + M2D mean": "Mean time of those that were joined with another request, spread over all.",
    "I2D mean": "Mean time in the scheduler.",
    "G2D mean": "Mean time before the driver without being queued, as behind a flush.",
    "D2C mean": "Mean time at driver and device.",
    "Q2D p99": "Time within which 99 of 100 requests reach the driver.",
    "D2C p99": "Time within which driver and device complete 99 of 100 requests.",
    "Q2C p99": "Time within which 99 of 100 requests are complete.",
    "depth reached": "Operations in flight on average, measured.",
    "difference": "Ratio of the level to the baseline, in words.",
    "effect": "Factor, or factors that act together.",
    "elapsed": "Duration of the trial.",
    "end of slice": "Time since the start of the operation.",
    "error": "Reason why the trial failed.",
    "exact p": "Chance of such a difference without any effect, by flipping signs; not adjusted.",
    "fact": "Property of the machine that was read and stored.",
    "factor": "Something that is varied on purpose.",
    "fastest level": "Level with the best mean.",
    "first better": "Share of rounds in which the first level is better.",
    "for": "Workload that the choice is for.",
    "g": "Difference in units of the spread (Hedges' g).",
    "geometric mean": "Mean of ratios: the n-th root of the product.",
    "geometric mean or maximum": "How several trials become one value.",
    "geometric mean over trials, or longest of all": "Mean of the trials; for the longest wait, the"
    " longest of all trials.",
    "in words": "The same as a sentence.",
    "instant": "Time at which something was switched.",
    "interval of the median": "Interval of the median ratio, by counting (order statistics).",
    "judged against": "Spread that the effect is compared with.",
    "kind": "Kind of operation or of row.",
    "knob": "Setting of the machine that iolab changes and puts back.",
    "largest misfit": "Largest distance of a mean from the fitted line.",
    "level": "One value of the compared factor.",
    "levels": "Level of each factor in the trial or comparison.",
    "longest": "Longest single wait.",
    "longest service time": "Longest time from the start of an operation to its end.",
    "longest wait": "Longest single wait.",
    "p50": "Time within which half of the operations end.",
    "longest of all": "Longest single wait of all trials.",
    "longest stall": "Longest time with next to no completion.",
    "low p99": "Level to take where the slowest hundredth of operations counts.",
    "may be the best": "Not ruled out as the best level, all levels taken together.",
    "median ratio": "Ratio of the middle round.",
    "device specification": "Bound by what the device's data sheet promises.",
    "generator's ceiling": "Bound by the load generator, measured on a target that does nothing.",
    "memory": "Bound by what all processors copy in memory.",
    "moved": "Data moved since the start of the operation.",
    **dict.fromkeys(("MB/s", "MiB/s", "rate"), "Data moved in a second."),
    "time per byte": "Time that a request takes longer for each of its bytes.",
    "metric": "Quantity that is measured.",
    "mode": "Direct I/O, or through the page cache.",
    "n": "Number of values.",
    "name": "Name of the factor or setting.",
    "operation": "What the workload repeats, such as random-read.",
    "ordinal": "Place of the trial in the whole study, from 1.",
    "p": "Chance of such a difference without any effect.",
    "p99 verdict": "Verdict word for the time within which 99 of 100 operations end.",
    "page-cache share": "Share of the bytes that came from memory instead of the device.",
    "pair": "The two levels that are compared.",
    "panel": "Small chart of the figure that the row belongs to.",
    "percentile": "Share of operations that end within the time.",
    "place": "Place of the trial in its round, from 1.",
    "quantile": "Time within which a share of the operations ends.",
    "range": "Lowest and highest value.",
    "ratio": "Level divided by the baseline; turned so that above 1 is better.",
    "ratio to the baseline": "Level divided by the baseline; turned so that above 1 is better.",
    "ratio to the best": "Level divided by the best level of the cell; below 1 is worse.",
    "ratio to the best of the others": "Level divided by the best of all other levels.",
    "ratio to the mean": "Value divided by the mean of its cell.",
    "read back": "Value that the kernel reported after it was set.",
    "reached": "What was measured, in the unit of the bound.",
    "residual": "What neither treatment nor round explains.",
    "role": "Varied: a factor with several levels. Held: the same in all trials.",
    "round": "Every treatment once.",
    "rounds": "Complete rounds that the comparison rests on.",
    "row": "Part of the table.",
    "rows read": "Rows of the table that this report is made of.",
    "runs": "Number of runs.",
    "runs a side": "Runs of each of the two levels.",
    "series": "Line or marks of one colour.",
    "series long enough to show one": "Series of throughput over time in which a stall could be"
    " seen.",
    "series with a stall": "Series of throughput over time with a stretch of next to no"
    " completion.",
    "shapes": "Course of throughput inside the trials: flat, warming up, drifting, and so on.",
    "share": "Part of the variance that the effect explains.",
    "share of it": "What was reached, as a part of the bound.",
    "stalled": "Trials with a stretch of next to no completion.",
    "stalls": "Series with a stretch of next to no completion, of those long enough to show one.",
    "standard quantile": "Place of the residual in a normal distribution.",
    "started": "Time at which the trial began.",
    "statistic": "Geometric mean, or the longest of all trials.",
    "status": "ok, failed or interrupted.",
    "steady at the end": "Trials that no longer change at their end, by the rule of SNIA.",
    "stream": "Group of workers that compete with other groups.",
    "table": "Table of study.db.",
    "time": "Time since the start of the operation.",
    "time per request": "Time from asking to the end of one request.",
    "treatment": "One combination of levels with a workload.",
    "trial": "One execution of a treatment.",
    "trial of the longest": "Trial in which the longest wait was seen.",
    "trial of the maximum": "Trial in which the largest value was seen.",
    "trials": "Number or names of trials.",
    "trials used / left out": "Trials that the comparison rests on, and those of incomplete"
    " rounds.",
    "value": "Measured value, with its unit.",
    "verdict": "better, worse, same, trivial, depends or undecided; the margin decides what"
    " matters.",
    "warmth": "Where the bytes came from: device or page cache.",
    "what": "What the row is about.",
    "where the longest was": "Trial and place of the longest wait.",
    "within the margin of the best": "Shown to be as good as the best, up to the margin.",
    "workload": "Everything that is asked of the storage in one trial.",
}


@cache
def explained(head: str) -> str | None:
    """Return the explanation of a column's head; None of one that is not known."""
    plain = head.strip()
    known = _known()
    while True:
        if plain in known:
            return known[plain]
        if plain.startswith(_AGAINST):
            return "Difference to the baseline, in words, with its interval."
        shorter = _UNIT.sub("", plain)
        if shorter == plain:
            break
        plain = shorter
    found = _INTERVAL.match(plain)
    if found:
        what = found[1] or ""
        return _ENDS[found[2]].format(what=what if what in known else "the value")
    return None


@cache
def _known() -> dict[str, str]:
    known = dict(COLUMNS)
    for metric in METRICS:
        known[metric.label] = known[metric.name] = _sentence(metric.about)
        for name in (metric.label.removesuffix(" latency"), metric.label.removesuffix(" rate")):
            known.setdefault(name, _sentence(metric.about))
    for factor in FACTORS:
        known.setdefault(factor.name, f"Factor: {factor.help}.")
    return known


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
