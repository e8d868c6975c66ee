"""Before and after: what a stream did on either side of a knob's change in the same trial.

Each trial gives one ratio after/before for each stream and each change; their geometric mean over
the trials of a level has a t interval once there are two. One trial is no experiment: whatever
else happened at that moment (a cache that filled, a device that warmed up) looks the same. The
segments before and after include the moment of switching itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from iolab.stats.finding import About, Evidence, Finding
from iolab.stats.ledger import SEGMENT, level_text
from iolab.stats.methods.log_ratio import (
    geometric_interval,
    geometric_mean,
    is_usable,
    log_ratio,
)
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.verdict import Interval, MidwayChange, StudyVerdict
from iolab.store.rows import ChangeMark, Measurement, StudyData
from iolab.wording import counted

METRICS_SHOWN = ("throughput_bytes_per_s", "latency_ns_p99")
CONFIDENCE = 0.95
ONE_RUN = "one run is no experiment"
_Key = tuple[str, str, str, str]
"""Workload, stream, level, metric."""


def midway_changes(data: StudyData) -> list[MidwayChange]:
    """Effects of what changed while workloads ran, by change, stream and level."""
    if not data.marks:
        return []
    marks: dict[str, list[ChangeMark]] = {}
    for mark in data.marks:
        marks.setdefault(mark.trial_id, []).append(mark)
    found: dict[tuple[_Key, int], list[tuple[float, float, str]]] = {}
    for (key, trial_id), values in _segments(data).items():
        texts: dict[int, str] = {}
        for mark in marks.get(trial_id, []):
            known = texts.get(mark.asked_ns)
            texts[mark.asked_ns] = f"{known}, {mark.text}" if known else mark.text
        for at_ns, text in sorted(texts.items()):
            before = [v for (_, end), v in values.items() if end == at_ns / 1e9]
            after = [v for (start, _), v in values.items() if start == at_ns / 1e9]
            if before and after:
                found.setdefault((key, at_ns), []).append((before[0], after[0], text))
    return [_effect(key, at_ns, pairs) for (key, at_ns), pairs in found.items()]


def change_findings(verdict: StudyVerdict) -> Iterator[Finding]:
    """Write the effect of every change on every stream as a finding."""
    for c in verdict.changes:
        metric, bounds = METRIC_BY_NAME[c.metric], c.interval
        heading = f"after {c.at_ns / 1e9:g} s: {c.change}"
        if c.level is not None:
            heading += f" ({level_text(verdict.compared_factor, c.level)})"
        interval = ONE_RUN if bounds is None else f"{bounds.low:.3g} to {bounds.high:.3g}"
        brief = f"{c.ratio:.3g} [{interval}], n = {c.n}"
        label = f"{c.operation}, {metric.label}"
        ends = (None, None) if bounds is None else (bounds.low, bounds.high)
        yield Finding(
            "change_midway",
            f"{label}, {heading}: {metric.format(c.before)} before, {metric.format(c.after)}"
            f" after, ratio {brief}.",
            evidence=(
                Evidence("before", c.before, metric.unit),
                Evidence("after", c.after, metric.unit),
                Evidence("after / before", c.ratio, "ratio", *ends),
                Evidence("95 % interval", interval),
                Evidence("trials", c.n),
            ),
            about=About("knob", label, c.workload, c.operation, c.level or "", knob=c.change),
            strength="suggested" if bounds is None else "shown",
            brief=brief,
            heading=heading,
        )


def change_closing(data: StudyData, _: StudyVerdict) -> str:
    """Say when the changes really happened, and what one run of them shows."""
    if not data.marks:
        return ""
    late = max((mark.began_ns - mark.asked_ns) / 1e6 for mark in data.marks)
    took = max((mark.done_ns - mark.began_ns) / 1e6 for mark in data.marks)
    return (
        f"{counted(len(data.marks), 'change')}; began at most {late:.3g} ms late and took at most"
        f" {took:.3g} ms. Segments include the moment of switching. Where there is no interval,"
        f" {ONE_RUN}: anything else that happened then looks the same."
    )


def _segments(
    data: StudyData,
) -> dict[tuple[_Key, str], dict[tuple[float, float | None], float]]:
    """Values of each stream's segments, by trial and by (begin, end) in seconds."""
    found: dict[tuple[_Key, str], dict[tuple[float, float | None], float]] = {}
    for m in _of_segments(data.measurements):
        stream, _, span = m.operation.partition(SEGMENT)
        start, _, end = span.removesuffix("s").rpartition("-")
        level = m.levels.get(data.study.compared_factor, "")
        key = ((m.workload, stream, level, m.metric), m.trial_id)
        found.setdefault(key, {})[float(start), float(end) if end else None] = m.value
    return found


def _of_segments(measurements: Iterable[Measurement]) -> Iterable[Measurement]:
    return (
        m
        for m in measurements
        if SEGMENT in m.operation and m.metric in METRICS_SHOWN and is_usable(m.value)
    )


def _effect(key: _Key, at_ns: int, pairs: list[tuple[float, float, str]]) -> MidwayChange:
    workload, stream, level, metric = key
    ratios = [math.exp(log_ratio(after, before)) for before, after, _ in pairs]
    bounds = geometric_interval(ratios, confidence=CONFIDENCE)
    texts = list(dict.fromkeys(text for *_, text in pairs))
    return MidwayChange(
        workload=workload,
        operation=stream,
        level=level or None,
        at_ns=at_ns,
        change=" or ".join(texts),
        metric=metric,
        before=geometric_mean([before for before, *_ in pairs]),
        after=geometric_mean([after for _, after, _ in pairs]),
        ratio=geometric_mean(ratios),
        interval=None if bounds is None else Interval(*bounds, CONFIDENCE),
        n=len(pairs),
    )
