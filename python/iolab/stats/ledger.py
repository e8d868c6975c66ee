"""A study's measurements, sorted so that pairs can be found: metric, cell, level, round.

A cell is (workload, operation, direct or buffered, levels of the factors that are not compared).
Only values that can carry a verdict are kept: of trials that are "ok", finite and above zero; the
rest is counted. A factor that only some trials of a workload have (a tunable of one scheduler)
cannot span cells: it is left out of the key and its levels are averaged (caveat `nested_factor`).
"""

from __future__ import annotations

import itertools
import operator
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen
from iolab.stats.cell_class import (
    UNKNOWN,
    Nature,
    class_of_cell,
    class_of_stream,
    is_aside,
)
from iolab.stats.inert import InertCells, inert_cells
from iolab.stats.methods.log_ratio import is_usable
from iolab.stats.metrics import METRIC_BY_NAME, METRICS, Metric
from iolab.store.derived import FLUSH_BOUND, PAGE_CACHE_SHARE
from iolab.store.rows import Measurement, StudyData, TrialRow

if TYPE_CHECKING:
    from iolab.stats.verdict import Comparison

SEGMENT = "@"
"""Between a stream's name and the time of a segment in the name of an operation."""

Levels = tuple[tuple[str, str], ...]
Place = tuple[str, bool | None]
"""Workload and direct/buffered."""
Group = tuple[str, bool | None, str]
"""Workload, direct/buffered and class (`iolab.stats.cell_class`): what may be pooled. The class is
empty where a workload has only one."""
AnyGroup = Group | Place
"""A group, or all groups of a workload and mode: for what pools nothing."""


@frozen
class CellKey:
    """Key of a cell in which two levels can be compared like with like."""

    workload: str
    operation: str
    is_direct: bool | None
    levels: Levels

    @property
    def place(self) -> Place:
        """Workload and mode, without the class that a group has besides."""
        return (self.workload, self.is_direct)


@dataclass(slots=True)
class Samples:
    """Everything measured of one metric at one level of the compared factor in one cell."""

    by_round: dict[int, list[Measurement]] = field(default_factory=dict[int, list[Measurement]])
    n_all: int = 0
    n_generator: int = 0
    """Values, and those of trials in which much of the time was the load generator's own."""
    n_processor: int = 0
    """Values of trials in which the processors were the limit."""
    n_flushes: int = 0
    """Values of operations that waited for flushes most of the time."""
    shares_total: float = 0.0
    shares_known: int = 0
    """Shares of bytes that never reached the device: sum and number; the mean is asked often."""
    log_ratios: dict[int, tuple[Samples, dict[int, float]]] = field(
        default_factory=dict[int, tuple["Samples", dict[int, float]]]
    )
    """Other samples (by `id`), with oriented ln-ratios by round, as far as `pairing` was asked."""

    @property
    def is_generator_bound(self) -> bool:
        """Tell whether the load generator took much of the time in most of the trials behind it."""
        return self.n_generator * 2 > self.n_all

    @property
    def is_processor_bound(self) -> bool:
        """Tell whether the processors were the limit in most of the trials behind it."""
        return self.n_processor * 2 > self.n_all

    @property
    def is_flush_bound(self) -> bool:
        """Tell whether flushes took most of the time in most of the trials behind it."""
        return self.n_flushes * 2 > self.n_all

    def add(
        self,
        m: Measurement,
        *,
        is_generator: bool = False,
        is_processor: bool = False,
        is_flushes: bool = False,
    ) -> None:
        """Put a measurement into its round.

        Parameters
        ----------
        m : the measurement.
        is_generator : the load generator took much of its time.
        is_processor : the processors were its limit.
        is_flushes : flushes took most of its time.
        """
        self.n_all += 1
        self.n_flushes += is_flushes
        self.n_generator += is_generator
        self.n_processor += is_processor
        known = self.by_round.get(m.round)
        if known is None:
            self.by_round[m.round] = [m]
        else:
            known.append(m)
        if m.cache_share is not None:
            self.shares_total += m.cache_share
            self.shares_known += 1

    def all(self) -> list[Measurement]:
        """Return the measurements in round order."""
        return [m for r in sorted(self.by_round) for m in self.by_round[r]]

    def cache_share(self) -> float | None:
        """Mean share of bytes that never reached the device; None if never known.

        None also where flushes took the time: then memory decides nothing.
        """
        if self.is_flush_bound or not self.shares_known:
            return None
        return self.shares_total / self.shares_known


Cells = dict[CellKey, dict[str, Samples]]


@dataclass(slots=True)
class Ledger:
    """The sorted study. `cells[metric][cell][level]` holds the samples."""

    data: StudyData
    cells: dict[str, Cells]
    levels_in_order: list[str]
    varying: dict[str, list[str]]
    """Workload -> names of the uncompared factors with more than one level there."""
    nested: dict[str, list[str]]
    """Workload -> factors that only some of its trials have."""
    rejected: Counter[str]
    """Metric -> values that were zero, negative or not finite."""
    unknown_metrics: list[str]
    inert: InertCells
    """Cells in which the compared factor cannot matter."""
    begun: dict[tuple[str, Levels, str | None], list[TrialRow]]
    """Trials that were run, whatever came of them: by workload, levels of cells, compared level."""
    kinds: dict[str, dict[CellKey, str]] = field(default_factory=dict[str, dict[CellKey, str]])
    """Metric -> cell -> class, as far as it was asked."""

    def cell_levels(self, trial: TrialRow) -> Levels:
        """Return the levels of the cells that a trial was measured in."""
        factor = self.data.study.compared_factor
        return _cell_levels(trial.workload, trial.levels, factor, self.nested)

    def label(self, key: CellKey) -> str:
        """Return the varying levels of a cell for people (``4k · ext4``), maybe empty."""
        levels = dict(key.levels)
        names = self.varying.get(key.workload, [])
        return " · ".join(level_text(name, levels[name]) for name in names if name in levels)

    def groups(self) -> list[Group]:
        """Return the groups: with the part asked for first, then planned order, then direct."""
        known: list[Group] | None = self.data.derived.get("groups")
        if known is None:
            known = self.data.derived["groups"] = self._groups()
        return known

    def places(self) -> list[Place]:
        """Return workloads and modes, for what is drawn cell by cell and pools nothing."""
        return list(dict.fromkeys((group[0], group[1]) for group in self.groups()))

    def _groups(self) -> list[Group]:
        order = {name: place for place, name in enumerate(self.data.study.workloads)}
        found = dict.fromkeys(key.place for cells in self.cells.values() for key in cells)
        places = sorted(
            found,
            key=lambda p: (not self._has_part(p), order.get(p[0], len(order)), p[0], not p[1]),
        )
        groups: list[Group] = []
        for place in places:
            metric = self.primary_metric(place)
            if metric is None:
                groups.append((*place, ""))
                continue
            kinds = dict.fromkeys(self.kind_of(metric, k) for k in self._in_place(metric, place))
            groups += [(*place, kind) for kind in sorted(kinds, key=is_aside)]
        return groups

    def primary_metric(self, group: AnyGroup) -> Metric | None:
        """Return the study's own metric, else the first of `METRICS` that a workload has.

        One that only one side has (a p99 of few operations) gives way to one that both have.
        """
        wanted = metrics_wanted(self.data.study.metric)
        place = group[:2]
        known = [metric for metric in wanted if self._asked(metric, place)]
        baseline = self.data.study.baseline
        for metric in known:
            cells = self._asked(metric, place).values()
            if any(baseline in by_level and len(by_level) > 1 for by_level in cells):
                return metric
        return known[0] if known else None

    def kind_of(self, metric: Metric, key: CellKey) -> str:
        """Return the class of a cell by one metric; empty where its workload has only one."""
        kinds = self.kinds.get(metric.name)
        if kinds is None:
            kinds = self.kinds[metric.name] = _kinds(self, metric)
        return kinds.get(key, "")

    def kinds_of(self, metric: Metric, place: Place) -> list[str]:
        """Return the classes that a metric has in one workload and mode, as first measured."""
        cells = self.cells.get(metric.name, {})
        return list(dict.fromkeys(self.kind_of(metric, k) for k in cells if k.place == place))

    def is_affected(self, key: CellKey) -> bool:
        """Say whether the compared factor can change what a cell does at all."""
        place = (key.workload, key.levels)
        phase = key.operation.partition("/")[0]  # Readers and writers of one test.
        return not {(*place, key.operation), (*place, phase), (*place, "")} & self.inert

    def cells_of(self, metric: Metric, group: AnyGroup) -> Cells:
        """Return the cells of one group that the compared factor can affect."""
        found = self.all_cells_of(metric, group)
        return {key: by_level for key, by_level in found.items() if self.is_affected(key)}

    def all_cells_of(self, metric: Metric, group: AnyGroup) -> Cells:
        """Return the cells of one group, segments of a phase left out: they are parts of one.

        A workload and mode without a class are the cells of all its classes.
        """
        return self._of_class(self._in_place(metric, group[:2]), metric, group)

    def _of_class(self, cells: Cells, metric: Metric, group: AnyGroup) -> Cells:
        if len(group) == 2:
            return cells
        return {k: by_level for k, by_level in cells.items() if self.kind_of(metric, k) == group[2]}

    def _in_place(self, metric: Metric, place: Place) -> Cells:
        cells = self.cells.get(metric.name, {})
        return {
            key: by_level
            for key, by_level in cells.items()
            if key.place == place and not is_segment(key.operation)
        }

    def cells_asked(self, metric: Metric, group: AnyGroup) -> Cells:
        """Return those cells that the study's verdict is about: of one stream or test, or all."""
        return self._of_class(self._asked(metric, group[:2]), metric, group)

    def _asked(self, metric: Metric, place: Place) -> Cells:
        cells = {k: v for k, v in self._in_place(metric, place).items() if self.is_affected(k)}
        part = self.data.study.metric_of
        if not self._has_part(place):
            return cells  # Another workload than the one whose part is meant.
        return {key: found for key, found in cells.items() if _is_of(key.operation, part)}

    def _has_part(self, place: Place) -> bool:
        """Say whether the stream or test that the verdict is about is in this workload and mode."""
        part = self.data.study.metric_of
        return part is not None and any(
            key.place == place and _is_of(key.operation, part)
            for found in self.cells.values()
            for key in found
        )

    def is_rated(self, key: CellKey) -> bool:
        """Say whether a rate that was asked for, and kept, was the limit of a cell's throughput."""
        rated = self.cells.get("on_time_share")
        if not rated:
            return False
        phase, _, part = key.operation.rpartition("/")
        parts = [key]
        if part == "all":
            parts = [
                other
                for other in self.cells.get("throughput_ops_per_s", {})
                if other.place == key.place
                and other.levels == key.levels
                and other.operation.startswith(f"{phase}/")
                and other != key
                and not is_segment(other.operation)
            ]
        return bool(parts) and all(
            other in rated
            and not any(
                _has(m.caveats, "rate_missed") for s in rated[other].values() for m in s.all()
            )
            for other in parts
        )

    def is_beside_flushes(self, comparison: Comparison) -> bool:
        """Say whether it is a latency of transfers whose workers wait for flushes in between."""
        if not comparison.metric.startswith("latency_ns_"):
            return False
        place, levels = comparison.group[:2], {comparison.level, comparison.baseline}
        return any(
            samples.is_flush_bound
            for by_level in self._in_place(METRIC_BY_NAME[comparison.metric], place).values()
            for level, samples in by_level.items()
            if level in levels
        )

    def is_generator_bound(self, samples: Iterable[Samples]) -> bool:
        """Say whether the load generator took much of the time in most trials of any of them."""
        return any(sample.is_generator_bound for sample in samples)


def build_ledger(data: StudyData) -> Ledger:
    """Sort a study's measurements; order of cells is order of first appearance by ordinal.

    The ledger is kept with the data: judging and several charts start from it, and none changes it.
    """
    known = data.derived.get("ledger")
    if not isinstance(known, Ledger):
        known = data.derived["ledger"] = _build(data)
    return known


def _build(data: StudyData) -> Ledger:
    status = {trial.trial_id: trial.status for trial in data.trials}
    nested = _nested_factors(data)
    factor = data.study.compared_factor
    bound = {t.trial_id for t in data.trials if _has(t.caveats, "generator_bound")}
    ways = _ways_of_programs(data)
    cells: dict[str, Cells] = {}
    rejected: Counter[str] = Counter()
    unknown: dict[str, None] = {}
    is_ok, is_bound, is_busy, is_flushes = True, False, False, False
    here = dict[str, Samples]()
    by_place: dict[tuple[CellKey, str], dict[str, Samples]] = {}
    places: dict[tuple[str, str, bool | None, int], dict[str, Samples]] = {}
    last: Measurement | None = None
    for m in _in_order(data.measurements):  # Millions in a large study: few calls per value.
        if m.metric not in METRIC_BY_NAME:
            if status.get(m.trial_id, "ok") == "ok":
                unknown[m.metric] = None
            continue
        if last is None or not _is_same_phase(m, last):
            last = m
            is_ok = status.get(m.trial_id, "ok") == "ok"
            # Comparing direct with buffered is a question of its own, not pooling.
            way = ways.get((m.workload, m.operation)) if m.is_direct is None else m.is_direct
            is_direct = None if factor == "direct" else way
            # Trials of a treatment share their levels: these are looked at once.
            place = (m.workload, m.operation, is_direct, id(m.levels))
            known = places.get(place)
            if known is None:
                levels = _cell_levels(m.workload, m.levels, factor, nested)
                key = CellKey(m.workload, m.operation, is_direct, levels)
                known = by_place.setdefault((key, m.levels.get(factor, "")), {})
                places[place] = known
            here = known
            is_bound = m.trial_id in bound or _has(m.caveats, "generator_bound")
            is_busy = _has(m.caveats, "cpu_bound")
            is_flushes = _has(m.caveats, FLUSH_BOUND)
        if not is_ok:
            continue
        if not is_usable(m.value):
            rejected[m.metric] += 1
            continue
        samples = here.get(m.metric)
        if samples is None:
            samples = here[m.metric] = Samples()
        samples.add(m, is_generator=is_bound, is_processor=is_busy, is_flushes=is_flushes)
    for (key, level), by_metric in by_place.items():
        for metric, samples in by_metric.items():
            cells.setdefault(metric, {}).setdefault(key, {})[level] = samples
    return Ledger(
        data=data,
        cells={metric: _in_planned_order(data, found) for metric, found in cells.items()},
        levels_in_order=_levels_in_order(data),
        varying=_varying_factors(data, nested),
        nested=nested,
        rejected=rejected,
        unknown_metrics=list(unknown),
        inert=inert_cells(data.study, nested),
        begun=_begun(data, nested),
    )


def _ways_of_programs(data: StudyData) -> dict[tuple[str, str], bool]:
    """Tell of each program whether all that moves data is direct, or all is buffered.

    The program itself has no way to the data of its own, nor has what moves none: they belong to
    where its transfers are.
    """
    natures = _natures(data)
    found: dict[tuple[str, str], set[bool]] = {}
    for (workload, operation), (_, access) in natures.items():
        whole = operation.rpartition("/")[0]
        if whole and access is not None:
            found.setdefault((workload, whole), set()).add(access == "direct")
    ways = {key: is_direct for key, (is_direct, *others) in found.items() if not others}
    parts = ((key, (key[0], key[1].rpartition("/")[0])) for key in natures)
    return ways | {key: ways[whole] for key, whole in parts if whole in ways}


def _kinds(ledger: Ledger, metric: Metric) -> dict[CellKey, str]:
    """Name the class of every cell of a metric; nothing where a workload has one class."""
    study = ledger.data.study
    is_time, is_table = metric.is_whole_time, study.kind == "imported"
    natures = _natures(ledger.data)
    found: dict[CellKey, str] = {}
    for key, by_level in ledger.cells.get(metric.name, {}).items():
        is_stream = "/" in key.operation and metric.is_of_one_stream and not is_table
        is_cached = is_page_cache(cache_share(by_level.values()))
        found[key] = (
            class_of_stream(key.operation)
            if is_stream
            else class_of_cell(
                key.operation,
                kind=study.kind,
                nature=natures.get((key.workload, key.operation), UNKNOWN),
                metric_is_time=is_time,
                is_cached=is_cached and not decides_cache(study.compared_factor),
            )
        )
    if not metric.is_of_one_stream and not is_table:
        # The rate of a program is that of all its operations: they are of its class.
        wholes = {(key.place, key.levels, key.operation): kind for key, kind in found.items()}
        for key in found:
            whole = (key.place, key.levels, key.operation.rpartition("/")[0])
            found[key] = wholes.get(whole, found[key])
    several: dict[Place, set[str]] = {}
    for key, kind in found.items():
        is_average = is_table and is_average_of_operations(key.operation)
        if not is_segment(key.operation) and not is_average:
            several.setdefault(key.place, set()).add(kind)
    return {k: kind for k, kind in found.items() if len(several.get(k.place, ())) > 1}


def _natures(data: StudyData) -> dict[tuple[str, str], Nature]:
    """Kind and way to the data of each operation of a workload; those of its first record."""
    workloads = {trial.trial_id: trial.workload for trial in data.trials}
    found: dict[tuple[str, str], Nature] = {}
    for detail in data.phase_details:
        workload = workloads.get(str(detail["trial_id"]))
        if workload is not None:
            nature = detail["nature"]
            about = (nature.kind, nature.access)
            found.setdefault((workload, str(detail["operation"])), about)
    return found


_AVERAGE: Final = re.compile(r"\b(mean|average|averages|avg)\b", re.IGNORECASE)
_MEAN_LATENCY: Final = re.compile(
    r"\b(mean|average|avg) [cs]?lat(ency)?\b|\b[cs]?lat(ency)? (mean|average|avg)\b"
)


def is_average_of_operations(operation: str) -> bool:
    """Say whether a column of a table claims to be an average over several operations.

    Of studies that iolab measured nobody asks: there a name is the user's word. A mean latency is
    one over the calls of one operation.
    """
    if _AVERAGE.search(operation) is None:
        return False
    return _MEAN_LATENCY.search(operation.lower()) is None or "operations" in operation.lower()


def _in_order(measurements: list[Measurement]) -> list[Measurement]:
    """Return the measurements by round and ordinal, which is how a store gives them."""
    for name in ("round", "ordinal"):
        values = list(map(operator.attrgetter(name), measurements))
        if not all(map(operator.le, values, itertools.islice(values, 1, None))):
            return sorted(measurements, key=lambda m: (m.round, m.ordinal))
    return measurements


def _is_same_phase(m: Measurement, other: Measurement) -> bool:
    return (
        m.trial_id == other.trial_id
        and m.operation == other.operation
        and m.is_direct == other.is_direct
        and m.levels is other.levels
        and m.caveats is other.caveats
    )


def _begun(
    data: StudyData, nested: dict[str, list[str]]
) -> dict[tuple[str, Levels, str | None], list[TrialRow]]:
    factor = data.study.compared_factor
    found: dict[tuple[str, Levels, str | None], list[TrialRow]] = {}
    for trial in data.trials:
        if trial.status is not None:
            levels = _cell_levels(trial.workload, trial.levels, factor, nested)
            place = (trial.workload, levels, trial.levels.get(factor))
            found.setdefault(place, []).append(trial)
    return found


def cache_share(sides: Iterable[Samples]) -> float | None:
    """Return the largest mean cache share among `sides`; None if none is known."""
    shares = [share for side in sides if (share := side.cache_share()) is not None]
    return max(shares, default=None)


def is_page_cache(share: float | None) -> bool:
    """Say whether most bytes came from (or stayed in) the page cache."""
    return share is not None and share >= PAGE_CACHE_SHARE


def decides_cache(factor: str) -> bool:
    """Say whether levels of a factor differ in how much the page cache serves, on purpose."""
    return factor in ("cache", "memory_limit", "direct")


def unaffected_text(factor: str) -> str:
    """Mark a cell in which the compared factor changes nothing."""
    return f"not affected by {factor}"


def level_text(factor: str, level: str) -> str:
    """Write a level so that it says what it is: sizes and names alone, numbers with the factor."""
    if factor in ("record_size", "file_size", "scheduler", "fs"):
        return level
    return f"{factor} {level}"


def factor_head(factor: str) -> str:
    """Head a column of levels; of a study without a factor there are none."""
    return factor or "level"


def metrics_wanted(name: str | None) -> tuple[Metric, ...]:
    """Return the metrics that can carry a verdict, the best first.

    A quantile that too few operations allow (``latency_ns_p99``) gives way to the next lower one of
    the same time.
    """
    own = METRIC_BY_NAME.get(name or "")
    if own is None:
        return METRICS
    family, _, quantile = own.name.rpartition("_")
    is_quantile = quantile.startswith("p") and quantile[1:].isdecimal()
    lower = [m for m in METRICS if m.name.startswith(f"{family}_p") and is_quantile]
    lower = lower[: lower.index(own)][::-1] if own in lower else []
    return (own, *lower, *METRICS)


def is_segment(operation: str) -> bool:
    """Say whether an operation is what a stream did between two changes of a knob."""
    return SEGMENT in operation


def _is_of(operation: str, part: str | None) -> bool:
    return part is not None and part in (operation, operation.rpartition("/")[2])


def _has(caveats: Iterable[object], code: str) -> bool:
    return any(getattr(caveat, "code", None) == code for caveat in caveats)


def _cell_levels(
    workload: str, levels: dict[str, str], factor: str, nested: dict[str, list[str]]
) -> Levels:
    skip = {factor, *nested.get(workload, [])}
    return tuple(sorted((name, level) for name, level in levels.items() if name not in skip))


def _nested_factors(data: StudyData) -> dict[str, list[str]]:
    """Find, per workload, the factors that some of its trials have and others lack."""
    counts: dict[str, Counter[str]] = {}
    totals: Counter[str] = Counter()
    for trial in data.trials:
        totals[trial.workload] += 1
        counts.setdefault(trial.workload, Counter()).update(trial.levels.keys())
    return {
        workload: sorted(name for name, n in count.items() if n < totals[workload])
        for workload, count in counts.items()
    }


def _varying_factors(data: StudyData, nested: dict[str, list[str]]) -> dict[str, list[str]]:
    """Find, per workload, the uncompared factors with several levels; record size first."""
    seen: dict[str, dict[str, set[str]]] = {}
    for trial in data.trials:
        for name, level in trial.levels.items():
            seen.setdefault(trial.workload, {}).setdefault(name, set()).add(level)
    order = {name: place for place, name in enumerate(["record_size", *data.study.factors])}
    varying: dict[str, list[str]] = {}
    for workload, levels in seen.items():
        skip = {data.study.compared_factor, *nested.get(workload, [])}
        names = [name for name, found in levels.items() if len(found) > 1 and name not in skip]
        varying[workload] = sorted(names, key=lambda n: (order.get(n, len(order)), n))
    return varying


def _levels_in_order(data: StudyData) -> list[str]:
    """Return the compared factor's levels, as given, then any others that were seen."""
    factor = data.study.compared_factor
    found = [t.levels[factor] for t in data.trials if factor in t.levels]
    return list(dict.fromkeys([*data.study.factors.get(factor, []), *found]))


def _in_planned_order(data: StudyData, cells: Cells) -> Cells:
    """Order cells as the study names its workloads and levels; operations as first measured."""
    workloads = {name: i for i, name in enumerate(data.study.workloads)}
    places = {
        factor: {level: i for i, level in enumerate(levels)}
        for factor, levels in data.study.factors.items()
    }
    operations: dict[str, int] = {}
    for key in sorted(cells, key=lambda k: (workloads.get(k.workload, len(workloads)),)):
        operations.setdefault(key.operation, len(operations))

    def rank(key: CellKey) -> tuple[object, ...]:
        levels = tuple(places.get(f, {}).get(level, 0) for f, level in key.levels)
        workload = workloads.get(key.workload, len(workloads))
        return (workload, not key.is_direct, operations[key.operation], levels, key.levels)

    return {key: cells[key] for key in sorted(cells, key=rank)}
