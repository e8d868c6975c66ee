"""The pooled comparisons of a study: all pairs of levels of one class of cells as one family.

The comparisons with the baseline are those of the family that the headline needs; the other pairs
are judged with them, so that no word depends on which level is the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iolab.frozen import frozen, replace
from iolab.stats.cell_class import MEMORY, is_aside
from iolab.stats.effect import undecided
from iolab.stats.families import Family, all_estimates
from iolab.stats.interim_looks import look_of
from iolab.stats.ledger import (
    Cells,
    Group,
    Ledger,
    cache_share,
    decides_cache,
    is_page_cache,
)
from iolab.stats.measured import EQUAL_ROUNDS, as_measured, is_of_equal_rounds
from iolab.stats.methods.interaction import paired_p
from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.student import MeanEstimate, estimate_mean
from iolab.stats.metrics import Metric
from iolab.stats.pairing import PooledPairs, pool, pooled_log_ratios
from iolab.stats.qualified import (
    CellResult,
    Censored,
    disagreeing,
    failures_of,
    is_only_on_average,
    without_censored,
    without_failing,
)
from iolab.stats.verdict import Comparison, Effect
from iolab.stats.width import estimate_rounds

ROBUST_ROUNDS_MIN = 3


@frozen
class Judged:
    """The pooled comparisons, and the families behind them."""

    comparisons: list[Comparison]
    families: dict[Group, Family]


def judge_pooled(ledger: Ledger) -> Judged:
    """Judge every group by its primary metric, each a family of its own."""
    groups = [(g, m) for g in ledger.groups() if (m := ledger.primary_metric(g)) is not None]
    parts = [(g, m, _pooled(ledger, m, g)) for g, m in groups]
    parts = [part for part in parts if part[2]]
    leading = headline_groups([group for group, *_ in parts])
    comparisons: list[Comparison] = []
    families: dict[Group, Family] = {}
    for group, metric, pooled in parts:
        is_headline = group in leading
        family = families[group] = _family(ledger, metric, group, pooled)
        comparisons += [
            _judged(ledger, metric, group, level, pairs, family, is_headline=is_headline)
            for level, pairs in pooled.items()
        ]
    return Judged(comparisons, families)


def headline_groups(groups: Sequence[Group]) -> list[Group]:
    """Return the first workload's groups, memory and processor time only where nothing else is."""
    if not groups:
        return []
    mine = [group for group in groups if group[:2] == groups[0][:2]]
    return [group for group in mine if not is_aside(group[2])] or mine[:1]


def _pooled(ledger: Ledger, metric: Metric, group: Group) -> dict[str, PooledPairs]:
    cells = ledger.cells_asked(metric, group)
    baseline = ledger.data.study.baseline
    return {
        level: pool(ledger, cells, metric, level, baseline) for level in other_levels(ledger, cells)
    }


def other_levels(ledger: Ledger, cells: Cells) -> list[str]:
    """Return the non-baseline levels that these cells have, in the order given."""
    found = {level for by_level in cells.values() for level in by_level}
    baseline = ledger.data.study.baseline
    return [level for level in ledger.levels_in_order if level in found and level != baseline]


def _family(ledger: Ledger, metric: Metric, group: Group, pooled: dict[str, PooledPairs]) -> Family:
    study, cells = ledger.data.study, ledger.cells_asked(metric, group)

    def estimate(first: str, second: str) -> MeanEstimate | None:
        # The baseline's pairs are known, either way round.
        if second == study.baseline:
            ratios = pooled[first].log_ratios
        elif first == study.baseline:
            ratios = {r: -value for r, value in pooled[second].log_ratios.items()}
        else:
            ratios = pooled_log_ratios(cells, metric, first, second)
        found = estimate_rounds(study, ratios)
        return None if found is None else as_measured(study, metric, found)

    levels = [v for v in ledger.levels_in_order if v in pooled or v == study.baseline]
    complete = max((len(pairs.log_ratios) for pairs in pooled.values()), default=0)
    look = look_of(ledger.data, complete)
    return Family(
        levels,
        all_estimates(levels, estimate),
        study.margin,
        level=look.level,
        next_share=look.next_share,
    )


def _judged(  # noqa: PLR0913 - one record put together from its parts
    ledger: Ledger,
    metric: Metric,
    group: Group,
    level: str,
    pairs: PooledPairs,
    family: Family,
    *,
    is_headline: bool,
) -> Comparison:
    study = ledger.data.study
    shown = look_of(ledger.data, len(pairs.log_ratios)).shown_level
    effect = family.effect(level, study.baseline, shown_level=shown)
    if is_of_equal_rounds(family.estimate(level, study.baseline)):
        effect = undecided(effect, EQUAL_ROUNDS)
    found = comparison(ledger, metric, group, level, pairs, effect)
    return replace(qualify(ledger, metric, found, pairs), is_headline=is_headline)


def qualify(ledger: Ledger, metric: Metric, found: Comparison, pairs: PooledPairs) -> Comparison:
    """Give a comparison the word that cells, limits and failures leave it."""
    margin = ledger.data.study.margin
    cells = [
        CellResult(
            pair.key,
            " · ".join(t for t in (pair.key.operation, ledger.label(pair.key)) if t),
            estimate_mean([pair.log_ratios[r] for r in pairs.log_ratios]),
        )
        for pair in pairs.cells
        if pairs.log_ratios
    ]
    rows = [[pair.log_ratios[r] for pair in pairs.cells] for r in pairs.log_ratios]
    is_told = found.effect.interval_95 is not None and len(rows) >= ROBUST_ROUNDS_MIN
    parts = disagreeing(cells, paired_p(rows), margin) if is_told else ()
    failures = failures_of(
        ledger.begun, found.workload, found.level, found.baseline, pairs.log_ratios
    )
    effect = found.effect
    if parts:
        effect = replace(undecided(effect, ""), word="depends")
    effect = without_failing(
        without_censored(effect, censored_of(ledger, metric, found, pairs)), failures
    )
    is_equal = effect.word in ("same", "trivial")
    return replace(
        found,
        effect=effect,
        parts=parts,
        is_on_average=is_equal and is_only_on_average([c.estimate for c in cells], margin),
        failures=failures,
        robust_ratio=_robust(list(pairs.log_ratios.values()), margin),
    )


def _robust(log_ratios: Sequence[float], margin: float) -> float | None:
    """Return the median ratio, where it and the mean are further apart than the margin."""
    if len(log_ratios) < ROBUST_ROUNDS_MIN:
        return None
    ordered, half = sorted(log_ratios), len(log_ratios) // 2
    middle = (ordered[half] + ordered[~half]) / 2
    mean = math.fsum(ordered) / len(ordered)
    return ratio_of_log(middle) if abs(middle - mean) > math.log1p(margin) else None


def censored_of(ledger: Ledger, metric: Metric, found: Comparison, pairs: PooledPairs) -> Censored:
    """Count the cells in which something else was the limit."""
    factor = ledger.data.study.compared_factor
    rated = [ledger.is_rated(pair.key) for pair in pairs.cells] if metric.is_rate else []
    is_memory = found.kind == MEMORY or found.page_cache_cells > 0
    cached = found.page_cache_cells if is_memory and not decides_cache(factor) else 0
    return Censored(found.generator_bound_cells, cached, sum(rated))


def comparison(  # noqa: PLR0913 - one record put together from its parts
    ledger: Ledger, metric: Metric, group: Group, level: str, pairs: PooledPairs, effect: Effect
) -> Comparison:
    """Put a pooled comparison together."""
    sides = [(pair.level, pair.baseline) for pair in pairs.cells]
    return Comparison(
        workload=group[0],
        is_direct=group[1],
        metric=metric.name,
        level=level,
        baseline=ledger.data.study.baseline,
        effect=effect,
        n_cells=len(pairs.cells),
        cells_excluded=pairs.cells_excluded,
        rounds_used=len(pairs.log_ratios),
        rounds_excluded=pairs.rounds_excluded,
        trials_used=pairs.trials_used,
        trials_excluded=pairs.trials_excluded,
        page_cache_cells=sum(is_page_cache(cache_share(side)) for side in sides),
        generator_bound_cells=sum(ledger.is_generator_bound(side) for side in sides),
        round_ratios={r: ratio_of_log(value) for r, value in pairs.log_ratios.items()},
        kind=group[2],
    )
