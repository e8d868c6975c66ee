"""Two studies beside each other: what differs around them, then cell by cell where they match.

Rounds of different studies were not interleaved, so they are two independent samples (Welch on
ln), with one exception: two simulations with one seed, whose rounds do the same random work and
are pairs. A cell matches if operation and levels agree, levels held in one study and varied in the
other included; operations of an imported study may be named by `iolab.stats.meeting`. Effects say
what happened from the first to the second, above 1 = better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from iolab.frozen import frozen, replace
from iolab.stats.effect import discovery_divisor, effect_of, exploratory_effect
from iolab.stats.imported import planned, run_spread, two_sided_estimate
from iolab.stats.ledger import Samples, build_ledger, is_average_of_operations, level_text
from iolab.stats.meeting import met
from iolab.stats.methods.benjamini_hochberg import benjamini_hochberg
from iolab.stats.methods.log_ratio import geometric_mean, is_usable
from iolab.stats.methods.student import MeanEstimate, estimate_mean
from iolab.stats.metrics import METRIC_BY_NAME, METRICS, Metric
from iolab.stats.pairing import TOTAL, oriented_log_ratio
from iolab.stats.verdict import Effect, Interval, StudyVerdict, to_plain
from iolab.store.rows import Measurement, PhaseDetail, StudyData, TrialRow

MOMENTARY: Final = (
    "load.average",
    "memory.available",
    "fs.free_bytes",
    "cgroup.path",
    "source.file",
    "source.sha256",
    "source.printed_means",
    "sim.mechanism",
)
"""Facts of a moment, which differ between any two trials, what is said of a file itself, and what
are results."""
MACHINE: Final = ("cpu.model", "cpu.count", "dmi.product", "virtualization", "sim.stack")
"""Facts that two studies of one machine, or of one simulated stack, share; a kernel may be what is
compared."""
KIND: Final = "kind"
"""Name of the difference between a simulated study and another one."""
SESSIONS_MIN: Final = 3
"""Sessions a side from which on their difference has a known spread."""
_UNKNOWN: Final = "not known"
_SIZES: Final = ("record_size", "file_size", "workers", "depth")
"""Factors that make up an operation; other settings are what two runs may differ by."""
_MOMENTARY_ENDS: Final = (".diskseq",)
_FIRST: Final = ("kernel.", "source.", "cpu.model", "device.", "fs.", "vm.")
"""Prefixes in order of how often they explain a difference."""


@frozen
class Difference:
    """One thing that is not the same around the two studies."""

    name: str
    before: str
    after: str


@frozen
class CellChange:
    """One cell that both studies have."""

    workload: str
    operation: str
    levels: dict[str, str]
    label: str
    metric: str
    before: float
    """Geometric mean, unit of the metric."""
    after: float
    runs_before: int
    runs_after: int
    effect: Effect
    """Of the second study against the first."""
    sure_above: float | None
    """Lower end of the 90 % interval: with 95 % confidence the ratio is not below; None = single
    runs."""


@frozen
class StudyDiff:
    """Everything that two studies say about each other."""

    before: str
    after: str
    margin: float
    is_paired: bool
    environment: list[Difference]
    overall: dict[str, Effect]
    """Metric -> effect pooled over the matching cells."""
    cells: list[CellChange]
    only_before: list[str]
    only_after: list[str]
    machines: list[Difference]
    """Those differences of the environment that make it another machine."""
    sessions_before: int = 1
    sessions_after: int = 1
    is_interleaved: bool = False
    """True if both sides were measured in one session, round by round."""

    @property
    def has_other_kinds(self) -> bool:
        """Tell whether one is simulated and the other is not."""
        return any(difference.name == KIND for difference in self.machines)

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return cast("dict[str, object]", to_plain(self))

    @property
    def has_session_variance(self) -> bool:
        """Tell whether the difference between sessions is known, or cannot be one."""
        fewest = min(self.sessions_before, self.sessions_after)
        return self.is_paired or self.is_interleaved or fewest >= SESSIONS_MIN


@frozen
class _Place:
    """Key of a cell that is the same in both."""

    workload: str
    operation: str
    is_direct: bool | None
    levels: tuple[tuple[str, str], ...]


def compare_studies(  # noqa: PLR0913 - a comparison and its limits
    before: StudyData,
    after: StudyData,
    *,
    margin: float | None = None,
    metrics: tuple[str, ...] = (),
    roles: tuple[str, ...] = ("primary", "secondary"),
    sessions: tuple[int, int] = (1, 1),
) -> StudyDiff:
    """Compare two stored studies.

    Parameters
    ----------
    before, after : the studies; effects are of `after` against `before`.
    margin : smallest relative difference that matters; None = that of `after`.
    metrics : names to compare; none = all of these roles, rates of operations only where there is
        no throughput.
    roles : see `iolab.stats.metrics.metric.Metric`.
    sessions : sessions behind each side, whose rounds are then sessions (`as_sessions`).
    """
    before, after = met(before, after)
    wanted = margin if margin is not None else after.study.margin
    is_paired = are_pairs(before, after)
    ours, theirs = _cells(after, before), _cells(before, after)
    chosen = [m for m in METRICS if (m.name in metrics if metrics else m.role in roles)]
    jobs: list[tuple[_Place, Metric, Samples, Samples, MeanEstimate]] = []
    overall: dict[str, Effect] = {}
    matched: set[_Place] = set()
    for metric in chosen:
        places = [p for p in theirs.get(metric.name, {}) if p in ours.get(metric.name, {})]
        if not metrics and metric.is_fallback:
            places = [p for p in places if p not in matched]
        matched |= set(places)
        pairs = [(ours[metric.name][p], theirs[metric.name][p]) for p in places]
        estimates = [_estimate([pair], metric, is_paired) for pair in pairs]
        jobs += [
            (place, metric, *pair, estimate)
            for place, pair, estimate in zip(places, pairs, estimates, strict=True)
        ]
        whole = [pair for p, pair in zip(places, pairs, strict=True) if _is_whole(p, places)]
        if whole:
            overall[metric.name] = effect_of(_estimate(whole, metric, is_paired), wanted, 1.0, None)
    adjusted = benjamini_hochberg([job[4].p_value() for job in jobs])
    divisor = discovery_divisor(adjusted)
    spread = run_spread(build_ledger(before))
    names = {m.name for m in chosen}
    return StudyDiff(
        before=before.study.name,
        after=after.study.name,
        margin=wanted,
        is_paired=is_paired,
        environment=list(environment_differences(before, after)),
        overall=overall,
        cells=[
            _change(
                job,
                planned(exploratory_effect(job[4], wanted, p, divisor), job[4], spread, wanted),
                wanted,
            )
            for job, p in zip(jobs, adjusted, strict=True)
        ],
        only_before=_labels(theirs, matched, names),
        only_after=_labels(ours, matched, names),
        machines=other_machines(before, after),
        sessions_before=sessions[0],
        sessions_after=sessions[1],
        is_interleaved={before.study.kind, after.study.kind} == {"simulated"},
    )


def as_sessions(studies: Sequence[StudyData]) -> StudyData:
    """Put several studies of one thing together, each of them one round: the unit is the session.

    What is equal in a session (files, layout, the day) makes its rounds alike, so that two sessions
    differ by more than their rounds tell. Rounds of a session are averaged; what a study has beside
    its metrics (series, distributions, traces) is left out.
    """
    first = studies[0]
    if len(studies) == 1:
        return first
    trials: list[TrialRow] = []
    measurements: list[Measurement] = []
    details: list[PhaseDetail] = []
    for number, data in enumerate(studies, start=1):
        ok = {trial.trial_id for trial in data.trials if trial.status == "ok"}
        trials += [
            replace(trial, trial_id=f"{number}/{trial.trial_id}", round=number)
            for trial in data.trials
        ]
        measurements += [
            replace(m, trial_id=f"{number}/{m.trial_id}", round=number)
            for m in data.measurements
            if m.trial_id in ok
        ]
        details += [
            PhaseDetail({**detail, "trial_id": f"{number}/{detail['trial_id']}"})
            for detail in data.phase_details
        ]
    testbeds = dict.fromkeys(data.study.testbed for data in studies)
    return StudyData(
        replace(first.study, testbed=", ".join(testbeds)),
        trials,
        measurements,
        facts=_common([data.facts for data in studies]),
        caveats=tuple(dict.fromkeys(c for data in studies for c in data.caveats)),
        phase_details=details,
    )


def _common(facts: Sequence[dict[str, str]]) -> dict[str, str]:
    """Facts that are equal in all."""
    return {
        name: value
        for name, value in facts[0].items()
        if all(other.get(name) == value for other in facts[1:])
    }


def diff_of_levels(verdict: StudyVerdict, name: str) -> StudyDiff:
    """Return the levels of one study against its baseline, cell by cell, as a comparison."""
    cells = [
        CellChange(
            workload=c.workload,
            operation=c.operation,
            levels=c.cell_levels | {verdict.compared_factor: c.level},
            label=f"{c.workload} · {c.label} · {level_text(verdict.compared_factor, c.level)}",
            metric=c.metric,
            before=c.baseline_value or math.nan,
            after=c.value or math.nan,
            runs_before=c.rounds_used,
            runs_after=c.rounds_used,
            effect=c.effect,
            sure_above=c.effect.interval_90.low if c.effect.interval_90 else None,
        )
        for c in verdict.cells
        if c.is_affected
    ]
    return StudyDiff(
        before=f"{name}, {level_text(verdict.compared_factor, verdict.baseline)}",
        after=name,
        margin=verdict.margin,
        is_paired=True,
        environment=[],
        overall={},
        cells=cells,
        only_before=[],
        only_after=[],
        machines=[],
        is_interleaved=True,
    )


def common_cells(studies: Sequence[StudyData], metric: str) -> list[dict[str, Samples]]:
    """Find the cells of one metric that all studies have.

    Parameters
    ----------
    studies : at least one; the first names the operations of an imported one.
    metric : name of the metric.

    Returns
    -------
    list : for each study its samples by the cell's label, the same labels in the same order.
    """
    factors = {name: levels for data in studies for name, levels in data.study.factors.items()}
    workloads = max((data.study.workloads for data in studies), key=len)
    kinds = {data.study.kind for data in studies}
    study = replace(studies[0].study, factors=factors, workloads=workloads)
    if "imported" in kinds:
        study = replace(study, kind="imported")
    around = replace(studies[0], study=study)
    named = [studies[0], *(met(studies[0], data)[1] for data in studies[1:])]
    found = [_cells(data, around).get(metric, {}) for data in named]
    shared = [place for place in found[0] if all(place in cells for cells in found)]
    shared = [place for place in shared if _is_whole(place, shared)]
    return [{_label(place): cells[place] for place in shared} for cells in found]


def are_pairs(before: StudyData, after: StudyData) -> bool:
    """Say whether round n of one is the partner of round n of the other."""
    are_simulated = before.study.is_simulated and after.study.is_simulated
    return are_simulated and before.study.seed == after.study.seed


def other_machines(before: StudyData, after: StudyData) -> list[Difference]:
    """Return what says that the studies ran on different machines; unknown facts say nothing."""
    found: list[Difference] = []
    if before.study.is_simulated != after.study.is_simulated:
        found.append(Difference(KIND, before.study.kind, after.study.kind))
    for name in MACHINE:
        told = (_fact(before, name), _fact(after, name))
        if told[0] != told[1] and _UNKNOWN not in told:
            found.append(Difference(name, *told))
    return found


def environment_differences(before: StudyData, after: StudyData) -> Iterator[Difference]:
    """Yield what differs, what explains most first: testbed, kernel, devices, settings, rest."""
    for name, get in _STUDY_FIELDS:
        are_files = name == "testbed" and before.study.kind == after.study.kind == "imported"
        if get(before) != get(after) and not are_files:
            yield Difference(name, get(before), get(after))
    names = sorted(_facts(before) | _facts(after), key=lambda n: (_rank(n), n))
    for name in names:
        told = (_fact(before, name), _fact(after, name))
        if told[0] != told[1]:
            yield Difference(name, *told)
    ours, theirs = after.study.settings, before.study.settings
    for name in sorted(ours | theirs):
        held = (theirs.get(name, "not held"), ours.get(name, "not held"))
        if held[0] != held[1]:
            yield Difference(f"setting {name}", *held)
    for name in sorted(before.study.factors | after.study.factors):
        levels = [", ".join(d.study.factors.get(name, ["not varied"])) for d in (before, after)]
        if levels[0] != levels[1]:
            yield Difference(f"levels of {name}", *levels)


_STUDY_FIELDS: Final[tuple[tuple[str, Callable[[StudyData], str]], ...]] = (
    (KIND, lambda data: data.study.kind),
    ("testbed", lambda data: data.study.testbed),
    ("iolab", lambda data: data.study.iolab_version),
)


def _facts(data: StudyData) -> set[str]:
    names = {*data.facts, *data.varying_facts}
    return {n for n in names if n not in MOMENTARY and not n.endswith(_MOMENTARY_ENDS)}


def _fact(data: StudyData, name: str) -> str:
    if name in data.varying_facts:
        return " or ".join(sorted(set(data.varying_facts[name].values())))
    return data.facts.get(name, _UNKNOWN)


def _rank(name: str) -> int:
    return next((i for i, start in enumerate(_FIRST) if name.startswith(start)), len(_FIRST))


def _cells(data: StudyData, other: StudyData) -> dict[str, dict[_Place, Samples]]:
    """Sort the measurements by metric and place; only levels that vary in either study count."""
    status = {trial.trial_id: trial.status for trial in data.trials}
    varied = {*data.study.factors, *other.study.factors} or _other_sizes(data, other)
    is_one_workload = len(data.study.workloads) == 1 == len(other.study.workloads)
    is_mode_known = "imported" not in (data.study.kind, other.study.kind)
    is_table = data.study.kind == "imported"
    found: dict[str, dict[_Place, Samples]] = {}
    for m in data.measurements:
        if status.get(m.trial_id) != "ok" or m.metric not in METRIC_BY_NAME:
            continue
        if not is_usable(m.value) or (is_table and is_average_of_operations(m.operation)):
            continue
        known = data.study.settings | m.levels
        place = _Place(
            "" if is_one_workload else m.workload,
            m.operation,
            m.is_direct if is_mode_known else None,
            tuple(sorted((name, known[name]) for name in varied if name in known)),
        )
        samples = found.setdefault(m.metric, {}).setdefault(place, Samples())
        samples.add(m)
    return found


def _other_sizes(data: StudyData, other: StudyData) -> set[str]:
    """Sizes and counts that two single runs hold at different levels: no cell is the same then."""
    held, others = data.study.settings, other.study.settings
    return {name for name in _SIZES if name in held.keys() & others and held[name] != others[name]}


def _is_whole(place: _Place, places: list[_Place]) -> bool:
    """Leave out the streams of a mixed phase whose total is there."""
    phase, _, part = place.operation.rpartition("/")
    if not phase or part == TOTAL:
        return True
    total = _Place(place.workload, f"{phase}/{TOTAL}", place.is_direct, place.levels)
    return total not in places


def _estimate(
    pairs: list[tuple[Samples, Samples]], metric: Metric, is_paired: bool
) -> MeanEstimate:
    """Reduce matching cells (ours, theirs) to one sample of ln-ratios, or to two samples."""
    if is_paired:
        rounds = set.intersection(*(set(s.by_round) for pair in pairs for s in pair))
        ratios = [
            sum(oriented_log_ratio(metric, a.by_round[r], b.by_round[r]) for a, b in pairs)
            / len(pairs)
            for r in sorted(rounds)
        ]
        if ratios:
            return estimate_mean(ratios)
    estimate = two_sided_estimate(pairs, metric)[0]
    if estimate is not None:
        return estimate
    mean = math.fsum(math.log(_mean(ours) / _mean(theirs)) for ours, theirs in pairs) / len(pairs)
    return MeanEstimate(mean if metric.is_higher_better else -mean, None, 1)


def _mean(samples: Samples) -> float:
    return geometric_mean([m.value for m in samples.all()])


def _change(
    job: tuple[_Place, Metric, Samples, Samples, MeanEstimate], effect: Effect, margin: float
) -> CellChange:
    place, metric, ours, theirs, _ = job
    bounds: Interval | None = effect.interval_90
    return CellChange(
        workload=place.workload or next(m.workload for m in theirs.all()),
        operation=place.operation,
        levels=dict(place.levels),
        label=_label(place),
        metric=metric.name,
        before=_mean(theirs),
        after=_mean(ours),
        runs_before=len(theirs.by_round),
        runs_after=len(ours.by_round),
        effect=effect,
        sure_above=bounds.low if bounds is not None else None,
    )


def _label(place: _Place) -> str:
    names = [level_text(name, level) for name, level in place.levels]
    return " · ".join([*([place.workload] if place.workload else []), place.operation, *names])


def _labels(
    cells: dict[str, dict[_Place, Samples]], matched: set[_Place], metrics: set[str]
) -> list[str]:
    places = dict.fromkeys(p for name, found in cells.items() if name in metrics for p in found)
    return [_label(place) for place in places if place not in matched]
