"""Doubts about single values: trials far from their like, two modes, percentiles that hide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from iolab.frozen import frozen
from iolab.stats.effect_words import percent
from iolab.stats.finding import About, Evidence, Finding
from iolab.stats.ledger import Ledger, Samples, is_segment, level_text
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.metrics.metric import format_ns
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import Measurement
from iolab.wording import counted

FAR: Final = 5.0
"""Median absolute deviations from the median of its like, scaled to the sd of normal values."""
MAD_SCALE: Final = 1.4826
VALUES_MIN: Final = 12
"""Fewer values of a group have no deviation worth measuring with."""
LIKE_MIN: Final = 4
MODE_VALUES_MIN: Final = 8
MODE_SHARE_MIN: Final = 0.25
MODE_GAP: Final = 3.0
"""Spreads inside a mode that lie empty between two."""
HIDDEN_TIMES: Final = 2.0
LONGEST_TIMES: Final = 100.0


@frozen
class _Value:
    measurement: Measurement
    distance: float
    """Ln-ratio to the median of the trials of its treatment."""
    where: str


def about_values(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield what is to be said of single trials of the headline, and of percentiles."""
    values: list[_Value] = []
    modes: list[str] = []
    for group in dict.fromkeys(c.group for c in verdict.headline):
        metric = METRIC_BY_NAME[next(c.metric for c in verdict.headline if c.group == group)]
        for key, by_level in ledger.cells_asked(metric, group).items():
            for level, samples in by_level.items():
                named = level_text(ledger.data.study.compared_factor, level)
                where = " · ".join(t for t in (named, key.operation, ledger.label(key)) if t)
                values += _distances(samples, where)
                split = two_modes([math.log(m.value) for m in samples.all()], verdict.margin)
                if split is not None:
                    modes.append(f"{where} ({percent(math.expm1(split))} apart)")
    yield from _about_outliers(values)
    if modes:
        more = f" and {len(modes) - 1} more" if len(modes) > 1 else ""
        yield Finding(
            "two_modes",
            f"trials of one treatment fall into two groups: {modes[0]}{more}.",
            "Something has two states (where files lie, which core, a cache); a mean of both"
            " describes neither. Look for it in the facts of the trials.",
            count=len(modes),
            evidence=(Evidence("treatments", len(modes)),),
            strength="suggested",
        )
    yield from _about_closed_loops(ledger)


def _distances(samples: Samples, where: str) -> list[_Value]:
    found = samples.all()
    if len(found) < LIKE_MIN:
        return []
    middle = median(math.log(m.value) for m in found)
    return [_Value(m, math.log(m.value) - middle, where) for m in found]


def _about_outliers(values: Sequence[_Value]) -> Iterator[Finding]:
    if len(values) < VALUES_MIN:
        return
    usual = MAD_SCALE * median(abs(value.distance) for value in values)
    far = [v for v in values if usual > 0 and abs(v.distance) > FAR * usual]
    if not far:
        return
    first = max(far, key=lambda v: abs(v.distance))
    m = first.measurement
    size = percent(abs(math.expm1(first.distance)))
    side = "above" if first.distance > 0 else "below"
    yield Finding(
        "outliers",
        f"{counted(len(far), 'value')} of {len(values)} {'lies' if len(far) == 1 else 'lie'}"
        f" more than {FAR:.0f} median"
        f" deviations from their like; farthest: trial {m.trial_id} ({first.where}, round"
        f" {m.round}, place {m.position + 1} in it), {size} {side} the median.",
        "They are part of the mean, and widen its interval; the median stands beside it where"
        " the two differ. Look at what else happened in that trial.",
        count=len(far),
        evidence=(
            Evidence("values", len(values)),
            Evidence("ratio of the farthest to the median", math.exp(first.distance), "ratio"),
        ),
        about=About("trial", label=first.where, workload=m.workload, trial_id=m.trial_id),
        strength="suggested",
    )


def two_modes(values: Sequence[float], margin: float) -> float | None:
    """Return how far apart two groups of ln-values lie; None if they are one.

    Both groups have a quarter of the values at least; the gap is wider than `MODE_GAP` spreads
    inside them and than the margin.
    """
    n = len(values)
    if n < MODE_VALUES_MIN:
        return None
    ordered = sorted(values)
    least = math.ceil(MODE_SHARE_MIN * n)
    at = max(range(least, n - least + 1), key=lambda i: ordered[i] - ordered[i - 1])
    low, high = ordered[:at], ordered[at:]
    means = [math.fsum(part) / len(part) for part in (low, high)]
    squares = math.fsum(
        (x - mean) ** 2 for part, mean in zip((low, high), means, strict=True) for x in part
    )
    spread = math.sqrt(squares / max(1, n - 2))
    gap = ordered[at] - ordered[at - 1]
    if gap <= MODE_GAP * spread or gap <= math.log1p(margin):
        return None
    return means[1] - means[0]


def _about_closed_loops(ledger: Ledger) -> Iterator[Finding]:
    """Say what percentiles hide of streams that wait for each answer before they ask again."""
    rated = ledger.cells.get("response_ns_p99", {})
    found: list[tuple[float, str]] = []
    for key, by_level in ledger.cells.get("latency_ns_p99", {}).items():
        if key in rated or is_segment(key.operation) or ledger.data.study.kind == "imported":
            continue
        for level, samples in by_level.items():
            p99 = _largest(samples)
            others = {
                name: _largest(s)
                for name in ("latency_ns_timed_p99", "latency_ns_max", "gap_ns_max")
                if (s := ledger.cells.get(name, {}).get(key, {}).get(level)) is not None
            }
            timed, longest = others.get("latency_ns_timed_p99", 0), others.get("latency_ns_max", 0)
            if timed <= HIDDEN_TIMES * p99 and longest <= LONGEST_TIMES * p99:
                continue
            said = [f"p99 {format_ns(p99)}"]
            said += [f"time-weighted p99 {format_ns(timed)}"] if timed else []
            said += [f"longest {format_ns(longest)}"] if longest else []
            gap = others.get("gap_ns_max", 0)
            said += [f"longest gap {format_ns(gap)}"] if gap else []
            where = " · ".join(t for t in (level, key.operation, ledger.label(key)) if t)
            found.append((max(timed, longest / LONGEST_TIMES) / p99, f"{where}: {', '.join(said)}"))
    if found:
        yield Finding(
            "closed_loop",
            "these streams wait for each answer before they ask again. A stall is therefore one"
            " slow operation among many, and percentiles hide how long it lasted. Most is hidden"
            f" in {max(found)[1]}.",
            "Judge waiting by the longest, the gap or the time-weighted p99, or give the"
            " stream a rate: its response times hold what a stall delays.",
            count=len(found),
        )


def _largest(samples: Samples) -> float:
    return max(m.value for m in samples.all())
