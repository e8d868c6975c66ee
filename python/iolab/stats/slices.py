"""Results of slices beyond their balanced units: whether totals agree, and whether levels carry
over.

The unit of analysis is the balanced unit (a round): its value is the geometric mean of the rates of
a level's slices, so that the ln-ratio of a round is the mean ln-ratio of its slices. Slices are
never a sample by themselves: neighbours share the machine's moment.

Two things could be wrong with it. A mean of logarithms weighs a stall less than a total does: the
ratio of totals stands beside it, and a word needs that both agree within the margin. And what one
level leaves behind could meet the next: a slice after one of the same level is compared with one
after another level's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from iolab.frozen import frozen, replace
from iolab.stats.effect import undecided
from iolab.stats.finding import Evidence, Finding
from iolab.stats.ledger import Ledger
from iolab.stats.methods.student import MeanEstimate, estimate_mean
from iolab.stats.methods.verdict_rule import OPEN_WORDS
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.store.rows import StudyData
from iolab.study.slice_lengths import design_text, length_text
from iolab.wording import counted

CARRY_OVER_P: Final = 0.01
"""Below this slices are too short for what is compared."""
CARRY_OVER_UNITS_MIN: Final = 5
STALL_SLICES: Final = 1.0
"""An operation longer than so many slices is a stall."""
DISAGREE: Final = (
    "the mean of slices and the ratio of totals differ by more than the margin: stalls or bursts "
    "weigh differently in them"
)
_COLUMNS: Final[Mapping[str, str]] = {
    "throughput_bytes_per_s": "bytes",
    "throughput_ops_per_s": "ops",
}


@frozen
class SliceDesign:
    """Arrangement of a study's slices."""

    text: str
    """``alternating slices of 26 ms, one session, one layout``."""
    holds_for: str
    """Scope of an interval."""
    slice_ns: float
    """Mean over sessions."""
    sessions: int
    slices: int
    switch_cost_ns: int
    stalls: int
    """Operations that outlasted a slice; each is charged to its level."""


@frozen
class TwinEffect:
    """A device made alike against the first one, under the same level and in the same unit."""

    ratio: float
    """Of their rates; each level has each device equally often, so that it cancels."""
    device: int
    """Index of the one that differs most."""
    units: int


@frozen
class CarryOver:
    """Slices after one of the same level against slices after another level's."""

    ratio: float
    """Of their rates: above 1 where a level does better after itself."""
    p: float
    units: int


def design_of(data: StudyData) -> SliceDesign | None:
    """Describe the slices of a study; None if it has none."""
    rows = data.slices
    if not rows:
        return None
    lengths = {row.session: row.slice_ns for row in rows}
    slice_ns = math.fsum(lengths.values()) / len(lengths)
    images = max(row.images for row in rows)
    return SliceDesign(
        text=design_text(
            slice_ns,
            len(lengths),
            max(row.places for row in rows),
            images,
        ),
        holds_for="file systems made like these" if images else "this session and layout",
        slice_ns=slice_ns,
        sessions=len(lengths),
        slices=sum(len(row.ops) for row in rows),
        switch_cost_ns=max(row.switch_cost_ns for row in rows),
        stalls=sum(
            longest > STALL_SLICES * row.slice_ns for row in rows for longest in row.longest_ns
        ),
    )


def total_log_ratio(data: StudyData, level: str, baseline: str, metric: str) -> float | None:
    """Return ln of the ratio of total rates, mean over cells; None where it is not known.

    Parameters
    ----------
    metric : one of throughput; others have no totals.
    """
    column = _COLUMNS.get(metric)
    if column is None:
        return None
    sums: dict[tuple[object, ...], dict[str, list[float]]] = defaultdict(dict)
    factor = data.study.compared_factor
    trials = {trial.trial_id: trial for trial in data.trials if trial.status == "ok"}
    for row in data.slices:
        trial = trials.get(row.trial_id)
        own = trial and trial.levels.get(factor)
        if trial is None or own not in (level, baseline):
            continue
        rest = tuple(sorted(item for item in trial.levels.items() if item[0] != factor))
        total = sums[trial.workload, row.operation, rest].setdefault(own, [0.0, 0.0])
        total[0] += sum(getattr(row, column))
        total[1] += sum(row.length_ns)
    logs = [
        math.log(cell[level][0] / cell[level][1]) - math.log(cell[baseline][0] / cell[baseline][1])
        for cell in sums.values()
        if len(cell) == 2 and all(amount and length for amount, length in cell.values())
    ]
    return math.fsum(logs) / len(logs) if logs else None


def where_totals_agree(data: StudyData, found: Sequence[Comparison]) -> list[Comparison]:
    """Withhold the word of comparisons whose totals say something else."""
    return [_agreeing(data, c) for c in found] if data.slices else list(found)


def _agreeing(data: StudyData, c: Comparison) -> Comparison:
    if c.effect.ratio is None or c.effect.word in OPEN_WORDS:
        return c
    total = total_log_ratio(data, c.level, c.baseline, c.metric)
    if total is None or abs(total - math.log(c.effect.ratio)) <= math.log1p(data.study.margin):
        return c
    return replace(c, effect=undecided(c.effect, DISAGREE))


def about_slices(ledger: Ledger, _: StudyVerdict) -> Iterator[Finding]:
    """Yield what is to be known of slices: stalls, and levels that carry over."""
    data = ledger.data
    design = design_of(data)
    if design is None:
        return
    if design.stalls:
        yield Finding(
            "stalls_in_slices",
            f"{counted(design.stalls, 'operation')} took longer than a slice of"
            f" {length_text(design.slice_ns)}; each was finished and charged to its level.",
            "Compare whole trials if stalls are the question: --design trials.",
            count=design.stalls,
            evidence=(Evidence("slice", design.slice_ns, "ns"),),
        )
    carried = carry_over(data)
    if carried is not None and carried.p < CARRY_OVER_P:
        yield Finding(
            "carry_over",
            f"slices after one of the same level differ by {abs(carried.ratio - 1):.1%} from"
            f" those after another level's (p = {carried.p:.2g}): a level meets what the one"
            " before has left behind.",
            "Compare whole trials: --design trials.",
            evidence=(
                Evidence("after the same over after another", carried.ratio, "ratio"),
                Evidence("p", carried.p, "p"),
                Evidence("units", carried.units),
            ),
            strength="shown",
        )


def twin_effect(data: StudyData) -> TwinEffect | None:
    """Compare the devices of a study on twins; None where there is one."""
    logs: dict[int, list[float]] = defaultdict(list)
    for row in data.slices:
        by_device: dict[int, list[float]] = defaultdict(list)
        for device, ops, length in zip(row.place, row.ops, row.length_ns, strict=False):
            if ops and length:
                by_device[device].append(math.log(ops / length))
        if 0 not in by_device:
            continue
        first = math.fsum(by_device[0]) / len(by_device[0])
        for device, values in by_device.items():
            if device:
                logs[device].append(math.fsum(values) / len(values) - first)
    if not logs:
        return None
    means = {device: math.fsum(values) / len(values) for device, values in logs.items()}
    device = max(means, key=lambda one: abs(means[one]))
    return TwinEffect(math.exp(means[device]), device, len(logs[device]))


def carry_over(data: StudyData) -> CarryOver | None:
    """Compare slices after one of the same level with slices after another's, unit by unit.

    Returns
    -------
    CarryOver, or None with fewer than `CARRY_OVER_UNITS_MIN` units that have both kinds.
    """
    trials = {trial.trial_id: trial for trial in data.trials}
    units: dict[tuple[int, str, str], list[tuple[int, str, float]]] = defaultdict(list)
    for row in data.slices:
        trial = trials[row.trial_id]
        logs = [
            math.log(ops / length)
            for ops, length in zip(row.ops, row.length_ns, strict=True)
            if ops and length
        ]
        if len(logs) != len(row.ops) or not logs:
            continue
        mean = math.fsum(logs) / len(logs)
        units[trial.round, trial.workload, row.operation] += [
            (begin, row.trial_id, value - mean)
            for begin, value in zip(row.begin_ns, logs, strict=True)
        ]
    differences = [d for unit in units.values() if (d := _after_itself(unit)) is not None]
    if len(differences) < CARRY_OVER_UNITS_MIN:
        return None
    estimate: MeanEstimate = estimate_mean(differences)
    p = estimate.p_value()
    return None if p is None else CarryOver(math.exp(estimate.mean), p, len(differences))


def _after_itself(unit: list[tuple[int, str, float]]) -> float | None:
    """Mean of slices after their own kind minus that of the others; None without either."""
    same, other = list[float](), list[float]()
    ordered = sorted(unit)
    for (_, before, _), (_, trial_id, value) in pairwise(ordered):
        (same if before == trial_id else other).append(value)
    if not same or not other:
        return None
    return math.fsum(same) / len(same) - math.fsum(other) / len(other)
