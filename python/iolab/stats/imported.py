"""Judge an imported table: runs whose order nobody knows, so that nothing may be paired.

The same verdict rule and families as `iolab.stats.judge`, on Welch's t for two independent samples
of ln-values. Unit of analysis is the run: per level and run the cells are averaged first, since
the operations of one run share its luck. Averages over several operations are shown, never judged.
Where every value is a single run there is no interval; how many runs would decide is then worked
out from a spread that is assumed, or taken from cells of the same table that were repeated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Final

from iolab.frozen import replace
from iolab.stats import sentence as wording
from iolab.stats.collect_findings import find_caveats
from iolab.stats.effect import discovery_divisor, exploratory_effect, undecided
from iolab.stats.effect_words import percent
from iolab.stats.families import Family, all_estimates
from iolab.stats.findings import kind_of
from iolab.stats.judge_pooled import headline_groups
from iolab.stats.ledger import (
    CellKey,
    Cells,
    Group,
    Ledger,
    Samples,
    build_ledger,
    cache_share,
    decides_cache,
    is_average_of_operations,
    is_page_cache,
)
from iolab.stats.measured import EQUAL_ROUNDS, as_measured, is_of_equal_rounds
from iolab.stats.methods.benjamini_hochberg import benjamini_hochberg
from iolab.stats.methods.interaction import unpaired_p
from iolab.stats.methods.student import MeanEstimate
from iolab.stats.methods.verdict_rule import FURTHER_ROUNDS_LIMIT, ROUNDS_MIN, Word, decide
from iolab.stats.methods.welch import DifferenceEstimate, estimate_difference
from iolab.stats.metrics import METRICS, Metric
from iolab.stats.qualified import (
    CellResult,
    Censored,
    disagreeing,
    is_only_on_average,
    without_censored,
)
from iolab.stats.request_time import request_times
from iolab.stats.secondary_analyses import winner_sets
from iolab.stats.secondary_types import CloserLook
from iolab.stats.summaries import summaries, value_over
from iolab.stats.trade_offs import trade_offs
from iolab.stats.verdict import BestLevels, CellComparison, Comparison, Effect, StudyVerdict
from iolab.stats.winner_rows import best_levels, count_trials
from iolab.store.rows import StudyData, StudyRow

ASSUMED_SPREAD: Final = 0.05
"""Standard deviation of ln between runs, where nobody measured one: more than a quarter of the
configurations of Cao et al. (FAST'17) varied by over 10 % from run to run."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Cell:
    """One cell with both sides."""

    key: CellKey
    ours: Samples
    theirs: Samples


def judge_imported(data: StudyData) -> StudyVerdict:
    """Judge one imported study; what cannot be told is `undecided`, with the reason."""
    ledger = build_ledger(data)
    spread = run_spread(ledger)
    pooled: list[Comparison] = []
    closer, best = CloserLook(), list[BestLevels]()
    groups = [(g, m) for g in ledger.groups() if (m := ledger.primary_metric(g)) is not None]
    families = [(g, m, _family(ledger, m, g)) for g, m in groups]
    families = [(g, m, family) for g, m, family in families if family is not None]
    leading = headline_groups([group for group, *_ in families])
    for group, metric, family in families:
        found = _judge_group(ledger, metric, group, family, spread)
        pooled += [replace(c, is_headline=group in leading) for c in found]
        if len(family.levels) > 2:
            closer.winner_sets.extend(winner_sets(family, group, metric))
        row = best_levels(ledger, group, family, closer.winner_sets, pooled)
        best += [row] if row is not None else []
    secondary = _judge_beside(ledger, pooled, spread)
    cells = _judge_cells(ledger, spread)
    draft = StudyVerdict(
        sentence="",
        headline_word=_headline_word(pooled),
        compared_factor=data.study.compared_factor,
        baseline=data.study.baseline,
        margin=data.study.margin,
        pooled=pooled,
        secondary=secondary,
        cells=cells,
        treatments=summaries(ledger),
        best_levels=best,
        trade_offs=trade_offs(pooled, secondary, cells, data.study.compared_factor),
        trials=count_trials(data),
        position=None,
        closer=closer,
        is_paired=False,
        request_times=request_times(ledger),
    )
    caveats = [f for f in find_caveats(ledger, draft) if not kind_of(f.kind).is_of_rounds]
    return replace(
        draft,
        sentence=imported_answer(data, draft),
        caveats=caveats,
    )


def imported_answer(data: StudyData, draft: StudyVerdict) -> str:
    """Say what the table says, or why it does not say it."""
    return f"{wording.kind_sentence(data.study)} {_sentence(build_ledger(data), draft)}"


def run_spread(ledger: Ledger) -> tuple[float, bool]:
    """Return the standard deviation of ln between runs, and whether it was measured.

    Pooled over all treatments of the table with at least two runs.
    """
    squares, freedom = 0.0, 0
    for cells in ledger.cells.values():
        for key, by_level in cells.items():
            for samples in () if is_average_of_operations(key.operation) else by_level.values():
                values = list(_run_logs([samples]).values())
                if len(values) > 1:
                    mean = math.fsum(values) / len(values)
                    squares += math.fsum((v - mean) ** 2 for v in values)
                    freedom += len(values) - 1
    if freedom == 0:
        return ASSUMED_SPREAD, False
    return math.sqrt(squares / freedom), True


def runs_to_decide(log_ratio: float, spread: float, margin: float) -> int | None:
    """Return the runs a side that would decide, if runs spread as told; None above the limit."""
    for n in range(2, FURTHER_ROUNDS_LIMIT + 2):
        guess = DifferenceEstimate(log_ratio, spread * math.sqrt(2), n, freedom=2.0 * (n - 1))
        if decide(guess, margin).word != "undecided":
            return n
    return None


def two_sided_estimate(
    cells: Iterable[tuple[Samples, Samples]], metric: Metric
) -> tuple[MeanEstimate | None, list[tuple[Samples, Samples]], int]:
    """Reduce cells (ours, theirs) to the difference of two samples of runs.

    Returns
    -------
    The estimate on the ln scale, above 0 when ours is better (None without a complete run); the
    cells used; and how many were left out, since a side has fewer than half of the fullest's runs.
    """
    known = list(cells)
    fullest = max((len(s.by_round) for pair in known for s in pair), default=0)
    used = [p for p in known if 2 * min(len(s.by_round) for s in p) >= fullest]
    ours = list(_run_logs([pair[0] for pair in used]).values())
    theirs = list(_run_logs([pair[1] for pair in used]).values())
    left_out = len(known) - len(used)
    if not ours or not theirs:
        return None, used, left_out
    estimate = estimate_difference(ours, theirs)
    sign = 1 if metric.is_higher_better else -1
    return replace(estimate, mean=sign * estimate.mean), used, left_out


def _run_logs(cells: Sequence[Samples]) -> dict[int, float]:
    """Mean ln over cells, by run; only runs that every cell has."""
    runs = set.intersection(*(set(cell.by_round) for cell in cells)) if cells else set[int]()
    return {
        run: math.fsum(
            math.fsum(math.log(m.value) for m in cell.by_round[run]) / len(cell.by_round[run])
            for cell in cells
        )
        / len(cells)
        for run in sorted(runs)
    }


def _cells_between(cells: Cells, level: str, baseline: str) -> tuple[list[_Cell], int]:
    """Cells that have both levels, and the number of those that have only one."""
    found, lone = list[_Cell](), 0
    for key, by_level in cells.items():
        if is_average_of_operations(key.operation):
            continue
        ours, theirs = by_level.get(level), by_level.get(baseline)
        if ours is not None and theirs is not None:
            found.append(_Cell(key, ours, theirs))
        elif ours is not None or theirs is not None:
            lone += 1
    return found, lone


def _family(ledger: Ledger, metric: Metric, group: Group) -> Family | None:
    """Compare all pairs of levels of one group; None if no level meets the baseline."""
    study, cells = ledger.data.study, ledger.cells_asked(metric, group)
    found = {level for by_level in cells.values() for level in by_level}
    levels = [level for level in ledger.levels_in_order if level in found]
    if study.baseline not in levels:
        return None

    def estimate(first: str, second: str) -> MeanEstimate | None:
        return _against(study, metric, cells, first, second).estimate

    family = Family(levels, all_estimates(levels, estimate), study.margin)
    others = [level for level in levels if level != study.baseline]
    return family if any(family.estimate(level, study.baseline) for level in others) else None


def _judge_group(
    ledger: Ledger, metric: Metric, group: Group, family: Family, spread: tuple[float, bool]
) -> list[Comparison]:
    """Judge all levels of one group against the baseline, from the family of all pairs."""
    study = ledger.data.study
    found: list[Comparison] = []
    for level in family.levels:
        job = _against(study, metric, ledger.cells_asked(metric, group), level, study.baseline)
        if level == study.baseline or job.estimate is None:
            continue
        effect = family.effect(level, study.baseline)
        if is_of_equal_rounds(job.estimate):
            effect = undecided(effect, EQUAL_ROUNDS)
        else:
            effect = planned(effect, job.estimate, spread, study.margin)
        c = _comparison(ledger, metric, group, job, effect)
        found.append(_qualified(ledger, metric, c, job.used))
    return found


def _qualified(
    ledger: Ledger, metric: Metric, found: Comparison, used: Sequence[_Cell]
) -> Comparison:
    """Give a comparison the word that its cells leave it."""
    margin = ledger.data.study.margin
    results: list[CellResult] = []
    samples: list[tuple[list[float], list[float]]] = []
    for cell in used:
        estimate = two_sided_estimate([(cell.ours, cell.theirs)], metric)[0]
        if estimate is None:
            continue
        label = " · ".join(t for t in (cell.key.operation, ledger.label(cell.key)) if t)
        results.append(CellResult(cell.key, label, estimate))
        sides = [list(_run_logs([side]).values()) for side in (cell.ours, cell.theirs)]
        samples.append((sides[0], sides[1]))
    is_told = found.effect.interval_95 is not None and found.rounds_used >= ROUNDS_MIN
    parts = disagreeing(results, unpaired_p(samples), margin) if is_told else ()
    effect = found.effect
    if parts:
        effect = replace(undecided(effect, ""), word="depends")
    cached = found.page_cache_cells if not decides_cache(ledger.data.study.compared_factor) else 0
    effect = without_censored(effect, Censored(cache=cached))
    is_equal = effect.word in ("same", "trivial")
    average = is_equal and is_only_on_average([c.estimate for c in results], margin)
    return replace(found, effect=effect, parts=parts, is_on_average=average)


def _judge_beside(
    ledger: Ledger, pooled: list[Comparison], spread: tuple[float, bool]
) -> list[Comparison]:
    """Judge the other metrics of each group; Benjamini-Hochberg over all of them."""
    study = ledger.data.study
    primary = {(c.workload, c.is_direct): c.metric for c in pooled}
    places = dict.fromkeys(group[:2] for group in ledger.groups())
    jobs: list[tuple[Metric, Group, _Job, MeanEstimate]] = []
    for place in places:
        own = primary.get(place)
        for metric in METRICS:
            if metric.role == "shown" or metric.name == own:
                continue
            for kind in ledger.kinds_of(metric, place):
                group = (*place, kind)
                cells = ledger.cells_of(metric, group)
                for level in ledger.levels_in_order:
                    job = _against(study, metric, cells, level, study.baseline)
                    if level != study.baseline and job.estimate is not None:
                        jobs.append((metric, group, job, job.estimate))
    adjusted = benjamini_hochberg([estimate.p_value() for *_, estimate in jobs])
    divisor, margin = discovery_divisor(adjusted), study.margin
    return [
        _qualified(
            ledger,
            metric,
            _comparison(
                ledger,
                metric,
                group,
                job,
                planned(exploratory_effect(estimate, margin, p, divisor), estimate, spread, margin),
            ),
            job.used,
        )
        for (metric, group, job, estimate), p in zip(jobs, adjusted, strict=True)
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
    """One level against another in one group."""

    level: str
    estimate: MeanEstimate | None
    used: list[_Cell]
    left_out: int


def _against(study: StudyRow, metric: Metric, cells: Cells, level: str, other: str) -> _Job:
    both, lone = _cells_between(cells, level, other)
    pairs = [(cell.ours, cell.theirs) for cell in both]
    estimate, used, left_out = two_sided_estimate(pairs, metric)
    kept = [cell for cell in both if any(cell.ours is ours for ours, _ in used)]
    if estimate is not None:
        estimate = as_measured(study, metric, estimate)
    return _Job(level, estimate, kept, left_out + lone)


def planned(
    effect: Effect, estimate: MeanEstimate, spread: tuple[float, bool], margin: float
) -> Effect:
    """Say for single runs how many more would decide, from a spread that others showed."""
    if estimate.n > 1 or effect.word != "undecided":
        return effect
    runs = runs_to_decide(estimate.mean, spread[0], margin)
    return replace(
        effect,
        further_rounds=None if runs is None else runs - estimate.n,
        is_further_rounds_above_limit=runs is None,
        is_further_rounds_at_least=False,
    )


def _comparison(
    ledger: Ledger, metric: Metric, group: Group, job: _Job, effect: Effect
) -> Comparison:
    sides = [(cell.ours, cell.theirs) for cell in job.used]
    trials = {m.trial_id for pair in sides for side in pair for m in side.all()}
    return Comparison(
        workload=group[0],
        is_direct=group[1],
        metric=metric.name,
        level=job.level,
        baseline=ledger.data.study.baseline,
        effect=effect,
        n_cells=len(job.used),
        cells_excluded=job.left_out,
        rounds_used=job.estimate.n if job.estimate is not None else 0,
        rounds_excluded=0,
        trials_used=len(trials),
        trials_excluded=0,
        page_cache_cells=sum(is_page_cache(cache_share(pair)) for pair in sides),
        generator_bound_cells=0,
        round_ratios={},
        kind=group[2],
    )


def _headline_word(pooled: list[Comparison]) -> Word:
    from iolab.stats.judge import headline_word, words_of_levels

    return headline_word(words_of_levels(pooled))


def _judge_cells(ledger: Ledger, spread: tuple[float, bool]) -> list[CellComparison]:
    """Judge every cell by its group's primary metric; Benjamini-Hochberg over the study."""
    jobs: list[tuple[Metric, str, _Cell, MeanEstimate]] = []
    for group in ledger.groups():
        metric = ledger.primary_metric(group)
        if metric is None:
            continue
        for level in ledger.levels_in_order:
            if level == ledger.data.study.baseline:
                continue
            for cell in _cells_between(
                ledger.cells_of(metric, group), level, ledger.data.study.baseline
            )[0]:
                estimate = two_sided_estimate([(cell.ours, cell.theirs)], metric)[0]
                # A cell of three runs and one has no interval, but a ratio.
                estimate = estimate or _bare(cell, metric)
                estimate = as_measured(ledger.data.study, metric, estimate)
                jobs.append((metric, level, cell, estimate))
    adjusted = benjamini_hochberg([job[3].p_value() for job in jobs])
    divisor, margin = discovery_divisor(adjusted), ledger.data.study.margin
    return [
        _cell_comparison(
            ledger,
            metric,
            level,
            cell,
            planned(exploratory_effect(estimate, margin, p, divisor), estimate, spread, margin),
        )
        for (metric, level, cell, estimate), p in zip(jobs, adjusted, strict=True)
    ]


def _bare(cell: _Cell, metric: Metric) -> MeanEstimate:
    ours, theirs = (list(_run_logs([s]).values()) for s in (cell.ours, cell.theirs))
    mean = math.fsum(ours) / len(ours) - math.fsum(theirs) / len(theirs)
    n = min(len(ours), len(theirs))
    return MeanEstimate(mean if metric.is_higher_better else -mean, None, n)


def _cell_comparison(
    ledger: Ledger, metric: Metric, level: str, cell: _Cell, effect: Effect
) -> CellComparison:
    key, label = cell.key, ledger.label(cell.key)
    share = cache_share((cell.ours, cell.theirs))
    return CellComparison(
        workload=key.workload,
        operation=key.operation,
        is_direct=key.is_direct,
        cell_levels=dict(key.levels),
        label=f"{key.operation} · {label}" if label else key.operation,
        metric=metric.name,
        level=level,
        baseline=ledger.data.study.baseline,
        effect=effect,
        rounds_used=min(len(cell.ours.by_round), len(cell.theirs.by_round)),
        value=value_over(metric, cell.ours.all()),
        baseline_value=value_over(metric, cell.theirs.all()),
        cache_share=share,
        is_page_cache=is_page_cache(share),
        is_generator_bound=False,
        kind=ledger.kind_of(metric, key),
    )


def _sentence(ledger: Ledger, draft: StudyVerdict) -> str:
    if draft.pooled:
        parts = [wording.headline_sentence(draft)]
        if all(c.effect.interval_95 is None for c in draft.headline):
            parts.append(_assumption(run_spread(ledger)))
        return " ".join(parts)
    study = ledger.data.study
    if not study.is_comparison and draft.treatments:
        return f"{wording.alone_sentence(draft)} {_refusal(ledger)}"
    return _refusal(ledger)


def _assumption(spread: tuple[float, bool]) -> str:
    deviation, is_measured = spread
    where = "as in the repeated cells of this table" if is_measured else "assumed: nothing is"
    rest = "" if is_measured else " repeated in this table"
    return (
        "There is no interval from single runs; the number of further rounds supposes that runs"
        f" vary by {percent(deviation)} (standard deviation, {where}{rest})."
    )


def _refusal(ledger: Ledger) -> str:
    """Say why the table does not answer which level is best."""
    study = ledger.data.study
    factor = study.compared_factor
    values = ledger.data.measurements
    seen = {t.levels[factor] for t in ledger.data.trials if factor in t.levels}
    reasons: list[str] = []
    if len(seen) <= 1:
        reasons.append(f"only {next(iter(seen), study.baseline)} is in it")
    elif not values:
        pass  # Told below, and the only reason.
    elif any(not is_average_of_operations(m.operation) for m in values):
        reasons.append(
            f"wherever {study.baseline} and another {factor} were measured, one of them has fewer"
            " than half of the runs of the fullest cell"
            if _has_common_cell(ledger)
            else f"no operation was measured with {study.baseline} and another {factor}"
        )
    if _is_single(ledger.data):
        reasons.append("each value is one run, so that chance cannot be told from a difference")
    barring = (c for c in ledger.data.caveats if kind_of(c.code).bars_answer)
    reasons += [c.message.rstrip(".") for c in barring]
    if not values:
        reasons.append("no value is of a unit and a statistic that iolab judges")
    return f"It does not say which {factor} is best: {'; '.join(reasons)}."


def _has_common_cell(ledger: Ledger) -> bool:
    """Tell whether the baseline and another level were measured in one cell."""
    return any(
        ledger.data.study.baseline in by_level and len(by_level) > 1
        for cells in ledger.cells.values()
        for key, by_level in cells.items()
        if not is_average_of_operations(key.operation)
    )


def _is_single(data: StudyData) -> bool:
    runs: dict[tuple[object, ...], set[int]] = {}
    for m in data.measurements:
        place = (m.workload, m.operation, m.metric, tuple(sorted(m.levels.items())))
        runs.setdefault(place, set()).add(m.round)
    return bool(runs) and max(len(found) for found in runs.values()) == 1
