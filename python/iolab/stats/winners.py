"""Levels that win, may win, and have the best mean in how many cells, for every renderer.

Page, terminal, Markdown, workbook and ``verdict.json`` ask here, so that none names a winner that
another does not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.stats.ledger import AnyGroup, CellKey, Group, Ledger
from iolab.stats.metrics import Metric
from iolab.stats.pairing import without_parts
from iolab.stats.secondary_types import WinnerSet
from iolab.stats.summaries import value_over
from iolab.stats.verdict import Comparison, StudyVerdict

EQUAL: Final = 1e-9
"""Means that differ by less, relatively, are one: a sum's order must not make a winner."""
NAMES_MAX: Final = 4


@frozen
class Standing:
    """Standing of the best level of one group."""

    winners: tuple[str, ...]
    """Within the margin of the best, and no other level may be the best; empty if not settled."""
    candidates: tuple[str, ...]
    """Not ruled out as the best."""
    is_joint: bool
    """True if all levels were compared jointly."""


def candidates(
    found: Sequence[WinnerSet], pooled: Sequence[Comparison], group: Group, baseline: str
) -> tuple[tuple[str, ...], bool]:
    """Return the levels that may be the best, and whether all were compared jointly.

    Where no joint procedure was possible (two levels, few rounds) the signs against the baseline
    say it.
    """
    mine = [c for c in pooled if c.group == group]
    barred = barred_levels(mine, baseline)
    for winners in found:
        if winners.group == group and winners.members:
            return tuple(v for v in winners.members if v not in barred), True
    better = tuple(c.level for c in mine if c.effect.sign == "better" and c.level not in barred)
    rest = tuple(c.level for c in mine if c.effect.sign == "none")
    open_ones = (baseline, *rest) if mine else ()
    return better or tuple(v for v in open_ones if v not in barred), False


def barred_levels(found: Sequence[Comparison], baseline: str) -> frozenset[str]:
    """Return the levels that fail too often to win."""
    told = [(c, c.failures) for c in found if c.failures is not None]
    barred = {c.level for c, failures in told if failures.is_level_barred}
    if any(failures.is_baseline_barred for _, failures in told):
        barred.add(baseline)
    return frozenset(barred)


def standing(verdict: StudyVerdict, group: Group) -> Standing:
    """Return who wins and who may in one group."""
    if any(c.effect.word == "depends" for c in verdict.pooled if c.group == group):
        return Standing((), (), is_joint=False)
    for row in verdict.best_levels:
        if row.group == group:
            return Standing(row.members, row.candidates, row.is_joint)
    return Standing((), *candidates([], verdict.pooled, group, verdict.baseline))


def winner_text(verdict: StudyVerdict, group: Group) -> str:
    """Say which levels win or may win; empty if nothing was compared."""
    found = standing(verdict, group)
    pooled = [c for c in verdict.pooled if c.group == group]
    levels = {c.level for c in pooled}
    if not found.candidates or not levels:
        return ""
    if all(c.effect.is_further_rounds_at_least for c in pooled):
        return ""  # Too few rounds to judge by are too few to name the best.
    if any(c.effect.word == "undecided" and c.effect.reason for c in pooled):
        return ""  # What could not have shown a difference shows no equality.
    if len(found.winners) == len(levels) + 1:
        return "all levels are equally good within the margin"
    how = "95 % confidence, all levels jointly" if found.is_joint else "95 % confidence"
    if len(found.candidates) == 1:
        rest = [level for level in found.winners if level not in found.candidates]
        near = f"; within the margin of it: {', '.join(rest)}" if rest else ""
        return f"the best is {found.candidates[0]} ({how}){near}"
    if len(found.candidates) == len(levels) + 1:
        return "no level is ruled out as the best"
    text = f"may be the best: {', '.join(found.candidates)} ({how})"
    return f"{text}; equally good within the margin" if found.winners else text


def winner_rows(verdict: StudyVerdict) -> list[tuple[Group, str]]:
    """Return the groups with what is to be said of their winners."""
    groups = dict.fromkeys(c.group for c in verdict.pooled)
    return [(group, text) for group in groups if (text := winner_text(verdict, group))]


# Best means by cell.


@frozen
class Leads:
    """Levels with the best mean in each cell of a group; equal means are shared."""

    by_cell: dict[CellKey, frozenset[str]]

    @property
    def text(self) -> str:
        """Sentence about the leading level, its number of cells, and identical cells."""
        total = len(self.by_cell)
        alone = Counter(next(iter(v)) for v in self.by_cell.values() if len(v) == 1)
        shared = Counter(v for v in self.by_cell.values() if len(v) > 1)
        cells = f"{total} cells"
        parts: list[str] = []
        if alone:
            leader, count = max(alone.items(), key=lambda item: item[1])
            where = next(iter(self.by_cell)).operation if total == 1 else f"{count} of {cells}"
            parts.append(f"{leader} has the best mean in {where}")
        for levels, count in shared.most_common(1):
            names = sorted(levels)
            shown = ", ".join(names[:NAMES_MAX])
            more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
            verb = "are equal to the last digit, and best,"
            parts.append(f"{shown}{more} {verb} in {count}{'' if alone else f' of {cells}'}")
        return "; ".join(parts)


def leads(ledger: Ledger, group: AnyGroup, metric: Metric) -> Leads:
    """Find the best mean of every cell that the verdict is about."""
    cells = without_parts(ledger.cells_asked(metric, group))
    found: dict[CellKey, frozenset[str]] = {}
    for key, by_level in cells.items():
        means = {level: value_over(metric, samples.all()) for level, samples in by_level.items()}
        best = (max if metric.is_higher_better else min)(means.values())
        found[key] = frozenset(v for v in means if math.isclose(means[v], best, rel_tol=EQUAL))
    return Leads(found)
