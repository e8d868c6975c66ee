"""Every reason to doubt, once: caveats of the records, counted, and those that judging finds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from iolab.stats.caveats_of_simulation import about_surprises
from iolab.stats.caveats_of_time import about_time
from iolab.stats.caveats_of_values import about_values
from iolab.stats.environment import about_environment
from iolab.stats.interim_looks import ALPHA, look_of, spent_share
from iolab.stats.ledger import Ledger, decides_cache
from iolab.stats.obstacles import always_failed, equal_levels, obstacle
from iolab.stats.shared import shared_cells
from iolab.stats.slices import about_slices
from iolab.stats.verdict import Comparison, CountedCaveat, StudyVerdict
from iolab.stats.warmth import has_cold_level
from iolab.stats.width import rounds_for_width, width_of
from iolab.store.continuing import device_hint, finish_hint, rounds_hint
from iolab.store.rows import Caveat, StudyData, StudyRow
from iolab.study.model import PILOT_ROUNDS
from iolab.wording import counted, sentence_case

POSITION_P: Final = 0.01
"""Below this the place inside a round is worth a warning."""
EQUAL_ROUNDS: Final = 1e-9
"""Relative width below which an interval has none: what is left is the rounding of logarithms."""
_TOLD_BY_PLAN: Final = ("few_rounds",)
"""Guesses of a plan: once there are rounds, they are judged instead."""
FEW_ROUNDS: Final = 5
"""Fewer rounds than this: the interval is honest, but wide and trusts normality."""


def collect_caveats(ledger: Ledger, verdict: StudyVerdict) -> list[CountedCaveat]:
    """Return the caveats of a judged study, by code, those found by judging first.

    A recorded caveat whose code judging found too (`page_cache`) gives way: cells are counted then,
    not trials.
    """
    found: dict[str, list[tuple[Caveat, int]]] = {}
    for caveat, count in _statistical(ledger, verdict):
        found[caveat.code] = [(caveat, count)]
    judged = {*found, *_TOLD_BY_PLAN}
    for caveat, count in _recorded(ledger):
        if caveat.code not in judged:
            found.setdefault(caveat.code, []).append((caveat, count))
    return [
        CountedCaveat(code, places[0][0].message, places[0][0].hint, sum(n for _, n in places))
        for code, places in found.items()
    ]


def _recorded(ledger: Ledger) -> Iterator[tuple[Caveat, int]]:
    """Yield what study, trials and measurements carried; each place counts once per code."""
    places: set[tuple[str, str, str]] = set()
    for caveat in ledger.data.caveats:
        yield caveat, 1
    for trial in ledger.data.trials:
        for caveat in trial.caveats:
            if (caveat.code, trial.trial_id, "") not in places:
                places.add((caveat.code, trial.trial_id, ""))
                yield caveat, 1
    for m in ledger.data.measurements:
        for caveat in m.caveats:
            place = (caveat.code, m.trial_id, m.operation)
            if place in places or (caveat.code, m.trial_id, "") in places:
                continue
            places.add(place)
            yield caveat, 1


def _statistical(ledger: Ledger, verdict: StudyVerdict) -> Iterator[tuple[Caveat, int]]:
    yield from _about_trials(ledger.data, verdict)
    yield from _about_cells(ledger.data, verdict)
    yield from about_time(verdict.closer)
    yield from about_values(ledger, verdict)
    yield from about_environment(ledger.data)
    yield from _about_looks(ledger, verdict)
    yield from _about_resumes(ledger, verdict)
    yield from _about_width(ledger, verdict)
    yield from about_slices(ledger.data)
    yield from _about_equal_levels(ledger)
    yield from about_surprises(ledger.data, verdict)
    yield from _about_metric(ledger, verdict)
    yield from _about_spread(ledger, verdict)
    position = verdict.position
    if position is not None and position.p < POSITION_P:
        yield (
            Caveat(
                "position_effect",
                f"results changed by {abs(position.ratio - 1):.1%} from the first to the last"
                f" place of a round (p = {position.p:.2g}).",
                "The order was random, so levels are not favoured; let the machine warm up or cool"
                " down between trials to get narrower intervals.",
            ),
            1,
        )
    rejected = sum(ledger.rejected.values())
    if rejected:
        names = ", ".join(sorted(ledger.rejected))
        yield (
            Caveat(
                "value_rejected",
                f"values that are zero or not a number cannot be compared as ratios ({names}).",
                "Look at these trials: an operation of zero throughput did not run.",
            ),
            rejected,
        )
    nested = sorted(
        {name for names in ledger.nested.values() for name in names}
        - {ledger.data.study.compared_factor}
    )
    if nested:
        yield (
            Caveat(
                "nested_factor",
                f"only some treatments have {', '.join(nested)}; its levels were averaged.",
                "Compare its levels in a study that holds the others fixed.",
            ),
            1,
        )
    if ledger.unknown_metrics:
        yield (
            Caveat(
                "unknown_metric",
                f"metrics of another version were not judged: {', '.join(ledger.unknown_metrics)}.",
                "Use the iolab version that recorded the study.",
            ),
            len(ledger.unknown_metrics),
        )


def _about_looks(ledger: Ledger, verdict: StudyVerdict) -> Iterator[tuple[Caveat, int]]:
    rounds = max((c.rounds_used for c in verdict.headline), default=0)
    look = look_of(ledger.data, rounds)
    if look.planned > 1:
        yield (
            Caveat(
                "planned_looks",
                f"this study looks {look.planned} times and may end at each; it stands at look"
                f" {look.number}, so that intervals have {(1 - look.shown_level) * 100:.4g} %"
                " confidence instead of 95 %.",
                "All looks together err as often as one; do not look in between.",
            ),
            1,
        )


def _about_resumes(ledger: Ledger, verdict: StudyVerdict) -> Iterator[tuple[Caveat, int]]:
    rounds = max((c.rounds_used for c in verdict.headline), default=0)
    look = look_of(ledger.data, rounds)
    if look.resumed:
        yield (
            Caveat(
                "seen_before",
                f"this study was seen {counted(look.resumed, 'time')} before, and continued;"
                f" its words have {look.level * 100:.2g} % of error instead of"
                f" {spent_share(0) * ALPHA * 100:.2g} %.",
                "All looks together err in 5 % of studies; each further one costs more rounds.",
            ),
            look.resumed,
        )


def _about_width(ledger: Ledger, verdict: StudyVerdict) -> Iterator[tuple[Caveat, int]]:
    """What a study with a wanted width asked for, and what it reached."""
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
        hint = "Continue with --resume and more rounds or budget for the width that was asked for."
    yield Caveat("wanted_width", message, hint), 1


def _half_width(comparison: Comparison) -> float:
    """Relative half width of a 95 % interval, on the ln scale."""
    bounds = comparison.effect.interval_95
    return math.inf if bounds is None else math.sqrt(bounds.high / bounds.low) - 1


def _about_metric(ledger: Ledger, verdict: StudyVerdict) -> Iterator[tuple[Caveat, int]]:
    """A metric that was asked for and could not be had: too few operations, or none such."""
    study = ledger.data.study
    judged = {c.metric for c in verdict.headline}
    if study.metric is None or not judged or judged == {study.metric}:
        return
    whose = f" of {study.metric_of}" if study.metric_of else ""
    yield (
        Caveat(
            "metric_missing",
            f"{study.metric}{whose} is not known of both sides of a comparison; the verdict is by"
            f" {', '.join(judged)}.",
            "A p99 needs 1,000 operations, a p99.9 10,000: run longer, or choose another metric.",
        ),
        1,
    )


def _about_equal_levels(ledger: Ledger) -> Iterator[tuple[Caveat, int]]:
    equal = equal_levels(ledger.data)
    if equal:
        first = equal[0]
        hint = f"{sentence_case(first.hint)}; any difference between them is noise."
        yield Caveat("equal_levels", "; ".join(e.message for e in equal) + ".", hint), len(equal)


def _about_spread(ledger: Ledger, verdict: StudyVerdict) -> Iterator[tuple[Caveat, int]]:
    """Rounds of a simulation may be equal to the last digit, which looks like a mistake."""
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
    hint = (
        "An interval here is what the seed can change; how far the model is from a real device is"
        " another question."
    )
    yield Caveat("rounds_by_seed", message, hint), 1


def _has_equal_rounds(c: Comparison) -> bool:
    """Tell if all rounds said the same, so that more of them would, too."""
    bounds = c.effect.interval_95
    return bounds is not None and bounds.high <= bounds.low * (1 + EQUAL_ROUNDS)


def _about_trials(data: StudyData, verdict: StudyVerdict) -> Iterator[tuple[Caveat, int]]:
    study, trials = data.study, verdict.trials
    if trials.failed:
        yield (
            Caveat(
                "failed_trials",
                f"{trials.failed} of {counted(trials.planned, 'trial')} failed; their rounds are"
                " left out of the comparisons they belong to.",
                "The reason is stored with each trial; see the run order in the report.",
            ),
            trials.failed,
        )
    if trials.interrupted + trials.not_run:
        rest = trials.interrupted + trials.not_run
        yield (
            Caveat(
                "unfinished",
                f"{rest} of {trials.planned} planned trials were interrupted or not run yet.",
                _finish(data),
            ),
            rest,
        )
    headline = [c for c in verdict.headline if c.rounds_used]
    rounds = min((c.rounds_used for c in headline), default=0)
    if rounds < FEW_ROUNDS and not all(_has_equal_rounds(c) for c in headline):
        yield (
            Caveat(
                "few_rounds",
                f"the headline rests on {counted(rounds, 'complete round')}.",
                sentence_case(obstacle(data)) or rounds_hint(study, FEW_ROUNDS),
            ),
            1,
        )


def _finish(data: StudyData) -> str:
    """Say how to finish a study, or what has to be done first."""
    return sentence_case(obstacle(data)) or finish_hint(data.study)


def _about_page_cache(study: StudyRow, verdict: StudyVerdict) -> Caveat:
    """Where the cache is what is compared it is no mistake that a level has it."""
    factor = verdict.compared_factor
    if decides_cache(factor):
        return Caveat(
            "page_cache",
            f"in some cells most bytes of a level came from the page cache: {factor} decides that.",
            "Such a level measures memory; judge by the cache share of each level in the report.",
        )
    if has_cold_level(verdict):
        return Caveat(
            "page_cache",
            "in some cells most bytes of a level never reached the device: that level measures"
            " memory.",
            device_hint(study),
        )
    return Caveat(
        "page_cache",
        "most bytes of some cells never reached the device: they measure memory.",
        device_hint(study),
    )


def _about_cells(data: StudyData, verdict: StudyVerdict) -> Iterator[tuple[Caveat, int]]:
    cached = {(c.workload, c.label, c.is_direct) for c in verdict.cells if c.is_page_cache}
    if cached:
        yield _about_page_cache(data.study, verdict), len(cached)
    bound = {(c.workload, c.label, c.is_direct) for c in verdict.cells if c.is_generator_bound}
    if bound:
        yield (
            Caveat(
                "generator_bound",
                "the load generator was the limit in some cells; differences there may be hidden.",
                "Use more workers, larger records or a faster engine.",
            ),
            len(bound),
        )
    left_out = max((c.trials_excluded for c in verdict.headline), default=0)
    if left_out:
        yield (
            Caveat(
                "incomplete_rounds",
                "begun trials were left out of the headline because their round misses a value.",
                _about_missing(data, verdict),
            ),
            left_out,
        )
    cells = max((c.cells_excluded for c in verdict.headline), default=0)
    if cells:
        yield _about_gaps(data, verdict), cells


def _about_missing(data: StudyData, verdict: StudyVerdict) -> str:
    """Say what to do about missing trials: those that failed, or those that nobody has run yet."""
    trials = verdict.trials
    is_open = bool(trials.interrupted + trials.not_run)
    if not trials.failed:
        return _finish(data) if is_open else "Look at the trials that lack a value."
    if always_failed(data) or not is_open or data.study.command:
        return "Look at why their trials failed; leave out levels that one side cannot do."
    return f"Look at why trials failed. {finish_hint(data.study)}"


def _about_gaps(data: StudyData, verdict: StudyVerdict) -> Caveat:
    first = verdict.headline[0]
    shared, total = shared_cells(verdict, first.group, first.metric)
    if shared == total:
        return Caveat(
            "cells_excluded",
            "cells without enough pairs were left out of the headline.",
            _about_missing(data, verdict),
        )
    return Caveat(
        "cells_excluded",
        "levels do not meet in every cell: each ratio rests on the cells that both levels have,"
        f" absolute values and what may be best on the {shared} of {total} that all have.",
        "A level was never measured there, or its trials failed."
        if verdict.trials.failed
        else "A level was never measured there.",
    )
