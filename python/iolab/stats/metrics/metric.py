"""Definition of a metric: a named quantity with a unit, an orientation and a way to be written.

Values are stored in the unit that the metric's name carries (``latency_ns_p99``); people read them
in the display unit, throughputs in the units of `iolab.units.shown`. Left out: how a value is
obtained from histograms; that is `iolab.run`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

from iolab import units
from iolab.frozen import frozen, replace

BYTES_PER_S: Final = "bytes/s"
OPS_PER_S: Final = "ops/s"
BYTES: Final = "bytes"
Role = Literal["primary", "secondary", "shown"]


@frozen
class Metric:
    """One quantity that a trial yields once per operation.

    ``role``: a `primary` metric can carry the verdict (the first of `METRICS` that a workload
    has), a `secondary` one is judged beside it for trade-offs, a `shown` one is only drawn.
    """

    name: str
    unit: str
    """Unit of the stored value."""
    label: str
    """Noun used in sentences and axes, without unit."""
    about: str
    """Meaning, in one sentence."""
    is_higher_better: bool
    read_unit: str
    """Unit in which people read it; bytes are read in whatever units are shown."""
    read_scale: float
    """Stored value times this is the value in `read_unit`."""
    format: Callable[[float], str]
    """Stored value to text with an adapted unit."""
    role: Role = "shown"
    is_maximum: bool = False
    """True if each trial yields its longest: of several trials only the longest of all says more,
    and a mean of them is the longest of nothing.
    """

    is_whole_time: bool = False
    """True if it is the time that a whole operation took."""
    highest: float | None = None
    """No value can be above; None where there is no such bound."""

    @property
    def compared_label(self) -> str:
        """Noun used where ratios are formed: those of longest times are formed trial by trial."""
        return f"{self.label} of a trial" if self.is_maximum else self.label

    @property
    def statistic(self) -> Literal["geometric mean", "maximum"]:
        """Name of the value that stands for several trials."""
        return "maximum" if self.is_maximum else "geometric mean"

    @property
    def is_of_one_stream(self) -> bool:
        """Tell whether values of different streams have no common mean: times that somebody
        waited.
        """
        return self.unit == "ns"

    @property
    def is_from_histogram(self) -> bool:
        """Tell whether values are known to within a bucket of a histogram."""
        return re.search(r"_ns_(timed_)?p\d+$", self.name) is not None

    @property
    def is_fallback(self) -> bool:
        """Tell whether two studies are compared by it only where bytes say nothing of an
        operation.
        """
        return self.unit == OPS_PER_S

    @property
    def is_rate(self) -> bool:
        """Tell whether more of it is called faster."""
        return self.unit.endswith("/s")

    @property
    def display_unit(self) -> str:
        """Unit in which people read it now: ``MiB/s`` or ``MB/s`` for throughputs, ``MiB`` for
        bytes.
        """
        if self.unit == BYTES:
            return units.megabyte().name
        return rate_unit() if self.unit == BYTES_PER_S else self.read_unit

    @property
    def display_scale(self) -> float:
        """Stored value times this is the value in `display_unit`."""
        is_large = self.unit in (BYTES, BYTES_PER_S)
        return 1 / units.megabyte().size if is_large else self.read_scale

    def display(self, value: float) -> float:
        """Convert a stored value to `display_unit`."""
        return value * self.display_scale

    def as_data(self, value: float) -> float:
        """Convert a stored value to `read_unit`, in which it is handed on: bytes stay bytes."""
        return value * self.read_scale


def format_significant(value: float, digits: int = 3) -> str:
    """Write a number with `digits` significant digits, never in exponent form."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) < 1:
        text = f"{rounded:.12f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    decimals = max(0, digits - len(str(int(abs(rounded)))))
    return f"{rounded:,.{decimals}f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def rate_unit() -> str:
    """Return the unit that throughputs are read in now: ``MiB/s`` or ``MB/s``."""
    return f"{units.megabyte().name}/s"


def in_rate_unit(value: float) -> float:
    """Convert bytes/s to `rate_unit`."""
    return value / units.megabyte().size


def format_bytes_per_s(value: float) -> str:
    """Write a throughput given in bytes/s as MiB/s (2**20 bytes) or MB/s (10**6 bytes)."""
    return f"{format_significant(in_rate_unit(value))} {rate_unit()}"


def format_ops_per_s(value: float) -> str:
    """Write a rate given in operations per second."""
    return f"{format_significant(value)} ops/s"


def format_ns(value: float) -> str:
    """Write a duration given in nanoseconds in the largest unit that keeps it above one."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(value) >= scale:
            return f"{format_significant(value / scale)} {unit}"
    return f"{format_significant(value)} ns"


def format_percent(value: float) -> str:
    """Write a share of one as percent."""
    return f"{format_significant(value * 100)} %"


def rate_metric(
    name: str, label: str, about: str, *, unit: str, text: Callable[[float], str]
) -> Metric:
    """Make the metric of a rate, stored and read in `unit`; higher is better.

    Rates carry verdicts.
    """
    return Metric(name, unit, label, about, True, unit, 1.0, text, "primary")


def cost_metric(name: str, label: str, about: str) -> Metric:
    """Make the metric of a share that something costs, which may exceed one; lower is better."""
    return Metric(name, "share", label, about, False, "%", 100.0, format_percent)


def share_metric(name: str, label: str, about: str, *, as_percent: bool = True) -> Metric:
    """Make the metric of a share of one, or of an index from 0 to 1; higher is better."""
    if as_percent:
        share = Metric(name, "share", label, about, True, "%", 100.0, format_percent)
    else:
        share = Metric(name, "index", label, about, True, "", 1.0, format_significant)
    return replace(share, highest=1.0)


def amount_metric(name: str, label: str, about: str, *, is_higher_better: bool = False) -> Metric:
    """Make the metric of an amount of bytes; lower is better unless it says otherwise."""
    text = units.format_bytes_rounded
    return Metric(name, BYTES, label, about, is_higher_better, BYTES, 1.0, text)


def count_metric(name: str, label: str, about: str, *, is_higher_better: bool = False) -> Metric:
    """Make the metric of a number of things; lower is better unless it says otherwise."""
    return Metric(name, "count", label, about, is_higher_better, "", 1.0, format_significant)


def latency_metric(
    name: str, label: str, about: str, *, role: Role = "shown", is_maximum: bool = False
) -> Metric:
    """Make the metric of a duration stored in ns and drawn in µs; lower is better."""
    return Metric(name, "ns", label, about, False, "µs", 1e-3, format_ns, role, is_maximum)


def duration_metric(name: str, label: str, about: str) -> Metric:
    """Make the metric of the time that a whole operation took, stored in ns; lower is better."""
    metric = latency_metric(name, label, about, role="secondary")
    return replace(metric, is_whole_time=True)
