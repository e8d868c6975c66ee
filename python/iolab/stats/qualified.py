"""Conditions of a word besides its interval: agreement of cells, what was measured, who failed.

The rule gives a word for the mean over cells. It becomes `depends` where cells disagree beyond the
margin, and is withheld (`undecided`, with the reason) where the measurement could not have shown
the difference (the load generator, the page cache or a rate was the limit: `same`), or where the
side that looks better is the one whose trials fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.stats.effect import undecided
from iolab.stats.ledger import CellKey, level_text
from iolab.stats.methods.interaction import Direction, disagreement
from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.student import MeanEstimate
from iolab.stats.verdict import CellGroup, Effect, Failures
from iolab.store.rows import TrialRow
from iolab.wording import counted

FAILED_SHARE_MAX: Final = 0.10
"""A level that fails more often is never better, and never wins."""
FAILED_P_MAX: Final = 0.05
NAMES_MAX: Final = 3


# Cells that disagree.


@frozen
class CellResult:
    """One cell of a pooled comparison."""

    key: CellKey
    label: str
    estimate: MeanEstimate


def disagreeing(
    cells: Sequence[CellResult], p: float | None, margin: float
) -> tuple[CellGroup, ...]:
    """Return the groups of cells that disagree, the largest gain first; empty if none do."""
    sides = disagreement([cell.estimate for cell in cells], p, margin)
    groups: dict[Direction, list[CellResult]] = {
        side: [c for c, s in zip(cells, sides, strict=True) if s == side] for side in set(sides)
    }
    found = [
        CellGroup(
            common_name([c.key for c in mine], [c.key for c in cells], [c.label for c in mine]),
            side,
            ratio_of_log(math.fsum(c.estimate.mean for c in mine) / len(mine)),
            len(mine),
        )
        for side, mine in groups.items()
    ]
    return tuple(sorted(found, key=lambda group: -group.ratio))


def common_name(mine: Sequence[CellKey], every: Sequence[CellKey], labels: Sequence[str]) -> str:
    """Name cells by the levels of one factor, if those are all cells with them; else one by one."""
    if len({key.operation for key in every}) > 1:
        operations = dict.fromkeys(key.operation for key in mine)
        if sum(key.operation in operations for key in every) == len(mine):
            return _listed(list(operations))
    for name in dict.fromkeys(n for key in every for n, _ in key.levels):
        levels = dict.fromkeys(dict(key.levels).get(name) for key in mine)
        if len({dict(key.levels).get(name) for key in every}) < 2 or None in levels:
            continue
        if sum(dict(key.levels).get(name) in levels for key in every) == len(mine):
            return _listed([level_text(name, level) for level in levels if level is not None])
    return _listed(labels)


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - NAMES_MAX
    if rest > 0:
        return f"{', '.join(names[:NAMES_MAX])} and {rest} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def is_only_on_average(cells: Sequence[MeanEstimate], margin: float) -> bool:
    """Say whether some cell is not shown to be within the margin, all cells held jointly."""
    edge, confidence = math.log1p(margin), 1 - 0.10 / max(1, len(cells))
    return len(cells) > 1 and any(
        abs(cell.mean) + cell.half_width(confidence) >= edge for cell in cells
    )


# What could not have been shown.


@frozen
class Censored:
    """Cells in which something else than the compared factor was the limit."""

    generator: int = 0
    cache: int = 0
    rate: int = 0

    @property
    def reason(self) -> str:
        """Reason why `same` cannot be said; empty if it can."""
        what = [
            text
            for n, text in (
                (self.generator, "the load generator"),
                (self.rate, "the rate that was asked for"),
                (self.cache, "the page cache"),
            )
            if n
        ]
        if not what:
            return ""
        return (
            f"{' and '.join(what)} was the limit, so that a difference between levels could not"
            " show"
        )


def without_censored(effect: Effect, censored: Censored) -> Effect:
    """Withhold `same` and `trivial` where a difference could not have shown."""
    if effect.word in ("same", "trivial") and censored.reason:
        return undecided(effect, censored.reason)
    return effect


# Trials that fail.

_Tried = Mapping[tuple[tuple[str, str], ...], Sequence[TrialRow]]
"""Levels of a cell -> trials of one level that ended."""
Begun = Mapping[tuple[str, tuple[tuple[str, str], ...], str | None], Sequence[TrialRow]]


def failures_of(
    begun: Begun, workload: str, level: str, baseline: str, log_ratios: Mapping[int, float]
) -> Failures | None:
    """Count the failed trials of both sides in one workload; None if none failed."""
    sides = [_tried(begun, workload, name) for name in (level, baseline)]
    counts = [
        (sum(t.status == "failed" for t in found), len(found))
        for found in ([t for trials in side.values() for t in trials] for side in sides)
    ]
    if not counts[0][0] and not counts[1][0]:
        return None
    barred = [_is_barred(counts[i], counts[1 - i], sides[i], sides[1 - i]) for i in (0, 1)]
    won, told = _rounds_won(sides, log_ratios)
    return Failures(*counts[0], *counts[1], *barred, rounds_won=won, rounds_told=told)


def _tried(begun: Begun, workload: str, level: str) -> _Tried:
    return {
        place[1]: [t for t in trials if t.status in ("ok", "failed")]
        for place, trials in begun.items()
        if place[0] == workload and place[2] == level
    }


def _is_barred(
    ours: tuple[int, int],
    theirs: tuple[int, int],
    cells: _Tried,
    others: _Tried,
) -> bool:
    """Say whether a side fails too often to be called better."""
    for place, trials in cells.items():
        is_missing = bool(trials) and all(t.status == "failed" for t in trials)
        if is_missing and any(t.status == "ok" for t in others.get(place, ())):
            return True
    if ours[0] > FAILED_SHARE_MAX * ours[1]:
        return True
    return more_failures_p(ours, theirs) < FAILED_P_MAX


def more_failures_p(ours: tuple[int, int], theirs: tuple[int, int]) -> float:
    """Return the one-sided p of "we fail no more often" (Fisher's exact test).

    Source: Fisher (1922), Journal of the Royal Statistical Society 85(1).

    Parameters
    ----------
    ours, theirs : failed and all trials.
    """
    failed, total = ours[0] + theirs[0], ours[1] + theirs[1]
    whole = math.comb(total, ours[1])
    return sum(
        math.comb(failed, k) * math.comb(total - failed, ours[1] - k)
        for k in range(ours[0], min(failed, ours[1]) + 1)
    ) / max(1, whole)


def _rounds_won(sides: Sequence[_Tried], log_ratios: Mapping[int, float]) -> tuple[int, int]:
    """Count the rounds in which the first side is ahead, a failed trial counting as the worst."""
    failed = [{t.round for ts in s.values() for t in ts if t.status == "failed"} for s in sides]
    lost, gained = failed[0] - failed[1], failed[1] - failed[0]
    known = {r: v for r, v in log_ratios.items() if r not in lost | gained}
    won = len(gained) + sum(value > 0 for value in known.values())
    return won, len(lost | gained) + len(known)


def without_failing(effect: Effect, failures: Failures | None) -> Effect:
    """Withhold `better` and `worse` where the side ahead is the one whose trials fail."""
    if failures is None:
        return effect
    if effect.word == "better" and failures.is_level_barred:
        return undecided(effect, _failing(failures.level_failed, failures.level_trials))
    if effect.word == "worse" and failures.is_baseline_barred:
        said = _failing(failures.baseline_failed, failures.baseline_trials)
        return undecided(effect, f"of the baseline {said}")
    return effect


def _failing(failed: int, trials: int) -> str:
    return f"{failed} of {counted(trials, 'trial')} failed, so that the rest are no fair sample"
