"""One metric over stored studies: which of them are comparable, and where its level changed.

Studies are sorted by the time of their planning. Those that `iolab.stats.diff` takes for studies of
one machine, and that share cells, form a group; a study that fits no group says why. The value of a
study is the geometric mean over the cells that all of its group have. A change is a place where the
level of a group's values changes (`methods.change_points`), by more than the margin; it takes four
studies on both sides, because two sessions differ by more than their rounds tell. Left out: trends,
and changes of spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Final, cast

from iolab.errors import AnalysisError
from iolab.frozen import frozen, replace
from iolab.stats.diff import (
    KIND,
    Difference,
    common_cells,
    compare_studies,
    environment_differences,
    other_machines,
)
from iolab.stats.ledger import Samples, build_ledger
from iolab.stats.methods.change_points import SEGMENT_MIN, change_points
from iolab.stats.methods.log_ratio import geometric_mean
from iolab.stats.methods.student import estimate_mean
from iolab.stats.methods.welch import estimate_difference
from iolab.stats.metrics import METRIC_BY_NAME, Metric
from iolab.stats.verdict import Effect, Interval, to_plain
from iolab.store.rows import StudyData

_DIFFER: Final = "operations or levels differ"
STUDIES_MIN: Final = 2 * SEGMENT_MIN
"""Studies of a group from which on changes can be found."""


@frozen
class NamedStudy:
    """A stored study, and what the user calls it."""

    name: str
    data: StudyData


@frozen
class Entry:
    """One study of a group."""

    name: str
    created_at_unix_ns: int
    iolab_version: str
    kernel: str
    value: float
    """Geometric mean over the cells of the group, unit of the metric."""
    interval: Interval | None
    """95 % interval of the mean over rounds; None of a single round."""
    rounds: int
    step: Effect | None = None
    """Against the study before it in the group; above 1 is better."""
    differences: list[Difference] = field(default_factory=list[Difference])
    """Things around this study that are not as in the one before."""


@frozen
class LevelChange:
    """A place where the level of a group's values changes."""

    at: str
    """Name of the first study of the new level."""
    created_at_unix_ns: int
    before: int
    after: int
    """Studies of the level before and of the new one."""
    ratio: float
    """New level against the old one; above 1 is better."""
    interval: Interval | None
    """95 % interval over studies; the search for the place is not in it."""
    differences: list[Difference]
    """Things that changed between the last study before and the first one after."""


@frozen
class Group:
    """Studies that are comparable with each other, oldest first."""

    kind: str
    is_simulated: bool
    testbeds: tuple[str, ...]
    machine: str
    """Model of its processor; empty if that is not known, or simulated."""
    cells: tuple[str, ...]
    """Labels of the cells that all have."""
    entries: tuple[Entry, ...]
    changes: tuple[LevelChange, ...]


@frozen
class StudyApart:
    """A study that is comparable with no other, and why."""

    name: str
    created_at_unix_ns: int
    reasons: tuple[str, ...]
    """One per group, or one for all."""


@frozen
class MetricHistory:
    """One metric over studies."""

    metric: str
    margin: float
    groups: tuple[Group, ...]
    """Those with at least two studies, the one with the newest study first."""
    apart: tuple[StudyApart, ...]

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return cast("dict[str, object]", to_plain(self))


def history_of(
    studies: Sequence[NamedStudy],
    metric: str | None = None,
    margin: float | None = None,
    only: str = "",
) -> MetricHistory:
    """Sort studies into groups, and find the changes in each.

    Parameters
    ----------
    studies : at least two, in any order.
    metric : name of the metric; None is the one that the newest study is judged by.
    margin : smallest relative change that matters; None is that of the newest study.
    only : text that the labels of the cells contain; empty: all cells.

    Raises
    ------
    AnalysisError : no study has a finished trial.
    """
    ordered = sorted(studies, key=lambda one: one.data.study.created_at_unix_ns)
    name = metric or _metric_of(ordered)
    wanted = margin if margin is not None else ordered[-1].data.study.margin
    slim = [NamedStudy(one.name, _of_metric(one.data, name)) for one in ordered]
    members, apart = _Sorting(name, only).sort(slim)
    groups = tuple(
        _group(found, METRIC_BY_NAME[name], (wanted, only)) for found in members if len(found) > 1
    )
    return MetricHistory(name, wanted, groups, tuple(apart))


def _of_metric(data: StudyData, metric: str) -> StudyData:
    """A study without its other metrics: it is compared with many."""
    return replace(data, measurements=[m for m in data.measurements if m.metric == metric])


def _metric_of(ordered: Sequence[NamedStudy]) -> str:
    for one in reversed(ordered):
        ledger = build_ledger(one.data)
        for place in ledger.places():
            metric = ledger.primary_metric(place)
            if metric is not None:
                return metric.name
    raise AnalysisError(
        "none of these studies has a finished trial", "name a study that was measured"
    )


class _Sorting:
    """Puts studies into groups, the newest first, which speaks for its group."""

    def __init__(self, metric: str, only: str) -> None:
        self._metric, self._only = metric, only
        self._groups: list[list[NamedStudy]] = []
        self._apart: list[StudyApart] = []
        self._seen: dict[str, str] = {}
        self._shapes: dict[str, tuple[object, ...]] = {}

    def sort(
        self, ordered: Sequence[NamedStudy]
    ) -> tuple[list[list[NamedStudy]], list[StudyApart]]:
        """Groups, that of the newest study first, and what fits none, oldest first."""
        for one in reversed(ordered):
            self._put(one)
        alone = [place for place, group in enumerate(self._groups) if len(group) == 1]
        for place in alone:
            (one,) = self._groups[place]
            others = [group[-1] for at, group in enumerate(self._groups) if at != place]
            reasons = [
                self._why_apart(other, one)
                or f"it has a cell in common with {other.name}, and none that all like that have"
                for other in others
            ]
            self._leave_out(one, *dict.fromkeys(reasons))
        return self._groups, sorted(self._apart, key=lambda one: one.created_at_unix_ns)

    def _put(self, one: NamedStudy) -> None:
        same = self._seen.setdefault(one.data.study.study_id, one.name)
        if same != one.name:
            self._leave_out(one, f"it is the same study as {same}")
            return
        if not _cells_of([one], self._metric, self._only)[0]:
            of = f" of a cell with '{self._only}'" if self._only else ""
            self._leave_out(one, f"no finished trial of it has {self._metric}{of}")
            return
        for group in self._groups:
            if self._why_apart(group[-1], one):
                continue
            is_alike = self._shape(group[-1]) == self._shape(one)
            if is_alike or _cells_of([*group, one], self._metric, self._only)[0]:
                group.insert(0, one)
                return
        self._groups.append([one])

    def _shape(self, one: NamedStudy) -> tuple[object, ...]:
        """Everything that makes the cells of a study; equal ones have all cells in common."""
        if one.name not in self._shapes:
            study, (cells,) = one.data.study, _cells_of([one], self._metric, self._only)
            held = tuple(sorted(study.settings.items()))
            self._shapes[one.name] = (
                *(
                    study.kind,
                    str(study.factors),
                    held,
                    tuple(study.workloads),
                    tuple(sorted(cells)),
                ),
            )
        return self._shapes[one.name]

    def _leave_out(self, one: NamedStudy, *reasons: str) -> None:
        told = reasons or ("there is no other study to compare it with",)
        self._apart.append(StudyApart(one.name, one.data.study.created_at_unix_ns, told))

    def _why_apart(self, speaker: NamedStudy, one: NamedStudy) -> str:
        """Reason why a study cannot be compared with another; empty if it can."""
        machines = other_machines(speaker.data, one.data)
        if machines and machines[0].name == KIND:
            return f"it is {machines[0].after}, and {speaker.name} is {machines[0].before}"
        if machines:
            told = "; ".join(f"{d.name}: {d.before} there, {d.after} here" for d in machines)
            return f"it ran on another machine than {speaker.name} ({told})"
        if _cells_of([speaker, one], self._metric, self._only)[0]:
            return ""
        ours, theirs = (_cells_of([n], self._metric, self._only)[0] for n in (one, speaker))
        example = f"here {next(iter(ours))}, there {next(iter(theirs))}"
        return f"it has no cell in common with {speaker.name}: {_DIFFER} ({example})"


def _cells_of(members: Sequence[NamedStudy], metric: str, only: str) -> list[dict[str, Samples]]:
    """Samples of each study by label, of the cells that all have and that are wanted."""
    found = common_cells([one.data for one in members], metric)
    return [{label: cell for label, cell in one.items() if only in label} for one in found]


def _group(members: Sequence[NamedStudy], metric: Metric, asked: tuple[float, str]) -> Group:
    margin, only = asked
    cells = _cells_of(members, metric.name, only)
    logs = [_round_logs(list(found.values())) for found in cells]
    entries = [
        _entry(members, place, metric, (logs[place], margin)) for place in range(len(members))
    ]
    sign = 1 if metric.is_higher_better else -1
    series = [sign * math.log(entry.value) for entry in entries]
    last = members[-1].data.study
    return Group(
        kind=last.kind,
        is_simulated=last.is_simulated,
        machine="" if last.is_simulated else members[-1].data.facts.get("cpu.model", ""),
        testbeds=tuple(dict.fromkeys(one.data.study.testbed for one in members)),
        cells=tuple(cells[0]),
        entries=tuple(entries),
        changes=tuple(_changes(members, series, margin)),
    )


def _round_logs(cells: Sequence[Samples]) -> list[float]:
    """Mean ln over cells for each round that all of them have; of none, one value over all."""
    rounds = set.intersection(*(set(samples.by_round) for samples in cells))
    if not rounds:
        means = [math.log(geometric_mean([m.value for m in s.all()])) for s in cells]
        return [math.fsum(means) / len(means)]
    return [
        math.fsum(
            math.log(geometric_mean([m.value for m in samples.by_round[number]]))
            for samples in cells
        )
        / len(cells)
        for number in sorted(rounds)
    ]


def _entry(
    members: Sequence[NamedStudy], place: int, metric: Metric, found: tuple[list[float], float]
) -> Entry:
    data, (logs, margin) = members[place].data, found
    estimate = estimate_mean(logs)
    half = estimate.half_width(0.95)
    bounds = None
    if math.isfinite(half):
        low, high = math.exp(estimate.mean - half), math.exp(estimate.mean + half)
        bounds = Interval(low, high, 0.95)
    step, differences = None, list[Difference]()
    if place:
        before = members[place - 1].data
        diff = compare_studies(before, data, margin=margin, metrics=(metric.name,))
        step, differences = diff.overall.get(metric.name), diff.environment
    return Entry(
        name=members[place].name,
        created_at_unix_ns=data.study.created_at_unix_ns,
        iolab_version=data.study.iolab_version,
        kernel=data.facts.get("kernel.release", ""),
        value=math.exp(estimate.mean),
        interval=bounds,
        rounds=len(logs),
        step=step,
        differences=differences,
    )


def _changes(
    members: Sequence[NamedStudy], series: Sequence[float], margin: float
) -> list[LevelChange]:
    """Changes of a series of ln values, above which is better."""
    if len(series) < STUDIES_MIN:
        return []
    middle = math.fsum(series) / len(series)
    places = change_points([math.exp(v - middle) for v in series], smallest_change=margin)
    edges = [0, *places, len(series)]
    found: list[LevelChange] = []
    for number, place in enumerate(places):
        begin, end = edges[number], edges[number + 2]
        estimate = estimate_difference(series[place:end], series[begin:place])
        half = estimate.half_width(0.95)
        bounds = Interval(math.exp(estimate.mean - half), math.exp(estimate.mean + half), 0.95)
        before, first = members[place - 1].data, members[place]
        found.append(
            LevelChange(
                at=first.name,
                created_at_unix_ns=first.data.study.created_at_unix_ns,
                before=place - begin,
                after=end - place,
                ratio=math.exp(estimate.mean),
                interval=bounds,
                differences=list(environment_differences(before, first.data)),
            )
        )
    return found
