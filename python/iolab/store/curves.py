"""Latency distributions out of the records: quantiles on a fixed grid, per trial and operation.

The records keep whole histograms; pictures of the tail need more of them than the few quantiles
that are metrics. Left out: merging across trials, since each trial has its own curve.

Source of the layout: `iolab_model::histogram` (log-linear, 2**bits parts of each power of two).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolab.store.rows import CurveRow

if TYPE_CHECKING:
    from iolab.protocol import Histogram, Record

LADDER: Final = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
"""A ladder's steps; a step needs as many operations as let one lie beyond it."""
BODY: Final = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.95)
_BITS: Final = 7
"""Of every histogram there is: SUB_BUCKET_BITS."""
_PARTS: Final = (64 - _BITS + 1) << _BITS
"""Parts of all powers of two of a number with 64 bits."""
_COUNT_MAX: Final = 1 << 64
GRID: Final = tuple(sorted((*LADDER, *BODY)))


def curves_of(trial_id: str, record: Record) -> Iterator[CurveRow]:
    """Curves of the operations of a trial."""
    for phase in record.get("phases") or []:
        tenants = phase.get("tenants") or []
        for tenant in tenants:
            name = str(phase["name"])
            operation = name if len(tenants) == 1 else f"{name}/{tenant['name']}"
            for clock, key in (("latency", "service"), ("response", "response")):
                histograms = tenant.get(key) or {}
                found = [histograms.get(kind) for kind in ("read", "write")]
                curve = quantiles_of([h for h in found if h and h.get("count")])
                if curve:
                    count, values = curve
                    yield CurveRow(trial_id, operation, clock, count, values)


def check_histogram(histogram: Histogram) -> None:
    """Refuse a histogram that the core would not read: an index of it is the power of a number.

    Raises
    ------
    ValueError : it is such.
    """
    if histogram.get("sub_bucket_bits", _BITS) != _BITS:
        raise ValueError("a histogram of another resolution")
    total = 0
    for index, count in histogram["counts"]:
        if type(index) is not int or not 0 <= index < _PARTS:
            raise ValueError(f"index {index!r} of a histogram")
        if type(count) is not int or not 0 <= count < _COUNT_MAX:
            raise ValueError(f"count {count!r} of a histogram")
        total += count
    ends = (histogram["min"], histogram["max"])
    if any(type(end) is not int or not 0 <= end < _COUNT_MAX for end in ends):
        raise ValueError("an end of a histogram is no time")
    if total != histogram["count"]:
        raise ValueError("the counts of a histogram do not add up")


def quantiles_of(histograms: Sequence[Histogram]) -> tuple[int, dict[float, float]] | None:
    """Count and quantiles (ns) of stored histograms together; None without any value.

    As in the core, a quantile lies at place (count + 1) x q of all values in order, between two of
    them in proportion; values of one part are spread evenly over it.
    """
    if not histograms:
        return None
    bits = _BITS
    counts: dict[int, int] = {}
    for histogram in histograms:
        check_histogram(histogram)
        for index, count in histogram["counts"]:
            counts[index] = counts.get(index, 0) + count
    total = sum(counts.values())
    lowest = min(int(h["min"]) for h in histograms)
    highest = max(int(h["max"]) for h in histograms)
    wanted = [q for q in GRID if total * min(q, 1 - q) >= 1 - 1e-9]
    ranks = list[tuple[int, float]]()
    for q in wanted:
        place = q * (total + 1)
        below = min(max(int(place), 1), total)
        ranks.append((below, min(max(place - below, 0.0), 1.0)))
    asked = sorted({r for below, _ in ranks for r in (below, min(below + 1, total))})
    found: dict[int, float] = {}
    seen, at = 0, 0
    for index in sorted(counts):
        count = counts[index]
        while at < len(asked) and asked[at] <= seen + count:
            value = _inside(index, bits, (asked[at] - seen - 0.5) / count)
            found[asked[at]] = float(min(max(value, lowest), highest))
            at += 1
        seen += count
    values = {
        q: found[below] + share * (found[min(below + 1, total)] - found[below])
        for q, (below, share) in zip(wanted, ranks, strict=True)
    }
    return total, values


def _inside(index: int, bits: int, share: float) -> float:
    if index < 2 << bits:
        return index
    shift = (index >> bits) - 1
    return ((index - (shift << bits)) << shift) + ((1 << shift) - 1) * share
