"""Cost of one request, and of each of its bytes: time per request = a + b x size.

Where record size is a factor, a table of throughputs invites conclusions about "the block size of
the device": throughput doubles with the record. It also doubles if a request simply takes a time
that hardly depends on its size. The line tells the two apart. Per run (round) the line is fitted
over the sizes, relative distances counting equally, and a and b get Student's t intervals over
runs; a single run with three sizes or more gets the intervals of its own residuals. Requests in
flight (workers x depth) are taken from the levels and settings, one where nothing is said: time
per request = requests in flight x size / throughput.

Left out: more than one line (a read-ahead that begins at some size); `misfit` shows it.
Source: Little (1961), Operations Research 9(3), for the requests in flight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from iolab import units
from iolab.frozen import frozen, replace
from iolab.stats.finding import About, Evidence, Finding
from iolab.stats.ledger import CellKey, Ledger, Samples, is_average_of_operations, level_text
from iolab.stats.methods.log_ratio import geometric_mean
from iolab.stats.methods.student import estimate_mean, t_quantile
from iolab.stats.metrics.metric import format_bytes_per_s, format_ns, format_significant
from iolab.stats.numeric_levels import numeric_level
from iolab.stats.verdict import Interval, RequestTime, StudyVerdict
from iolab.store.rows import StudyData

FACTOR: Final = "record_size"
METRIC: Final = "throughput_bytes_per_s"
MISFIT_MAX: Final = 0.10
"""From this relative distance on a line is not called a description."""
_IN_FLIGHT: Final = ("workers", "depth")


@frozen
class _Treatment:
    key: CellKey
    """Of the smallest size."""
    level: str | None
    label: str
    times: dict[str, dict[int, float]] = field(default_factory=dict[str, dict[int, float]])
    """Size -> run -> nanoseconds per request."""


@frozen
class Line:
    """Intercept and slope, with standard errors where residuals give them."""

    request: float
    byte: float
    request_error: float | None = None
    byte_error: float | None = None


def request_times(ledger: Ledger) -> list[RequestTime]:
    """Fit the line to every treatment that was run with at least two record sizes."""
    found = (_fit(treatment) for treatment in _treatments(ledger))
    return [fit for fit in found if fit is not None]


TreatmentName = tuple[str, bool | None, str]
"""Workload, mode and label."""
TimesOfSizes = dict[str, tuple[float, ...]]


def measured_times(ledger: Ledger) -> dict[TreatmentName, TimesOfSizes]:
    """Nanoseconds per request of every run, by treatment and size."""
    return {
        (treatment.key.workload, treatment.key.is_direct, treatment.label): {
            size: tuple(value for _, value in sorted(by_run.items()))
            for size, by_run in treatment.times.items()
        }
        for treatment in _treatments(ledger)
    }


def request_time_sentence(verdict: StudyVerdict) -> str:
    """Say in a sentence what the lines of a study mean together; empty without a line."""
    every = verdict.request_times
    noun = "combinations of operation and level" if any(f.level for f in every) else "operations"
    good = [f for f in every if f.request_ns > 0 and (f.misfit or 0) <= MISFIT_MAX]
    if len(every) > 1 and len(good) * 2 < len(every):
        return (
            f"A line describes the time per request in {len(good)} of {len(every)} {noun};"
            " elsewhere it bends (where a cache is outgrown, for instance), and what a request"
            " costs however small it is cannot be read from it."
        )
    if not good:
        return ""
    heavy = [f for f in good if _is_shown(f.request_ns_interval) and _share_of_largest(f) > 0.5]
    light = [f for f in good if _is_shown(f.byte_ns_interval) and _share_of_largest(f) <= 0.5]
    largest = max((f.sizes[-1] for f in good), key=_bytes)
    treatments = f"{len(good)} {noun}"
    if len(good) < len(every):
        treatments = f"the {len(good)} {noun} that a line describes (of {len(every)})"
    if len(heavy) * 2 > len(good):
        least, most = (format_ns(pick(f.request_ns for f in heavy)) for pick in (min, max))
        takes = " to ".join(dict.fromkeys((least, most)))
        return (
            f"In {len(heavy)} of {treatments} most of the time of even the largest"
            f" request ({largest}) does not depend on its size: a request takes {takes}"
            " however small it is. Throughput that grows with the record size is then latency per"
            " request, shared by more bytes; it says nothing about a block size of the device."
            f"{_two_sizes(heavy)}"
        )
    if len(light) * 2 > len(good):
        return (
            f"In {len(light)} of {treatments} most of the time of the largest request"
            f" ({largest}) is time per byte: larger requests gain little more."
        )
    return ""


def line_findings(verdict: StudyVerdict) -> Iterator[Finding]:
    """Write every line as a finding, in the units shown now."""
    for fit in verdict.request_times:
        request, byte = fit.request_ns_interval, fit.byte_ns_interval
        if not (_is_shown(request) or _is_shown(byte)):
            continue  # Neither part is told from nothing: even their signs would be chance.
        yield Finding(
            "request_time",
            fit.sentence,
            evidence=(
                Evidence("time per request", fit.request_ns, "ns", *_ends(request)),
                Evidence("time per byte", fit.byte_ns, "ns/byte", *_ends(byte)),
                Evidence("runs", fit.n_runs),
            ),
            about=About("treatment", fit.label, fit.workload, fit.operation, fit.level or ""),
            strength="shown" if _is_shown(request) or _is_shown(byte) else "suggested",
            brief=line_text(fit),
        )


def request_time_closing(_: StudyData, verdict: StudyVerdict) -> str:
    """Say what the lines of a study mean together."""
    return request_time_sentence(verdict)


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


def _two_sizes(fits: Sequence[RequestTime]) -> str:
    """Say that two sizes cannot test the line, where that is all there is."""
    if any(len(fit.sizes) > 2 for fit in fits):
        return ""
    return " Through two sizes a line always fits; a third would test it."


def _is_shown(interval: Interval | None) -> bool:
    return interval is not None and interval.low > 0


def _share_of_largest(fit: RequestTime) -> float:
    return _share_of_request(fit, fit.sizes[-1])


def fit_line(sizes: Sequence[float], times: Sequence[float]) -> Line:
    """Fit t = request + byte x size with weights 1 / t**2; shapes (k,), k >= 2 different sizes."""
    weights = [1 / t**2 for t in times]
    total = math.fsum(weights)
    mean_x = math.fsum(w * x for w, x in zip(weights, sizes, strict=True)) / total
    mean_t = math.fsum(w * t for w, t in zip(weights, times, strict=True)) / total
    spread = math.fsum(w * (x - mean_x) ** 2 for w, x in zip(weights, sizes, strict=True))
    rows = list(zip(weights, sizes, times, strict=True))
    byte = math.fsum(w * (x - mean_x) * (t - mean_t) for w, x, t in rows) / spread
    request = mean_t - byte * mean_x
    if len(sizes) < 3:
        return Line(request, byte)
    rest = math.fsum(w * (t - request - byte * x) ** 2 for w, x, t in rows) / (len(sizes) - 2)
    return Line(
        request,
        byte,
        math.sqrt(rest * (1 / total + mean_x**2 / spread)),
        math.sqrt(rest / spread),
    )


def _bytes(size: str) -> float:
    return numeric_level(size) or 0.0


def _treatments(ledger: Ledger) -> list[_Treatment]:
    compared = ledger.data.study.compared_factor
    is_table = ledger.data.study.kind == "imported"
    found: dict[tuple[object, ...], _Treatment] = {}
    for key, by_level in ledger.cells.get(METRIC, {}).items():
        if is_table and is_average_of_operations(key.operation):
            continue
        for level, samples in by_level.items():
            levels = dict(key.levels) | {compared: level}
            size = levels.pop(FACTOR, "")
            if numeric_level(size) is None:
                continue
            place = (key.place, key.operation, tuple(sorted(levels.items())))
            if place not in found:
                found[place] = _Treatment(
                    key,
                    None if compared == FACTOR else level,
                    _label(ledger, key, None if compared == FACTOR else level),
                )
            found[place].times[size] = _times(ledger, samples, levels, size)
    return list(found.values())


def _label(ledger: Ledger, key: CellKey, level: str | None) -> str:
    names = [n for n in ledger.varying.get(key.workload, []) if n != FACTOR]
    levels = dict(key.levels)
    rest = [level_text(name, levels[name]) for name in names if name in levels]
    first = [] if level is None else [level_text(ledger.data.study.compared_factor, level)]
    return " · ".join([key.operation, *first, *rest])


def _times(ledger: Ledger, samples: Samples, levels: dict[str, str], size: str) -> dict[int, float]:
    known = ledger.data.study.settings | levels
    in_flight = math.prod(int(numeric_level(known.get(name, "1")) or 1) for name in _IN_FLIGHT)
    return {
        run: in_flight * _bytes(size) / geometric_mean([m.value for m in found]) * 1e9
        for run, found in samples.by_round.items()
    }


def _fit(treatment: _Treatment) -> RequestTime | None:
    fullest = max((len(runs) for runs in treatment.times.values()), default=0)
    sizes = sorted((s for s, r in treatment.times.items() if 2 * len(r) >= fullest), key=_bytes)
    if len(sizes) < 2:
        return None
    runs = sorted(set.intersection(*(set(treatment.times[size]) for size in sizes)))
    if not runs or (len(runs) < 2 and len(sizes) < 3):
        return None
    numbers = [_bytes(size) for size in sizes]
    lines = [fit_line(numbers, [treatment.times[s][run] for s in sizes]) for run in runs]
    request, byte = (
        estimate_mean([line.request for line in lines]),
        estimate_mean([line.byte for line in lines]),
    )
    if len(runs) > 1:
        halves = (request.half_width(0.95), byte.half_width(0.95))
    else:
        quantile = t_quantile(0.975, len(sizes) - 2)
        halves = (
            quantile * (lines[0].request_error or 0.0),
            quantile * (lines[0].byte_error or 0.0),
        )
    means = [math.fsum(treatment.times[s][run] for run in runs) / len(runs) for s in sizes]
    misfit = max(
        abs((request.mean + byte.mean * x) / t - 1) for x, t in zip(numbers, means, strict=True)
    )
    draft = RequestTime(
        workload=treatment.key.workload,
        operation=treatment.key.operation,
        is_direct=treatment.key.is_direct,
        level=treatment.level,
        label=treatment.label,
        request_ns=request.mean,
        request_ns_interval=_interval(request.mean, halves[0]),
        byte_ns=byte.mean,
        byte_ns_interval=_interval(byte.mean, halves[1]),
        sizes=tuple(sizes),
        n_runs=len(runs),
        misfit=misfit if len(sizes) > 2 else None,
        sentence="",
    )
    return said_again(draft)


def _interval(mean: float, half: float) -> Interval:
    return Interval(mean - half, mean + half, 0.95)


def _share_of_request(fit: RequestTime, size: str) -> float:
    """Share of the time of a request of `size` that does not depend on its size."""
    return fit.request_ns / (fit.request_ns + max(0.0, fit.byte_ns) * _bytes(size))


def said_again(fit: RequestTime) -> RequestTime:
    """Return a line with its sentence in the units that are shown now."""
    return replace(fit, sentence=_sentence(fit))


def line_text(fit: RequestTime) -> str:
    """Write the line on few columns: ``197 [190, 205] µs + 0.48 [0.11, 0.85] µs/KiB``."""
    unit = units.kilobyte()
    parts = [
        (fit.request_ns, fit.request_ns_interval, 1 / 1000),
        (fit.byte_ns, fit.byte_ns_interval, unit.size / 1000),
    ]
    a, b = (_compact(value * scale, interval, scale) for value, interval, scale in parts)
    return f"{a} µs + {b} µs/{unit.name}"


def _compact(value: float, interval: Interval | None, scale: float) -> str:
    if interval is None:
        return format_significant(value)
    low, high = (format_significant(end * scale) for end in (interval.low, interval.high))
    return f"{format_significant(value)} [{low}, {high}]"


def per_byte_text(fit: RequestTime) -> str:
    """Write the slope in time per KiB or kB, with its interval."""
    unit = units.kilobyte()
    return f"{_bounded(fit.byte_ns * unit.size, fit.byte_ns_interval, unit.size)} per {unit.name}"


def per_request_text(fit: RequestTime) -> str:
    """Write the intercept with its interval."""
    return _bounded(fit.request_ns, fit.request_ns_interval, 1)


def _bounded(value: float, interval: Interval | None, scale: float) -> str:
    if interval is None:
        return format_ns(value)
    low, high = format_ns(interval.low * scale), format_ns(interval.high * scale)
    return f"{format_ns(value)} [{low}, {high}]"


def _sentence(fit: RequestTime) -> str:
    line = f"{fit.label}: a request takes {per_request_text(fit)} + {per_byte_text(fit)}"
    if fit.misfit is not None and fit.misfit > MISFIT_MAX:
        return (
            f"{line}, but the line misses a size by {fit.misfit:.0%}: time per request is not"
            " a constant plus a time per byte here."
        )
    request, byte = fit.request_ns_interval, fit.byte_ns_interval
    if request is not None and request.low <= 0:
        return f"{line}; a part that does not depend on the size is not shown."
    shares = ", ".join(
        f"{_share_of_request(fit, size):.0%} of a {size} request"
        for size in dict.fromkeys((fit.sizes[0], fit.sizes[-1]))
    )
    text = f"{line}; {shares} does not depend on its size"
    if byte is None or byte.low <= 0:
        return f"{text}, and a time per byte is not shown."
    unit = units.kilobyte()
    half = format_significant(fit.request_ns / fit.byte_ns / unit.size)
    final = format_bytes_per_s(1e9 / fit.byte_ns)
    return f"{text}; half of the final {final} would come with {half} {unit.name}."
