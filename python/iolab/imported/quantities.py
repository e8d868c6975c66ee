"""Units of a table and the metrics they stand for.

KB means 1024 bytes as in IOzone, bonnie++ and iostat; MB and GB are powers of ten, MiB and GiB
powers of two. Bits are written Mbit/s, Mbps or Mb/s, and their K, M and G are powers of ten; an
all-small ``mb/s`` is bytes, as many tools print them. A duration is a latency if the operation's
name says of which kind (:mod:`iolab.imported.latency_words`), else the time that the operation
took. A unit may also be the name of a metric, value in the metric's own unit.
"""

from __future__ import annotations

import re
from typing import Final

from iolab.frozen import frozen
from iolab.imported.latency_words import metric_of_time
from iolab.stats.metrics import METRIC_BY_NAME

_RATE: Final = re.compile(
    r"(?P<prefix>[kmg]?)(?P<binary>i?)(?P<what>bytes?|bits?|b)(?P<per>/s|/sec|ps)", re.IGNORECASE
)
_BYTES: Final = {"": 1.0, "k": 1024.0, "m": 1e6, "g": 1e9}
"""Bytes of a rate by its prefix: KB is 1024 bytes."""
_BITS: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_BINARY: Final = {"": 1.0, "k": 1024.0, "m": float(1 << 20), "g": float(1 << 30)}
_COUNTS: Final = ("1/s", "ops/s", "iops", "io/s", "req/s", "requests/s")
_TIMES: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
KNOWN_UNITS: Final = (
    "B/s",
    "KB/s",
    "MB/s",
    "GB/s",
    "KiB/s",
    "MiB/s",
    "GiB/s",
    "Mbit/s",
    "Gbit/s",
    "1/s",
    "ops/s",
    "IOPS",
    "ns",
    "us",
    "ms",
    "s",
)


@frozen
class Quantity:
    """Quantity of a value in a unit: a metric, and the factor to the metric's own unit."""

    metric: str
    scale: float


def quantity_of(unit: str, operation: str) -> Quantity | None:
    """Metric of a value; None where no verdict can rest on the unit, or on what it is of."""
    if unit in METRIC_BY_NAME:
        return Quantity(unit, 1.0)
    folded = unit.strip().lower()
    if (match := _RATE.fullmatch(unit.strip())) is not None:
        return _rate(match)
    if folded in _COUNTS:
        return Quantity("throughput_ops_per_s", 1.0)
    if folded in _TIMES:
        metric = metric_of_time(operation, is_short=folded != "s")
        return Quantity(metric, _TIMES[folded]) if metric is not None else None
    return None


def is_time(unit: str) -> bool:
    """Tell whether a unit is one of time."""
    return unit.strip().lower() in _TIMES


def is_count(unit: str) -> bool:
    """Tell whether a unit counts operations per second."""
    return unit.strip().lower() in _COUNTS


def doubt_of(unit: str) -> str:
    """Spellings of which one is to be chosen, where a unit may be bits or bytes; else empty."""
    match = _RATE.fullmatch(unit.strip())
    if match is None or not _is_doubtful(match):
        return ""
    prefix = match["prefix"].upper() + ("i" if match["binary"] else "")
    return f"{prefix}B/s for bytes or {prefix}bit/s for bits"


def _is_doubtful(match: re.Match[str]) -> bool:
    """Tell whether nobody can know: b/s and Kb/s are printed for both, and so is mbps."""
    prefix, what = match["prefix"], match["what"]
    if what != "b":
        return False
    if match["per"].lower() == "ps":
        return not prefix or prefix.islower()
    return not prefix or (prefix == "K" and not match["binary"])


def _rate(match: re.Match[str]) -> Quantity | None:
    if _is_doubtful(match):
        return None
    prefix, what = match["prefix"].lower(), match["what"]
    is_bits = what.lower().startswith("bit") or (what == "b" and match["prefix"].isupper())
    table = _BINARY if match["binary"] else _BITS if is_bits else _BYTES
    return Quantity("throughput_bytes_per_s", table[prefix] / (8 if is_bits else 1))
