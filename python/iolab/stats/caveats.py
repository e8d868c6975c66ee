"""Doubts about a study's rounds, trials, cells and metric, found while it is judged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from iolab.stats.effect_words import has_no_width
from iolab.stats.finding import Evidence, Finding
from iolab.stats.interim_looks import ALPHA, look_of, spent_share
from iolab.stats.ledger import Ledger, decides_cache
from iolab.stats.measured import ROUNDING
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.obstacles import always_failed, equal_levels, obstacle
from iolab.stats.shared import shared_cells
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.stats.warmth import has_cold_level
from iolab.stats.width import rounds_for_width, width_of
from iolab.store.continuing import (
    command_again,
    command_on,
    device_hint,
    finish_hint,
    option_past_the_cache,
    rounds_hint,
)
from iolab.store.rows import StudyData
from iolab.study.model import PILOT_ROUNDS
from iolab.wording import counted, sentence_case

POSITION_P: Final = 0.01
"""Below this the place inside a round is worth a warning."""
FEW_ROUNDS: Final = 5
"""Fewer rounds than this: the interval is honest, but wide and trusts normality."""


def about_position(_: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield how much the place inside a round mattered, if it did."""
    position = verdict.position
    if position is not None and position.p < POSITION_P:
        yield Finding(
            "position_effect",
            f"results changed by {abs(position.ratio - 1):.1%} from the first to the last"
            f" place of a round (p = {position.p:.2g}).",
            "The order was random, so levels are not favoured; let the machine warm up or cool"
            " down between trials to get narrower intervals.",
            evidence=(
                Evidence("last place over first", position.ratio, "ratio"),
                Evidence("p", position.p, "p"),
                Evidence("trials", position.n_trials),
            ),
            strength="shown",
        )


def about_rejected(ledger: Ledger, _: StudyVerdict) -> Iterator[Finding]:
    """Yield the values without a ratio."""
    rejected = sum(ledger.rejected.values())
    if rejected:
        names = ", ".join(sorted(ledger.rejected))
        yield Finding(
            "value_rejected",
            f"values that are zero or not a number cannot be compared as ratios ({names}).",
            "Look at these trials: an operation of zero throughput did not run.",
            count=rejected,
        )


def about_nested(ledger: Ledger, _: StudyVerdict) -> Iterator[Finding]:
    """Yield the factors that only some treatments have."""
    nested = sorted(
        {name for names in ledger.nested.values() for name in names}
        - {ledger.data.study.compared_factor}
    )
    if nested:
        yield Finding(
            "nested_factor",
            f"only some treatments have {', '.join(nested)}; its levels were averaged.",
            "Compare its levels in a study that holds the others fixed.",
        )


def about_unknown_metrics(ledger: Ledger, _: StudyVerdict) -> Iterator[Finding]:
    """Yield the metrics that another version stored."""
    if ledger.unknown_metrics:
        yield Finding(
            "unknown_metric",
            f"metrics of another version were not judged: {', '.join(ledger.unknown_metrics)}.",
            "Use the iolab version that recorded the study.",
            count=len(ledger.unknown_metrics),
        )


def about_looks(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield that the study may end at several looks."""
    rounds = max((c.rounds_used for c in verdict.headline), default=0)
    look = look_of(ledger.data, rounds)
    if look.planned > 1:
        yield Finding(
            "planned_looks",
            f"this study looks {look.planned} times and may end at each; it stands at look"
            f" {look.number}, so that intervals have {(1 - look.shown_level) * 100:.4g} %"
            " confidence instead of 95 %.",
            "All looks together err as often as one; do not look in between.",
        )


def about_resumes(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield that the study was continued after its results were seen."""
    rounds = max((c.rounds_used for c in verdict.headline), default=0)
    look = look_of(ledger.data, rounds)
    if look.resumed:
        yield Finding(
            "seen_before",
            f"this study was seen {counted(look.resumed, 'time')} before, and continued;"
            f" its words have {look.level * 100:.2g} % of error instead of"
            f" {spent_share(0) * ALPHA * 100:.2g} %.",
            "All looks together err in 5 % of studies; each further one costs more rounds.",
            count=look.resumed,
        )


def about_width(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield the width of intervals that was asked for, and the one reached."""
    width = width_of(ledger.data.study)
    if width is None or not verdict.headline:
        return
    wanted = rounds_for_width(verdict.headline, width)
    rounds = min(c.rounds_used for c in verdict.headline)
    asked = f"intervals of ±{width * 100:.3g} % were asked for"
    if wanted is None:
        message = f"{asked}; the pilot of {PILOT_ROUNDS} rounds is not complete ({rounds})."
    else:
        reached = max((_half_width(c) for c in verdict.headline), default=math.inf)
        message = (
            f"{asked}; the pilot of {PILOT_ROUNDS} rounds asked for {wanted} rounds; with {rounds}"
            f" they are ±{reached * 100:.2g} %."
        )
    hint = "Intervals rest on the pilot's spread (Stein); do not end such a study by eye."
    if wanted is None or rounds < wanted:
        command = command_on(
            ledger.data.study, rounds=wanted or PILOT_ROUNDS, trials=ledger.data.trials
        )
        hint = f"For the width that was asked for: `{command}`."
    yield Finding("wanted_width", message, hint)


def _half_width(comparison: Comparison) -> float:
    """Relative half width of a 95 % interval, on the ln scale."""
    bounds = comparison.effect.interval_95
    return math.inf if bounds is None else math.sqrt(bounds.high / bounds.low) - 1


def about_metric(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield that the metric asked for is missing: too few operations, or none such."""
    study = ledger.data.study
    judged = {c.metric for c in verdict.headline}
    if study.metric is None or not judged or judged == {study.metric}:
        return
    whose = f" of {study.metric_of}" if study.metric_of else ""
    yield Finding(
        "metric_missing",
        f"{study.metric}{whose} is not known of both sides of a comparison; the verdict is by"
        f" {', '.join(judged)}.",
        "A p99 needs 1,000 operations, a p99.9 10,000: run longer, or choose another metric.",
    )


def about_equal_levels(ledger: Ledger, _: StudyVerdict) -> Iterator[Finding]:
    """Yield the levels that are one setting under two names."""
    equal = equal_levels(ledger.data)
    if equal:
        first = equal[0]
        hint = f"{sentence_case(first.hint)}; any difference between them is noise."
        yield Finding(
            "equal_levels", "; ".join(e.message for e in equal) + ".", hint, count=len(equal)
        )


_PROMISES: Final = {
    ("flush", "sync_file_range"): "sync_file_range(2) flushes neither metadata nor the cache of the"
    " device",
    ("flush", "msync_async"): "msync_async returns before anything is written",
    ("durability", "none"): "durability none makes nothing durable",
    ("fsync", "none"): "fsync none makes nothing durable",
    ("fsync_every", "never"): "fsync_every never makes nothing durable",
}
"""Levels after which data may be lost in a power cut, where others keep them."""


_WITHOUT_FLUSHES: Final = ("ufs", "vxfs", "qfs")
"""Simulated file systems that expect disks without a volatile cache."""


def _has_flushes(ledger: Ledger) -> bool:
    return bool(ledger.cells.get("flush_ns_max"))


def about_promises(ledger: Ledger, _: StudyVerdict) -> Iterator[Finding]:
    """Yield that levels differ in what survives a power cut, and not in speed alone."""
    factor, levels = ledger.data.study.compared_factor, ledger.levels_in_order
    weak = [_PROMISES[factor, level] for level in levels if (factor, level) in _PROMISES]
    if ledger.data.study.is_simulated and _has_flushes(ledger):
        weak += [
            f"{level} leaves flushed data in the cache of the device"
            for level in levels
            if factor == "fs" and level in _WITHOUT_FLUSHES
        ]
    if weak and len(weak) < len(levels):
        yield Finding(
            "promises",
            f"levels do not promise the same: {'; '.join(weak)}.",
            "Choose among those that keep what you need after a power cut.",
        )


def about_spread(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield that rounds of a simulation differ by seed only, or by nothing at all."""
    if not ledger.data.study.is_simulated:
        return
    equal = [c for c in verdict.pooled if _has_equal_rounds(c)]
    message = "simulated: rounds differ only by seed."
    if equal:
        n, total = len(equal), len(verdict.pooled)
        where = f"In {n} of {total} comparisons" if total > 1 else "Here"
        message += (
            f" {where} nothing depended on it, so that all rounds are equal and the interval has"
            " no width."
        )
    message += _histogram_text(verdict)
    hint = (
        "An interval here is what the seed can change; how far the model is from a real device is"
        " another question."
    )
    yield Finding("rounds_by_seed", message, hint)


def _histogram_text(verdict: StudyVerdict) -> str:
    """Say why percentiles have an interval where every round is equal; empty if none has one."""
    found = [c for c in verdict.secondary if METRIC_BY_NAME[c.metric].is_from_histogram]
    if not any(len(set(c.round_ratios.values())) == 1 < len(c.round_ratios) for c in found):
        return ""
    width = f"{math.expm1(ROUNDING) * 100:.2g} %"
    return (
        " A percentile has an interval even there: it is known to within a bucket of its histogram,"
        f" which makes a ratio of two uncertain by {width}."
    )


def _has_equal_rounds(c: Comparison) -> bool:
    """Tell if all rounds said the same, so that more of them would, too."""
    bounds = c.effect.interval_95
    return bounds is not None and has_no_width((bounds.low, bounds.high))


def about_trials(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield the trials that failed or are missing, and that there are few rounds."""
    data, trials = ledger.data, verdict.trials
    if trials.failed:
        yield Finding(
            "failed_trials",
            f"{trials.failed} of {counted(trials.planned, 'trial')} failed; their rounds are"
            " left out of the comparisons they belong to.",
            "The reason is stored with each trial; see the run order in the report.",
            count=trials.failed,
            evidence=(Evidence("failed", trials.failed), Evidence("planned", trials.planned)),
        )
    if trials.interrupted + trials.not_run:
        rest = trials.interrupted + trials.not_run
        yield Finding(
            "unfinished",
            f"{rest} of {trials.planned} planned trials were interrupted or not run yet.",
            _finish(data),
            count=rest,
            evidence=(Evidence("missing", rest), Evidence("planned", trials.planned)),
        )
    headline = [c for c in verdict.headline if c.rounds_used]
    rounds = min((c.rounds_used for c in headline), default=0)
    if rounds < FEW_ROUNDS and not all(_has_equal_rounds(c) for c in headline):
        yield Finding(
            "few_rounds",
            f"the headline rests on {counted(rounds, 'complete round')}.",
            sentence_case(obstacle(data)) or rounds_hint(data.study, FEW_ROUNDS, data.trials),
            evidence=(Evidence("rounds", rounds),),
        )


def _finish(data: StudyData) -> str:
    """Say how to finish a study, or what has to be done first."""
    return sentence_case(obstacle(data)) or finish_hint(data.study, data.trials)


def _page_cache_text(ledger: Ledger, verdict: StudyVerdict) -> tuple[str, str]:
    """Say what was cached, and what to do; where the cache is compared it is no mistake."""
    factor = verdict.compared_factor
    if decides_cache(factor):
        return (
            f"in some cells most bytes of a level came from the page cache: {factor} decides that.",
            "Such a level measures memory; judge by the cache share of each level in the report.",
        )
    hint = device_hint(ledger.data.study)
    if has_cold_level(verdict):
        what = "in some cells most bytes of a level never reached the device: that level measures"
        return f"{what} memory.", hint
    return "most bytes of some cells never reached the device: they measure memory.", hint


def about_cells(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield the cells that measure memory or the generator, and the rounds that miss a value."""
    cached = {(c.workload, c.label, c.is_direct) for c in verdict.cells if c.is_page_cache}
    if cached:
        yield Finding("page_cache", *_page_cache_text(ledger, verdict), count=len(cached))
    bound = {(c.workload, c.label, c.is_direct) for c in verdict.cells if c.is_generator_bound}
    if bound:
        yield Finding(
            "generator_bound",
            "much of the time was the load generator's own in some cells; differences there may be"
            " hidden.",
            "Use more workers, larger records or a faster engine.",
            count=len(bound),
        )
    left_out = max((c.trials_excluded for c in verdict.headline), default=0)
    if left_out:
        yield Finding(
            "incomplete_rounds",
            "begun trials were left out of the headline because their round misses a value.",
            _about_missing(ledger.data, verdict),
            count=left_out,
        )


def _about_missing(data: StudyData, verdict: StudyVerdict) -> str:
    """Say what to do about missing trials: those that failed, or those that nobody has run yet."""
    trials = verdict.trials
    is_open = bool(trials.interrupted + trials.not_run)
    if not trials.failed:
        return _finish(data) if is_open else "Look at the trials that lack a value."
    if always_failed(data) or not is_open or data.study.command:
        return "Look at why their trials failed; leave out levels that one side cannot do."
    return f"Look at why trials failed. {finish_hint(data.study, data.trials)}"


def about_gaps(ledger: Ledger, verdict: StudyVerdict) -> Iterator[Finding]:
    """Yield that cells were left out because levels do not meet there."""
    cells = max((c.cells_excluded for c in verdict.headline), default=0)
    if not cells:
        return
    first = verdict.headline[0]
    shared, total = shared_cells(verdict, first.group, first.metric)
    says = (
        "levels do not meet in every cell: each ratio rests on the cells that both levels have,"
        f" absolute values and what may be best on the {shared} of {total} that all have."
    )
    hint = "A level was never measured there."
    if verdict.trials.failed:
        hint = "A level was never measured there, or its trials failed."
    if shared == total:
        says = "cells without enough pairs were left out of the headline."
        hint = _about_missing(ledger.data, verdict)
    yield Finding(
        "cells_excluded",
        says,
        hint,
        count=cells,
        evidence=(Evidence("cells of all levels", shared), Evidence("cells", total)),
    )


_PAST_BY_DIRECT: Final = (
    "Compare storage, not memory: with direct I/O, or files larger than memory."
)


def past_the_cache(data: StudyData, verdict: StudyVerdict) -> tuple[str, str] | None:
    """Return the next step where cells of the headline measure memory."""
    cached = [c for c in verdict.headline if c.page_cache_cells]
    if not cached or decides_cache(verdict.compared_factor):
        return None
    if data.study.is_simulated and all(c.is_direct for c in cached):
        text = "Use a file larger than memory, or make records durable: this file system serves"
        return f"{text} direct I/O from its cache.", ""
    option = option_past_the_cache(data.study)
    if data.study.command and option:
        return _PAST_BY_DIRECT, f"{command_again(data.study)} {option}"
    return (_PAST_BY_DIRECT, option) if option else (device_hint(data.study), "")


def past_the_generator(_: StudyData, __: StudyVerdict) -> tuple[str, str] | None:
    """Return the next step where the load generator is the limit."""
    return "Raise the generator's limit: more workers or larger records.", ""
