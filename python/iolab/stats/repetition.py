"""Level at which repetition pays: longer trials, or more of them? Kalibera and Jones on stored
series.

The noise of a verdict is that of a round's ln-ratio. Each trial is cut into tenths; the ln-ratio of
the same tenth of two paired trials cancels what both did alike (warm-up, the round's own luck).
Their spread inside a round is what longer trials average out, the spread between rounds beyond that
is what only more rounds do. With the time that a trial takes beside its work both give the length
that buys most precision for the time.

An A/A study has two equal trials a round, which tells the spread of trials from that of rounds.
Left out: that neighbouring tenths remember each other; then trials look noisier and tenths quieter
than they are, and the length advised is rather too short than too long.

Source: Kalibera and Jones (2013), Rigorous Benchmarking in Reasonable Time, ISMM.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.stats.ledger import CellKey, Ledger, Samples
from iolab.stats.methods.kalibera_jones import plan_repetitions
from iolab.stats.methods.trial_shape import joined
from iolab.store.rows import SeriesRow, StudyData

PARTS: Final = 10
ROUNDS_MIN: Final = 4
"""Fewer rounds do not tell a spread between rounds from chance."""
SAVING_MIN: Final = 0.10
"""A smaller saving is not worth another plan."""
LENGTH_FACTOR_MAX: Final = 10.0
"""Factor beyond which no trial's course after its end was seen: advice stops at ten times its
length.
"""


@frozen
class TrialLength:
    """Recommendation of one cell about the length of its trials."""

    workload: str
    operation: str
    label: str
    """Operation, level and varying levels, for people."""
    n_rounds: int
    part_sd: float
    """Spread of a tenth's ln-ratio inside a round."""
    round_sd: float
    """Spread that rounds add by themselves; 0 if none is seen."""
    length_ns: float
    """Timed length of a trial's operation, mean."""
    overhead_ns: float
    """Time that a trial takes beside it, shared among its operations."""
    best_ns: float
    """Timed length that buys most precision for the time, at most ten times the present one."""
    saving: float
    """Share of the time that trials of that length would save for the same precision."""

    @property
    def is_worth_it(self) -> bool:
        """Tell whether another length saves enough to be advised."""
        return self.saving >= SAVING_MIN

    @property
    def is_longer_better(self) -> bool:
        """Tell whether the advised length is the longer one."""
        return self.best_ns > self.length_ns


@frozen
class NoiseByLevel:
    """Standard deviations of ln-values of an A/A study, by the level that adds them."""

    part_sd: float
    trial_sd: float
    round_sd: float
    trials_per_round: int
    """Equal trials in a round that buy most precision for the time."""


def trial_lengths(ledger: Ledger) -> list[TrialLength]:
    """Analyse every cell whose trials have series, largest saving first."""
    data = ledger.data
    series = {(s.trial_id, s.operation): s for s in data.series}
    overheads = _overheads(data)
    found: list[TrialLength] = []
    for group in ledger.groups():
        metric = ledger.primary_metric(group)
        if metric is None:
            continue
        for key, by_level in ledger.cells_of(metric, group).items():
            base = by_level.get(data.study.baseline)
            for level, samples in by_level.items():
                if base is None or level == data.study.baseline:
                    continue
                pairs = _pairs(series, key.operation, samples, base)
                lone = [s for pair in pairs for s in pair]
                spent = [overheads[s.trial_id] for s in lone if s.trial_id in overheads]
                if len(pairs) >= ROUNDS_MIN and spent:
                    label = " · ".join(t for t in (key.operation, level, ledger.label(key)) if t)
                    row = _length(key, label, pairs, math.fsum(spent) / len(spent))
                    found += [row] if row is not None else []
    return sorted(found, key=lambda row: -row.saving)


def noise_by_level(
    data: StudyData, labels: tuple[str, str], costs_ns: tuple[float, float, float]
) -> NoiseByLevel | None:
    """Tell tenths, trials and rounds of an A/A study apart; None without enough series.

    Parameters
    ----------
    labels : the two that change nothing.
    costs_ns : of a tenth, and of a trial and a round beside what is in them.
    """
    factor = data.study.compared_factor
    rounds: dict[int, dict[str, list[float]]] = defaultdict(dict)
    places = {trial.trial_id: trial for trial in data.trials}
    first = next((s.operation for s in data.series), None)
    for row in data.series:
        trial, parts = places.get(row.trial_id), _log_parts(row)
        if trial is not None and row.operation == first and parts is not None:
            rounds[trial.round][trial.levels.get(factor, "")] = parts
    nested = [[found[label] for label in labels] for found in rounds.values() if
              all(label in found for label in labels)]  # fmt: skip
    if len(nested) < ROUNDS_MIN:
        return None
    plan = plan_repetitions(nested, costs_ns)
    part, trial_, round_ = (math.sqrt(max(0.0, square)) for square in plan.spread_squared)
    return NoiseByLevel(part, trial_, round_, plan.counts[1])


def trial_costs_ns(data: StudyData) -> tuple[float, float, float] | None:
    """Mean cost of a tenth, of a trial beside its work, of a round beside its trials."""
    overheads = _overheads(data)
    lengths = [_length_ns(row) for row in data.series]
    if not overheads or not lengths:
        return None
    firsts = [
        overheads[t.trial_id] for t in data.trials if t.trial_id in overheads and not t.position
    ]
    rest = [overheads[t.trial_id] for t in data.trials if t.trial_id in overheads and t.position]
    trial = math.fsum(rest) / len(rest) if rest else math.fsum(firsts) / len(firsts)
    begin = max(0.0, math.fsum(firsts) / len(firsts) - trial) if firsts else 0.0
    return math.fsum(lengths) / len(lengths) / PARTS, trial, begin


def _pairs(
    series: dict[tuple[str, str], SeriesRow], operation: str, ours: Samples, theirs: Samples
) -> list[tuple[SeriesRow, SeriesRow]]:
    found: list[tuple[SeriesRow, SeriesRow]] = []
    for r in sorted(ours.by_round.keys() & theirs.by_round.keys()):
        rows = [series.get((side.by_round[r][0].trial_id, operation)) for side in (ours, theirs)]
        if rows[0] is not None and rows[1] is not None:
            found.append((rows[0], rows[1]))
    return found


def _length(
    key: CellKey, label: str, pairs: Sequence[tuple[SeriesRow, SeriesRow]], overhead_ns: float
) -> TrialLength | None:
    nested: list[list[float]] = []
    for pair in pairs:
        ours, theirs = _log_parts(pair[0]), _log_parts(pair[1])
        if ours is not None and theirs is not None:
            nested.append([a - b for a, b in zip(ours, theirs, strict=True)])
    if len(nested) < ROUNDS_MIN:
        return None
    lengths = [_length_ns(row) for pair in pairs for row in pair]
    length_ns = math.fsum(lengths) / len(lengths)
    part_ns = length_ns / PARTS
    plan = plan_repetitions(nested, (part_ns, max(1.0, overhead_ns)))
    part, between = plan.spread_squared[0], max(0.0, plan.spread_squared[1])
    if part <= 0:
        return None
    most = LENGTH_FACTOR_MAX * PARTS
    best = min(most, plan.counts[0]) if between > 0 else most

    def cost(parts: float) -> float:
        """Variance times time; a round's variance halves when its time doubles."""
        return (between + part / parts) * (overhead_ns + parts * part_ns)

    return TrialLength(
        key.workload,
        key.operation,
        label,
        len(nested),
        math.sqrt(part),
        math.sqrt(between),
        length_ns,
        overhead_ns,
        best * part_ns,
        max(0.0, 1 - cost(best) / cost(PARTS)),
    )


def _log_parts(row: SeriesRow) -> list[float] | None:
    """Ln of a trial's tenths; None if it is too short, or a tenth is empty."""
    work = (row.bytes if any(row.bytes) else row.ops)[:-1]
    if len(work) < PARTS:
        return None
    parts = joined([float(value) for value in work], PARTS)
    return [math.log(value) for value in parts] if min(parts) > 0 else None


def _length_ns(row: SeriesRow) -> float:
    return float(row.interval_ns) * len(row.ops)


def _overheads(data: StudyData) -> dict[str, float]:
    """Time that each finished trial took beside its timed phases, per phase."""
    timed: dict[str, dict[str, float]] = defaultdict(dict)
    for detail in data.phase_details:
        phase = str(detail["operation"]).partition("@")[0].partition("/")[0]
        elapsed = float(detail.get("elapsed_ns") or 0)
        known = timed[str(detail["trial_id"])]
        known[phase] = max(known.get(phase, 0.0), elapsed)
    return {
        trial.trial_id: max(0.0, trial.elapsed_ns - math.fsum(phases.values())) / len(phases)
        for trial in data.trials
        if trial.elapsed_ns and (phases := timed.get(trial.trial_id))
    }
