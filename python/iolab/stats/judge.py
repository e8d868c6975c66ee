"""Judge a stored study: who is better than the baseline, by how much, and how sure that is.

Order of work: sort the measurements into cells (`ledger`), pair by round (`pairing`), decide by the
rule (`methods.verdict_rule`), adjust each family (Holm for pooled comparisons, Benjamini-Hochberg
for what is exploratory), put it into a sentence (`sentence`). A pure function of the data.

Cells keep their own unadjusted intervals, but a cell is called `better`, `worse` or `trivial` only
if its Benjamini-Hochberg p is below .05 too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from iolab.errors import AnalysisError
from iolab.stats import request_time
from iolab.stats import sentence as wording
from iolab.stats.beside import best_levels, count_trials, position_note
from iolab.stats.caveats import collect_caveats
from iolab.stats.closer_look import closer_look
from iolab.stats.effect import discovery_divisor, effect_of, exploratory_effect
from iolab.stats.ledger import (
    Cells,
    Group,
    Ledger,
    Samples,
    build_ledger,
    cache_share,
    is_page_cache,
    metrics_wanted,
    unaffected_text,
)
from iolab.stats.looks import look_of
from iolab.stats.methods.benjamini_hochberg import benjamini_hochberg
from iolab.stats.methods.holm import holm_steps
from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.student import MeanEstimate, estimate_mean
from iolab.stats.methods.verdict_rule import Word
from iolab.stats.metrics import METRIC_BY_NAME, METRICS, Metric
from iolab.stats.midway import midway_changes
from iolab.stats.obstacles import always_failed, without_promise
from iolab.stats.pairing import CellPairs, PooledPairs, pair_cells, pool
from iolab.stats.request_time import request_times
from iolab.stats.summaries import summaries, value_over
from iolab.stats.upper_bound import upper_bounds
from iolab.stats.verdict import CellComparison, Comparison, Effect, StudyVerdict
from iolab.stats.width import estimate_rounds
from iolab.store.rows import StudyData, StudyRow


def judge(data: StudyData) -> StudyVerdict:
    """Judge one stored study.

    Returns
    -------
    StudyVerdict : never fails for lack of trials; what cannot be told is `undecided`.

    Raises
    ------
    AnalysisError : the study's margin is not above 0, so that no rule applies.
    """
    study = data.study
    if not study.margin > 0:
        raise AnalysisError(
            f"the margin of study '{study.name}' is {study.margin}", "declare one, such as 5%"
        )
    if study.kind == "imported":
        from iolab.stats.imported import judge_imported

        return judge_imported(data)
    ledger = build_ledger(data)
    pooled = [c for group in ledger.groups() for c in _judge_primary(ledger, group)]
    pooled = without_promise(data, _mark_headline(pooled))
    secondary = without_promise(data, _judge_secondary(ledger, pooled))
    cells = without_promise(data, _judge_cells(ledger))
    closer = closer_look(ledger, pooled)
    best = [
        b
        for group in ledger.groups()
        if (b := best_levels(ledger, group, closer.winner_sets, pooled)) is not None
    ]
    position = position_note(ledger)
    draft = StudyVerdict(
        sentence="",
        headline_word=headline_word([c.effect.word for c in pooled if c.is_headline]),
        compared_factor=study.compared_factor,
        baseline=study.baseline,
        margin=study.margin,
        pooled=pooled,
        secondary=secondary,
        cells=cells,
        treatments=summaries(ledger),
        best_levels=best,
        trade_offs=wording.trade_offs(
            pooled, secondary, [c for c in cells if c.is_affected], study.compared_factor
        ),
        trials=count_trials(data),
        metric_of=study.metric_of,
        changes=midway_changes(data),
        position=position,
        closer=closer,
    )
    return dataclasses.replace(
        draft,
        sentence=_answer(data, draft),
        caveats=collect_caveats(ledger, draft),
        request_times=request_times(ledger),
        upper_bounds=upper_bounds(data),
    )


def said_again(data: StudyData, verdict: StudyVerdict) -> StudyVerdict:
    """Return the same verdict, its texts in the units that are shown now (`iolab.units`).

    Of the sentences only that of a single configuration has amounts of bytes.
    """
    return dataclasses.replace(
        verdict,
        sentence=verdict.sentence if data.study.is_comparison else _answer(data, verdict),
        request_times=[request_time.said_again(fit) for fit in verdict.request_times],
    )


def _answer(data: StudyData, draft: StudyVerdict) -> str:
    if data.study.kind == "imported":
        from iolab.stats.imported import imported_answer

        return imported_answer(data, draft)
    said = (
        wording.headline_sentence(draft)
        if data.study.is_comparison
        else wording.alone_sentence(draft, _held(data.study))
    )
    parts = (
        wording.kind_sentence(data.study),
        _instead(data, draft),
        said,
        _unknown(data) if data.study.is_comparison else "",
        _without_effect(data),
    )
    return " ".join(part for part in parts if part)


def _unknown(data: StudyData) -> str:
    """Name the levels that the answer leaves out, since every trial of them failed."""
    failed = always_failed(data)
    if not failed:
        return ""
    names = ", ".join(f"'{level}'" for level in failed)
    return f"Nothing is known of {data.study.compared_factor} {names}: every trial failed."


def _instead(data: StudyData, draft: StudyVerdict) -> str:
    """Say before the answer that it is by another metric than the one that was asked for."""
    asked = METRIC_BY_NAME.get(data.study.metric or "")
    found = {c.metric for c in draft.headline}
    if asked is None or not found or found == {asked.name}:
        return ""
    return (
        f"By {asked.label} nothing can be compared (too few operations of a level, or not"
        f" measured), so that {', '.join(METRIC_BY_NAME[name].label for name in found)} decides."
    )


def _held(study: StudyRow) -> dict[str, str]:
    """Levels of a study of one configuration."""
    return study.settings | {name: levels[0] for name, levels in study.factors.items() if levels}


def _without_effect(data: StudyData) -> str:
    """Say beside the answer where the compared factor cannot matter."""
    factor = data.study.compared_factor
    said = dict.fromkeys(
        caveat.message
        for caveat in data.caveats
        if caveat.code == "factor_without_effect" and caveat.message.startswith(f"{factor} ")
    )
    return " ".join(f"Mind that {message}." for message in said)


def headline_word(words: Sequence[Word]) -> Word:
    """Answer "should the baseline be left?" from the words of all levels against it.

    `better` if any level is; else `undecided` if any is; else `same`, `trivial`, `worse` in this
    order, if any is. For a single level it is that level's word.
    """
    order: tuple[Word, ...] = ("better", "undecided", "same", "trivial", "worse")
    for word in order:
        if word in words:
            return word
    return "undecided"


def _other_levels(ledger: Ledger, cells: Cells) -> list[str]:
    """Return the non-baseline levels that these cells have, in the order given."""
    found = {level for by_level in cells.values() for level in by_level}
    baseline = ledger.data.study.baseline
    return [level for level in ledger.levels_in_order if level in found and level != baseline]


def _judge_primary(ledger: Ledger, group: Group) -> list[Comparison]:
    """Judge one family: all levels of one group by its primary metric, Holm-adjusted."""
    metric = ledger.primary_metric(group)
    if metric is None:
        return []
    pooled = _pool_levels(ledger, metric, group, ledger.cells_asked(metric, group))
    complete = max((len(pairs.log_ratios) for pairs in pooled.values()), default=0)
    look = look_of(ledger.data.study, complete)
    estimates = {
        level: estimate_rounds(ledger.data.study, pairs.log_ratios)
        for level, pairs in pooled.items()
    }
    steps = holm_steps([e.p_value() if e else None for e in estimates.values()], alpha=look.level)
    return [
        _comparison(
            ledger,
            metric,
            group,
            level,
            pairs,
            effect_of(
                estimates[level],
                ledger.data.study.margin,
                step.divisor * look.divisor,
                step.p_adjusted,
            ),
        )
        for (level, pairs), step in zip(pooled.items(), steps, strict=True)
    ]


def _judge_secondary(ledger: Ledger, pooled: list[Comparison]) -> list[Comparison]:
    """Judge the metrics beside the primary one; Benjamini-Hochberg over all of them."""
    primary = {(c.workload, c.is_direct): c.metric for c in pooled}
    jobs = [
        (metric, group, level, pairs)
        for group, primary_name in primary.items()
        for metric in METRICS
        if _is_beside(ledger, metric, primary_name)
        for level, pairs in _pool_levels(
            ledger, metric, group, _cells_beside(ledger, metric, group)
        ).items()
        if pairs.log_ratios
    ]
    adjusted = benjamini_hochberg([_p(pairs) for *_, pairs in jobs])
    margin = ledger.data.study.margin
    return [
        _comparison(
            ledger,
            metric,
            group,
            level,
            pairs,
            exploratory_effect(_estimate(pairs.log_ratios), margin, p, discovery_divisor(adjusted)),
        )
        for (metric, group, level, pairs), p in zip(jobs, adjusted, strict=True)
    ]


def _is_beside(ledger: Ledger, metric: Metric, primary_name: str) -> bool:
    """Whether a metric is judged beside the primary one; throughput is, beside a chosen one."""
    is_usual = metric.name == METRICS[0].name and ledger.data.study.metric is not None
    return metric.name != primary_name and (metric.role == "secondary" or is_usual)


def _cells_beside(ledger: Ledger, metric: Metric, group: Group) -> Cells:
    """Cells of a metric beside the primary one: latencies of the same part, throughput of all."""
    if metric.is_rate:
        return ledger.cells_of(metric, group)
    return ledger.cells_asked(metric, group)


def _pool_levels(
    ledger: Ledger, metric: Metric, group: Group, cells: Cells
) -> dict[str, PooledPairs]:
    baseline = ledger.data.study.baseline
    return {
        level: pool(ledger, cells, metric, level, baseline)
        for level in _other_levels(ledger, cells)
    }


def _estimate(log_ratios: dict[int, float]) -> MeanEstimate | None:
    return estimate_mean(list(log_ratios.values())) if log_ratios else None


def _p(pairs: PooledPairs | CellPairs) -> float | None:
    estimate = _estimate(pairs.log_ratios)
    return None if estimate is None else estimate.p_value()


def _comparison(  # noqa: PLR0913 - one record put together from its parts
    ledger: Ledger, metric: Metric, group: Group, level: str, pairs: PooledPairs, effect: Effect
) -> Comparison:
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
    )


def _mark_headline(pooled: list[Comparison]) -> list[Comparison]:
    """Mark the first family: first workload that can be compared, direct before buffered."""
    if not pooled:
        return []
    first = (pooled[0].workload, pooled[0].is_direct)
    return [dataclasses.replace(c, is_headline=(c.workload, c.is_direct) == first) for c in pooled]


def _judge_cells(ledger: Ledger) -> list[CellComparison]:
    """Judge every cell by its group's primary metric; Benjamini-Hochberg over those affected."""
    jobs: list[tuple[Metric, str, CellPairs]] = []
    for group in ledger.groups():
        metric = ledger.primary_metric(group) or _any_metric(ledger, group)
        if metric is None:
            continue
        cells = ledger.all_cells_of(metric, group)
        per_level = {
            level: {
                p.key: p for p in pair_cells(cells, metric, level, ledger.data.study.baseline)[0]
            }
            for level in _other_levels(ledger, cells)
        }
        jobs += [
            (metric, level, pairs[key])
            for key in cells
            for level, pairs in per_level.items()
            if key in pairs
        ]
    # A cell that the compared factor cannot change asks no question: it is in no family.
    adjusted = benjamini_hochberg(
        [_p(pairs) if ledger.is_affected(pairs.key) else None for _, _, pairs in jobs]
    )
    divisor = discovery_divisor(adjusted)
    return [
        _cell_comparison(
            ledger,
            metric,
            level,
            pairs,
            exploratory_effect(_estimate(pairs.log_ratios), ledger.data.study.margin, p, divisor),
        )
        for (metric, level, pairs), p in zip(jobs, adjusted, strict=True)
    ]


def _any_metric(ledger: Ledger, group: Group) -> Metric | None:
    """Return a metric of a group that the compared factor cannot affect at all."""
    wanted = metrics_wanted(ledger.data.study.metric)
    return next((metric for metric in wanted if ledger.all_cells_of(metric, group)), None)


def _cell_comparison(
    ledger: Ledger, metric: Metric, level: str, pairs: CellPairs, effect: Effect
) -> CellComparison:
    key, label = pairs.key, ledger.label(pairs.key)
    share = cache_share((pairs.level, pairs.baseline))
    factor = ledger.data.study.compared_factor
    said = [key.operation, label, "" if ledger.is_affected(key) else unaffected_text(factor)]
    return CellComparison(
        workload=key.workload,
        operation=key.operation,
        is_direct=key.is_direct,
        cell_levels=dict(key.levels),
        label=" · ".join(text for text in said if text),
        metric=metric.name,
        level=level,
        baseline=ledger.data.study.baseline,
        effect=effect,
        rounds_used=len(pairs.log_ratios),
        value=_over(metric, pairs.level, pairs.log_ratios),
        baseline_value=_over(metric, pairs.baseline, pairs.log_ratios),
        cache_share=share,
        is_page_cache=is_page_cache(share),
        is_generator_bound=ledger.is_generator_bound((pairs.level, pairs.baseline)),
        is_affected=ledger.is_affected(key),
    )


def _over(metric: Metric, samples: Samples, rounds: dict[int, float]) -> float:
    return value_over(metric, [m for r in rounds for m in samples.by_round[r]])
