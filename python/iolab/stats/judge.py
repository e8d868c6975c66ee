"""Judge a stored study: who is better than the baseline, by how much, and how sure that is.

Order of work: sort the measurements into cells (`ledger`) and these into classes (`cell_class`),
pair by round (`pairing`), decide by the rule (`methods.verdict_rule`), adjust each family (all
pairs of levels for pooled comparisons, Benjamini-Hochberg for what is exploratory), withhold what
the measurement cannot carry (`qualified`), put it into a sentence (`sentence`). A pure function.

Cells keep their own unadjusted intervals, but a cell is called `better`, `worse` or `trivial` only
if its Benjamini-Hochberg p is below .05 too.
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.errors import AnalysisError
from iolab.frozen import replace
from iolab.stats import request_time
from iolab.stats import sentence as wording
from iolab.stats.collect_findings import find_caveats
from iolab.stats.effect import discovery_divisor, exploratory_effect
from iolab.stats.judge_pooled import comparison, judge_pooled, other_levels, qualify
from iolab.stats.knob_changes import midway_changes
from iolab.stats.ledger import (
    Cells,
    Group,
    Ledger,
    Samples,
    build_ledger,
    cache_share,
    decides_cache,
    is_page_cache,
    metrics_wanted,
    unaffected_text,
)
from iolab.stats.measured import as_measured
from iolab.stats.methods.benjamini_hochberg import benjamini_hochberg
from iolab.stats.methods.student import MeanEstimate, estimate_mean
from iolab.stats.methods.verdict_rule import Word
from iolab.stats.metrics import METRIC_BY_NAME, METRICS, Metric
from iolab.stats.neighbours import adjacent_text
from iolab.stats.obstacles import always_failed, without_promise
from iolab.stats.pairing import CellPairs, PooledPairs, pair_cells, pool
from iolab.stats.qualified import Censored, without_censored
from iolab.stats.request_time import request_times
from iolab.stats.secondary_analyses import closer_look
from iolab.stats.slices import design_of, where_totals_agree
from iolab.stats.summaries import summaries, value_over
from iolab.stats.trade_offs import trade_offs
from iolab.stats.upper_bound import upper_bounds
from iolab.stats.verdict import CellComparison, Comparison, Effect, StudyVerdict
from iolab.stats.winner_rows import best_levels, count_trials, position_note
from iolab.store.rows import StudyData, StudyRow


def judge(data: StudyData, *, unit: str = "") -> StudyVerdict:
    """Judge one stored study.

    Parameters
    ----------
    unit : unit of analysis in sentences, where the rounds of `data` stand for something else.

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
    judged = judge_pooled(ledger)
    pooled = where_totals_agree(data, without_promise(data, judged.comparisons))
    secondary = without_promise(data, _judge_secondary(ledger, pooled))
    cells = without_promise(data, _judge_cells(ledger))
    closer = closer_look(ledger, pooled, judged.families)
    best = [
        b
        for group, family in judged.families.items()
        if (b := best_levels(ledger, group, family, closer.winner_sets, pooled)) is not None
    ]
    position = position_note(ledger)
    draft = StudyVerdict(
        sentence="",
        headline_word=headline_word(words_of_levels(pooled)),
        compared_factor=study.compared_factor,
        baseline=study.baseline,
        margin=study.margin,
        pooled=pooled,
        secondary=secondary,
        cells=cells,
        treatments=summaries(ledger),
        best_levels=best,
        trade_offs=trade_offs(
            pooled,
            [c for c in secondary if not ledger.is_beside_flushes(c)],
            [c for c in cells if c.is_affected],
            study.compared_factor,
        ),
        trials=count_trials(data),
        metric_of=study.metric_of,
        changes=midway_changes(data),
        position=position,
        closer=closer,
        unit=unit,
    )
    return replace(
        draft,
        sentence=_answer(data, draft),
        caveats=find_caveats(ledger, draft),
        request_times=request_times(ledger),
        upper_bounds=upper_bounds(data),
    )


def said_again(data: StudyData, verdict: StudyVerdict) -> StudyVerdict:
    """Return the same verdict, its texts in the units that are shown now (`iolab.units`).

    Of the sentences only that of a single configuration has amounts of bytes.
    """
    return replace(
        verdict,
        sentence=verdict.sentence if data.study.is_comparison else _answer(data, verdict),
        request_times=[request_time.said_again(fit) for fit in verdict.request_times],
    )


def _answer(data: StudyData, draft: StudyVerdict) -> str:
    if data.study.kind == "imported":
        from iolab.stats.imported import imported_answer

        return imported_answer(data, draft)
    said = (
        wording.with_reason(wording.headline_sentence(draft), data.study)
        if data.study.is_comparison
        else wording.alone_sentence(draft, _held(data.study))
    )
    parts = (
        wording.kind_sentence(data.study),
        _instead(data, draft),
        said,
        _unknown(data) if data.study.is_comparison else "",
        _without_effect(data),
        _design(data),
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


def _design(data: StudyData) -> str:
    """Say of slices what their intervals hold for, and of neighbours how close they were."""
    design = design_of(data)
    if neighbours := adjacent_text(data):
        return f"Measured in {neighbours}."
    return f"Measured in {design.text}; the interval holds for these." if design else ""


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

    `better` if any level is; else `depends`, then `undecided`, if any is; else `same`, `trivial`,
    `worse` in this order, if any is. For a single level it is that level's word.
    """
    order: tuple[Word, ...] = ("better", "depends", "undecided", "same", "trivial", "worse")
    for word in order:
        if word in words:
            return word
    return "undecided"


def words_of_levels(pooled: Sequence[Comparison]) -> list[Word]:
    """Return one word per level of the headline, whose classes of cells may have several."""
    by_level: dict[str, list[Word]] = {}
    for c in pooled:
        if c.is_headline:
            by_level.setdefault(c.level, []).append(c.effect.word)
    return [word_of_classes(words) for words in by_level.values()]


def word_of_classes(words: Sequence[Word]) -> Word:
    """Return the word of a level that has `words` in its classes of cells.

    One word if all agree. Better here and worse there is `depends`, and so is better here and equal
    there; what is open anywhere is open, unless it depends already.
    """
    found = set(words)
    if len(found) == 1:
        return words[0]
    directions = {word if word in ("better", "worse") else "same" for word in found - {"undecided"}}
    if "depends" in found or len(directions) > 1:
        return "depends"
    return "undecided" if "undecided" in found else "same"


def _judge_secondary(ledger: Ledger, pooled: list[Comparison]) -> list[Comparison]:
    """Judge the metrics beside the primary one; Benjamini-Hochberg over all of them."""
    primary = {(c.workload, c.is_direct): c.metric for c in pooled}
    jobs = [
        (metric, (*place, kind), level, pairs)
        for place, primary_name in primary.items()
        for metric in METRICS
        if _is_beside(ledger, metric, primary_name)
        for kind in ledger.kinds_of(metric, place)
        for level, pairs in _pool_levels(
            ledger, metric, _cells_beside(ledger, metric, (*place, kind))
        ).items()
        if pairs.log_ratios
    ]
    adjusted = benjamini_hochberg([_p(ledger, metric, pairs) for metric, *_, pairs in jobs])
    margin, divisor = ledger.data.study.margin, discovery_divisor(adjusted)
    found: list[Comparison] = []
    for (metric, group, level, pairs), p in zip(jobs, adjusted, strict=True):
        estimate = _estimate(ledger, metric, pairs.log_ratios)
        effect = exploratory_effect(estimate, margin, p, divisor)
        c = comparison(ledger, metric, group, level, pairs, effect)
        found.append(qualify(ledger, metric, c, pairs))
    return found


def _is_beside(ledger: Ledger, metric: Metric, primary_name: str) -> bool:
    """Tell whether a metric is judged beside the primary one; throughput is, beside a chosen
    one.
    """
    is_usual = metric.name == METRICS[0].name and ledger.data.study.metric is not None
    return metric.name != primary_name and (metric.role == "secondary" or is_usual)


def _cells_beside(ledger: Ledger, metric: Metric, group: Group) -> Cells:
    """Cells of a metric beside the primary one: latencies of the same part, throughput of all."""
    if metric.is_rate:
        return ledger.cells_of(metric, group)
    return ledger.cells_asked(metric, group)


def _pool_levels(ledger: Ledger, metric: Metric, cells: Cells) -> dict[str, PooledPairs]:
    baseline = ledger.data.study.baseline
    return {
        level: pool(ledger, cells, metric, level, baseline) for level in other_levels(ledger, cells)
    }


def _estimate(ledger: Ledger, metric: Metric, log_ratios: dict[int, float]) -> MeanEstimate | None:
    if not log_ratios:
        return None
    return as_measured(ledger.data.study, metric, estimate_mean(list(log_ratios.values())))


def _p(ledger: Ledger, metric: Metric, pairs: PooledPairs | CellPairs) -> float | None:
    estimate = _estimate(ledger, metric, pairs.log_ratios)
    return None if estimate is None else estimate.p_value()


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
            for level in other_levels(ledger, cells)
        }
        jobs += [
            (metric, level, pairs[key])
            for key in cells
            for level, pairs in per_level.items()
            if key in pairs
        ]
    # A cell that the compared factor cannot change asks no question: it is in no family.
    adjusted = benjamini_hochberg(
        [
            _p(ledger, metric, pairs) if ledger.is_affected(pairs.key) else None
            for metric, _, pairs in jobs
        ]
    )
    divisor = discovery_divisor(adjusted)
    return [
        _cell_comparison(
            ledger,
            metric,
            level,
            pairs,
            exploratory_effect(
                _estimate(ledger, metric, pairs.log_ratios), ledger.data.study.margin, p, divisor
            ),
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
    sides = (pairs.level, pairs.baseline)
    censored = Censored(
        generator=int(ledger.is_generator_bound(sides)),
        cache=int(is_page_cache(share) and not decides_cache(factor)),
        rate=int(metric.is_rate and ledger.is_rated(key)),
    )
    return CellComparison(
        workload=key.workload,
        operation=key.operation,
        is_direct=key.is_direct,
        cell_levels=dict(key.levels),
        label=" · ".join(text for text in said if text),
        metric=metric.name,
        level=level,
        baseline=ledger.data.study.baseline,
        effect=without_censored(effect, censored),
        rounds_used=len(pairs.log_ratios),
        value=_over(metric, pairs.level, pairs.log_ratios),
        baseline_value=_over(metric, pairs.baseline, pairs.log_ratios),
        cache_share=share,
        is_page_cache=is_page_cache(share),
        is_generator_bound=ledger.is_generator_bound((pairs.level, pairs.baseline)),
        is_affected=ledger.is_affected(key),
        kind=ledger.kind_of(metric, key),
    )


def _over(metric: Metric, samples: Samples, rounds: dict[int, float]) -> float:
    return value_over(metric, [m for r in rounds for m in samples.by_round[r]])
