"""Traces of single trials as pictures: which trials, and their places over time side by side.

Of each workload the baseline stands beside another level, both of one round: the round whose
difference is the median of all rounds, so that the picture shows an ordinary one.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from statistics import fmean
from typing import Final

from iolab.frozen import frozen
from iolab.pattern import pattern
from iolab.report.markup import Markup, tag
from iolab.report.parts import Part
from iolab.report.trace_picture import DrawnDevice, NamedInstant, drawn, picture_svg, sentence
from iolab.stats.lookups import of_metric
from iolab.store.continuing import PLACE
from iolab.store.rows import StudyData, TracedPhase, TrialRow

PICTURES_MAX: Final = 4
METRIC: Final = "throughput_bytes_per_s"
TITLE: Final = "Places over time"

_FIGURE: Final = pattern(r'<figure id="(trace-t[0-9]{1,18})">.*?</figure>', re.DOTALL)
_TAG: Final = pattern(r'</?([A-Za-z]+)((?: [A-Za-z0-9-]+="[^"<>]*")*)/?>')
_ATTRIBUTE: Final = pattern(r' ([A-Za-z0-9-]+)="[^"<>]*"')
_KNOWN_TAG: Final = pattern(
    "figure|figcaption|span|div|p|code|svg|g|path|text|tspan|title|rect|line|circle"
)
_KNOWN_ATTRIBUTE: Final = pattern(
    "id|class|role|aria-label|hidden|viewBox|width|height|[xy][12]?|c[xy]|r|d[xy]?|points|transform"
    "|text-anchor|fill|fill-opacity|stroke|stroke-width|stroke-opacity|opacity"
)
"""Parts of pictures of traces (`trace_picture`)."""


@frozen
class TracedPair:
    """Trials whose traces stand side by side; one alone if nothing is compared."""

    workload: str
    trials: tuple[TrialRow, ...]
    names: tuple[str, ...]

    @property
    def is_comparison(self) -> bool:
        """True if two stand side by side."""
        return len(self.trials) > 1


def traced_pairs(data: StudyData) -> list[TracedPair]:
    """Choose at most `PICTURES_MAX` pairs: of each workload first one, then the other levels."""
    if data.study.is_in_slices:
        return []
    traced = {phase.trial_id for phase in data.traced if phase.file}
    trials = [t for t in data.trials if t.status == "ok" and t.trial_id in traced]
    by_workload = {
        workload: _pairs(data, [t for t in trials if t.workload == workload])
        for workload in data.study.workloads
    }
    longest = max(map(len, by_workload.values()), default=0)
    turns = (pairs[turn : turn + 1] for turn in range(longest) for pairs in by_workload.values())
    return [pair for turn in turns for pair in turn][:PICTURES_MAX]


def wanted_trials(data: StudyData) -> list[str]:
    """Return the trials of all pairs, once each."""
    return list(
        dict.fromkeys(trial.trial_id for pair in traced_pairs(data) for trial in pair.trials)
    )


def _pairs(data: StudyData, trials: list[TrialRow]) -> list[TracedPair]:
    """Pairs of one workload: its first cell, the baseline with each other level.

    Levels that differ most from the baseline come first.
    """
    factor, baseline = data.study.compared_factor, data.study.baseline
    if not trials:
        return []
    first = _rest(trials[0], factor)
    cell = [trial for trial in trials if _rest(trial, factor) == first]
    if not data.study.is_comparison:
        return [TracedPair(cell[0].workload, (cell[0],), (cell[0].trial_id,))]
    speeds = _speeds(data)
    by_level: dict[str, dict[int, TrialRow]] = {}
    for trial in cell:
        by_level.setdefault(trial.levels[factor], {}).setdefault(trial.round, trial)
    base = by_level.pop(baseline, {})
    found: list[tuple[float, TracedPair]] = []
    for level in data.study.factors.get(factor, []):
        other = by_level.get(level, {})
        differences = sorted(
            (_difference(speeds, base[number], other[number]), number)
            for number in base.keys() & other.keys()
        )
        if differences:
            median, chosen = differences[(len(differences) - 1) // 2]
            trials_of_it = (base[chosen], other[chosen])
            found.append((median, TracedPair(cell[0].workload, trials_of_it, (baseline, level))))
    return [pair for _, pair in sorted(found, key=lambda item: -abs(item[0]))]


def _rest(trial: TrialRow, factor: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, level) for name, level in trial.levels.items() if name != factor))


def _speeds(data: StudyData) -> Mapping[str, float]:
    """Mean logarithm of the throughputs of a trial's operations."""
    found: dict[str, list[float]] = {}
    for m in of_metric(data, METRIC):
        if m.value > 0 and "@" not in m.operation:
            found.setdefault(m.trial_id, []).append(math.log(m.value))
    return {trial_id: fmean(values) for trial_id, values in found.items()}


def _difference(speeds: Mapping[str, float], base: TrialRow, other: TrialRow) -> float:
    return speeds.get(other.trial_id, 0.0) - speeds.get(base.trial_id, 0.0)


def trace_parts(data: StudyData) -> list[Part]:
    """Draw every pair whose traces are there."""
    found = list[Part]()
    for pair in traced_pairs(data):
        if all(trial.trial_id in data.plots for trial in pair.trials):
            found.append(Part(_title(data, pair), _figure(data, pair)))
        elif (kept := data.figures.get(_id(pair))) is not None:
            found.append(Part(_title(data, pair), Markup(kept)))
    return found


def kept_figures(page: str) -> dict[str, str]:
    """Pictures of traces in the page of an archive, by id, that do nothing but show.

    Anybody may have made the page: of elements only those that such a picture consists of are
    known, of attributes those that neither load nor run anything.
    """
    found = dict[str, str]()
    for match in _FIGURE.finditer(page):
        body = match.group(0)
        tags = _TAG.findall(body)
        names = [name for _, given in tags for name in _ATTRIBUTE.findall(given)]
        is_known = all(_KNOWN_TAG.fullmatch(name) for name, _ in tags)
        is_known = is_known and all(map(_KNOWN_ATTRIBUTE.fullmatch, names))
        if is_known and "url(" not in body.lower() and "<" not in _TAG.sub("", body):
            found[match.group(1)] = body
    return found


def _id(pair: TracedPair) -> str:
    return f"trace-{pair.trials[-1].trial_id}"


def _title(data: StudyData, pair: TracedPair) -> str:
    levels = f", {' and '.join(pair.names)}" if pair.is_comparison else ""
    return f"{TITLE}: {pair.workload}{levels}"


def _figure(data: StudyData, pair: TracedPair) -> Markup:
    panels = [
        device
        for trial, name in zip(pair.trials, pair.names, strict=True)
        for device in _busiest(data, trial, name)
    ]
    said = " ".join(map(sentence, panels))
    trials = [
        f"{trial.trial_id} ({name})" if pair.is_comparison else trial.trial_id
        for trial, name in zip(pair.trials, pair.names, strict=True)
    ]
    which = f"Drawn: {' and '.join(trials)} of round {pair.trials[0].round}"
    many = ", the round with the median difference" if pair.is_comparison else ""
    typed = tag("p", "Larger, and with all devices: ", tag("code", _command(data, pair)))
    return tag(
        "figure",
        tag("figcaption", f"{said} {which}{many}."),
        tag("div", picture_svg(panels), class_="drawing"),
        tag("div", typed, class_="soft"),
        id=_id(pair),
    )


def _busiest(data: StudyData, trial: TrialRow, name: str) -> list[DrawnDevice]:
    """Device with the most requests, with the beginnings of the trial's operations."""
    plot = data.plots[trial.trial_id]
    moments = tuple(
        NamedInstant(phase.span_ns[0] - plot["begin_ns"], phase.operation)
        for phase in _phases(data, trial)
    )
    return list(drawn(name, plot, moments))[:1]


def _phases(data: StudyData, trial: TrialRow) -> list[TracedPhase]:
    return [phase for phase in data.traced if phase.trial_id == trial.trial_id]


def _command(data: StudyData, pair: TracedPair) -> str:
    files = [f"{PLACE}/{_phases(data, trial)[0].file}" for trial in pair.trials]
    beside = f" --beside {shlex.quote(files[1])}" if len(files) > 1 else ""
    return f"iolab trace plot {shlex.quote(files[0])}{beside} -o places.html"
