"""Power that a finished study predicts for the next one like it: rounds, medians, length of trials.

Nothing here changes a verdict. The noise is the study's own, pooled as the verdict pools it: Stein
and the power of the rule turn it into rounds, CONFIRM asks how many rounds would have told each
treatment's median, Kalibera and Jones at which level repetition pays.
"""

from __future__ import annotations

import math
from typing import Final

from iolab.frozen import frozen
from iolab.stats.ledger import Ledger, build_ledger
from iolab.stats.methods.confirm import confirm
from iolab.stats.methods.stein import PILOT_MIN, stein_rounds
from iolab.stats.methods.student import estimate_mean, spread_bound
from iolab.stats.methods.verdict_rule import SPREAD_CONFIDENCE, Word
from iolab.stats.planning import Noise, RoundsNeeded, needed
from iolab.stats.repetition import TrialLength, trial_lengths
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.store.rows import StudyData

MEDIAN_SHARE: Final = 0.03
"""Half width to which medians shall be known."""


@frozen
class LevelNoise:
    """The noise of one level against the baseline, and what it asks for."""

    level: str
    baseline: str
    kind: str
    """Class of the cells; empty where the workload has only one."""
    word: Word
    n_rounds: int
    sd: float
    sd_upper: float
    """Upper 80 % bound; what is planned with."""
    needed: RoundsNeeded
    n_for_width: int | None
    """Rounds for an interval of ± the margin, by the first eight (Stein); None below eight."""


@frozen
class Medians:
    """After how many rounds the medians of the treatments were known (CONFIRM)."""

    share: float
    n_rounds: int
    """Of the shortest treatment."""
    known: dict[str, int]
    """Treatment -> rounds that suffice."""
    unknown: list[str]
    """Treatments whose rounds do not suffice."""


@frozen
class LookBack:
    """Everything a study says about the next one."""

    margin: float
    levels: list[LevelNoise]
    medians: Medians | None
    """Medians; None below ten rounds."""
    lengths: list[TrialLength]


def look_back(data: StudyData, verdict: StudyVerdict) -> LookBack:
    """Look back at a judged study."""
    ledger = build_ledger(data)
    headline = [c for c in verdict.headline if c.rounds_used > 1]
    return LookBack(
        data.study.margin,
        [_level(c, data.study.margin, len(headline)) for c in headline],
        _medians(ledger),
        trial_lengths(ledger),
    )


def _level(comparison: Comparison, margin: float, family: int) -> LevelNoise:
    ratios = comparison.round_ratios
    logs = [math.log(ratios[r]) for r in sorted(ratios)]
    estimate = estimate_mean(logs)
    upper = spread_bound(estimate, SPREAD_CONFIDENCE) or 0.0
    width = None
    if len(logs) >= PILOT_MIN:
        width = stein_rounds(
            logs[:PILOT_MIN], math.log1p(margin), confidence=1 - 0.05 / family
        ).n_total
    return LevelNoise(
        comparison.level,
        comparison.baseline,
        comparison.kind,
        comparison.effect.word,
        len(logs),
        estimate.sd or 0.0,
        upper,
        needed(Noise(upper, "this study"), margin, family, None),
        width,
    )


def _medians(ledger: Ledger) -> Medians | None:
    known: dict[str, int] = {}
    unknown: list[str] = []
    fewest: int | None = None
    for group in ledger.groups():
        metric = ledger.primary_metric(group)
        if metric is None:
            continue
        for key, by_level in ledger.cells_of(metric, group).items():
            for level, samples in by_level.items():
                values = [m.value for m in samples.all()]
                found = confirm(values, share=MEDIAN_SHARE)
                if found is None:
                    continue
                name = " · ".join(t for t in (key.operation, level, ledger.label(key)) if t)
                fewest = min(len(values), fewest or len(values))
                if found.n_recommended is None:
                    unknown.append(name)
                else:
                    known[name] = found.n_recommended
    if fewest is None:
        return None
    return Medians(MEDIAN_SHARE, fewest, known, unknown)
